"""The submit form: fields as the API names them, each error beside its field, and what to expect of the job before it is submitted."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html, no_update

from frontend.api import Api, Failure, said
from frontend.components.cards import card, error_state, facts, graph, page_title
from frontend.components.notices import notice
from frontend.figures.base import empty_figure, error_figure
from frontend.figures.goodput import goodput_figure
from frontend.formatting import duration, number, plural
from frontend.problems import worded
from frontend.routing import add_page, submits
from frontend.shell import NO_CLUSTER
from frontend.theme import gpu_order
from maat.client import ApiError, calls
from maat.client.resources import JobBody, WorkloadKind

FIELDS = (
    "name",
    "model",
    "adaptivity",
    "gpu_count",
    "min_gpus",
    "max_gpus",
    "batch_size",
    "max_batch_size",
    "work_scale",
    "gpu_types",
    "external_id",
    "workload_kind",
    "promised_seconds",
)
PREVIEW_GPUS = 16
MAX_PREVIEW_GPUS = 64
ADAPTIVITY = (
    ("adaptive", "GPUs and batch size"),
    ("strong-scaling", "GPUs only"),
    ("rigid", "Nothing"),
)
KINDS = (
    ("training", "Training"),
    ("batch-inference", "Batch inference"),
    ("latency-inference", "Latency-bound inference"),
)


def _field_id(name: str) -> str:
    return "submit-" + name.replace("_", "-")


def layout(**_query: Any) -> html.Div:
    form = html.Div(
        [
            html.Div(id="submit-problem"),
            dmc.TextInput(id="submit-name", label="Name", placeholder="resnet18-lr-sweep-3", withAsterisk=True),
            dmc.Select(
                id="submit-model",
                label="Model",
                data=[],
                searchable=True,
                withAsterisk=True,
                allowDeselect=False,
                comboboxProps={"transitionProps": {"duration": 0}},
            ),
            html.Div(
                [
                    dmc.Select(
                        id="submit-workload-kind",
                        label="What it does",
                        data=[{"value": value, "label": label} for value, label in KINDS],
                        value="training",
                        allowDeselect=False,
                    ),
                    dmc.NumberInput(
                        id="submit-promised-seconds",
                        label="Promised for a batch (s)",
                        placeholder="only then",
                        value="",
                        min=0,
                        step=0.1,
                        decimalScale=6,
                        disabled=True,
                    ),
                ],
                className="form-row",
            ),
            html.Div(
                [
                    html.Label(
                        "What Maat may vary, besides the GPU type", className="mantine-InputWrapper-label", htmlFor="submit-adaptivity"
                    ),
                    dmc.SegmentedControl(
                        id="submit-adaptivity",
                        data=[{"value": value, "label": label} for value, label in ADAPTIVITY],
                        value="adaptive",
                        fullWidth=True,
                        size="xs",
                        transitionDuration=0,
                    ),
                    html.Div(id="submit-adaptivity-error", className="form-error"),
                ]
            ),
            html.Div(
                [
                    _integer("gpu_count", "GPUs", "exactly this many"),
                    _integer("min_gpus", "At least (GPUs)", "", value=1),
                    _integer("max_gpus", "At most (GPUs)", "no limit"),
                ],
                className="form-row",
            ),
            html.Div(
                [
                    _integer("batch_size", "Batch size (samples)", "the model's own"),
                    _integer("max_batch_size", "Largest batch size (samples)", "the model's own"),
                ],
                className="form-row",
            ),
            html.Div(
                [
                    dmc.MultiSelect(id="submit-gpu-types", label="GPU types", data=[], placeholder="any", clearable=True),
                    dmc.NumberInput(id="submit-work-scale", label="Work (× standard training)", value=1, min=0, step=0.1, decimalScale=4),
                ],
                className="form-row",
            ),
            html.Div(
                [
                    dmc.TextInput(id="submit-external-id", label="Your own id", placeholder="optional, unique"),
                    dmc.Switch(id="submit-preemptible", label="May be preempted", checked=True, mt=26),
                ],
                className="form-row",
            ),
            dmc.Group(
                [dmc.Button("Submit job", id="submit-button", n_clicks=0), html.Span("Enter submits", className="hint")], gap=12, mt=4
            ),
        ],
        className="form-stack",
        **submits("submit-button"),
    )
    preview = card(
        "Predicted goodput",
        [
            graph("submit-preview", height=340),
            html.Div(id="submit-expect", className="legend", style={"minHeight": "20px"}),
            html.Div(id="submit-model-facts"),
        ],
        className="span-7",
    )
    return html.Div(
        [
            page_title("Submit a job"),
            html.Div([card("Job", form, className="span-5"), preview], className="columns"),
            dcc.Store(id="submit-key", data=uuid4().hex),
            dcc.Store(id="submit-models", data=[]),
        ]
    )


def _integer(name: str, label: str, placeholder: str, value: int | str = "") -> dmc.NumberInput:
    return dmc.NumberInput(
        id=_field_id(name),
        label=label,
        placeholder=placeholder,
        value=value,
        min=1,
        step=1,
        allowDecimal=False,
        clampBehavior="none",
        debounce=300,
    )


def register(app: Dash, api: Api) -> None:
    add_page(__name__, path="/submit", name="Submit", title="Submit", order=3, layout=layout)

    @app.callback(
        Output("submit-models", "data"),
        Output("submit-model", "data"),
        Output("submit-model", "value"),
        Output("submit-gpu-types", "data"),
        Input("cluster-select", "value"),
        State("submit-model", "value"),
    )
    async def offer(cluster_id: str | None, chosen: str | None) -> tuple[Any, ...]:
        """Models, and the GPU types of the cluster that the job goes to."""
        try:
            async with api.visitor() as maat:
                models = (await maat.send(calls.models()))["items"]
                there = (
                    set()
                    if cluster_id in (None, NO_CLUSTER)
                    else set((await maat.send(calls.cluster_state(cluster_id)))["capacity_by_type"])
                )
        except Failure:
            return (no_update,) * 4
        choices = [{"value": model["name"], "label": f"{model['title']} · {model['dataset']}"} for model in models]
        types = gpu_order(
            name for name in {entry["gpu_type"] for model in models for entry in model["gpu_types"]} if not there or name in there
        )
        kept = [
            {name: model[name] for name in ("name", "initial_batch_size", "max_batch_size", "restart_seconds", "gpu_types")}
            for model in models
        ]
        return kept, choices, chosen or (models[0]["name"] if models else None), types

    @app.callback(
        Output("submit-gpu-count", "disabled"),
        Output("submit-min-gpus", "disabled"),
        Output("submit-max-gpus", "disabled"),
        Output("submit-max-batch-size", "disabled"),
        Output("submit-batch-size", "disabled"),
        Output("submit-promised-seconds", "disabled"),
        Input("submit-adaptivity", "value"),
        Input("submit-workload-kind", "value"),
    )
    async def shape(adaptivity: str, kind: str) -> tuple[bool, ...]:
        """Fields that mean nothing for this kind of job cannot be filled in."""
        empty = meaningless(adaptivity, kind)
        return tuple(name in empty for name in ("gpu_count", "min_gpus", "max_gpus", "max_batch_size", "batch_size", "promised_seconds"))

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
        offered: list[str],
        models: list[dict[str, Any]],
    ) -> tuple[Any, Any, Any]:
        if not scheme:
            return no_update, no_update, no_update
        if not model:
            return empty_figure(scheme, "Choose a model", "Its goodput on each GPU type shows here.", height=340), "", ""
        rigid = adaptivity == "rigid"
        wanted = _whole(gpu_count) if rigid else _whole(max_gpus)
        known = next((entry for entry in models or [] if entry["name"] == model), None)
        runs_on = {entry["gpu_type"] for entry in known["gpu_types"]} if known else set()
        query = calls.goodput(
            model,
            gpu_types=gpu_types or [name for name in offered if name in runs_on] or None,
            max_gpus=min(wanted or PREVIEW_GPUS, MAX_PREVIEW_GPUS),
            batch_size=None if "batch_size" in meaningless(adaptivity, kind) else _whole(batch_size),
            workload_kind=kind,
        )
        try:
            async with api.visitor() as maat:
                answer = await maat.send(query)
        except Failure as error:
            return error_figure(scheme, *said(error), height=340), "", _model_facts(known)
        expected = _promises(answer["series"], promised) if kind == "latency-inference" else _expectation(answer["series"])
        drawn = goodput_figure(answer["series"], scheme=scheme, height=340, learns=kind == "training")
        return drawn, expected, _model_facts(known)

    @app.callback(
        output={
            "errors": {
                name: Output(
                    _field_id(name) if name != "adaptivity" else "submit-adaptivity-error", "error" if name != "adaptivity" else "children"
                )
                for name in FIELDS
            },
            "problem": Output("submit-problem", "children"),
            "go": Output("navigate", "href", allow_duplicate=True),
            "notices": Output("notices", "sendNotifications", allow_duplicate=True),
            "key": Output("submit-key", "data", allow_duplicate=True),
        },
        inputs={"clicks": Input("submit-button", "n_clicks")},
        state={
            "values": {name: State(_field_id(name), "value") for name in FIELDS},
            "preemptible": State("submit-preemptible", "checked"),
            "cluster_id": State("cluster-select", "value"),
            "key": State("submit-key", "data"),
        },
        prevent_initial_call=True,
        running=[(Output("submit-button", "loading"), True, False)],
    )
    async def submit(clicks: int | None, values: dict[str, Any], preemptible: bool, cluster_id: str | None, key: str) -> dict[str, Any]:
        answer: dict[str, Any] = {
            "errors": dict.fromkeys(FIELDS, ""),
            "problem": None,
            "go": no_update,
            "notices": no_update,
            "key": no_update,
        }
        if not clicks:
            return {**answer, "errors": dict.fromkeys(FIELDS, no_update)}
        try:
            async with api.visitor() as maat:
                job = await maat.send(
                    calls.submit_job(body_of(values, preemptible=preemptible, cluster_id=cluster_id), idempotency_key=key)
                )
        except Failure as error:
            problems = error.errors if isinstance(error, ApiError) else ()
            beside = {problem.field: worded(problem, empty_name="Give the job a name.") for problem in problems if problem.field in FIELDS}
            elsewhere = None if beside and len(beside) == len(getattr(error, "errors", ())) else error_state(error)
            return {**answer, "errors": {**answer["errors"], **beside}, "problem": elsewhere, "key": uuid4().hex}
        return {**answer, "go": f"/jobs/{job['id']}", "notices": notice(f"{job['name']} submitted", "The next round considers it.")}


def body_of(values: dict[str, Any], *, preemptible: bool, cluster_id: str | None) -> JobBody:
    """The form as the API's body: empty fields are left out, fields that mean nothing for this kind of job too."""
    empty = meaningless(values["adaptivity"], values["workload_kind"])
    body = {name: value for name, value in values.items() if name not in empty and value not in ("", None, [])}
    if cluster_id and cluster_id != NO_CLUSTER:
        body["cluster_id"] = cluster_id
    return {"name": values["name"] or "", "model": values["model"] or "", **body, "preemptible": preemptible}  # type: ignore[typeddict-item]


