"""How many generated rounds a contract is held to, and which policies CVXPY can solve."""

from __future__ import annotations

import os

from hypothesis import Phase, settings

from maat.scheduling.parameters import parameters_of
from maat.scheduling.policies import POLICIES

SOLVED_BY_CVXPY = [
    entry.name
    for entry in POLICIES
    if any(parameter.name == "solver" for parameter in parameters_of(entry.cls))
]
"""Policies whose programmes CVXPY can solve too."""


def sampled(examples: int, *, usual: int | None = None) -> settings:
    """All of them in `make test-long`; in `make test` an eighth, or so many as are usual.

    An example that fails is not made smaller unless MAAT_TESTS_SHRINK is set: whole rounds take
    five minutes of it, and a line that repeats the failure is printed in any case.
    """
    phases = [p for p in Phase if p is not Phase.shrink or os.environ.get("MAAT_TESTS_SHRINK")]
    few = max(examples // 8, 5) if usual is None else usual
    most = examples if os.environ.get("MAAT_TESTS_LONG") else few
    return settings(max_examples=most, phases=phases, print_blob=True)
