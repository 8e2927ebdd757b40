"""The options that say how long jobs stay where they are, as commands share them."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from maat.library.durations import seconds_of
from maat.scheduling.stay_bounds import least_stay_of, most_moves_of
from maat.vocabulary import UNBOUNDED

LeastStay = Annotated[
    str | None,
    typer.Option(
        "--least-stay",
        metavar="DURATION",
        help="Rounds leave a job on its GPUs until it has held them for so long, such as 30m; "
        f"{UNBOUNDED} for no bound.",
    ),
]
MostMoves = Annotated[
    str | None,
    typer.Option(
        "--most-moves-per-hour",
        metavar="COUNT",
        help="Rounds leave a job on its GPUs while it was moved so often within the last hour; "
        f"{UNBOUNDED} for no bound.",
    ),
]


def bounds_of(least_stay: str | None, most_moves_per_hour: str | None) -> dict[str, Any]:
    """Return the given bounds as a request's fields; None for no bound. Raises ParameterError."""
    given: dict[str, Any] = {}
    if least_stay is not None:
        seconds = None if least_stay == UNBOUNDED else seconds_of(least_stay, field="least_stay")
        given["least_stay_seconds"] = least_stay_of(seconds, field="least_stay", written=least_stay)
    if most_moves_per_hour is not None:
        given["most_moves_per_hour"] = most_moves_of(most_moves_per_hour)
    return given
