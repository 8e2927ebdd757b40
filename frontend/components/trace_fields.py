"""The part of a form that says which jobs are simulated: generated, from a CSV file, or those that a cluster has had. Several pages have it."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping
from typing import Any

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html, no_update

from frontend.shell import NO_CLUSTER

FAMILIES = (("philly", "Philly-like"), ("helios", "Helios-like"), ("newtrace", "newTrace-like"))
KINDS = (("generated", "Generated"), ("csv", "CSV file"), ("cluster", "Replay this cluster"))
MAX_FILE_BYTES = 20_000_000
COLUMNS = (
    "Columns: name, time, application, num_replicas, batch_size, as in the public Sia and Pollux traces; and, where wanted, work_scale, "
    "adaptivity, workload_kind, promised_seconds, preemptible, tenant."
)


def trace_fields(prefix: str, *, jobs: int, hours: float, seed: int | None) -> list[Any]:
    """`prefix`: of every id. `seed` None: the form asks for the trace's seed elsewhere."""
    generated = [
        dmc.Select(
            id=f"{prefix}-family",
            label="Like",
            data=[{"value": value, "label": label} for value, label in FAMILIES],
            value=FAMILIES[0][0],
            allowDeselect=False,
        ),
        dmc.NumberInput(id=f"{prefix}-jobs", label="Jobs", value=jobs, min=1, allowDecimal=False),
        dmc.NumberInput(id=f"{prefix}-hours", label="Arrive within (h)", value=hours, min=0, step=0.5),
    ]
    if seed is not None:
        generated.append(dmc.NumberInput(id=f"{prefix}-seed", label="Trace seed", value=seed, min=0, allowDecimal=False))
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
        html.Div(_upload(prefix), id=f"{prefix}-csv", style={"display": "none"}),
        html.Div(replay, id=f"{prefix}-replay", className="hint", style={"display": "none"}),
        dcc.Store(id=f"{prefix}-text"),
    ]


def _upload(prefix: str) -> list[Any]:
    target = html.Div(
        ["Drop a workload CSV here, or ", html.A("choose a file", href="#", role="button")],
        className="panel-state",
        style={"minHeight": "64px", "border": "1px dashed var(--line)"},
    )
    accept = ".csv,text/csv,text/plain"
    return [
        dcc.Upload(target, id=f"{prefix}-upload", className="workload-upload", accept=accept, multiple=False, max_size=MAX_FILE_BYTES),
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
    async def take_file(contents: str | None, filename: str | None) -> tuple[Any, Any, Any]:
        if not contents:
            return no_update, no_update, no_update
        try:
            text = await asyncio.to_thread(_decoded, contents)
        except ValueError:
            return None, "", f"{filename} is no text in UTF-8, so no CSV file. Choose another file."
        if "\0" in text:
            return None, "", f"{filename} is a binary file, no CSV file. Choose another file."
        return text, f"{filename}: {text.count(chr(10))} lines", ""


def trace_of(form: Mapping[str, Any], *, text: str | None, cluster_id: str | None) -> dict[str, object]:
    """The API's trace of a form."""
    match form["kind"]:
        case "csv":
            return {"kind": "csv", "text": text}
        case "cluster":
            return {"kind": "cluster", "cluster_id": cluster_id}
    return {"kind": "generated", **{name: form[name] for name in ("family", "jobs", "hours", "seed") if name in form}}


def missing_trace(form: Mapping[str, Any], *, text: str | None, cluster_id: str | None) -> dict[str, str]:
    """What the form itself can see to be missing, by field."""
    if form["kind"] == "csv" and not text:
        return {"csv": "Choose a workload CSV first."}
    if form["kind"] == "cluster" and cluster_id in (None, NO_CLUSTER):
        return {"cluster": "There is no cluster to replay. Choose another trace."}
    return {}


def _decoded(contents: str) -> str:
    return base64.b64decode(contents.split(",", 1)[-1]).decode("utf-8-sig")
