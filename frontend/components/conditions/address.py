"""The conditions in an address: what each takes, and reservations as texts.

The other way round: what an address says so that a form asks for the conditions of a request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from pydantic import ValidationError

from frontend.addresses import Check, among, quoted
from frontend.components.conditions.fields import (
    DRAW,
    INTERFERENCE,
    PROFILES,
    PROFILING,
    TUNED,
    VARIABILITY,
)
from frontend.components.conditions.values import (
    BOUNDS,
    NUMBERS,
    UPLOADED,
    USUAL,
    VALUES,
    Reservation,
    conditions_of,
    is_penalty,
    is_tuning,
    is_window,
)
from frontend.components.conditions.words import tuning_of
from frontend.components.form_address import number_in, too_long
from frontend.formatting import as_typed
from frontend.forms import wrong_number
from frontend.runs import StoredRequest
from maat.api.simulations import ConditionsBody, FailuresBody, TraceReservationBody

RESERVATION = "reservation"
"""`4:a100:0:10:tenant:vision`: 4 GPUs of a100 from hour 0 to 10, or without end, for a tenant."""

_NUMBERS = (*NUMBERS, "slowdown")
_PLAIN = (
    "rigid_share",
    "strong_scaling_share",
    "tuned_gpus",
    "jobs_per_gpu",
    "rack_penalty",
    "network_contention",
    *BOUNDS,
)
_MINUTE, _HOUR = 60, 3600
_MEASUREMENT = "mea_"  # what the id of uploaded measurements begins with


def takes() -> dict[str, Check]:
    """Return what an address takes of the conditions, each with its check."""
    chosen = {
        "profiling": ("mode of profiling", PROFILING),
        "tuned": ("rule of tuning", TUNED),
        "variability_draw": ("way to draw GPUs", DRAW),
    }
    uploaded = {
        "profiles": PROFILES,
        "interference": INTERFERENCE,
        "variability": VARIABILITY,
    }
    return {
        **{name: partial(_check, name) for name in VALUES},
        **{
            name: among(noun, (value for value, _ in offered))
            for name, (noun, offered) in chosen.items()
        },
        **{name: partial(_check_uploaded, name, known) for name, known in uploaded.items()},
        RESERVATION: _check_reservation,
    }


def held(name: str, text: str) -> object:
    """Return a value as its field holds it."""
    return number_in(text) if name in _NUMBERS else text


def reservations_in(texts: Iterable[str]) -> list[Reservation]:
    """Return the reservations of an address, which has been checked."""
    return [_reservation(text) for text in texts]


def asked_by(request: StoredRequest) -> dict[str, str | list[str]] | None:
    """Return what an address says for the conditions of a request; None if no address can."""
    values = {name: text for name, text in _texts_of(request) if text is not None}
    reservations = request.get("reservations") or []
    if any(run.get("tuned") != tuning_of(request).get(run["policy"]) for run in _runs(request)):
        return None
    told = {name: held(name, text) for name, text in values.items()}
    again = conditions_of({**USUAL, **told, "reservations": reservations})
    fixed = {"name": request["name"], "cluster": request["cluster"]}
    asked = ConditionsBody.model_validate({**fixed, "fidelity": request["fidelity"], **again})
    # The interval of rounds is typed beside the parameters.
    same = asked.model_dump(mode="json", exclude={"round_seconds"}).items()
    if any(request.get(name) != value for name, value in same):
        return None
    return values | ({RESERVATION: [_text_of(one) for one in reservations]} if reservations else {})


def _texts_of(request: StoredRequest) -> Iterable[tuple[str, str | None]]:
    """Yield each condition that a request sets, by its field; not all of them have a text."""
    for name in ("profiling", "tuned", "variability_draw"):
        yield name, request.get(name)
    for name in _PLAIN:
        value = request.get(name)
        yield name, None if value in (None, USUAL[name]) else as_typed(value)
    interference = request.get("interference")
    if isinstance(interference, int | float):
        yield "interference", "constant"
        yield "slowdown", as_typed(interference)
    elif interference == "synthetic":
        yield "interference", "synthetic"
    else:
        yield "interference", _uploaded(interference)
    for name in ("profiles", "variability"):
        yield name, _uploaded(request.get(name))
    failures = request.get("failures")
    if failures is not None:
        yield "mtbf_hours", as_typed(failures["mtbf_hours"])
        yield "repair_minutes", as_typed(failures["repair_seconds"] / _MINUTE)
    yield "measured_jobs", request.get("measured_jobs")
    rules = tuning_of(request).items()
    yield "tuned_by_policy", ", ".join(f"{policy}={rule}" for policy, rule in rules) or None
    penalty = request.get("locality_penalty")
    if isinstance(penalty, Mapping):
        each = (f"{model}={as_typed(factor)}" for model, factor in penalty.items())
        yield "locality_penalty", ", ".join(each)
    elif penalty is not None:
        typed = penalty if isinstance(penalty, str) else as_typed(penalty)
        yield "locality_penalty", typed


def _runs(request: StoredRequest) -> Iterable[StoredRequest]:
    runs: Iterable[StoredRequest] = request.get("runs", ())
    return runs


def _uploaded(measurements: str | None) -> str | None:
    is_id = measurements is not None and measurements.startswith(_MEASUREMENT)
    return f"{UPLOADED}{measurements}" if is_id else None


def _check(name: str, value: str) -> str | None:
    wrong = too_long(value) or _wrong(name, value)
    called = name.replace("_", " ").capitalize()
    return f"{called}: {quoted(value)} is not taken. {wrong}" if wrong else None


def _wrong(name: str, value: str) -> str:
    if name == "locality_penalty":
        return "" if is_penalty(value) else "Give a factor, or one for each model."
    if name == "tuned_by_policy":
        return "" if is_tuning(value) else "Give a rule for each policy, such as gavel=any-pair."
    if name == "measured_jobs":
        return "" if is_window(value) else "Give the first and the last, such as 2000-3000."
    number = number_in(value)
    if number is None:
        return "Give a number."
    match name:
        case "slowdown":
            return "" if number >= 1 else "Give a number from 1 up."
        case "repair_minutes":
            bad = wrong_number(FailuresBody, "repair_seconds", number * _MINUTE)
            return "Give minutes from 0 up, of at most a year." if bad else ""
        case "mtbf_hours":
            return wrong_number(FailuresBody, name, number)
        case _:
            return wrong_number(ConditionsBody, name, number)


def _check_uploaded(name: str, known: Iterable[tuple[str, str]], value: str) -> str | None:
    """Take a fixed choice, or measurements by their id."""
    if value.startswith(UPLOADED) and not too_long(value):
        return None
    return among(name, [word for word, _ in known])(value)


def _check_reservation(text: str) -> str | None:
    try:
        _reservation(text)
    except ValueError:
        return (
            f"There is no reservation {quoted(text)}. Give GPUs:TYPE:FROM:UNTIL:tenant:NAME, or "
            "job for tenant, with hours of the trace; without end, UNTIL is empty."
        )
    return None


def _reservation(text: str) -> Reservation:
    """Read a reservation of an address. Raises ValueError if the text is none."""
    count, gpu_type, begin, end, whose, holder = text.split(":", 5)
    found: Reservation = {
        "gpu_type": gpu_type,
        "gpu_count": int(count),
        "start_seconds": _seconds(begin),
        "end_seconds": _seconds(end) if end else None,
    }
    if whose == "tenant":
        found["tenant"] = holder
    elif whose == "job":
        found["job"] = holder
    else:
        raise ValueError("whose is neither a tenant nor a job")
    try:
        TraceReservationBody.model_validate(found)
    except ValidationError as refused:
        raise ValueError("the service takes no such reservation") from refused
    return found


def _seconds(hours: str) -> float:
    return round(float(hours) * _HOUR, 3)  # 100 s are 0.02777… h, and 100 s again


def _text_of(reservation: StoredRequest) -> str:
    tenant, end = reservation.get("tenant"), reservation["end_seconds"]
    parts = [
        str(reservation["gpu_count"]),
        reservation["gpu_type"],
        as_typed(reservation["start_seconds"] / _HOUR),
        "" if end is None else as_typed(end / _HOUR),
        "job" if tenant is None else "tenant",
        reservation["job"] if tenant is None else tenant,
    ]
    return ":".join(parts)
