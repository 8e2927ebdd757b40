"""The part of a form that imports another system's jobs as a trace, and shows what became of them.

The file is read by the service as soon as it, or how it is to be read, changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import sha256

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, ctx, dcc, html
from dash.development.base_component import Component

from frontend.api import Api, Failure, error_message
from frontend.attributes import HIDDEN
from frontend.callbacks import NOTHING, Changes, answer
from frontend.components.cards import scrolls
from frontend.components.files import NoText, file_box, texts_in
from frontend.formatting import plural
from maat.api.imports import DroppedRowsOut, PreviewRow, TraceImportOut
from maat.client import ApiError, calls

FORMATS = (
    ("sacct", "Slurm accounting (sacct -P)"),
    ("philly", "Philly (cluster_job_log)"),
    ("helios", "Helios (cluster_log.csv)"),
    ("csv", "Any other CSV"),
)
RULES = (
    ("recorded", "a rigid job that runs for as long as it did"),
    ("size-class", "a training of the catalog, by its GPU-hours"),
)
MEANINGS = {
    "submit": "Submitted at",
    "gpus": "GPUs",
    "duration": "Ran for",
    "start": "or started at",
    "end": "and ended at",
    "name": "Name",
    "gpu_type": "GPU type",
    "tenant": "Tenant",
    "state": "State",
}
ANSWER_ABOVE = "The file can be read in several ways: answer the question beside its field."
MARK = "import-"  # what the digest of an imported trace begins with
UNITS = (
    ("s", "seconds"),
    ("min", "minutes"),
    ("h", "hours"),
    ("d", "days"),
    ("ms", "milliseconds"),
    ("us", "microseconds"),
    ("ns", "nanoseconds"),
)
DATES = (("day-first", "day first: 31/12/2026"), ("month-first", "month first: 12/31/2026"))
DECIMALS = (("point", "point: 1,234.5"), ("comma", "comma: 1.234,5"))
# fields that answer a question about a file
ANSWERS = ("zone", "unit-duration", "unit-submit", "dates", "decimal")
SAYS = (
    "Slurm: SLURM_TIME_FORMAT=%s sacct -a -X -D -P -o "
    "JobIDRaw,User,Account,Submit,Start,End,ElapsedRaw,State,AllocTRES > jobs.txt. "
    "Larger files: maat import trace FILE --format sacct -o trace.csv. What has been "
    "simulated once can be chosen again under CSV file."
)


def import_fields(prefix: str) -> list[Component]:
    """The fields: format, file, columns of a CSV, what a job becomes, and the report."""
    part = f"{prefix}-import"
    chosen = [
        _select(f"{part}-format", "What wrote it", FORMATS),
        _select(f"{part}-rule", "A job becomes", RULES),
    ]
    columns = [
        dmc.Select(
            id=f"{part}-map-{name}", label=label, data=[], value=None, clearable=True, size="xs"
        )
        for name, label in MEANINGS.items()
    ]
    types = dmc.TextInput(
        id=f"{part}-types",
        label="GPU types that count as others",
        placeholder="titan=v100, gtx1070=t4",
        value="",
    )
    free = dmc.Checkbox(id=f"{part}-any", label="Let jobs run on any GPU type", checked=False)
    return [
        html.Div(chosen, className="form-row roomy"),
        file_box(
            f"{part}-upload",
            words="Drop the file here, or ",
            choose="choose it",
            accept="",  # Philly's log has no ending
            several=False,
            label="Choose a file to import",
        ),
        html.Div(SAYS, id=f"{part}-file", className="hint"),
        html.Div(id=f"{part}-first"),
        html.Div(columns, id=f"{part}-map", className="form-row", style=HIDDEN),
        html.Div(_answer_fields(part), className="form-row"),
        html.Div([types, free], className="form-row"),
        html.Div(id=f"{part}-csv-error", className="form-error", role="alert"),
        html.Div(id=f"{part}-refused", className="form-error", role="alert"),
        html.Div(id=f"{part}-report"),
        dcc.Store(id=f"{part}-text"),
    ]


def _answer_fields(part: str) -> list[Component]:
    """The fields of what a file may leave open; one that is empty is read off the file."""
    zone = dmc.TextInput(
        id=f"{part}-zone",
        label="Zone of times without one",
        placeholder="UTC, or Europe/Berlin",
        value="",
        debounce=True,
    )
    choices = (
        ("unit-duration", "Unit of Ran for", UNITS),
        ("unit-submit", "Unit of Submitted at", UNITS),
        ("dates", "Order of dates", DATES),
        ("decimal", "Decimals after a", DECIMALS),
    )
    selects = [
        dmc.Select(
            id=f"{part}-{name}",
            label=label,
            data=[{"value": value, "label": words} for value, words in values],
            placeholder="as the file shows",
            value=None,
            clearable=True,
        )
        for name, label, values in choices
    ]
    return [zone, *selects]


def _select(field_id: str, label: str, choices: Sequence[tuple[str, str]]) -> dmc.Select:
    return dmc.Select(
        id=field_id,
        label=label,
        data=[{"value": value, "label": words} for value, words in choices],
        value=choices[0][0],
        allowDeselect=False,
    )


def register_import(app: Dash, api: Api, prefix: str) -> None:
    part = f"{prefix}-import"
    answer(
        app,
        take_file,
        output={
            "text": Output(f"{part}-text", "data"),
            "file": Output(f"{part}-file", "children"),
            "error": Output(f"{part}-csv-error", "children"),
        },
        inputs={"contents": Input(f"{part}-upload", "contents")},
        state={"name": State(f"{part}-upload", "filename")},
        prevent_initial_call=True,
    )
    answer(
        app,
        partial(offer_columns, api),
        output={
            "first": Output(f"{part}-first", "children"),
            "shown": Output(f"{part}-map", "style"),
            "data": {name: Output(f"{part}-map-{name}", "data") for name in MEANINGS},
            "values": {name: Output(f"{part}-map-{name}", "value") for name in MEANINGS},
            "asked": {name: Output(f"{part}-map-{name}", "description") for name in MEANINGS},
        },
        inputs={
            "text": Input(f"{part}-text", "data"),
            "trace_format": Input(f"{part}-format", "value"),
        },
        prevent_initial_call=True,
    )
    answer(
        app,
        partial(read, api),
        output={
            "texts": Output(f"{prefix}-text", "data", allow_duplicate=True),
            "digests": Output(f"{prefix}-files", "data", allow_duplicate=True),
            "report": Output(f"{part}-report", "children"),
            "questions": {name: Output(f"{part}-{name}", "error") for name in ANSWERS},
        },
        inputs={
            "text": Input(f"{part}-text", "data"),
            "trace_format": Input(f"{part}-format", "value"),
            "rule": Input(f"{part}-rule", "value"),
            "types": Input(f"{part}-types", "value"),
            "any_type": Input(f"{part}-any", "checked"),
            "mapping": {name: Input(f"{part}-map-{name}", "value") for name in MEANINGS},
            "answers": {name: Input(f"{part}-{name}", "value") for name in ANSWERS},
        },
        prevent_initial_call=True,
    )


async def take_file(*, contents: str | None, name: str | None) -> Changes:
    """Keep the text of the chosen file, or say that it is none."""
    if not contents:
        return NOTHING
    try:
        (file,) = await texts_in(contents, name)
    except NoText as wrong:
        return {"text": None, "file": "", "error": str(wrong)}
    shown = f"{file.name}, {file.note}" if file.note else file.name
    return {"text": file.text, "file": shown, "error": ""}


async def offer_columns(api: Api, *, text: str | None, trace_format: str) -> Changes:
    """Offer the columns of a CSV, with what they seem to be, above its first lines."""
    if trace_format != "csv" or not text:
        return {"first": None, "shown": HIDDEN}
    try:
        async with api.visitor() as maat:
            found = await maat.send(calls.csv_columns(text))
    except Failure as error:
        return {"first": _refusal(error), "shown": HIDDEN}
    return {
        "first": _table(found["columns"], found["rows"], label="The first lines of the file"),
        "shown": {},
        "data": dict.fromkeys(MEANINGS, found["columns"]),
        "values": {name: found["mapping"].get(name) for name in MEANINGS},
        "asked": dict.fromkeys(MEANINGS)
        | {
            each["meaning"]: f"Choose: {each['problem']}. Perhaps {' or '.join(each['choices'])}."
            for each in found["questions"]
        },
    }


async def read(
    api: Api,
    *,
    text: str | None,
    trace_format: str,
    rule: str,
    types: str,
    any_type: bool,
    mapping: Mapping[str, str | None],
    answers: Mapping[str, str | None],
) -> Changes:
    """Have the file read, and show what became of its rows; or what is wrong, or to be answered."""
    clear = {"questions": dict.fromkeys(ANSWERS)}
    if not text:  # the other fields leave a trace alone that was chosen elsewhere
        is_gone = str(ctx.triggered_id).endswith("-import-text")
        return {"texts": None, "digests": [], "report": None, **clear} if is_gone else NOTHING
    if trace_format == "csv" and (lacking := unmapped(mapping)):
        words = html.Div(f"Choose which column is: {', '.join(lacking)}.", className="hint")
        return {"texts": None, "digests": [], "report": words, **clear}
    body = {
        "format": trace_format,
        "text": text,
        "rule": rule,
        "any_gpu_type": bool(any_type),
        "gpu_types": types_of(types),
        "mapping": {k: v for k, v in mapping.items() if v} if trace_format == "csv" else {},
        **_answers(answers),
    }
    try:
        async with api.visitor() as maat:
            found = await maat.send(calls.import_trace(body))
    except Failure as error:
        asked = questions_of(error)
        shown = {"questions": dict.fromkeys(ANSWERS) | asked}
        words = html.Div(ANSWER_ABOVE, className="hint") if asked else _refusal(error)
        return {"texts": None, "digests": [], "report": words, **shown}
    trace = found["trace"]["text"]
    digest = f"{MARK}{sha256(trace.encode()).hexdigest()}"
    return {"texts": [trace], "digests": [digest], "report": report(found), **clear}


def _answers(given: Mapping[str, str | None]) -> dict[str, object]:
    """Return the fields of a request that say how a file is read, but for empty ones."""
    filled = {name: value.strip() for name, value in given.items() if value and value.strip()}
    units = {
        name.removeprefix("unit-"): filled.pop(name) for name in ANSWERS[1:3] if name in filled
    }
    return {**filled, "units": units}


def questions_of(error: Exception) -> dict[str, str]:
    """Return what the service asks before it can read a file, by the field that answers it."""
    if not isinstance(error, ApiError):
        return {}
    by_field = {
        each.pointer.strip("/").replace("units/", "unit-"): f"{each.message} {each.remedy or ''}"
        for each in error.errors
    }
    return {name: words for name, words in by_field.items() if name in ANSWERS}


def unmapped(mapping: Mapping[str, str | None]) -> list[str]:
    """Return what no column of a CSV is chosen for yet, and must be."""
    needed = ["submit", "gpus"]
    if not (mapping["start"] and mapping["end"]):
        needed.append("duration")
    return [MEANINGS[name] for name in needed if not mapping[name]]


def types_of(text: str | None) -> dict[str, str]:
    """Return `titan=v100, gtx1070=t4` as names; what has no = counts as nothing that is known."""
    parts = [part.strip() for part in (text or "").split(",") if part.strip()]
    return {
        name.strip(): known.strip() or "nothing"
        for name, _, known in (part.partition("=") for part in parts)
        if name.strip()
    }


def _refusal(error: Exception) -> html.Div:
    title, detail = error_message(error)
    words = [title, detail]
    if isinstance(error, ApiError):
        words += [each.remedy for each in error.errors if each.remedy and each.remedy not in detail]
    return html.Div(". ".join(filter(None, words)), className="form-error", role="alert")


def report(found: TraceImportOut) -> html.Div:
    """Return what was read: the rules, the first rows, and what was dropped and why."""
    counts = f"{plural(found['jobs'], 'job')} of {plural(found['rows'], 'row')}"
    further = found["further_runs"]
    runs = f", {plural(further, 'row')} more runs of them" if further else ""
    parts: list[Component] = [
        html.Div(f"{counts}{runs}. {found['totals']} {found['losses']}".strip(), role="status"),
        *(html.Div(rule, className="hint") for rule in found["rules"]),
        _table(
            ("Row", "Was", "Becomes"),
            [_preview_cells(each) for each in found["preview"]],
            label="The first rows, and what they become",
        ),
    ]
    if found["dropped"]:
        columns = ("Dropped", "GPU-hours", "Because", "Rows", "Such as", "Remedy")
        rows = [_dropped_cells(each) for each in found["dropped"]]
        parts.append(_table(columns, rows, label="Rows that were dropped, and why"))
    return html.Div(parts, className="form-stack")


def _preview_cells(each: PreviewRow) -> tuple[str, ...]:
    job, dropped = each["job"], f"dropped: {each['why']}"
    if job is None:
        return str(each["row"]), each["was"], each["why"] if each["further_run"] else dropped
    where = "" if job["gpu_types"] is None else f" on {' '.join(job['gpu_types'])}"
    seconds = f" for {job['work_scale']:g} s" if job["model"] == "as-recorded" else ""
    becomes = f"{job['model']}, {plural(job['gpu_count'], 'GPU')}{where}{seconds}"
    return str(each["row"]), each["was"], becomes


def _dropped_cells(each: DroppedRowsOut) -> tuple[str, ...]:
    more = ", …" if each["count"] > len(each["rows"]) else ""
    rows = ", ".join(map(str, each["rows"])) + more
    example = f"{each['column']}: {each['example']}"
    some = f"{each['gpu_hours']:,.1f}" if each["without_hours"] < each["count"] else "unknown"
    hours = f"{some}, and unknown" if 0 < each["without_hours"] < each["count"] else some
    return str(each["count"]), hours, each["cause"], rows, example, each["remedy"]


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, label: str) -> Component:
    head = html.Thead(html.Tr([html.Th(column) for column in columns]))
    body = html.Tbody([html.Tr([html.Td(cell) for cell in row]) for row in rows])
    table = html.Table([head, body], className="plain-table")
    return scrolls(f"import-table-{len(columns)}", table, label=label)
