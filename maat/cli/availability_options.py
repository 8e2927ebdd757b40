"""The options for GPUs that are reserved or fail during a simulation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated

import typer

from maat.cli.numbers import number_option
from maat.scheduling.errors import ParameterError
from maat.scheduling.reservations import Reservation
from maat.simulation.failures import SECONDS_PER_HOUR, Failures, RandomFailures

REPAIR_MINUTES = 30.0
MAX_DIGITS = 12  # of a count
_FORM = (
    "Write TYPE=GPUS,tenant=NAME or TYPE=GPUS,job=NAME, "
    "then ,from=HOURS and ,until=HOURS if it does not always hold."
)

Reserve = Annotated[
    list[str] | None,
    typer.Option(
        "--reserve",
        help="Keep GPUs free: TYPE=GPUS,tenant=NAME or ,job=NAME[,from=HOURS][,until=HOURS]. "
        "May be repeated.",
    ),
]
Mtbf = Annotated[
    float | None,
    number_option(
        "--failures-mtbf-hours", help="Let nodes fail: mean hours between failures of a node."
    ),
]
Repair = Annotated[
    float | None,
    number_option(
        "--repair-minutes", help="Minutes until a failed node is in service again; default: 30."
    ),
]


def read_failures(mtbf_hours: float | None, repair_minutes: float | None) -> Failures:
    """Read the failures.

    Raises ParameterError in the units of the options, and for repairs without failures.
    """
    if mtbf_hours is None and repair_minutes is not None:
        remedy = "Add --failures-mtbf-hours, or leave it out."
        raise ParameterError(
            "repairs nodes, but none fails",
            field="repair_minutes",
            value=repair_minutes,
            remedy=remedy,
        )
    if mtbf_hours is None:
        return ()
    repair_minutes = REPAIR_MINUTES if repair_minutes is None else repair_minutes
    if not 0 <= repair_minutes < float("inf"):
        raise ParameterError(
            "is not a time from zero up",
            field="repair_minutes",
            value=repair_minutes,
            remedy="Give minutes, such as 30.",
        )
    return RandomFailures(mtbf_hours, repair_minutes * 60)


def read_reservations(texts: Sequence[str]) -> tuple[Reservation, ...]:
    """Read reservations. Raises ParameterError for invalid ones."""
    return tuple(_read(text) for text in texts)


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
        "does not read as a reservation", field="reserve", value=text, remedy=_FORM
    )
