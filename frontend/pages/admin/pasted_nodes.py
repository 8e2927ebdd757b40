"""The nodes of a new cluster as another system writes them: pasted or uploaded, then shown."""

from __future__ import annotations

from functools import partial

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html
from dash.development.base_component import Component

from frontend.api import Api, Failure
from frontend.callbacks import NOTHING, Changes, answer
from frontend.components.cards import scrolls
from frontend.components.files import NoText, file_box, texts_in
from frontend.components.trace_import import types_of
from frontend.formatting import plural
from frontend.forms import FormValues, errors_by_field
from maat.api.imports import ClusterImportOut
from maat.client import calls
from maat.client.calls import RawBody
from maat.vocabulary import ExecutorKind

TYPES_ID = "admin-new-cluster-types"
UPLOAD = "admin-pasted-upload"
MOST_CHARACTERS = 500_000  # in the field; `maat import cluster` takes more
_MOST_NAMED = 6


def field_id(name: str) -> str:
    """Return the id of a field of the form."""
    return "admin-new-cluster-" + name.replace("_", "-")


def nodes_fields() -> list[Component]:
    """The field to paste nodes into, a box for a file of them, and their preview."""
    pasted = dmc.Textarea(
        id=field_id("nodes_text"),
        label="Or its nodes, as scontrol, sinfo, slurm.conf or YAML name them",
        placeholder="scontrol show node, sinfo -N -o '%N %G %T', or YAML",
        value="",
        debounce=400,
        minRows=2,
        maxRows=8,
        autosize=True,
    )
    types = dmc.TextInput(
        id=TYPES_ID,
        label="GPU types that count as others",
        placeholder="titan=v100, gtx1070=t4",
        value="",
        debounce=400,
    )
    box = file_box(
        UPLOAD,
        words="Drop a file of nodes here, or ",
        choose="choose it",
        accept=".txt,.yaml,.yml,.json,.conf,text/plain",
        several=False,
        label="Choose a file of nodes",
    )
    return [
        pasted,
        html.Div([box, types], className="form-row"),
        html.Div(id="admin-pasted-csv-error", className="form-error", role="alert"),
        html.Div(id="admin-pasted-file"),  # emptied by assets/upload.js, with the text
        dcc.Store(id="admin-pasted-text"),
        html.Div(id="admin-new-cluster-nodes-preview"),
    ]


def register_nodes(app: Dash, api: Api) -> None:
    answer(
        app,
        take_nodes,
        output={
            "text": Output(field_id("nodes_text"), "value"),
            "error": Output("admin-pasted-csv-error", "children"),
        },
        inputs={"contents": Input(UPLOAD, "contents")},
        state={"name": State(UPLOAD, "filename")},
        prevent_initial_call=True,
    )
    answer(
        app,
        partial(show_nodes, api),
        output={
            "preview": Output("admin-new-cluster-nodes-preview", "children"),
            "error": Output(field_id("nodes_text"), "error", allow_duplicate=True),
        },
        inputs={
            "text": Input(field_id("nodes_text"), "value"),
            "types": Input(TYPES_ID, "value"),
        },
        prevent_initial_call=True,
    )


async def take_nodes(*, contents: str | None, name: str | None) -> Changes:
    """Put the text of the chosen file into the field, or say that it is none."""
    if not contents:
        return NOTHING
    try:
        (file,) = await texts_in(contents, name)
    except NoText as wrong:
        return {"error": str(wrong)}
    if len(file.text) > MOST_CHARACTERS:
        words = f"{file.name} is too long for this page. Use maat import cluster {file.name}."
        return {"error": words}
    return {"text": file.text, "error": ""}


async def show_nodes(api: Api, *, text: str | None, types: str | None) -> Changes:
    """Show which nodes the text names, or what is wrong with it."""
    if not (text or "").strip():
        return {"preview": None, "error": ""}
    try:
        async with api.visitor() as maat:
            found = await maat.send(
                calls.import_cluster({"text": text, "gpu_types": types_of(types)})
            )
    except Failure as error:
        beside, above = errors_by_field(error, lambda _: "csv", empty_name="")
        return {"preview": above, "error": beside.get("csv", "")}
    return {"preview": nodes_preview(found), "error": ""}


def nodes_preview(found: ClusterImportOut) -> html.Div:
    """Return the nodes by type, what their types were called, and what was left out."""
    columns = ("GPU type", "Nodes", "GPUs per node", "GPUs")
    rows = [
        (
            group["gpu_type"],
            str(group["nodes"]),
            str(group["gpus_per_node"]),
            str(group["nodes"] * group["gpus_per_node"]),
        )
        for group in found["groups"]
    ]
    head = html.Thead(html.Tr([html.Th(column) for column in columns]))
    body = html.Tbody([html.Tr([html.Td(cell) for cell in row]) for row in rows])
    table = html.Table([head, body], className="plain-table")
    notes = [f"{given} counts as {known}." for given, known in found["renamed"].items()]
    if found["out_of_service"]:
        named = list(found["out_of_service"].items())
        first = ", ".join(f"{name} ({state})" for name, state in named[:_MOST_NAMED])
        notes.append(f"Out of service there, and in service here: {_more(first, len(named))}.")
    if found["asleep"]:
        first = ", ".join(found["asleep"][:_MOST_NAMED])
        said = _more(first, len(found["asleep"]))
        notes.append(f"Asleep there to save power, and in service here: {said}.")
    notes += _left_out_notes(found)
    if types := found["unknown_types"]:
        notes.append(
            f"GPU types that are not known: {', '.join(types)}. Say above what they count as, such "
            f"as {types[0]}=v100."
        )
    said = f"{plural(len(found['nodes']), 'node')} with {plural(found['gpu_count'], 'GPU')}:"
    return html.Div(
        [
            html.Div(said, role="status"),
            scrolls("admin-new-cluster-nodes-table", table, label="Nodes by GPU type"),
            *(html.Div(note, className="hint") for note in notes),
        ],
        className="form-stack",
    )


def _left_out_notes(found: ClusterImportOut) -> list[str]:
    """Say what was left out, by the reason for it: hundreds of nodes may have the same."""
    by_reason: dict[str, list[str]] = {}
    for each in found["left_out"]:
        by_reason.setdefault(each["why"], []).append(each["name"])
    reasons = list(by_reason.items())
    notes = [_left_out_note(why, names) for why, names in reasons[:_MOST_NAMED]]
    more = len(reasons) - _MOST_NAMED
    return notes + ([f"Nodes are left out for {plural(more, 'more reason')}."] if more > 0 else [])


def _left_out_note(why: str, names: list[str]) -> str:
    if len(names) == 1:
        return f"Left out: {names[0]} {why}."
    named = _more(", ".join(names[:_MOST_NAMED]), len(names))
    return f"Left out: {len(names)} nodes, of which each {why}: {named}."


def _more(first: str, count: int) -> str:
    return first if count <= _MOST_NAMED else f"{first} and {count - _MOST_NAMED} more"


def takes_nodes(values: FormValues) -> bool:
    """Return whether the cluster's nodes are the pasted ones."""
    return values["executor"] == ExecutorKind.SIMULATED and bool(values["nodes_text"])


def nodes_body(values: FormValues, types: str | None) -> RawBody:
    """Return the pasted nodes as the API reads them."""
    return {"text": values["nodes_text"], "gpu_types": types_of(types)}
