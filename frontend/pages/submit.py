"""The submit form: what a job needs to say and no more, every error beside its field, and what to expect of the job before it is submitted."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html, no_update

from frontend.addresses import add_page, anything
from frontend.api import Api, Failure, said
from frontend.components.cards import card, error_state, facts, graph, page_title
from frontend.components.job_form import (
    ADAPTIVITY,
    FIELDS,
    KINDS,
    LABELS,
    LATENCY,
    body_of,
    capacity_of,
    meaningless,
    most_gpus,
    refused,
    still_wrong,
    types_of,
    unfinished,
    values_like,
)
from frontend.components.notices import notice
from frontend.figures.base import empty_figure, error_figure
from frontend.figures.goodput import goodput_figure
from frontend.formatting import count, duration, number, plural
from frontend.routing import in_browser, one, submits
from frontend.shell import NO_CLUSTER
from frontend.theme import gpu_order
from maat.client import ApiError, calls
from maat.client.resources import WorkloadKind

PREVIEW_GPUS = 16
MAX_PREVIEW_GPUS = 64
SHAPED = ("gpu_count", "min_gpus", "max_gpus", "batch_size", "max_batch_size", "promised_seconds")
HIDDEN, SHOWN = {"display": "none"}, {"display": "block"}


def _field_id(name: str) -> str:
    return "submit-" + name.replace("_", "-")


def _box_id(name: str) -> str:
    return _field_id(name) + "-box"


def layout(like: Any = None, remedy: Any = None, **_query: Any) -> html.Div:
    form = html.Div(
        [
            html.Div(id="submit-problem"),
            html.Div(id="submit-like-note"),
            dmc.Switch(
                id="submit-replace",
                label="Cancel that job once this one is submitted",
                checked=bool(remedy),
                style=HIDDEN,
            ),
            dmc.TextInput(
                id="submit-name",
                label=LABELS["name"],
                placeholder="resnet18-lr-sweep-3",
                withAsterisk=True,
                debounce=300,
            ),
            dmc.Select(
                id="submit-model",
                label=LABELS["model"],
                data=[],
                searchable=True,
                withAsterisk=True,
                allowDeselect=False,
                comboboxProps={"transitionProps": {"duration": 0}},
            ),
            _row(
                dmc.Select(
                    id="submit-workload-kind",
                    label=LABELS["workload_kind"],
                    data=[{"value": value, "label": label} for value, label in KINDS],
                    value="training",
                    allowDeselect=False,
                ),
                _shaped(
                    dmc.NumberInput(
                        id="submit-promised-seconds",
                        label=LABELS["promised_seconds"],
                        value="",
                        min=0,
                        step=0.1,
                        decimalScale=6,
                        withAsterisk=True,
                        debounce=300,
                    ),
                    "promised_seconds",
                ),
            ),
            html.Div(
                [
                    html.Label(
                        "What Maat may vary, besides the GPU type",
                        className="mantine-InputWrapper-label",
                        htmlFor="submit-adaptivity",
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
            _row(
                _integer("gpu_count", withAsterisk=True),
                _integer("min_gpus", value=1, withAsterisk=True),
                _integer("max_gpus", placeholder="no limit"),
                _integer("batch_size"),
                _integer("max_batch_size"),
            ),
            _row(
                dmc.MultiSelect(
                    id="submit-gpu-types",
                    label=LABELS["gpu_types"],
                    data=[],
                    placeholder="any",
                    clearable=True,
                ),
                dmc.NumberInput(
                    id="submit-work-scale",
                    label=LABELS["work_scale"],
                    value=1,
                    min=0,
                    step=0.1,
                    decimalScale=4,
                    debounce=300,
                ),
            ),
            _row(
                dmc.TextInput(
                    id="submit-external-id",
                    label=LABELS["external_id"],
                    placeholder="optional, unique",
                    debounce=300,
                ),
                dmc.Switch(id="submit-preemptible", label="May be preempted", checked=True, mt=26),
            ),
            dmc.Group(
                [
                    dmc.Button("Submit job", id="submit-button", n_clicks=0),
                    html.Span("Enter submits", className="hint"),
                ],
                gap=12,
                mt=4,
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
            dcc.Store(id="submit-capacity"),
            dcc.Store(id="submit-told"),
            dcc.Store(id="submit-like", data={"job": one(like), "remedy": one(remedy)}),
        ]
    )


def _row(*fields: Any) -> html.Div:
    return html.Div(list(fields), className="form-row")


def _shaped(field: Any, name: str) -> html.Div:
    """A field that is there only for the kinds of job of which it says something."""
    return html.Div(
        field,
        id=_box_id(name),
        style=HIDDEN if name in meaningless("adaptive", "training") else SHOWN,
    )


def _integer(name: str, *, placeholder: str = "", value: int | str = "", **more: Any) -> html.Div:
    field = dmc.NumberInput(
        id=_field_id(name),
        label=LABELS[name],
        placeholder=placeholder,
        value=value,
        min=1,
        step=1,
        allowDecimal=False,
        clampBehavior="none",
        debounce=300,
        **more,
    )
    return _shaped(field, name)


def register(app: Dash, api: Api) -> None:
    add_page(
        __name__,
        path="/submit",
        name="Submit",
        title="Submit",
        order=3,
        layout=layout,
        takes={"like": anything, "remedy": anything},
    )
    in_browser(app, "focusOn", Output("submit-problem", "id"), Input("submit-name", "id"))
    _register_offers(app, api)
    _register_preview(app, api)
    _register_submission(app, api)
    _register_filling(app, api)


def _register_offers(app: Dash, api: Api) -> None:
    @app.callback(
        Output("submit-models", "data"),
        Output("submit-capacity", "data"),
        Output("submit-model", "data"),
        Output("submit-model", "value"),
        Input("cluster-select", "value"),
        State("submit-model", "value"),
    )
    async def offer(cluster_id: str | None, chosen: str | None) -> tuple[Any, ...]:
        """The models that run on the cluster that the job goes to."""
        try:
            async with api.visitor() as maat:
                models = (await maat.send(calls.models()))["items"]
                known = cluster_id not in (None, NO_CLUSTER)
                capacity = (
                    capacity_of(await maat.send(calls.cluster_state(str(cluster_id))))
                    if known
                    else {}
                )
        except Failure:
            return (no_update,) * 4
        kept = [
            {
                name: model[name]
                for name in (
                    "name",
                    "initial_batch_size",
                    "max_batch_size",
                    "restart_seconds",
                    "gpu_types",
                )
            }
            for model in models
            if types_of(model, capacity)
        ]
        there = {model["name"] for model in kept}
        choices = [
            {"value": model["name"], "label": f"{model['title']} · {model['dataset']}"}
            for model in models
            if model["name"] in there
        ]
        return (
            kept,
            capacity,
            choices,
            chosen if chosen in there else choices[0]["value"] if choices else None,
        )

    @app.callback(
        Output("submit-gpu-types", "data"),
        Output("submit-gpu-types", "value"),
        Output("submit-batch-size", "placeholder"),
        Output("submit-max-batch-size", "placeholder"),
        Input("submit-model", "value"),
        Input("submit-models", "data"),
        Input("submit-capacity", "data"),
        Input("submit-workload-kind", "value"),
        State("submit-gpu-types", "value"),
    )
    async def suit(
        name: str | None, models: list[Any], capacity: Any, kind: str, chosen: list[str] | None
    ) -> tuple[Any, ...]:
        """What the chosen model can use of the cluster, and what holds where a batch size is left empty."""
        model = _named(models, name)
        types = gpu_order(types_of(model, capacity))
        data = [
            {
                "value": each,
                "label": f"{each} ({plural(capacity[each], 'GPU')})" if capacity else each,
            }
            for each in types
        ]
        kept = [each for each in chosen or () if each in types]
        if model is None:
            return data, kept, "", ""
        own = (
            "requests"
            if kind == LATENCY
            else f"{count(model['initial_batch_size'])}, the model's own"
        )
        return data, kept if kept != chosen else no_update, own, count(model["max_batch_size"])

    @app.callback(
        *(Output(_field_id(name), "max") for name in ("gpu_count", "min_gpus", "max_gpus")),
        Input("submit-model", "value"),
        Input("submit-gpu-types", "value"),
        State("submit-models", "data"),
        Input("submit-capacity", "data"),
    )
    async def limit(
        name: str | None, chosen: list[str] | None, models: list[Any], capacity: Any
    ) -> tuple[Any, ...]:
        """No more GPUs than the cluster has of one type."""
        return (most_gpus(_named(models, name), chosen, capacity),) * 3

    @app.callback(
        *(Output(_box_id(name), "style") for name in SHAPED),
        Input("submit-adaptivity", "value"),
        Input("submit-workload-kind", "value"),
    )
    async def shape(adaptivity: str, kind: str) -> tuple[Any, ...]:
        """Fields that mean nothing for this kind of job are not there."""
        empty = meaningless(adaptivity, kind)
        return tuple(HIDDEN if name in empty else SHOWN for name in SHAPED)


def _register_preview(app: Dash, api: Api) -> None:
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
        known = _named(models, model)
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
        series = _there(answer["series"], capacity)
        expected = _promises(series, promised) if kind == LATENCY else _expectation(series)
        drawn = goodput_figure(series, scheme=scheme, height=340, learns=kind == "training")
        return drawn, expected, _model_facts(known, offered)


def _register_submission(app: Dash, api: Api) -> None:
    values = {name: State(_field_id(name), "value") for name in FIELDS}

    @app.callback(
        output={
            "told": Output("submit-told", "data"),
            "problem": Output("submit-problem", "children"),
            "go": Output("navigate", "href", allow_duplicate=True),
            "notices": Output("notices", "sendNotifications", allow_duplicate=True),
            "key": Output("submit-key", "data", allow_duplicate=True),
        },
        inputs={"clicks": Input("submit-button", "n_clicks")},
        state={
            "values": values,
            "preemptible": State("submit-preemptible", "checked"),
            "cluster_id": State("cluster-select", "value"),
            "models": State("submit-models", "data"),
            "capacity": State("submit-capacity", "data"),
            "like": State("submit-like", "data"),
            "replace": State("submit-replace", "checked"),
            "key": State("submit-key", "data"),
        },
        prevent_initial_call=True,
        running=[(Output("submit-button", "loading"), True, False)],
    )
    async def submit(
        clicks: int | None,
        values: dict[str, Any],
        preemptible: bool,
        cluster_id: str | None,
        models: list[Any],
        capacity: Any,
        like: dict[str, Any],
        replace: bool,
        key: str,
    ) -> dict[str, Any]:
        answer: dict[str, Any] = {
            "told": None,
            "problem": None,
            "go": no_update,
            "notices": no_update,
            "key": no_update,
        }
        if not clicks:
            return answer
        model = _named(models, values["model"])
        if wrong := unfinished(values, model, capacity):
            return {**answer, "told": {"values": values, "errors": wrong}}
        own_batch = None if model is None else model["initial_batch_size"]
        body = body_of(values, preemptible=preemptible, cluster_id=cluster_id, own_batch=own_batch)
        try:
            async with api.visitor() as maat:
                job = await maat.send(calls.submit_job(body, idempotency_key=key))
                if like["job"] and like["remedy"] and replace:
                    await maat.cancel_job(like["job"])
        except Failure as error:
            problems = error.errors if isinstance(error, ApiError) else ()
            beside = refused(problems)
            elsewhere = (
                None
                if beside and len(beside) == len({problem.field for problem in problems})
                else error_state(error)
            )
            return {
                **answer,
                "told": {"values": values, "errors": beside},
                "problem": elsewhere,
                "key": uuid4().hex,
            }
        return {
            **answer,
            "go": f"/jobs/{job['id']}",
            "notices": notice(f"{job['name']} submitted", "The next round considers it."),
        }

    @app.callback(
        output={
            name: Output(_error_id(name), "children" if name == "adaptivity" else "error")
            for name in FIELDS
        },
        inputs={
            "told": Input("submit-told", "data"),
            "capacity": Input("submit-capacity", "data"),
            "values": {name: Input(_field_id(name), "value") for name in FIELDS},
        },
        state={"models": State("submit-models", "data")},
    )
    async def tell(
        told: dict[str, Any] | None, capacity: Any, values: dict[str, Any], models: list[Any]
    ) -> dict[str, Any]:
        """Nothing before the first press; from then on what is wrong, as long as it is."""
        wrong = (
            {}
            if told is None
            else still_wrong(values, told, _named(models, values["model"]), capacity)
        )
        return {name: wrong.get(name, "") for name in FIELDS}


def _register_filling(app: Dash, api: Api) -> None:
    @app.callback(
        output={
            "values": {
                name: Output(_field_id(name), "value", allow_duplicate=True) for name in FIELDS
            },
            "preemptible": Output("submit-preemptible", "checked"),
            "note": Output("submit-like-note", "children"),
            "replace": Output("submit-replace", "style"),
        },
        inputs={"models": Input("submit-models", "data")},
        state={"like": State("submit-like", "data"), "note": State("submit-like-note", "children")},
        prevent_initial_call=True,
    )
    async def fill(models: list[Any], like: dict[str, Any], note: Any) -> dict[str, Any]:
        """The form as another job was declared, with what a remedy changes of it; once."""
        nothing: dict[str, Any] = {
            "values": dict.fromkeys(FIELDS, no_update),
            "preemptible": no_update,
            "note": no_update,
        }
        nothing["replace"] = no_update
        if not like["job"] or not models or note:
            return nothing
        try:
            async with api.visitor() as maat:
                job, told = await asyncio.gather(
                    maat.job(like["job"]), maat.send(calls.explanation(like["job"]))
                )
        except Failure as error:
            return {**nothing, "note": error_state(error)}
        remedy = next((each for each in told["remedies"] if each["code"] == like["remedy"]), None)
        words = (
            remedy["sentence"]
            if remedy
            else "The form is filled as it was."
            + (" What was proposed would no longer start it." if like["remedy"] else "")
        )
        return {
            "values": values_like(job, remedy["changes"] if remedy else {}),
            "preemptible": job["preemptible"],
            "note": dmc.Alert(words, title=f"As {job['name']}", color="blue"),
            "replace": SHOWN if remedy else HIDDEN,
        }


def _error_id(name: str) -> str:
    return "submit-adaptivity-error" if name == "adaptivity" else _field_id(name)


def _named(models: list[Any] | None, name: str | None) -> dict[str, Any] | None:
    return next((model for model in models or [] if model["name"] == name), None)


def _whole(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) and value >= 1 else None


def _there(series: list[Any], capacity: dict[str, int] | None) -> list[Any]:
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
