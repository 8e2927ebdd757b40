"""The fields of the edit dialog that say what a job asks for, with the rules of the submit form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

import dash_mantine_components as dmc
from dash import html
from dash.development.base_component import Component

from frontend.forms import FormValues
from frontend.pages.submit import model, run_model
from frontend.pages.submit.model import ADAPTIVITY, LABELS, Capacity, Model
from maat.api.job_answers import JobOut
from maat.client.calls import RawBody
from maat.colours import gpu_order

COUNTS = ("gpu_count", "min_gpus", "max_gpus", "batch_size")
REQUEST = ("adaptivity", "gpu_types", *COUNTS)
SHOWN = {"display": "block"}
HOLDS_GPUS = (
    "The job holds GPUs. Pause it to change how many it asks for and of which type, or submit "
    "another like it."
)
HAS_RUN = "The job has run: what may vary, and its batch size, are fixed. Submit another like it."


class Known(TypedDict):
    """What the rules need of the job in the dialog.

    `job`: all its fields, as the submit form holds them. `model`: of the catalog; None of a
    command, or if it could not be loaded. `capacity`: GPUs of the cluster by type.
    """

    runs_command: bool
    job: dict[str, object]
    model: Model | None
    capacity: dict[str, int]


def field_id(name: str) -> str:
    return f"job-edit-{name}"


def error_id(name: str) -> tuple[str, str]:
    """Return where an error of this field shows: an id, and the property."""
    shows_none = name == "adaptivity"
    return (f"{field_id(name)}-error", "children") if shows_none else (field_id(name), "error")


def box_id(name: str) -> str:
    return f"{field_id(name)}-box"


def request_fields() -> list[Component]:
    choice = dmc.SegmentedControl(
        id=field_id("adaptivity"),
        data=[{"value": value, "label": label} for value, label in ADAPTIVITY],
        value="adaptive",
        fullWidth=True,
        size="xs",
        transitionDuration=0,
    )
    label = html.Label(
        "What Maat may vary, besides the GPU type",
        className="mantine-InputWrapper-label",
        htmlFor=field_id("adaptivity"),
    )
    told, _ = error_id("adaptivity")
    types = dmc.MultiSelect(
        id=field_id("gpu_types"),
        label=LABELS["gpu_types"],
        data=[],
        value=[],
        placeholder="any",
        clearable=True,
    )
    return [
        html.Div([label, choice, html.Div(id=told, className="form-error", role="alert")]),
        types,
        html.Div([_count(name) for name in COUNTS], className="form-row"),
        html.Div(id="job-edit-fixed", className="hint"),
    ]


def _count(name: str) -> html.Div:
    field = dmc.NumberInput(
        id=field_id(name),
        label=LABELS[name],
        value="",
        min=1,
        step=1,
        allowDecimal=False,
        clampBehavior="none",
    )
    return html.Div(field, id=box_id(name))


def request_values(job: JobOut) -> dict[str, object]:
    """Return what the fields hold of a job."""
    like = model.values_like(job, {})
    return {name: like[name] for name in REQUEST}


def known_of(job: JobOut, of_catalog: Model | None, capacity: Capacity) -> Known:
    return {
        "runs_command": job["runs_command"],
        "job": model.values_like(job, {}),
        "model": of_catalog,
        "capacity": dict(capacity),
    }


def offered_types(known: Known) -> list[str]:
    """Return the GPU types to choose from: those that the job could use, and its own."""
    usable = (
        known["capacity"]
        if known["runs_command"]
        else model.types_of(known["model"], known["capacity"])
    )
    own = known["job"]["gpu_types"]
    return gpu_order({*usable, *(own if isinstance(own, list) else [])})


def fixed(job: JobOut) -> tuple[dict[str, bool], str]:
    """Return by field whether it cannot change now, and why."""
    if job["allocation"] is not None:
        return dict.fromkeys(REQUEST, True), HOLDS_GPUS
    if job["started_at"] is not None:
        return {name: name in ("adaptivity", "batch_size") for name in REQUEST}, HAS_RUN
    return dict.fromkeys(REQUEST, False), ""


def absent(adaptivity: str, known: Known) -> set[str]:
    """Return the fields that do not apply to such a job."""
    if known["runs_command"]:
        return run_model.meaningless(adaptivity)
    return model.meaningless(adaptivity, str(known["job"]["workload_kind"]))


def wrong_request(values: FormValues, before: FormValues, known: Known) -> dict[str, str]:
    """Return what is wrong in the fields, in the submit form's words; nothing if none changed."""
    if all(values[name] == before[name] for name in REQUEST):
        return {}
    whole = {**known["job"], **{name: values[name] for name in REQUEST}}
    if known["runs_command"]:
        found: Mapping[str, str] = run_model.wrong_shape(whole)
    else:
        found = model.unfinished(whole, known["model"], known["capacity"] or None)
    return {name: words for name, words in found.items() if name in REQUEST}


def request_body(values: FormValues, known: Known) -> RawBody:
    """Return the fields as the API takes them; what does not apply is taken away."""
    left = absent(values["adaptivity"], known)
    given = {name: None if name in left else _sent(values[name]) for name in REQUEST}
    return given | ({"min_gpus": 1} if given["min_gpus"] is None else {})


def _sent(value: object) -> object:
    return None if value in ("", None, []) else value
