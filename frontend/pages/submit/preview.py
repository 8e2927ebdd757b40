"""The goodput that the job of the submit form would have on each GPU type."""

from __future__ import annotations

from functools import partial

from dash import Dash, Input, Output, State, html
from dash.development.base_component import Component, ComponentType

from frontend.api import Api, Failure, error_message
from frontend.callbacks import NOTHING, Changes, answer
from frontend.components.cards import card, facts, graph
from frontend.figures.goodput import goodput_figure
from frontend.formatting import count, duration, number, plural
from frontend.pages.submit.fields import field_id
from frontend.pages.submit.model import (
    LATENCY,
    Capacity,
    Model,
    meaningless,
    most_gpus,
    named_model,
)
from maat.api.models import GoodputSeries
from maat.client import calls
from maat.figures.base import empty_figure, error_figure
from maat.vocabulary import WorkloadKind

HEIGHT = 340
PREVIEW_GPUS = 16
MAX_PREVIEW_GPUS = 64
FIELDS = {
    **{
        name: (field_id(name), "value")
        for name in ("model", "gpu_types", "min_gpus", "max_gpus", "gpu_count", "batch_size")
    },
    "adaptivity": ("submit-adaptivity", "value"),
    "kind": ("submit-workload-kind", "value"),
    "promised": ("submit-promised-seconds", "value"),
    "scheme": ("scheme", "data"),
}
"""Name of what the goodput follows -> the component and the property that hold it."""
SHOWN_PREVIEW = {
    "figure": ("submit-preview", "figure"),
    "expected": ("submit-expect", "children"),
    "facts": ("submit-model-facts", "children"),
}
"""Name of what is told of the goodput -> the component and the property that show it."""


def preview_card() -> Component:
    return card(
        "Predicted goodput",
        [
            graph("submit-preview", height=HEIGHT),
            html.Div(id="submit-expect", className="legend", style={"minHeight": "20px"}),
            html.Div(id="submit-model-facts"),
        ],
    )


def register(app: Dash, api: Api) -> None:
    answer(
        app,
        partial(preview, api),
        output={name: Output(*place) for name, place in SHOWN_PREVIEW.items()},
        inputs={
            **{name: Input(*place) for name, place in FIELDS.items()},
            "offered": Input("submit-gpu-types", "data"),
        },
        state={
            "models": State("submit-models", "data"),
            "capacity": State("submit-capacity", "data"),
        },
    )


async def preview(
    api: Api,
    *,
    model: str | None,
    gpu_types: list[str] | None,
    min_gpus: object,
    max_gpus: object,
    gpu_count: object,
    batch_size: object,
    adaptivity: str,
    kind: WorkloadKind,
    promised: object,
    scheme: str | None,
    offered: list[dict[str, str]],
    models: list[Model],
    capacity: Capacity | None,
) -> Changes:
    """Show the goodput that the job would have on each GPU type."""
    if not scheme:
        return NOTHING
    if not model:
        words = ("Choose a model", "Its goodput on each GPU type shows here.")
        figure = empty_figure(scheme, *words, height=HEIGHT)
        return {"figure": figure, "expected": "", "facts": ""}
    known = named_model(models, model)
    rigid = adaptivity == "rigid"
    wanted, least = _whole(gpu_count if rigid else max_gpus), 1 if rigid else _whole(min_gpus) or 1
    most = most_gpus(known, gpu_types, capacity)
    query = calls.goodput(
        model,
        gpu_types=gpu_types or [entry["value"] for entry in offered] or None,
        max_gpus=min(wanted or max(PREVIEW_GPUS, least), most or PREVIEW_GPUS, MAX_PREVIEW_GPUS),
        batch_size=None if "batch_size" in meaningless(adaptivity, kind) else _whole(batch_size),
        workload_kind=kind,
    )
    facts_now = _model_facts(known, offered)
    try:
        async with api.visitor() as maat:
            found = await maat.send(query)
    except Failure as error:
        figure = error_figure(scheme, *error_message(error), height=HEIGHT)
        return {"figure": figure, "expected": "", "facts": facts_now}
    series = there(found["series"], capacity)
    return {
        "figure": goodput_figure(series, scheme=scheme, height=HEIGHT, learns=kind == "training"),
        "expected": _promises(series, promised) if kind == LATENCY else expectation(series, least),
        "facts": facts_now,
    }


def _whole(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) and value >= 1 else None


def there(series: list[GoodputSeries], capacity: Capacity | None) -> list[GoodputSeries]:
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


def expectation(series: list[GoodputSeries], least: int) -> list[html.Span]:
    """The best point of each GPU type, of those with at least so many GPUs, in words."""
    best = [
        (line["gpu_type"], max(points, key=lambda point: point["goodput"]))
        for line in series
        if (points := [point for point in line["points"] if point["gpu_count"] >= least])
    ]
    return [
        html.Span(
            f"{gpu_type}: best with {plural(point['gpu_count'], 'GPU')}, "
            f"{number(point['goodput'])} effective samples/s, "
            f"batch {count(point['total_batch_size'])}"
        )
        for gpu_type, point in best
    ]


def _promises(series: list[GoodputSeries], promised: object) -> list[html.Span]:
    """From how many GPUs of each type on a batch is served within the promise, in words."""
    if not isinstance(promised, int | float) or promised <= 0:
        words = "Give the batch size and the seconds that are promised for it."
        return [html.Span(words)]
    kept_on = []
    for line in series:
        kept = [point["gpu_count"] for point in line["points"] if point["step_seconds"] <= promised]
        kept_on.append(
            html.Span(
                f"{line['gpu_type']}: "
                + (f"kept with {plural(kept[0], 'GPU')}" if kept else "not kept")
            )
        )
    return kept_on


def _model_facts(model: Model | None, offered: list[dict[str, str]]) -> ComponentType:
    if model is None:
        return ""
    first, most = count(model["initial_batch_size"]), count(model["max_batch_size"])
    told = [
        ("Batch size", f"{first} at first, {most} at most (samples)"),
        ("A restart takes", duration(model["restart_seconds"])),
        ("Runs here on", ", ".join(entry["label"] for entry in offered)),
    ]
    return html.Div(facts(told), style={"marginTop": "12px"})