def meaningless(adaptivity: str, kind: str) -> set[str]:
    """Fields that say nothing of such a job. Latency-bound inference has its batch whatever else may vary: the requests that it answers together."""
    bound = kind == "latency-inference"
    by_adaptivity = {
        "rigid": {"min_gpus", "max_gpus", "max_batch_size"},
        "strong-scaling": {"gpu_count", "max_batch_size"},
        "adaptive": {"gpu_count", "batch_size"},
    }[adaptivity]
    return (by_adaptivity - {"batch_size"} | {"max_batch_size"}) if bound else by_adaptivity | {"promised_seconds"}


def _whole(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) and value >= 1 else None


def _expectation(series: list[Any]) -> Any:
    """The best point of each GPU type, in words."""
    best = [(line["gpu_type"], max(line["points"], key=lambda point: point["goodput"])) for line in series if line["points"]]
    return [
        html.Span(
            f"{gpu_type}: best with {point['gpu_count']} GPUs, {number(point['goodput'])} effective samples/s, batch {point['total_batch_size']}"
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
        words.append(html.Span(f"{line['gpu_type']}: " + (f"kept with {plural(kept[0], 'GPU')}" if kept else "not kept")))
    return words


def _model_facts(model: dict[str, Any] | None) -> Any:
    if model is None:
        return ""
    on = ", ".join(entry["gpu_type"] for entry in model["gpu_types"])
    return html.Div(
        facts(
            [
                ("Batch size", f"{model['initial_batch_size']} at first, {model['max_batch_size']} at most (samples)"),
                ("A restart takes", duration(model["restart_seconds"])),
                ("Runs on", on),
            ]
        ),
        style={"marginTop": "12px"},
    )
