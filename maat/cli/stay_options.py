"""The options that say how long jobs stay where they are, as commands share them."""

from __future__ import annotations

from typing import Annotated

import typer

from maat.vocabulary import UNBOUNDED

LeastStay = Annotated[
    str | None,
    typer.Option(
        "--least-stay-seconds",
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
