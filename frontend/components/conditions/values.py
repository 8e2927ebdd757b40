"""The conditions as the form holds them, and as the API names them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import isfinite
from typing import TypedDict

from dash import State

from frontend.callbacks import Sources
from frontend.components.reservation_fields import hours_of, reservation_states
from frontend.forms import FormValues, not_a_number
from maat.client.calls import RawBody
from maat.vocabulary import TuningRule

BOUNDS = ("least_stay_seconds", "most_moves_per_hour")
"""How soon and how often rounds move a job; empty: no bound."""
NUMBERS = (
    "rigid_share",
    "strong_scaling_share",
    "tuned_gpus",
    "jobs_per_gpu",
    "rack_penalty",
    "network_contention",
    "mtbf_hours",
    "repair_minutes",
    *BOUNDS,
)
VALUES = (
    "profiling",
    "tuned",
    "profiles",
    "interference",
    "slowdown",
    "variability",
    "variability_draw",
    "locality_penalty",
    "tuned_by_policy",
    "measured_jobs",
    *NUMBERS,
)
# What a form holds of them that nobody has touched.
USUAL = {
    "profiling": "fidelity",
    "tuned": "none",
    "profiles": "catalog",
    "interference": "none",
    "slowdown": 1.25,
    "variability": "alike",
    "variability_draw": "fidelity",
    "locality_penalty": "",
    "tuned_by_policy": "",
    "measured_jobs": "",
    "rigid_share": 0,
    "strong_scaling_share": 0,
    "tuned_gpus": 16,
    "jobs_per_gpu": 1,
    "rack_penalty": 1,
    "network_contention": 0,
    "mtbf_hours": "",
    "repair_minutes": "",
    **dict.fromkeys(BOUNDS, ""),
}
ERRORS = (
    "tuned",
    "profiles",
    "interference",
    "variability",
    "variability_draw",
    "locality_penalty",
    "tuned_by_policy",
    "measured_jobs",
    *NUMBERS,
)
UPLOADED = "uploaded:"
_WINDOW = re.compile(r"\s*(\d{1,9})\s*-\s*(\d{1,9})\s*")
# Field of a refusal -> where in the form it stands.
PLACES = {name: name for name in ERRORS} | {"repair_seconds": "repair_minutes"}


class Reservation(TypedDict, total=False):
    """A reservation of a trace as the API takes it: for a tenant, or for a job."""

    gpu_type: str
    gpu_count: int
    tenant: str
    job: str
    start_seconds: float
    end_seconds: float | None


def reservation_of(values: FormValues) -> Reservation:
    """The fields as the API's reservation of a trace."""
    until = hours_of(values["until"])
    reservation: Reservation = {
        "gpu_type": values["type"].strip(),
        "gpu_count": int(values["gpus"]),
        "start_seconds": (hours_of(values["from"]) or 0.0) * 3600,
        "end_seconds": None if until is None else until * 3600,
    }
    if values["for"] == "tenant":
        reservation["tenant"] = values["holder"].strip()
    else:
        reservation["job"] = values["holder"].strip()
    return reservation


def condition_states(prefix: str) -> Sources:
    """What `conditions_of` takes."""
    values = {name: State(f"{prefix}-{name}", "value") for name in VALUES}
    return values | {
        "reservations": State(f"{prefix}-reservations", "data"),
        "reserve": reservation_states(prefix),
    }


def incomplete_fields(form: FormValues) -> dict[str, str]:
    """Return errors by field for input that was begun and would be lost.

    These are texts in fields of numbers, a reservation that was typed but not added, a repair time
    without failures, and a penalty that is no number.
    """
    fields = (*NUMBERS, "slowdown")
    texts = {name: words for name in fields if (words := not_a_number(form[name]))}
    wrong = {"interference" if name == "slowdown" else name: texts[name] for name in texts}
    if any((form["reserve"][name] or "").strip() for name in ("type", "holder")):
        wrong["reservations"] = (
            "This reservation is not added yet: press Reserve, or empty its fields."
        )
    no_failures = form["mtbf_hours"] in ("", None)
    if hours_of(form["repair_minutes"]) is not None and no_failures:
        wrong["repair_minutes"] = (
            "No node fails: say about how often one does, or leave this empty."
        )
    if not is_penalty(form["locality_penalty"] or ""):
        wrong["locality_penalty"] = (
            "Give one factor, such as 1.7, or one for each model that you name, "
            "such as resnet50=1.2, vgg19=3; measured; or the name of uploaded measurements."
        )
    if not is_tuning(form["tuned_by_policy"] or ""):
        wrong["tuned_by_policy"] = (
            f"Give a rule ({' or '.join(TuningRule)}) for each policy that you name, once, "
            "such as gavel=any-pair, srtf=best-batch."
        )
    if not is_window(form["measured_jobs"] or ""):
        wrong["measured_jobs"] = (
            "Give the first and the last, such as 2000-3000, counted from 0, or leave it empty."
        )
    return wrong


