"""The fields of the conditions, folded away because most are left as they are."""

from __future__ import annotations

from collections.abc import Sequence

import dash_mantine_components as dmc
from dash import dcc, html
from dash.development.base_component import Component

from frontend.components.cards import folded_fields
from frontend.components.conditions.values import BOUNDS, USUAL
from frontend.components.numbers import number_field
from frontend.components.reservation_fields import reservation_fields
from maat.api.simulations import ConditionsBody

PROFILING = (
    ("fidelity", "As the fidelity has it"),
    ("oracle", "Oracle: everything known"),
    ("bootstrap", "Bootstrap: one GPU of each type first"),
    ("two-counts", "Two counts: one and two GPUs of each type first"),
    ("no-profile", "No profile"),
    ("requested", "Requested: its pace at what it asks for"),
    ("request-oracle", "Request oracle: its batch size on any GPUs, and its end"),
)
INTERFERENCE = (
    ("none", "Not given"),
    ("synthetic", "Synthetic: the shipped table"),
    ("constant", "Constant: the same for all"),
)
PROFILES = (("catalog", "The models that Maat ships"),)
VARIABILITY = (("alike", "Alike"),)
DRAW = (
    ("fidelity", "As the fidelity has it"),
    ("medians", "The median of a measured GPU"),
    ("rows", "A single measurement"),
)
TUNED = (
    ("none", "Not tuned"),
    ("best-batch", "Tuned: best batch size of a GPU count"),
    ("any-pair", "Tuned: any good pair"),
)
MAX_JOBS_PER_GPU = 8
MAX_TUNED_GPUS = 1024


def fidelity_field(prefix: str) -> dmc.Select:
    return dmc.Select(
        id=f"{prefix}-fidelity",
        label="Fidelity",
        data=["paper"],
        value="paper",
        allowDeselect=False,
    )


def fidelity_words(prefix: str) -> html.Div:
    """What the chosen fidelity follows."""
    return html.Div(id=f"{prefix}-fidelity-says", className="hint")


def conditions_fields(prefix: str) -> list[Component]:
    """Return the fields. `prefix`: of every id."""
    uploaded: Sequence[str | Component] = [
        "Measured profiles, interference and GPUs are offered once they are ",
        dcc.Link("uploaded", href="/measurements"),
        ".",
    ]
    shares = [
        _share(prefix, "rigid_share", "Rigid (share, 0–1)"),
        _share(prefix, "strong_scaling_share", "Strong-scaling (share, 0–1)"),
    ]
    fields = [
        _select(prefix, "profiles", "Step times and gradients of models", PROFILES),
        _select(prefix, "profiling", "Known of a job before it runs", PROFILING),
        html.Div(shares, className="form-row"),
        *_tuned_fields(prefix),
        _measured_field(prefix),
        *_sharing_fields(prefix),
        *_unequal_fields(prefix),
        html.Div(uploaded, className="hint"),
        _bound_fields(prefix),
        _failure_fields(prefix),
        *_reserved_fields(prefix),
    ]
    box = folded_fields(
        "Profiles, profiling, bound jobs, measured jobs, shared and unequal GPUs, bounds on moves, "
        "failures, reservations",
        fields,
        box_id=f"{prefix}-conditions",
    )
    return [
        box,
        dcc.Store(id=f"{prefix}-reservations", data=[]),
        dcc.Store(id=f"{prefix}-fidelities", data={}),
    ]


def _bound_fields(prefix: str) -> html.Div:
    """How soon and how often rounds move a job."""
    fields = [
        number_field(f"{prefix}-{name}", ConditionsBody, name, bare=True, placeholder="no bound")
        for name in BOUNDS
    ]
    return html.Div(fields, className="form-row")


def _failure_fields(prefix: str) -> html.Div:
    """How often a node fails, and how long its repair takes."""
    often = dmc.NumberInput(
        id=f"{prefix}-mtbf_hours",
        label="A node fails about every (h)",
        placeholder="never",
        value=USUAL["mtbf_hours"],
        min=0,
        step=10,
    )
    repair = dmc.NumberInput(
        id=f"{prefix}-repair_minutes",
        label="and is repaired after (min)",
        placeholder="30",
        value=USUAL["repair_minutes"],
        min=0,
        step=5,
    )
    return html.Div([often, repair], className="form-row")


