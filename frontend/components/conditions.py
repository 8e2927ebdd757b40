"""The part of a form that says what is simulated under: what is known beforehand, jobs that are bound,
GPUs that jobs share or that are unequal, nodes that fail, reservations.

Simulations and sweeps have it alike. Most are left as they are, so it is folded away.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import dash_mantine_components as dmc
from dash import ALL, Dash, Input, Output, State, ctx, dcc, html, no_update

from frontend.api import Api, Failure
from frontend.components.cards import folded
from frontend.components.reservation_fields import (
    held_for,
    hours_of,
    reservation_fields,
    reservation_states,
    unfinished_reservation,
)
from frontend.formatting import duration, number, plural
from frontend.routing import aria
from maat.client import calls
from maat.client.calls import RawBody

PROFILING = (
    ("fidelity", "As the fidelity has it"),
    ("oracle", "Oracle: everything known"),
    ("bootstrap", "Bootstrap: one GPU of each type first"),
    ("no-profile", "No profile"),
    ("requested", "Requested: its pace at what it asks for"),
    ("request-oracle", "Request oracle: its batch size on any GPUs, and its end"),
)
INTERFERENCE = (
    ("none", "Not given"),
    ("synthetic", "Synthetic: the shipped table"),
    ("constant", "Constant: the same for all"),
)
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
NUMBERS = (
    "rigid_share",
    "strong_scaling_share",
    "tuned_gpus",
    "jobs_per_gpu",
    "mtbf_hours",
    "repair_minutes",
)
VALUES = (
    "profiling",
    "tuned",
    "interference",
    "slowdown",
    "variability",
    "variability_draw",
    "locality_penalty",
    *NUMBERS,
)
ERRORS = ("tuned", "interference", "variability", "variability_draw", "locality_penalty", *NUMBERS)
UPLOADED = "uploaded:"
# Field of a refusal -> where in the form it stands.
PLACES = {name: name for name in ERRORS} | {"repair_seconds": "repair_minutes"}


def fidelity_field(prefix: str) -> dmc.Select:
    return dmc.Select(
        id=f"{prefix}-fidelity",
        label="Fidelity",
        data=["paper"],
        value="paper",
        allowDeselect=False,
    )


def conditions_fields(prefix: str) -> list[Any]:
    """`prefix`: of every id."""
    fields = [
        _select(prefix, "profiling", "Known of a job before it runs", PROFILING),
        html.Div(
            [
                _share(prefix, "rigid_share", "Rigid (share, 0–1)"),
                _share(prefix, "strong_scaling_share", "Strong-scaling (share, 0–1)"),
            ],
            className="form-row",
        ),
        *_tuned_fields(prefix),
        *_sharing_fields(prefix),
        *_unequal_fields(prefix),
        html.Div(
            [
                "Measured interference and GPUs are offered once they are ",
                dcc.Link("uploaded", href="/measurements"),
                ".",
            ],
            className="hint",
        ),
        html.Div(
            [
                dmc.NumberInput(
                    id=f"{prefix}-mtbf_hours",
                    label="A node fails about every (h)",
                    placeholder="never",
                    value="",
                    min=0,
                    step=10,
                ),
                dmc.NumberInput(
                    id=f"{prefix}-repair_minutes",
                    label="and is repaired after (min)",
                    placeholder="30",
                    value="",
                    min=0,
                    step=5,
                ),
            ],
            className="form-row",
        ),
        html.Div(
            "Reserved GPUs, which everybody else leaves free; hours count from the first second of the trace",
            className="hint",
        ),
        *reservation_fields(prefix, job_placeholder="its name"),
        html.Div(id=f"{prefix}-reservations-error", className="form-error", role="alert"),
        html.Div(id=f"{prefix}-reservations-list"),
    ]
    box = folded(
        "Profiling, bound jobs, shared and unequal GPUs, failures, reservations",
        fields,
        box_id=f"{prefix}-conditions",
    )
    says = html.Div(id=f"{prefix}-fidelity-says", className="hint")
    return [
        says,
        box,
        dcc.Store(id=f"{prefix}-reservations", data=[]),
        dcc.Store(id=f"{prefix}-fidelities", data={}),
    ]


def _tuned_fields(prefix: str) -> list[Any]:
    """By what rule the jobs' requests are chosen, and the most GPUs that they ask for then."""
    most = dmc.NumberInput(
        id=f"{prefix}-tuned_gpus",
        label="Most GPUs of a tuned job",
        value=16,
        min=1,
        max=MAX_TUNED_GPUS,
        allowDecimal=False,
    )
    return [
        html.Div([_select(prefix, "tuned", "What jobs ask for", TUNED), most], className="form-row")
    ]


