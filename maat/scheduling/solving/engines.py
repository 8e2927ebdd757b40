"""Which engine solves a policy's programme: Maat's own solver, or CVXPY."""

from __future__ import annotations

from enum import StrEnum
from importlib.util import find_spec

from maat.scheduling.errors import ParameterError


class Solver(StrEnum):
    """What solves the programme of a policy.

    PRICES: Maat's own solver of it; that of Sia and Themis works by prices. CVXPY: the programme as
    its paper writes it (solving/papers), through CVXPY.
    """

    PRICES = "prices"
    CVXPY = "cvxpy"


SOLVER_HELP = (
    "prices: Maat's own solver. cvxpy: the programme as the paper writes it, solved through CVXPY."
)


def check_installed(solver: Solver) -> None:
    """Refuse an engine whose package is missing.

    Raises:
        ParameterError: CVXPY is wanted and not installed.
    """
    if solver is Solver.CVXPY and find_spec("cvxpy") is None:
        raise ParameterError(
            "needs the package cvxpy, which is not installed",
            field="solver",
            value=solver.value,
            remedy=f"Install maat[policies], or use {Solver.PRICES.value}.",
        )
