"""How reservations and failures of a simulation are written on the command line. What they do is the library's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from maat.scheduling.errors import ParameterError
from maat.scheduling.reservations import Reservation
from maat.simulation.failures import SECONDS_PER_HOUR, Failures, RandomFailures

_FORM = "Write TYPE=GPUS,tenant=NAME or TYPE=GPUS,job=NAME, then ,from=HOURS and ,until=HOURS where it does not hold always."

Reserve = Annotated[
    list[str] | None,
    typer.Option("--reserve", help="Keep GPUs free: TYPE=GPUS,tenant=NAME or ,job=NAME[,from=HOURS][,until=HOURS]. May be repeated."),
]
Mtbf = Annotated[float | None, typer.Option("--failures-mtbf-hours", help="Let nodes fail: each one's mean hours in service.")]
Repair = Annotated[float, typer.Option("--repair-minutes", help="Minutes until a failed node is in service again.")]


def read_failures(mtbf_hours: float | None, repair_minutes: float) -> Failures:
    """Raises ParameterError in the units of the options."""
    if mtbf_hours is None:
        return ()
    if not 0 <= repair_minutes < float("inf"):
        raise ParameterError("is no time from zero up", field="repair_minutes", value=repair_minutes, remedy="Give minutes, such as 30.")
    return RandomFailures(mtbf_hours, repair_minutes * 60)


def read_reservations(texts: Sequence[str]) -> tuple[Reservation, ...]:
    """Raises ParameterError where one does not read as a reservation."""
    return tuple(_read(text) for text in texts)


def _read(text: str) -> Reservation:
    gpu_type, *named = (part.partition("=")[::2] for part in text.split(","))
    given = {name.strip(): value.strip() for name, value in named}
    unknown = given.keys() - {"tenant", "job", "from", "until"}
    if unknown or len(given) < len(named) or not gpu_type[1].strip().isdecimal():
        raise _refused(text)
    return Reservation(
        gpu_type[0].strip(),
        int(gpu_type[1]),
        tenant=given.get("tenant"),
        job_id=given.get("job"),
        start=_seconds(given.get("from", "0"), text),
        end=_seconds(given["until"], text) if "until" in given else float("inf"),
    )


def _seconds(hours: str, text: str) -> float:
    try:
        return float(hours) * SECONDS_PER_HOUR
    except ValueError:
        raise _refused(text) from None


def _refused(text: str) -> ParameterError:
    return ParameterError("does not read as a reservation", field="reserve", value=text, remedy=_FORM)
