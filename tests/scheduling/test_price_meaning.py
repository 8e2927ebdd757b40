"""What the price of a GPU type says: what one GPU more adds, and one less takes away.

Both are found by solving again. Jobs take GPUs by powers of two, so a price is exact only for the
programme that may split jobs; for whole jobs it holds in most rounds and on the mean.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maat.scheduling.arrays import BoolArray, FloatArray, IntArray
from maat.scheduling.solving.assignment.problem import AssignmentProblem, SolveOptions
from maat.scheduling.solving.assignment.solver import solve, solve_highs

NAMES = ("capacity:slow", "capacity:fast")
INSTANCES = 60
SOLVED = 1e-3  # the dual stops at a relative gap of 1e-4


@dataclass(frozen=True)
class Round:
    """Jobs with Sia's values, 1.1 - G^-0.5, for 1, 2 and 4 GPUs of two types."""

    value: FloatArray
    places: IntArray
    job: IntArray
    of_type: BoolArray

    def problem(self, capacity: IntArray) -> AssignmentProblem:
        nothing = np.zeros(len(self.value), dtype=bool)
        return AssignmentProblem(
            self.value, self.places, self.job, self.of_type, capacity, nothing, NAMES
        )

    def most(self, capacity: IntArray) -> float:
        """Return the largest sum of values, proved."""
        return solve_highs(self.problem(capacity), SolveOptions(tolerance=0)).report.objective


def a_round(rng: np.random.Generator) -> tuple[Round, IntArray]:
    jobs, rows = int(rng.integers(3, 12)), []
    capacity = rng.integers(2, 9, size=2)
    for job in range(jobs):
        size = rng.uniform(0.2, 1.0)
        for kind in range(2):
            speed, scaling = rng.uniform(0.5, 2.0), rng.uniform(0.5, 0.9)
            rows += [(1.1 - (speed * size * n**scaling) ** -0.5, n, job, kind) for n in (1, 2, 4)]
    value, places, job_of, kind_of = (np.array(column) for column in zip(*rows, strict=True))
    return Round(value, places, job_of, np.stack([kind_of == 0, kind_of == 1], axis=1)), capacity


def test_a_price_lies_between_what_one_gpu_more_adds_and_one_less_takes_away() -> None:
    rng, found = np.random.default_rng(0), []
    for _ in range(INSTANCES):
        made, capacity = a_round(rng)
        prices = solve(made.problem(capacity), SolveOptions()).report.prices
        at_present = made.most(capacity)
        for kind, name in enumerate(NAMES):
            one = np.eye(2, dtype=np.int64)[kind]
            adds, takes = (
                made.most(capacity + one) - at_present,
                at_present - made.most(capacity - one),
            )
            found.append((min(adds, takes), prices[name], max(adds, takes)))
    low, price, high = np.array(found).T
    inside = (low - SOLVED <= price) & (price <= high + SOLVED)
    assert inside.mean() >= 0.95
    assert low.mean() <= price.mean() <= high.mean()
    assert price.mean() > 0.05  # GPUs were scarce: the claim is not about zeros


def test_a_gpu_that_nobody_waits_for_has_no_price() -> None:
    made, _ = a_round(np.random.default_rng(1))
    report = solve(made.problem(np.array([1000, 1000])), SolveOptions()).report
    assert dict(report.prices) == {"capacity:slow": 0.0, "capacity:fast": 0.0}
    assert made.most(np.array([1001, 1000])) == made.most(np.array([1000, 1000]))
