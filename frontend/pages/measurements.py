"""Uploaded measurements, which simulations and sweeps can name: the form and the list."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TypedDict
from uuid import uuid4

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html
from dash.development.base_component import Component

from frontend.addresses import add_page
from frontend.api import Api, Failure
from frontend.attributes import aria, click_target, submits
from frontend.callbacks import NOTHING, NOTICES, Changes, answer
from frontend.components.cards import (
    card,
    empty_state,
    error_state,
    link_button,
    page_title,
    scrolls,
    skeleton,
)
from frontend.components.dialogs import question, register_question
from frontend.components.files import NoText, file_box, texts_in
from frontend.components.names import isolated
from frontend.components.notices import notice, refusal
from frontend.formatting import clock, plural
from frontend.forms import errors_by_field
from frontend.measurements import ACCEPTED, KINDS
from frontend.pages.measurements_drawn import drawn_fields, register_drawn
from frontend.visitors import with_right
from maat.api.measurements import MAX_ARCHIVE_BYTES, MAX_BYTES, MeasurementOut
from maat.client import calls
from maat.client.calls import RawBody
from maat.client.errors import FieldProblem

PROVENANCE = (
    ("source", "Measured by", "such as a paper's artifact; may stay empty"),
    ("url", "Taken from", "https://…"),
    ("licence", "Licence", "such as Apache-2.0"),
)
MAY_UPLOAD = "measurements:write"


class Pressed(TypedDict):
    """A press of the button that deletes measurements."""

    at: int
    measurement: str
    name: str


class File(TypedDict, total=False):
    """A chosen file: its text, or a zip in base64."""

    name: str
    text: str
    archive: str


def layout(**_query: object) -> html.Div:
    uploaded = scrolls("measurements-list", skeleton(64), label="Uploaded measurements")
    return html.Div(
        [
            page_title("Measurements", link_button("Simulate with them", "/simulate")),
            html.Div(
                [
                    card("Upload", _form(), className="span-4"),
                    card("Uploaded", uploaded, className="span-8"),
                    card("What they hold", drawn_fields(), className="span-12"),
                ],
                className="columns",
            ),
            question(
                "measurements", "Delete these measurements?", keeps="Keep them", does="Delete"
            ),
            dcc.Store(id="measurements-pressed"),
        ]
    )


def _form() -> html.Div:
    kind = dmc.Select(
        id="measurements-kind",
        label="What was measured",
        data=[{"value": value, "label": label} for value, label in KINDS.items()],
        value="variability",
        allowDeselect=False,
    )
    name = dmc.TextInput(
        id="measurements-name", label="Name", placeholder="by which simulations name them", value=""
    )
    box = file_box(
        "measurements-upload",
        words="Drop files here, or ",
        choose="choose files",
        accept=".csv,.json,.zip,.txt,.trace,.tsv,text/csv,text/plain,application/json",
        several=True,
        label="Choose files of measurements",
        most_bytes=min(MAX_BYTES, MAX_ARCHIVE_BYTES),
    )
    provenance = [
        dmc.TextInput(id=f"measurements-{field}", label=label, placeholder=example, value="")
        for field, label, example in PROVENANCE
    ]
    upload = dmc.Button("Upload", id="measurements-button", n_clicks=0)
    return html.Div(
        [
            html.Div(id="measurements-problem"),
            kind,
            name,
            box,
            html.Div(ACCEPTED["variability"], id="measurements-accepted", className="hint"),
            html.Div(id="measurements-file", className="hint"),
            html.Div(id="measurements-csv-error", className="form-error", role="alert"),
            *provenance,
            dmc.Group([with_right(upload)], mt=4),
            dcc.Store(id="measurements-text", data=[]),
            dcc.Store(id="measurements-key", data=uuid4().hex),
            dcc.Store(id="measurements-changed", data=0),
        ],
        className="form-stack",
        **submits("measurements-button"),
    )


def register(app: Dash, api: Api) -> None:
    add_page(
        __name__,
        path="/measurements",
        name="Measurements",
        title="Measurements",
        order=8,
        layout=layout,
        takes={},
    )
    answer(
        app,
        partial(list_measurements, api),
        output={"table": Output("measurements-list", "children")},
        inputs={
            "_live": Input("live", "data"),
            "_changed": Input("measurements-changed", "data"),
        },
    )
    register_drawn(app, api)
    _register_form(app, api)
    _register_deleting(app, api)


def _register_form(app: Dash, api: Api) -> None:
    answer(
        app,
        say_accepted,
        output={"accepted": Output("measurements-accepted", "children")},
        inputs={"kind": Input("measurements-kind", "value")},
    )
    answer(
        app,
        take_files,
        output={
            "files": Output("measurements-text", "data"),
            "chosen": Output("measurements-file", "children"),
            "error": Output("measurements-csv-error", "children"),
        },
        inputs={"contents": Input("measurements-upload", "contents")},
        state={"names": State("measurements-upload", "filename")},
        prevent_initial_call=True,
    )
    answer(
        app,
        partial(upload, api),
        output={
            "name": Output("measurements-name", "error"),
            "files": Output("measurements-csv-error", "children", allow_duplicate=True),
            **{field: Output(f"measurements-{field}", "error") for field, _, _ in PROVENANCE},
            "problem": Output("measurements-problem", "children"),
            "key": Output("measurements-key", "data"),
            "changed": Output("measurements-changed", "data"),
            "notices": NOTICES,
        },
        inputs={"clicks": Input("measurements-button", "n_clicks")},
        state={
            "kind": State("measurements-kind", "value"),
            "name": State("measurements-name", "value"),
            "files": State("measurements-text", "data"),
            "provenance": {
                field: State(f"measurements-{field}", "value") for field, _, _ in PROVENANCE
            },
            "key": State("measurements-key", "data"),
            "changed": State("measurements-changed", "data"),
        },
        prevent_initial_call=True,
        running=[(Output("measurements-button", "loading"), True, False)],
    )


def _register_deleting(app: Dash, api: Api) -> None:
    register_question(
        app,
        "measurements",
        pressed="measurements-pressed",
        ask=words_of,
        act=partial(delete, api),
        changed=Output("measurements-changed", "data", allow_duplicate=True),
        state={"changed": State("measurements-changed", "data")},
    )


async def list_measurements(api: Api, *, _live: object, _changed: int) -> Changes:
    try:
        async with api.visitor() as maat:
            page = await maat.send(calls.measurements(limit=100))
            may = MAY_UPLOAD in (await maat.send(calls.me()))["permissions"]
    except Failure as error:
        return {"table": error_state(error)}
    return {"table": table(page["items"], may=may)}


async def say_accepted(*, kind: str) -> Changes:
    """Say which files hold measurements of this kind."""
    return {"accepted": ACCEPTED[kind]}


async def take_files(*, contents: list[str] | None, names: list[str] | None) -> Changes:
    """Keep the texts of the chosen files, or say which of them is no text."""
    if not contents:
        return NOTHING
    zipped = [name for name in names or [] if name.lower().endswith(".zip")]
    if zipped:
        return _one_zip(contents, names or [], zipped[0])
    try:
        files = await texts_in(contents, names)
    except NoText as wrong:
        return {"files": [], "chosen": "", "error": str(wrong)}
    told = ", ".join(
        f"{file.name} ({plural(file.text.count(chr(10)), 'line')}{file.note and f', {file.note}'})"
        for file in files
    )
    kept: list[File] = [{"name": file.name, "text": file.text} for file in files]
    return {"files": kept, "chosen": f"Chosen: {told}", "error": ""}


def _one_zip(contents: Sequence[str], names: Sequence[str], name: str) -> Changes:
    """Keep a zip as it is: the service unpacks it."""
    if len(names) > 1:
        return {"files": [], "chosen": "", "error": f"{name} is a zip: choose it alone."}
    archive = contents[0].split(",", 1)[-1]
    words = f"Chosen: {name} ({size_text(len(archive) * 3 // 4)})"
    return {"files": [File(name=name, archive=archive)], "chosen": words, "error": ""}


async def upload(
    api: Api,
    *,
    clicks: int | None,
    kind: str,
    name: str,
    files: list[File],
    provenance: dict[str, str | None],
    key: str,
    changed: int,
) -> Changes:
    """Upload the chosen files, or show what is wrong beside its field."""
    if not clicks:
        return NOTHING
    unsaid = {"name": "", "files": "", "problem": None, **dict.fromkeys(provenance, "")}
    if wrong := unfinished(name, files):
        return {**unsaid, **wrong}
    given = {field: text.strip() for field, text in provenance.items() if text and text.strip()}
    archive = files[0].get("archive")
    sent: RawBody = {"files": files} if archive is None else {"archive": archive}
    body: RawBody = {"kind": kind, "name": name, **sent, **given}
    try:
        async with api.visitor() as maat:
            made = await maat.send(calls.upload_measurement(body, idempotency_key=key))
    except Failure as error:
        beside, problem = errors_by_field(error, place, empty_name="Give the measurements a name.")
        return {
            "name": beside.get("name", ""),
            "files": beside.get("csv", ""),
            **{field: beside.get(field, "") for field in provenance},
            "problem": problem,
            "key": uuid4().hex,
        }
    usable = f"Simulations and clusters can name {isolated(made['name'])} now."
    words = notice("Uploaded", " ".join([usable, *made["notes"]]))
    return {**unsaid, "key": uuid4().hex, "changed": changed + 1, "notices": words}


def words_of(pressed: Pressed) -> str:
    """What to ask before the measurements whose button was pressed are deleted."""
    return (
        f"{pressed['name']} can be named no more. "
        "Simulations and sweeps that were asked for with it keep it."
    )


async def delete(api: Api, *, chosen: Pressed, changed: int) -> Changes:
    """Delete the measurements."""
    try:
        async with api.visitor() as maat:
            await maat.send(calls.delete_measurement(chosen["measurement"]))
    except Failure as error:
        return {"notices": refusal(error)}
    return {"changed": changed + 1, "notices": notice("Measurements deleted")}


def unfinished(name: str, files: Sequence[File]) -> dict[str, str]:
    """What the form itself can see to be missing."""
    wrong: dict[str, str] = {}
    if not (name or "").strip():
        wrong["name"] = "Give the measurements a name."
    if not files:
        wrong["files"] = "Choose the files first."
    return wrong


def place(problem: FieldProblem) -> str | None:
    """Return where the form shows a refused field; problems in a file show below the box."""
    field = problem.pointer.removeprefix("/")
    if field.startswith(("files", "archive")):
        return "csv"
    return field if field in ("name", *(each for each, _, _ in PROVENANCE)) else None


def table(measurements: Sequence[MeasurementOut], *, may: bool) -> Component:
    if not measurements:
        return empty_state(
            "No measurements yet",
            "Upload how unequal your GPUs are, what jobs on one GPU lose, how fast your models "
            "train, or a trace: "
            "simulations then follow them instead of assumptions.",
        )
    heads = (
        ("Name", ""),
        ("Covers", ""),
        ("Size", "number"),
        ("sha256", ""),
        ("Uploaded (UTC)", ""),
    )
    head = html.Thead(
        html.Tr(
            [
                *(html.Th(text, className=kind) for text, kind in heads),
                *([html.Th("")] if may else []),
            ]
        )
    )
    return html.Table(
        [head, html.Tbody([_row(one, may=may) for one in measurements])], className="plain-table"
    )


def _row(one: MeasurementOut, *, may: bool) -> html.Tr:
    digest = html.Code(
        one["digest"][:8],
        title=f"{one['digest']}\n" + "\n".join(f"{f['sha256']}  {f['name']}" for f in one["files"]),
    )
    delete = dmc.Button(
        "Delete",
        variant="subtle",
        size="compact-xs",
        **click_target("measurements-pressed", measurement=one["id"], name=one["name"]),
        **aria(f"Delete the measurements {one['name']}"),
    )
    cells = [
        html.Td(
            [
                one["name"],
                html.Div(KINDS[one["kind"]], className="caption"),
                *_provenance(one),
                *(html.Div(note, className="caption") for note in one["notes"]),
            ],
            className="wraps narrow",
        ),
        html.Td(
            covers_text(one),
            className="wraps",
            title="; ".join(f"{kind}: {', '.join(names)}" for kind, names in one["covers"].items()),
        ),
        html.Td(size_text(one["bytes"]), className="number"),
        html.Td(digest),
        html.Td([clock(one["created_at"]), html.Div(f"by {one['owner']}", className="caption")]),
        *([html.Td(delete, className="number")] if may else []),
    ]
    return html.Tr(cells)


def _provenance(one: MeasurementOut) -> list[Component]:
    """Return who measured it, with a link to where it was taken from, and the licence."""
    parts: list[Component] = []
    if one["source"] or one["url"]:
        words = one["source"] or one["url"]
        link = words if one["url"] is None else html.A(words, href=one["url"], rel="noreferrer")
        parts.append(html.Div(["From ", link], className="caption"))
    if one["licence"]:
        parts.append(html.Div(f"Licence: {one['licence']}", className="caption"))
    return parts


def covers_text(one: MeasurementOut) -> str:
    """Return what was measured on each GPU type, or of interference for how many models."""
    covers = one["covers"]
    if one["kind"] == "trace":
        return f"jobs of {', '.join(sorted(set().union(*covers.values())))}"
    if one["kind"] == "variability":
        return "; ".join(
            f"{gpu_type}: {', '.join(measured)}" for gpu_type, measured in covers.items()
        )
    return f"{', '.join(covers)}: {plural(len(set().union(*covers.values())), 'model')}"


def size_text(count: int) -> str:
    """`1.2 MB`, in thousands."""
    return (
        f"{count / 1e6:.1f} MB"
        if count >= 1e6
        else f"{count / 1e3:.1f} kB"
        if count >= 1e3
        else f"{count} B"
    )