def _sharing_fields(prefix: str) -> list[Any]:
    """How many jobs share a GPU, and what they lose by it: a table, or one slowdown of all."""
    jobs = dmc.NumberInput(
        id=f"{prefix}-jobs_per_gpu",
        label="Jobs per GPU",
        value=1,
        min=1,
        max=MAX_JOBS_PER_GPU,
        allowDecimal=False,
    )
    slowdown = dmc.NumberInput(
        id=f"{prefix}-slowdown",
        label="Constant slowdown",
        value=1.25,
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


def _unequal_fields(prefix: str) -> list[Any]:
    """How unequal the GPUs of a type are, what is drawn for each of them, and what nodes apart cost."""
    of_type, draw = (
        _select(prefix, "variability", "GPUs of one type", VARIABILITY),
        _select(prefix, "variability_draw", "Each is", DRAW),
    )
    penalty = dmc.TextInput(
        id=f"{prefix}-locality_penalty",
        label="Slowdown across nodes",
        description="1.7 for every model, or by model: resnet50=1.2, vgg19=3.",
        placeholder="each model's own",
        value="",
        inputWrapperOrder=["label", "input", "description", "error"],
    )
    return [html.Div([of_type, draw], className="form-row"), penalty]


def _select(prefix: str, name: str, label: str, offered: Sequence[tuple[str, str]]) -> dmc.Select:
    data = [{"value": value, "label": words} for value, words in offered]
    return dmc.Select(
        id=f"{prefix}-{name}", label=label, data=data, value=offered[0][0], allowDeselect=False
    )


def _share(prefix: str, name: str, label: str) -> dmc.NumberInput:
    return dmc.NumberInput(
        id=f"{prefix}-{name}", label=label, value=0, min=0, max=1, step=0.1, decimalScale=4
    )


def register_conditions(app: Dash, api: Api, prefix: str, *, policies: str) -> None:
    """`policies`: the field that offers them."""

    @app.callback(
        Output(policies, "data"),
        Output(f"{prefix}-fidelity", "data"),
        Output(f"{prefix}-fidelities", "data"),
        Output(f"{prefix}-interference", "data"),
        Output(f"{prefix}-variability", "data"),
        Input(f"{prefix}-key", "data"),
    )
    async def offer(_key: str) -> tuple[Any, ...]:
        try:
            async with api.visitor() as maat:
                known, presets, uploaded = await asyncio.gather(
                    maat.send(calls.policies()),
                    maat.send(calls.fidelities()),
                    maat.send(calls.measurements(limit=100)),
                )
        except Failure:
            return (no_update,) * 5
        offered = [{"value": policy["name"], "label": policy["title"]} for policy in known["items"]]
        names, says = (
            [one["name"] for one in presets["items"]],
            {one["name"]: one["summary"] for one in presets["items"]},
        )
        measured = [
            _offered(fixed, kind, uploaded["items"])
            for fixed, kind in ((INTERFERENCE, "interference"), (VARIABILITY, "variability"))
        ]
        return offered, names, says, *measured

    @app.callback(
        Output(f"{prefix}-fidelity-says", "children"),
        Input(f"{prefix}-fidelity", "value"),
        Input(f"{prefix}-fidelities", "data"),
    )
    async def say(chosen: str, summaries: dict[str, str]) -> str:
        return summaries.get(chosen, "")

    @app.callback(
        output={
            "kept": Output(f"{prefix}-reservations", "data"),
            "listed": Output(f"{prefix}-reservations-list", "children"),
            "error": Output(f"{prefix}-reservations-error", "children"),
            "type": Output(f"{prefix}-reserve-type", "value"),
            "holder": Output(f"{prefix}-reserve-holder", "value"),
        },
        inputs={
            "_add": Input(f"{prefix}-reserve-add", "n_clicks"),
            "_remove": Input({"unreserve": prefix, "index": ALL}, "n_clicks"),
        },
        state={
            "values": reservation_states(prefix),
            "kept": State(f"{prefix}-reservations", "data"),
        },
        prevent_initial_call=True,
    )
    async def reserve(
        _add: int, _remove: list[int | None], values: dict[str, Any], kept: list[dict[str, Any]]
    ) -> dict[str, Any]:
        same = dict.fromkeys(("kept", "listed", "error", "type", "holder"), no_update)
        if not ctx.triggered or not ctx.triggered[0]["value"]:
            return same
        if isinstance(ctx.triggered_id, dict):
            left = [one for index, one in enumerate(kept) if index != ctx.triggered_id["index"]]
            return same | {"kept": left, "listed": _listed(prefix, left), "error": ""}
        wrong = unfinished_reservation(values)
        if wrong:
            return same | {"error": wrong}
        more = [*kept, reservation_of(values)]
        return {
            "kept": more,
            "listed": _listed(prefix, more),
            "error": "",
            "type": "",
            "holder": "",
        }


def _offered(
    fixed: Sequence[tuple[str, str]], kind: str, uploaded: Sequence[Mapping[str, Any]]
) -> list[dict[str, str]]:
    """What there always is, then what was uploaded; of a table that tells GPU types apart, one entry for each."""
    choices = [
        (one["id"], one["name"])
        for one in uploaded
        if one["kind"] == kind and (kind != "interference" or len(one["covers"]) == 1)
    ]
    tables = [
        one for one in uploaded if one["kind"] == kind == "interference" and len(one["covers"]) > 1
    ]
    choices += [
        (f"{one['id']}#{gpu_type}", f"{one['name']}, {gpu_type}")
        for one in tables
        for gpu_type in one["covers"]
    ]
    return [
        {"value": value, "label": words}
        for value, words in (*fixed, *((f"{UPLOADED}{given}", name) for given, name in choices))
    ]


def reservation_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields as the API's reservation of a trace."""
    until = hours_of(values["until"])
    return {
        "gpu_type": values["type"].strip(),
        "gpu_count": int(values["gpus"]),
        values["for"]: values["holder"].strip(),
        "start_seconds": (hours_of(values["from"]) or 0.0) * 3600,
        "end_seconds": None if until is None else until * 3600,
    }


def condition_states(prefix: str) -> dict[str, Any]:
    """What `conditions_of` takes."""
    values = {name: State(f"{prefix}-{name}", "value") for name in VALUES}
    return values | {
        "reservations": State(f"{prefix}-reservations", "data"),
        "reserve": reservation_states(prefix),
    }


def half_set(form: Mapping[str, Any]) -> dict[str, str]:
    """What was begun and would be lost: a reservation that was typed but not added, a repair of what never fails, a slowdown that does not read."""
    wrong: dict[str, str] = {}
    if any((form["reserve"][name] or "").strip() for name in ("type", "holder")):
        wrong["reservations"] = (
            "This reservation is not added yet: press Reserve, or empty its fields."
        )
    if hours_of(form["repair_minutes"]) is not None and hours_of(form["mtbf_hours"]) is None:
        wrong["repair_minutes"] = (
            "No node fails: say about how often one does, or leave this empty."
        )
    if not _is_penalty(form["locality_penalty"] or ""):
        wrong["locality_penalty"] = (
            "Give one factor, such as 1.7, or one for each model that you name, such as resnet50=1.2, vgg19=3."
        )
    return wrong


def conditions_of(form: Mapping[str, Any]) -> RawBody:
    """The fields as the API names them; what is left as it is, is left out."""
    given: RawBody = {}
    for name in ("rigid_share", "strong_scaling_share"):
        if isinstance(form[name], int | float) and form[name]:
            given[name] = form[name]
    if form["profiling"] != "fidelity":
        given["profiling"] = form["profiling"]
    if form["tuned"] != "none":
        given["tuned"] = form["tuned"]
        if isinstance(form["tuned_gpus"], int | float):
            given["tuned_gpus"] = int(form["tuned_gpus"])
    _add_sharing(given, form)
    if form["variability"].startswith(UPLOADED):
        given["variability"] = form["variability"].removeprefix(UPLOADED)
    if form["variability_draw"] != "fidelity":
        given["variability_draw"] = form["variability_draw"]
    penalty = penalty_of(form["locality_penalty"] or "")
    if penalty is not None:
        given["locality_penalty"] = penalty
    mtbf, repair = hours_of(form["mtbf_hours"]), hours_of(form["repair_minutes"])
    if mtbf is not None:
        given["failures"] = (
            {"mtbf_hours": mtbf}
            if repair is None
            else {"mtbf_hours": mtbf, "repair_seconds": repair * 60}
        )
    if form["reservations"]:
        given["reservations"] = form["reservations"]
    return given


def _add_sharing(given: RawBody, form: Mapping[str, Any]) -> None:
    """A slowdown that was chosen and left empty is not sent: where it is needed, the service says so beside its field."""
    if isinstance(form["jobs_per_gpu"], int | float) and form["jobs_per_gpu"] != 1:
        given["jobs_per_gpu"] = int(form["jobs_per_gpu"])
    if form["interference"] == "synthetic":
        given["interference"] = "synthetic"
    elif form["interference"].startswith(UPLOADED):
        given["interference"] = form["interference"].removeprefix(UPLOADED)
    elif form["interference"] == "constant" and isinstance(form["slowdown"], int | float):
        given["interference"] = form["slowdown"]


def penalty_of(text: str) -> float | dict[str, float] | None:
    """`1.7` as one factor, `resnet50=1.2, vgg19=3` by model; None of nothing. Raises ValueError for what does not read."""
    if "=" not in text:
        return _factor(text) if text.strip() else None
    named = [part.rpartition("=") for part in text.split(",")]
    if not all(model.strip() for model, _, _ in named):
        raise ValueError("a factor of no model")
    return {model.strip(): _factor(factor) for model, _, factor in named}


def _factor(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise ValueError("no number that JSON can carry")
    return value


def _is_penalty(text: str) -> bool:
    try:
        penalty_of(text)
    except ValueError:
        return False
    return True


def told(
    request: Mapping[str, Any], measurements: Sequence[Mapping[str, Any]] = ()
) -> list[tuple[str, str]]:
    """The conditions of a request that are not as they always are, in words. `measurements`: those that it was asked for with."""
    named = {
        used["kind"]: used["name"] + (f", {used['gpu_type']}" if used["gpu_type"] else "")
        for used in measurements
    }
    lines = []
    if request.get("profiling"):
        lines.append(("Profiling", str(request["profiling"])))
    if request.get("round_seconds"):
        lines.append(("Round duration", f"{number(request['round_seconds'])} s"))
    bound = [
        f"{number(request[f'{name}_share'])} {words}"
        for name, words in _BOUND
        if request.get(f"{name}_share")
    ]
    if bound:
        lines.append(("Share of jobs", ", ".join(bound)))
    if request.get("tuned"):
        lines.append(
            ("Tuned jobs", f"{request['tuned']}, at most {plural(request['tuned_gpus'], 'GPU')}")
        )
    if request.get("jobs_per_gpu", 1) > 1:
        lines.append(
            (
                "Jobs per GPU",
                f"up to {request['jobs_per_gpu']}, interference {named.get('interference', request['interference'])}",
            )
        )
    if request.get("variability"):
        drawn = _DRAWN.get(request.get("variability_draw") or "", "")
        lines.append(
            (
                "GPUs of one type",
                f"unequal as {named.get('variability', request['variability'])} measured{drawn}",
            )
        )
    if request.get("locality_penalty"):
        lines.append(("Slowdown across nodes", _slowdown(request["locality_penalty"])))
    failures = request.get("failures")
    if failures:
        lines.append(
            (
                "Failures",
                f"each node about every {number(failures['mtbf_hours'])} h, for {duration(failures['repair_seconds'])}",
            )
        )
    if request.get("reservations"):
        lines.append(("Reserved", "; ".join(reserved(one) for one in request["reservations"])))
    return lines


_BOUND = (("rigid", "rigid"), ("strong_scaling", "strong-scaling"))
_DRAWN = {"medians": ", each the median of a measured GPU", "rows": ", each a single measurement"}


def _slowdown(given: float | Mapping[str, float]) -> str:
    if isinstance(given, Mapping):
        return ", ".join(f"{number(factor)} for {model}" for model, factor in given.items())
    return f"{number(given)} for every model"


def reserved(one: Mapping[str, Any]) -> str:
    """`4 × a100 for job bert-3, until 2 h`."""
    holder = f"tenant {one['tenant']}" if one.get("tenant") else f"job {one['job']}"
    return f"{one['gpu_count']} × {one['gpu_type']} for {holder}, {held_for(one['start_seconds'], one['end_seconds'])}"


def _listed(prefix: str, kept: Sequence[Mapping[str, Any]]) -> Any:
    if not kept:
        return None
    rows = [
        html.Tr(
            [
                html.Td(reserved(one)),
                html.Td(
                    dmc.Button(
                        "Remove",
                        id={"unreserve": prefix, "index": index},
                        variant="subtle",
                        size="compact-xs",
                        **aria(f"Remove the reservation of {plural(one['gpu_count'], 'GPU')}"),
                    ),
                    className="number",
                ),
            ]
        )
        for index, one in enumerate(kept)
    ]
    return html.Table(html.Tbody(rows), className="plain-table")
