"""The part of a form that says which jobs are simulated: generated, from a CSV file, or those that a cluster has had. Several pages have it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html, no_update

from frontend.components.files import NoText, file_box, texts_in
from frontend.shell import NO_CLUSTER

FAMILIES = (("philly", "Philly-like"), ("helios", "Helios-like"), ("newtrace", "newTrace-like"))
KINDS = (("generated", "Generated"), ("csv", "CSV file"), ("cluster", "Replay this cluster"))
MAX_TRACES = 12
COLUMNS = (
    "Columns: name, time, application, num_replicas, batch_size, as in the public Sia and Pollux traces; and, where wanted, work_scale, "
    "adaptivity, workload_kind, promised_seconds, preemptible, tenant, min_gpus, max_gpus, max_batch_size, gpu_types."
)


def trace_fields(
    prefix: str, *, jobs: int, hours: float, seed: int | None, several: bool = False
) -> list[Any]:
    """`prefix`: of every id. `seed` None: the form asks for the trace's seed elsewhere. `several`: one may ask for more than one trace."""
    generated = [
        dmc.Select(
            id=f"{prefix}-family",
            label="Like",
            data=[{"value": value, "label": label} for value, label in FAMILIES],
            value=FAMILIES[0][0],
            allowDeselect=False,
        ),
        dmc.NumberInput(id=f"{prefix}-jobs", label="Jobs", value=jobs, min=1, allowDecimal=False),
        dmc.NumberInput(
            id=f"{prefix}-hours", label="Arrive within (h)", value=hours, min=0, step=0.5
        ),
    ]
    if seed is not None:
        generated.append(
            dmc.NumberInput(
                id=f"{prefix}-seed", label="Trace seed", value=seed, min=0, allowDecimal=False
            )
        )
    if several:
        generated.append(
            dmc.NumberInput(
                id=f"{prefix}-draws",
                label="Draws",
                value=1,
                min=1,
                max=MAX_TRACES,
                allowDecimal=False,
            )
        )
    kind = dmc.SegmentedControl(
        id=f"{prefix}-kind",
        data=[{"value": value, "label": label} for value, label in KINDS],
        value="generated",
        fullWidth=True,
        size="xs",
        transitionDuration=0,
    )
    replay = "The jobs that the chosen cluster has had, at the times they were submitted."
    return [
        html.Div([html.Label("Trace", className="mantine-InputWrapper-label"), kind]),
        html.Div(generated, id=f"{prefix}-generated", className="form-row"),
        html.Div(_upload(prefix, several=several), id=f"{prefix}-csv", style={"display": "none"}),
        html.Div(replay, id=f"{prefix}-replay", className="hint", style={"display": "none"}),
        dcc.Store(id=f"{prefix}-text"),
    ]


def _upload(prefix: str, *, several: bool) -> list[Any]:
    what = (
        ("Drop workload CSVs here, or ", "choose files")
        if several
        else ("Drop a workload CSV here, or ", "choose a file")
    )
    accept = ".csv,text/csv,text/plain"
    return [
        file_box(
            f"{prefix}-upload",
            words=what[0],
            choose=what[1],
            accept=accept,
            several=several,
            label="Choose a workload CSV",
        ),
        html.Div(COLUMNS, id=f"{prefix}-file", className="hint"),
        html.Div(id=f"{prefix}-csv-error", className="form-error", role="alert"),
    ]


def register_trace_fields(app: Dash, prefix: str) -> None:
    @app.callback(
        Output(f"{prefix}-generated", "style"),
        Output(f"{prefix}-csv", "style"),
        Output(f"{prefix}-replay", "style"),
        Input(f"{prefix}-kind", "value"),
    )
    async def fields_of(kind: str) -> tuple[dict[str, str], ...]:
        return tuple({} if kind == own else {"display": "none"} for own, _ in KINDS)

    @app.callback(
        Output(f"{prefix}-text", "data"),
        Output(f"{prefix}-file", "children"),
        Output(f"{prefix}-csv-error", "children"),
        Input(f"{prefix}-upload", "contents"),
        State(f"{prefix}-upload", "filename"),
        prevent_initial_call=True,
    )
    async def take_files(
        contents: str | list[str] | None, filename: str | list[str] | None
    ) -> tuple[Any, Any, Any]:
        if not contents:
            return no_update, no_update, no_update
        try:
            files = await texts_in(contents, filename)
        except NoText as wrong:
            return None, "", str(wrong)
        return (
            [text for _, text in files],
            "; ".join(f"{name}: {text.count(chr(10))} lines" for name, text in files),
            "",
        )


def traces_of(
    form: Mapping[str, Any], *, texts: Sequence[str] | None, cluster_id: str | None
) -> list[dict[str, object]]:
    """The API's traces of a form: one per file, or per draw of a generated one, each with the next seed."""
    match form["kind"]:
        case "csv":
            return [{"kind": "csv", "text": text} for text in texts or []]
        case "cluster":
            return [{"kind": "cluster", "cluster_id": cluster_id}]
    drawn = {
        "kind": "generated",
        **{name: form[name] for name in ("family", "jobs", "hours", "seed") if name in form},
    }
    if not isinstance(form.get("draws"), int) or not isinstance(form.get("seed"), int):
        return [drawn]
    return [drawn | {"seed": form["seed"] + draw} for draw in range(form["draws"])]


def missing_trace(
    form: Mapping[str, Any], *, texts: Sequence[str] | None, cluster_id: str | None
) -> dict[str, str]:
    """What the form itself can see to be missing, by field."""
    if form["kind"] == "csv" and not texts:
        return {"csv": "Choose a workload CSV first."}
    if form["kind"] == "cluster" and cluster_id in (None, NO_CLUSTER):
        return {"cluster": "There is no cluster to replay. Choose another trace."}
    return {}