def _reserved_fields(prefix: str) -> list[Component]:
    """The fields of a reservation, and the list of those that were added."""
    says = (
        "Reserved GPUs, which everybody else leaves free; "
        "hours count from the first second of the trace"
    )
    return [
        html.Div(says, className="hint"),
        *reservation_fields(prefix, job_placeholder="its name"),
        html.Div(id=f"{prefix}-reservations-refused", className="form-error", role="alert"),
        html.Div(id=f"{prefix}-reservations-list"),
    ]


def _tuned_fields(prefix: str) -> list[Component]:
    """By what rule the jobs' requests are chosen, and the most GPUs that they ask for then."""
    most = dmc.NumberInput(
        id=f"{prefix}-tuned_gpus",
        label="Most GPUs of a tuned job",
        value=USUAL["tuned_gpus"],
        min=1,
        max=MAX_TUNED_GPUS,
        allowDecimal=False,
    )
    by_policy = dmc.TextInput(
        id=f"{prefix}-tuned_by_policy",
        label="Tuned under single policies",
        placeholder="gavel=any-pair, srtf=best-batch",
        value=USUAL["tuned_by_policy"],
    )
    return [
        html.Div(
            [_select(prefix, "tuned", "What jobs ask for", TUNED), most], className="form-row"
        ),
        by_policy,
    ]


def _measured_field(prefix: str) -> dmc.TextInput:
    """Which jobs the figures are of."""
    return dmc.TextInput(
        id=f"{prefix}-measured_jobs",
        label="Figures of jobs",
        description="FIRST-LAST, such as 2000-3000, counted from 0 in order of submission.",
        placeholder="all",
        value=USUAL["measured_jobs"],
        inputWrapperOrder=["label", "input", "description", "error"],
    )


def _sharing_fields(prefix: str) -> list[Component]:
    """How many jobs share a GPU, and what they lose by it: a table, or one slowdown of all."""
    jobs = dmc.NumberInput(
        id=f"{prefix}-jobs_per_gpu",
        label="Jobs per GPU",
        value=USUAL["jobs_per_gpu"],
        min=1,
        max=MAX_JOBS_PER_GPU,
        allowDecimal=False,
    )
    slowdown = dmc.NumberInput(
        id=f"{prefix}-slowdown",
        label="Constant slowdown",
        value=USUAL["slowdown"],
        min=1,
        step=0.05,
        decimalScale=4,
    )
    return [
        html.Div(
            [jobs, _select(prefix, "interference", "Interference", INTERFERENCE), slowdown],
            className="form-row narrow",
        )
    ]


def _unequal_fields(prefix: str) -> list[Component]:
    """Fields of unequal GPUs, and of what distributed jobs lose by distance and each other."""
    of_type, draw = (
        _select(prefix, "variability", "GPUs of one type", VARIABILITY),
        _select(prefix, "variability_draw", "Each is", DRAW),
    )
    penalty = dmc.TextInput(
        id=f"{prefix}-locality_penalty",
        label="Slowdown across nodes",
        description="1.7 for every model, by model: resnet50=1.2, vgg19=3, measured, or the name "
        "of measurements.",
        placeholder="each model's own",
        value=USUAL["locality_penalty"],
        inputWrapperOrder=["label", "input", "description", "error"],
    )
    racks = number_field(
        f"{prefix}-rack_penalty", ConditionsBody, "rack_penalty", bare=True, step=0.1
    )
    contention = number_field(
        f"{prefix}-network_contention", ConditionsBody, "network_contention", bare=True, step=0.05
    )
    return [
        html.Div([of_type, draw], className="form-row"),
        html.Div([penalty, racks, contention], className="form-row"),
    ]


def _select(prefix: str, name: str, label: str, offered: Sequence[tuple[str, str]]) -> dmc.Select:
    data = [{"value": value, "label": words} for value, words in offered]
    return dmc.Select(
        id=f"{prefix}-{name}", label=label, data=data, value=USUAL[name], allowDeselect=False
    )


def _share(prefix: str, name: str, label: str) -> dmc.NumberInput:
    return dmc.NumberInput(
        id=f"{prefix}-{name}",
        label=label,
        value=USUAL[name],
        min=0,
        max=1,
        step=0.1,
        decimalScale=4,
    )