def conditions_of(form: FormValues) -> RawBody:
    """The fields as the API names them; what is left as it is, is left out."""
    given: RawBody = {}
    for name in ("rigid_share", "strong_scaling_share", "network_contention"):
        if isinstance(form[name], int | float) and form[name]:
            given[name] = form[name]
    if isinstance(form["rack_penalty"], int | float) and form["rack_penalty"] != 1:
        given["rack_penalty"] = form["rack_penalty"]
    if form["profiling"] != "fidelity":
        given["profiling"] = form["profiling"]
    if form["tuned"] != "none":
        given["tuned"] = form["tuned"]
    if (form["tuned"] != "none" or tuned_by_policy(form)) and isinstance(
        form["tuned_gpus"], int | float
    ):
        given["tuned_gpus"] = int(form["tuned_gpus"])
    if (window := _WINDOW.fullmatch(form["measured_jobs"] or "")) is not None:
        given["measured_jobs"] = f"{window[1]}-{window[2]}"
    _add_sharing(given, form)
    given |= {name: form[name] for name in BOUNDS if isinstance(form[name], int | float)}
    for name in ("profiles", "variability"):
        if form[name].startswith(UPLOADED):
            given[name] = form[name].removeprefix(UPLOADED)
    if form["variability_draw"] != "fidelity":
        given["variability_draw"] = form["variability_draw"]
    typed = form["locality_penalty"] or ""
    if is_penalty(typed) and (penalty := penalty_of(typed)) is not None:
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


def _add_sharing(given: RawBody, form: FormValues) -> None:
    """Add the number of jobs per GPU and their slowdown.

    An empty slowdown is not sent: the service refuses it, beside its field, if it is needed.
    """
    if isinstance(form["jobs_per_gpu"], int | float) and form["jobs_per_gpu"] != 1:
        given["jobs_per_gpu"] = int(form["jobs_per_gpu"])
    if form["interference"] == "synthetic":
        given["interference"] = "synthetic"
    elif form["interference"].startswith(UPLOADED):
        given["interference"] = form["interference"].removeprefix(UPLOADED)
    elif form["interference"] == "constant" and isinstance(form["slowdown"], int | float):
        given["interference"] = form["slowdown"]


def tuned_by_policy(form: FormValues) -> Mapping[str, str]:
    """Return the rule of tuning of each policy that has one of its own; none from unusable text."""
    text = form["tuned_by_policy"] or ""
    return _tuning_of(text) if is_tuning(text) else {}


def is_tuning(text: str) -> bool:
    """Return whether a text is empty or such as `gavel=any-pair, srtf=best-batch`."""
    try:
        rules = _tuning_of(text)
    except ValueError:
        return False
    return set(rules.values()) <= set(TuningRule)


def _tuning_of(text: str) -> dict[str, str]:
    """Return rules by policy. Raises ValueError for a part without policy, or a policy twice."""
    named = [part.partition("=") for part in text.split(",") if part.strip()]
    rules = {policy.strip(): rule.strip() for policy, _, rule in named}
    if "" in rules or len(rules) < len(named):
        raise ValueError("a rule of no policy, or a second one")
    return rules


def is_window(text: str) -> bool:
    """Return whether a text is empty or such as `2000-3000`."""
    return not text.strip() or _WINDOW.fullmatch(text) is not None


def penalty_of(text: str) -> float | str | dict[str, float] | None:
    """Return one factor for `1.7`, factors by model for `resnet50=1.2, vgg19=3`, None if empty.

    Another text is `measured`, or the name of measurements. Raises ValueError for a number that
    JSON cannot carry, and for a model without its factor.
    """
    if "=" not in text:
        return (_factor(text) if _is_number(text) else text.strip()) or None
    named = [part.rpartition("=") for part in text.split(",")]
    if not all(model.strip() for model, _, _ in named):
        raise ValueError("a factor of no model")
    return {model.strip(): _factor(factor) for model, _, factor in named}


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _factor(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise ValueError("no number that JSON can carry")
    return value


def is_penalty(text: str) -> bool:
    try:
        penalty_of(text)
    except ValueError:
        return False
    return True
