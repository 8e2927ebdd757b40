"""Reads which GPUs of a simulated cluster are reserved, and how its nodes fail."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from maat.scheduling.errors import ParameterError
from maat.scheduling.reservations import Reservation
from maat.simulation.failures import SECONDS_PER_HOUR, Failures, RandomFailures
from maat.vocabulary import LEAST_MTBF_HOURS

REPAIR_SECONDS = 1800.0
MAX_DIGITS = 12  # of a count
_FORM = (
    "Write TYPE=GPUS,tenant=NAME or TYPE=GPUS,job=NAME, "
    "then ,from=HOURS and ,until=HOURS if it does not always hold."
)


def read_failures(mtbf_hours: float | None, repair_seconds: float | None) -> Failures:
    """Read the failures.

    Raises ParameterError in the units of the options, and for repairs without failures.
    """
    if mtbf_hours is None and repair_seconds is not None:
        remedy = "Say how often they fail (failures_mtbf_hours), or leave it out."
        raise ParameterError(
            "repairs nodes, but none fails",
            field="repair_seconds",
            value=repair_seconds,
            remedy=remedy,
        )
    if mtbf_hours is None:
        return ()
    repair_seconds = REPAIR_SECONDS if repair_seconds is None else repair_seconds
    if not 0 <= repair_seconds < float("inf"):
        raise ParameterError(
            "is not a time from zero up",
            field="repair_seconds",
            value=repair_seconds,
            remedy="Give seconds, such as 1800.",
        )
    if not LEAST_MTBF_HOURS <= mtbf_hours < float("inf"):
        raise ParameterError(
            f"is no time of {LEAST_MTBF_HOURS} hours or more",
            field="failures_mtbf_hours",
            value=mtbf_hours,
            remedy="Give hours, such as 100.",
        )
    return RandomFailures(mtbf_hours, repair_seconds)


def read_reservations(given: Sequence[str | Reservation]) -> tuple[Reservation, ...]:
    """Read reservations, or take them as they are. Raises ParameterError for invalid ones."""
    several = given if isinstance(given, Iterable) and not isinstance(given, str) else [given]
    return tuple(each if isinstance(each, Reservation) else _read(str(each)) for each in several)


def _read(text: str) -> Reservation:
    gpu_type, *named = (part.partition("=")[::2] for part in text.split(","))
    given = {name.strip(): value.strip() for name, value in named}
    unknown = given.keys() - {"tenant", "job", "from", "until"}
    if unknown or len(given) < len(named):
        raise _refused(text)
    return Reservation(
        gpu_type[0].strip(),
        _gpus(gpu_type[1], text),
        tenant=given.get("tenant"),
        job_id=given.get("job"),
        start=_seconds(given.get("from", "0"), text),
        end=_seconds(given["until"], text) if "until" in given else float("inf"),
    )


def _gpus(count: str, text: str) -> int:
    if not count.strip().isdecimal() or len(count) > MAX_DIGITS:
        raise _refused(text)
    return int(count)


def _seconds(hours: str, text: str) -> float:
    try:
        seconds = float(hours) * SECONDS_PER_HOUR
    except ValueError:
        raise _refused(text) from None
    if not math.isfinite(seconds):
        raise _refused(text)
    return seconds


def _refused(text: str) -> ParameterError:
    return ParameterError(
        "does not read as a reservation", field="reservations", value=text, remedy=_FORM
    )
