"""The dialog that changes a job that lives: what it is called, and what it asks for."""

from __future__ import annotations

import asyncio
from functools import partial

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, html
from dash.development.base_component import Component

from frontend.api import Api, Failure
from frontend.attributes import HIDDEN, submits
from frontend.callbacks import NOTHING, NOTICES, Changes, answer
from frontend.components.cards import refused_state
from frontend.components.deadline import deadline_body, deadline_field, wrong_deadline
from frontend.components.dialogs import dialog
from frontend.components.labels import label_texts, labels_field, labels_of, wrong_labels
from frontend.components.names import isolated
from frontend.components.notices import notice
from frontend.components.numbers import number_field
from frontend.components.priority import priority_choices, priority_field
from frontend.components.weight import weight_help, wrong_weight
from frontend.formatting import parse_time
from frontend.forms import FormValues, errors_by_field, wrong_number
from frontend.loading import loaded
from frontend.pages.job.actions import Pressed
from frontend.pages.job.request_fields import (
    COUNTS,
    REQUEST,
    SHOWN,
    Known,
    absent,
    box_id,
    error_id,
    field_id,
    fixed,
    known_of,
    offered_types,
    request_body,
    request_fields,
    request_values,
    wrong_request,
)
from frontend.pages.submit.model import capacity_of, model_of, named_model
from maat.api.job_answers import JobOut
from maat.api.jobs import JobBody
from maat.client import calls, change_as_it_is_async
from maat.client.calls import RawBody
from maat.client.errors import FieldProblem

BOUNDS = ("least_stay_seconds", "most_moves_per_hour")
"""On how soon and how often it moves; empty for the cluster's alone."""
FIELDS = ("name", "priority", "weight", "labels", "deadline", *BOUNDS, *REQUEST)
FIXED = "All else of a job is fixed once it was submitted: submit another like it instead."
EMPTY_NAME = "Give the job a name."


def edit_dialog() -> dmc.Modal:
    form = html.Div(
        [
            html.Div(id="job-edit-problem"),
            dmc.TextInput(id=field_id("name"), label="Name", value="", withAsterisk=True),
            _row(
                priority_field(field_id("priority")),
                number_field(field_id("weight"), JobBody, "weight", withAsterisk=True),
            ),
            _row(labels_field(field_id("labels")), deadline_field(field_id("deadline"))),
            _row(*(number_field(field_id(name), JobBody, name) for name in BOUNDS)),
            *request_fields(),
            html.Div(FIXED, className="hint"),
            dmc.Group([dmc.Button("Save", id="job-edit-save", n_clicks=0)], mt=4),
        ],
        className="form-stack",
        **submits("job-edit-save"),
    )
    return dialog("job-edit", "Edit this job", form)


def _row(*fields: Component) -> html.Div:
    return html.Div(list(fields), className="form-row roomy")


def register(app: Dash, api: Api) -> None:
    values = {name: Output(field_id(name), "value") for name in FIELDS}
    answer(
        app,
        partial(open_edit, api),
        output={
            "opened": Output("job-edit", "opened", allow_duplicate=True),
            "values": values,
            "priorities": Output(field_id("priority"), "data"),
            "weight_help": Output(field_id("weight"), "description"),
            "errors": {name: Output(*error_id(name), allow_duplicate=True) for name in FIELDS},
            "types": Output(field_id("gpu_types"), "data"),
            "disabled": {name: Output(field_id(name), "disabled") for name in REQUEST},
            "fixed": Output("job-edit-fixed", "children"),
            "known": Output("job-edit-known", "data"),
            "problem": Output("job-edit-problem", "children", allow_duplicate=True),
            "before": Output("job-edit-before", "data"),
        },
        inputs={"pressed": Input("job-edit-pressed", "data")},
        state={"job_id": State("job-id", "data")},
        prevent_initial_call=True,
    )
    answer(
        app,
        partial(save, api),
        output={
            "opened": Output("job-edit", "opened"),
            "errors": {name: Output(*error_id(name)) for name in FIELDS},
            "problem": Output("job-edit-problem", "children"),
            "changed": Output("job-changed", "data", allow_duplicate=True),
            "notices": NOTICES,
        },
        inputs={"clicks": Input("job-edit-save", "n_clicks")},
        state={
            "values": {name: State(field_id(name), "value") for name in FIELDS},
            "before": State("job-edit-before", "data"),
            "known": State("job-edit-known", "data"),
            "job_id": State("job-id", "data"),
        },
        prevent_initial_call=True,
        running=[(Output("job-edit-save", "loading"), True, False)],
    )
    answer(
        app,
        show_shape,
        output={name: Output(box_id(name), "style") for name in COUNTS},
        inputs={
            "adaptivity": Input(field_id("adaptivity"), "value"),
            "known": Input("job-edit-known", "data"),
        },
        prevent_initial_call=True,
    )


