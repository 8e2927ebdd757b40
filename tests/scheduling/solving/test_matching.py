"""The matching of least total completion time, against every schedule and by hand."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from maat.scheduling.arrays import FloatArray
from maat.scheduling.solving.matching import least_total_completion


def test_a_job_waits_for_the_fast_machine_if_the_slow_one_would_take_longer() -> None:
    """10 s and 20 s on the fast machine; on the slow one 100 s, or 25 s.

    Both on the fast one: 10 + 30 = 40. The second on the slow one: 10 + 25 = 35. With 45 s there
    it is 55, and so it waits.
    """
    machines = np.array([1, 1])

    apart = least_total_completion(np.array([[10.0, 100.0], [20.0, 25.0]]), machines)
    after = least_total_completion(np.array([[10.0, 100.0], [20.0, 45.0]]), machines)

    assert (apart.kind.tolist(), apart.total) == ([0, 1], 35.0)
    assert (after.kind.tolist(), after.total) == ([0, 0], 40.0)


def test_machines_of_one_kind_share_the_jobs_evenly() -> None:
    """Two machines, shortest first: 1 and 2 s at once, then 3 and 4 s: 1 + 2 + 4 + 6."""
    found = least_total_completion(np.array([[4.0], [1.0], [3.0], [2.0]]), np.array([2]))
    assert (found.kind.tolist(), found.total) == ([0, 0, 0, 0], 13.0)


def test_a_job_that_can_run_nowhere_has_no_machine_and_costs_nothing() -> None:
    found = least_total_completion(np.array([[np.inf, 5.0], [np.inf, np.inf]]), np.array([3, 1]))
    assert (found.kind.tolist(), found.total) == ([1, -1], 5.0)
    nothing_free = least_total_completion(np.array([[1.0, 5.0]]), np.array([0, 0]))
    assert (nothing_free.kind.tolist(), nothing_free.total) == ([-1], 0.0)


@pytest.mark.parametrize("seed", range(20))
def test_no_schedule_has_a_lower_total(seed: int) -> None:
    chance = np.random.default_rng(seed)
    machines = np.array([2, 1])
    seconds = chance.integers(1, 30, size=(6, 2)).astype(np.float64)
    seconds[chance.random(seconds.shape) < 0.2] = np.inf
    seconds[:, 0] = np.where(np.isinf(seconds).all(axis=1), 7.0, seconds[:, 0])

    found = least_total_completion(seconds, machines)

    assert found.total == _least_of_all_schedules(seconds, [0, 0, 1])


def _least_of_all_schedules(seconds: FloatArray, kind_of: list[int]) -> float:
    """Try every machine for every job; on each, the shortest job runs first."""
    totals = []
    for machine_of in product(range(len(kind_of)), repeat=len(seconds)):
        total = 0.0
        for machine, kind in enumerate(kind_of):
            queue = sorted(seconds[j, kind] for j, own in enumerate(machine_of) if own == machine)
            total += sum(np.cumsum(queue))
        totals.append(total)
    return min(totals)
