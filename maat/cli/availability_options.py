"""The options for GPUs that are reserved or fail during a simulation."""

from __future__ import annotations

from typing import Annotated

import typer

from maat.cli.numbers import number_option

Reservations = Annotated[
    list[str] | None,
    typer.Option(
        "--reservation",
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
        "--repair-seconds", help="Until a failed node is in service again; default: 1800."
    ),
]