async def open_edit(api: Api, *, pressed: Pressed | None, job_id: str) -> Changes:
    """Show what the job has now in the dialog."""
    if not pressed:
        return NOTHING
    try:
        async with api.visitor() as maat:
            job = await maat.job(job_id)
            models, state, cluster = await asyncio.gather(
                loaded(maat.send(calls.models())),
                loaded(maat.send(calls.cluster_state(job["cluster_id"]))),
                loaded(maat.cluster(job["cluster_id"])),
            )
    except Failure as error:
        return {"opened": True, "problem": refused_state(error), "before": None}
    catalog = [model_of(one) for one in models.answer["items"]] if models.answer else []
    capacity = capacity_of(state.answer) if state.answer else {}
    known = known_of(job, named_model(catalog, job["model"]), capacity)
    disabled, why = fixed(job)
    return {
        "opened": True,
        "values": values_of(job),
        "priorities": priority_choices(job["priority"]),
        "weight_help": weight_help(cluster.answer),
        "errors": dict.fromkeys(FIELDS, ""),
        "problem": None,
        "before": values_of(job),
        "types": offered_types(known),
        "disabled": disabled,
        "fixed": why,
        "known": known,
    }


async def show_shape(*, adaptivity: str, known: Known | None) -> Changes:
    """Show the counts that apply to such a job."""
    if known is None:
        return NOTHING
    left = absent(adaptivity, known)
    return {name: HIDDEN if name in left else SHOWN for name in COUNTS}


def values_of(job: JobOut) -> dict[str, object]:
    """Return what the fields hold of a job."""
    moment = parse_time(job["deadline"])
    return {
        "name": job["name"],
        "priority": str(job["priority"]),
        "weight": job["weight"],
        "labels": label_texts(job["labels"]),
        "deadline": "" if moment is None else moment.strftime("%Y-%m-%d %H:%M:%S"),
        **{name: "" if (bound := dict(job)[name]) is None else bound for name in BOUNDS},
        **request_values(job),
    }


async def save(
    api: Api,
    *,
    clicks: int | None,
    values: FormValues,
    before: FormValues | None,
    known: Known | None,
    job_id: str,
) -> Changes:
    """Change what differs from what the dialog showed; say beside the fields what is wrong."""
    if not clicks or before is None or known is None:
        return NOTHING
    wrong = unfinished(values) | wrong_request(values, before, known)
    if wrong:
        return {"errors": _beside(wrong), "problem": None}
    body = changes_of(values, before, known)
    if not body:
        return {"opened": False}
    try:
        async with api.visitor() as maat:
            job = await change_as_it_is_async(
                lambda: maat.job(job_id),
                # Rounds change the version all the time; only what differs in the dialog is sent.
                lambda now: maat.change_job(job_id, body, version=now["version"]),
            )
    except Failure as error:
        beside, above = errors_by_field(error, _place, empty_name=EMPTY_NAME)
        return {"errors": _beside(beside), "problem": above}
    return {
        "opened": False,
        "errors": _beside({}),
        "problem": None,
        "changed": clicks,
        "notices": notice(f"{isolated(job['name'])} changed", "The next round follows it."),
    }


def unfinished(values: FormValues) -> dict[str, str]:
    """Return what the form itself sees to be wrong, by field."""
    found = {
        "name": "" if (values["name"] or "").strip() else EMPTY_NAME,
        "weight": wrong_weight(values["weight"]),
        "labels": wrong_labels(values["labels"]),
        "deadline": wrong_deadline(values["deadline"]),
        **{name: wrong_number(JobBody, name, values[name]) for name in BOUNDS},
    }
    return {name: words for name, words in found.items() if words}


def changes_of(values: FormValues, before: FormValues, known: Known) -> RawBody:
    """Return the body of what differs from what the dialog showed."""
    given = {
        "name": (values["name"] or "").strip(),
        "priority": int(values["priority"]),
        "weight": float(values["weight"]),
        "labels": labels_of(values["labels"]),
        "deadline": deadline_body(values["deadline"]),
        **_bounds(values),
        **request_body(values, known),
    }
    shown = {
        "name": before["name"],
        "priority": int(before["priority"]),
        "weight": float(before["weight"]),
        "labels": labels_of(before["labels"]),
        "deadline": deadline_body(before["deadline"]),
        **_bounds(before),
        **request_body(before, known),
    }
    return {name: value for name, value in given.items() if value != shown[name]}


def _bounds(values: FormValues) -> RawBody:
    return {name: None if values[name] in ("", None) else values[name] for name in BOUNDS}


def _beside(errors: dict[str, str]) -> dict[str, str]:
    return {name: errors.get(name, "") for name in FIELDS}


def _place(problem: FieldProblem) -> str | None:
    name = problem.pointer.strip("/").split("/")[0]
    return name if name in FIELDS else None
