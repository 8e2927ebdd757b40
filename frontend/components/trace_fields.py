"""The part of a form that chooses the simulated jobs: generated, of a trace, or replayed.

Several pages have it.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html
from dash.development.base_component import Component

from frontend.api import Api
from frontend.attributes import HIDDEN
from frontend.callbacks import NOTHING, Changes, answer
from frontend.components.files import NoText, file_box, texts_in
from frontend.components.kept_traces import kept_trace_field, register_kept_traces
from frontend.components.once_seen import OnceSeen
from frontend.components.replay import wrong_hours
from frontend.components.trace_import import MARK, import_fields, register_import
from frontend.formatting import count
from frontend.forms import FormValues
from frontend.shell import NO_CLUSTER
from maat.api.simulations import MAX_SIMULATED_JOBS

FAMILIES = (
    ("philly", "Philly-like"),
    ("helios", "Helios-like"),
    ("newtrace", "newTrace-like"),
    ("sharing", "SJF-BSBF's"),
    ("synergy", "PAL's Synergy"),
)
KINDS = (
    ("generated", "Generated"),
    ("csv", "CSV file"),
    ("uploaded", "Uploaded"),
    ("import", "Import"),
    ("cluster", "Replay this cluster"),
)
MAX_TRACES = 12
COLUMNS = (
    "Columns: name, time, application, num_replicas, batch_size, as in the public Sia and Pollux "
    "traces; and, where wanted, work_scale, adaptivity, workload_kind, promised_seconds, "
    "preemptible, tenant, min_gpus, max_gpus, max_batch_size, gpu_types."
)

REPLAYED = (
    "The jobs that the chosen cluster has had, at the times they were submitted; of more than "
    f"{count(MAX_SIMULATED_JOBS)}, the first."
)


def trace_fields(
    prefix: str,
    *,
    jobs: int,
    hours: float,
    seed: int | None,
    several: bool = False,
    replayed_hours: int | None = None,
) -> list[Component]:
    """The fields that choose the jobs.

    `prefix`: of every id. `seed`: None if the form has a field for the trace's seed elsewhere.
    `several`: whether one may choose more than one trace. `replayed_hours`: the form opens with a
    replay of the last hours.
    """
    kind = dmc.SegmentedControl(
        id=f"{prefix}-kind",
        data=[{"value": value, "label": label} for value, label in KINDS],
        value="generated" if replayed_hours is None else "cluster",
        fullWidth=True,
        size="xs",
        transitionDuration=0,
    )
    replay = [
        dmc.NumberInput(
            id=f"{prefix}-window",
            label="Only the last (h)",
            placeholder="all that it has had",
            value="" if replayed_hours is None else replayed_hours,
            min=0,
            clampBehavior="none",
        ),
        html.Div(REPLAYED, id=f"{prefix}-replay-says", className="hint"),
    ]
    return [
        html.Div([html.Label("Trace", className="mantine-InputWrapper-label"), kind]),
        html.Div(
            generated_fields(prefix, jobs=jobs, hours=hours, seed=seed, several=several),
            id=f"{prefix}-generated",
            className="form-row",
        ),
        _hidden(_upload(prefix, several=several), f"{prefix}-csv"),
        _hidden([_uploaded(prefix)], f"{prefix}-uploads"),
        _hidden(import_fields(prefix), f"{prefix}-import"),
        _hidden(replay, f"{prefix}-replay"),
        dcc.Store(id=f"{prefix}-text"),
        dcc.Store(id=f"{prefix}-files", data=[]),
    ]


def _hidden(fields: list[Component], fields_id: str) -> html.Div:
    """The fields of a kind of trace that is not chosen yet."""
    return html.Div(OnceSeen(fields), id=fields_id, style=HIDDEN, className="spaced")


def generated_fields(
    prefix: str, *, jobs: int, hours: float, seed: int | None, several: bool
) -> list[Component]:
    generated: list[Component] = [
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
        dmc.NumberInput(
            id=f"{prefix}-xxl_share", label="GPT (share, 0–1)", value=0, min=0, max=1, step=0.05
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
    return generated


def _uploaded(prefix: str) -> dmc.Select:
    return dmc.Select(
        id=f"{prefix}-uploaded",
        label="Uploaded trace",
        placeholder="choose one, or upload one under Measurements",
        data=[],
        value=None,
        searchable=True,
    )


def _upload(prefix: str, *, several: bool) -> list[Component]:
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
        kept_trace_field(prefix),
        html.Div(COLUMNS, id=f"{prefix}-file", className="hint"),
        html.Div(id=f"{prefix}-csv-error", className="form-error", role="alert"),
        html.Div(id=f"{prefix}-csv-refused", className="form-error", role="alert"),
    ]


def register_trace_fields(app: Dash, api: Api, prefix: str) -> None:
    register_import(app, api, prefix)
    register_kept_traces(app, api, prefix)
    answer(
        app,
        show_fields,
        output={
            "generated": Output(f"{prefix}-generated", "style"),
            "csv": Output(f"{prefix}-csv", "style"),
            "uploaded": Output(f"{prefix}-uploads", "style"),
            "import": Output(f"{prefix}-import", "style"),
            "cluster": Output(f"{prefix}-replay", "style"),
        },
        inputs={"kind": Input(f"{prefix}-kind", "value")},
    )
    answer(
        app,
        take_files,
        output={
            "texts": Output(f"{prefix}-text", "data"),
            "digests": Output(f"{prefix}-files", "data"),
            "file": Output(f"{prefix}-file", "children"),
            "error": Output(f"{prefix}-csv-error", "children"),
        },
        inputs={"contents": Input(f"{prefix}-upload", "contents")},
        state={"names": State(f"{prefix}-upload", "filename")},
        prevent_initial_call=True,
    )


async def show_fields(*, kind: str) -> Changes:
    """Show the fields of the chosen kind of trace."""
    return {own: {} if kind == own else HIDDEN for own, _ in KINDS}


async def take_files(*, contents: str | list[str] | None, names: str | list[str] | None) -> Changes:
    """Keep the texts of the chosen files, or say which of them is no text.

    The form is told by their digests which files there are: the texts may be long.
    """
    if not contents:
        return NOTHING
    try:
        files = await texts_in(contents, names)
    except NoText as wrong:
        return {"texts": None, "digests": [], "file": "", "error": str(wrong)}
    lines = [
        f"{file.name}: {file.text.count(chr(10))} lines{file.note and f', {file.note}'}"
        for file in files
    ]
    return {
        "texts": [file.text for file in files],
        "digests": [sha256(file.text.encode()).hexdigest() for file in files],
        "file": "; ".join(lines),
        "error": "",
    }


def traces_of(
    form: FormValues, *, texts: Sequence[str] | None, cluster_id: str | None
) -> list[dict[str, object]]:
    """Return the API's traces of a form: one per file, or one per draw with consecutive seeds."""
    match form["kind"]:
        case "csv" | "import":
            return [{"kind": "csv", "text": text} for text in texts or [""]]
        case "uploaded":
            return [{"kind": "uploaded", "measurement": form["uploaded"] or ""}]
        case "cluster":
            hours = form.get("window")
            asked = isinstance(hours, int | float) and hours > 0
            window = {"since_seconds_ago": float(hours or 0) * 3600.0} if asked else {}
            return [{"kind": "cluster", "cluster_id": cluster_id, **window}]
    drawn = {
        "kind": "generated",
        **{name: form[name] for name in ("family", "jobs", "hours", "seed") if name in form},
        **({"xxl_share": form["xxl_share"]} if form.get("xxl_share") else {}),
    }
    if not isinstance(form.get("draws"), int) or not isinstance(form.get("seed"), int):
        return [drawn]
    draws = range(min(form["draws"], MAX_TRACES))  # a form with more is refused
    return [drawn | {"seed": form["seed"] + draw} for draw in draws]


def missing_trace(
    form: FormValues, *, files: Sequence[str], cluster_id: str | None
) -> dict[str, str]:
    """What the form itself can see to be missing, by field. `files`: the digests of the chosen."""
    imported = any(name.startswith(MARK) for name in files)
    if form["kind"] == "csv" and (not files or imported):
        return {"csv": "Choose a workload CSV first."}
    if form["kind"] == "uploaded" and not form["uploaded"]:
        return {"uploaded": "Choose an uploaded trace."}
    if form["kind"] == "import" and not imported:
        return {"import": "Choose a file to import first: one of which something becomes a job."}
    if form["kind"] == "cluster" and cluster_id in (None, NO_CLUSTER):
        return {"cluster": "There is no cluster to replay. Choose another trace."}
    if form["kind"] == "cluster" and (wrong := wrong_hours(form.get("window"))):
        return {"window": wrong}
    return {}
