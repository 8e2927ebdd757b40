"""What to expect of the job in the submit form before it is submitted: its goodput on each GPU type, in a chart and in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dash import Dash, Input, Output, State, html, no_update

from frontend.api import Api, Failure, said
from frontend.components.cards import card, facts, graph
from frontend.components.job_form import LATENCY, meaningless, most_gpus
from frontend.components.submit_fields import named_model
from frontend.figures.base import empty_figure, error_figure
from frontend.figures.goodput import goodput_figure
from frontend.formatting import count, duration, number, plural
from maat.client import calls
from maat.vocabulary import WorkloadKind

PREVIEW_GPUS = 16
MAX_PREVIEW_GPUS = 64


def preview_card() -> Any:
    return card(
        "Predicted goodput",
        [
            graph("submit-preview", height=340),
            html.Div(id="submit-expect", className="legend", style={"minHeight": "20px"}),
            html.Div(id="submit-model-facts"),
        ],
        className="span-7",
    )


def register(app: Dash, api: Api) -> None:
    @app.callback(
        Output("submit-preview", "figure"),
        Output("submit-expect", "children"),
        Output("submit-model-facts", "children"),
        Input("submit-model", "value"),
        Input("submit-gpu-types", "value"),
        Input("submit-max-gpus", "value"),
        Input("submit-gpu-count", "value"),
        Input("submit-batch-size", "value"),
        Input("submit-adaptivity", "value"),
        Input("submit-workload-kind", "value"),
        Input("submit-promised-seconds", "value"),
        Input("scheme", "data"),
        Input("submit-gpu-types", "data"),
        State("submit-models", "data"),
        State("submit-capacity", "data"),
    )
    async def preview(
        model: str | None,
        gpu_types: list[str] | None,
        max_gpus: Any,
        gpu_count: Any,
        batch_size: Any,
        adaptivity: str,
        kind: WorkloadKind,
        promised: Any,
        scheme: str | None,
        offered: list[dict[str, str]],
        models: list[dict[str, Any]],
        capacity: dict[str, int] | None,
    ) -> tuple[Any, Any, Any]:
        if not scheme:
            return no_update, no_update, no_update
        if not model:
            return (
                empty_figure(
                    scheme, "Choose a model", "Its goodput on each GPU type shows here.", height=340
                ),
                "",
                "",
            )
        known = named_model(models, model)
        wanted = _whole(gpu_count) if adaptivity == "rigid" else _whole(max_gpus)
        most = min(
            wanted or PREVIEW_GPUS,
            most_gpus(known, gpu_types, capacity) or PREVIEW_GPUS,
            MAX_PREVIEW_GPUS,
        )
        query = calls.goodput(
            model,
            gpu_types=gpu_types or [entry["value"] for entry in offered] or None,
            max_gpus=most,
            batch_size=None
            if "batch_size" in meaningless(adaptivity, kind)
            else _whole(batch_size),
            workload_kind=kind,
        )
        try:
            async with api.visitor() as maat:
                answer = await maat.send(query)
        except Failure as error:
            return error_figure(scheme, *said(error), height=340), "", _model_facts(known, offered)
        series = there(answer["series"], capacity)
        expected = _promises(series, promised) if kind == LATENCY else _expectation(series)
        drawn = goodput_figure(series, scheme=scheme, height=340, learns=kind == "training")
        return drawn, expected, _model_facts(known, offered)


def _whole(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) and value >= 1 else None


def there(series: list[Any], capacity: dict[str, int] | None) -> list[Any]:
    """Without the GPU counts that the cluster has not; all of them where no cluster is known."""
    if not capacity:
        return series
    return [
        {
            **line,
            "points": [
                p for p in line["points"] if p["gpu_count"] <= capacity.get(line["gpu_type"], 0)
            ],
        }
        for line in series
    ]


def _expectation(series: list[Any]) -> Any:
    """The best point of each GPU type, in words."""
    best = [
        (line["gpu_type"], max(line["points"], key=lambda point: point["goodput"]))
        for line in series
        if line["points"]
    ]
    return [
        html.Span(
            f"{gpu_type}: best with {plural(point['gpu_count'], 'GPU')}, {number(point['goodput'])} effective samples/s, "
            f"batch {count(point['total_batch_size'])}"
        )
        for gpu_type, point in best
    ]


def _promises(series: list[Any], promised: Any) -> Any:
    """From how many GPUs of each type on a batch is served within the promise, in words."""
    if not isinstance(promised, int | float) or promised <= 0:
        return html.Span("Give the batch size and the seconds that are promised for it.")
    words = []
    for line in series:
        kept = [point["gpu_count"] for point in line["points"] if point["step_seconds"] <= promised]
        words.append(
            html.Span(
                f"{line['gpu_type']}: "
                + (f"kept with {plural(kept[0], 'GPU')}" if kept else "not kept")
            )
        )
    return words


def _model_facts(model: Mapping[str, Any] | None, offered: list[dict[str, str]]) -> Any:
    if model is None:
        return ""
    first, most = count(model["initial_batch_size"]), count(model["max_batch_size"])
    told = [
        ("Batch size", f"{first} at first, {most} at most (samples)"),
        ("A restart takes", duration(model["restart_seconds"])),
        ("Runs here on", ", ".join(entry["label"] for entry in offered)),
    ]
    return html.Div(facts(told), style={"marginTop": "12px"})
