"""Gavel's shares of time, one programme in two forms.

The solvers get it as matrices, and as the paper writes it in CVXPY.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.table import Cell, Figures
from maat.scheduling.solving.linear_programme import LinearMethod, LinearProgramme
from maat.scheduling.solving.linear_solver import solve_linear
from maat.scheduling.solving.papers.gavel import GavelRound, total_throughput

COLUMNS = {
    "gpus": "GPUs",
    "jobs": "jobs",
    "interior": "interior point",
    "simplex": "simplex",
    "stated": "cvxpy + Clarabel",
    "times_under": "x under",
    "difference": "largest difference of a share",
}
NOTES = [
    "CPU seconds, medians over the stored rounds: building the programme included. The sum of "
    "throughputs over three GPU types.",
    "x under: the interior point against CVXPY's statement of the paper's formula, solved by the "
    "same method.",
]
TYPES = 3
SHARES_OF_GPUS = np.array([0.375, 0.25, 0.375])
JOBS_PER_GPU = 0.5


def measure(sizes: Sequence[int], *, stored: int) -> Figures:
    rows = [_row(gpus, stored) for gpus in sizes]
    return Figures("shares", "Gavel: shares of time, one round", COLUMNS, rows, list(NOTES))


def _row(gpus: int, stored: int) -> dict[str, Cell]:
    jobs = int(gpus * JOBS_PER_GPU)
    seconds: dict[str, list[float]] = {"interior": [], "simplex": [], "stated": []}
    difference = 0.0
    for seed in range(stored):
        rng = np.random.default_rng((seed, gpus))
        rate, count = (
            rng.lognormal(1.0, 1.0, (jobs, TYPES)),
            rng.choice([1, 2, 4, 8, 16], jobs).astype(np.float64),
        )
        capacity = gpus * SHARES_OF_GPUS
        direct, x = _timed(lambda: _direct(rate, count, capacity, LinearMethod.INTERIOR_POINT))  # noqa: B023 - called at once
        corner, _ = _timed(lambda: _direct(rate, count, capacity, LinearMethod.SIMPLEX))  # noqa: B023
        stated, y = _timed(lambda: _stated(rate, count, capacity))  # noqa: B023
        for name, value in zip(seconds, (direct, corner, stated), strict=True):
            seconds[name].append(value)
        difference = max(difference, float(np.abs(x - y).max()))
    found = {name: statistics.median(values) for name, values in seconds.items()}
    return {
        "gpus": gpus,
        "jobs": jobs,
        **found,
        "times_under": found["stated"] / found["interior"],
        "difference": difference,
    }


def _timed(run: Callable[[], np.ndarray]) -> tuple[float, np.ndarray]:
    began = time.process_time()
    answer = run()
    return time.process_time() - began, answer


def _direct(
    rate: np.ndarray, count: np.ndarray, capacity: np.ndarray, method: LinearMethod
) -> np.ndarray:
    jobs, size = len(rate), rate.size
    at = np.arange(size)
    job, kind = np.divmod(at, TYPES)
    programme = LinearProgramme(
        rate.ravel(),
        np.concatenate((job, jobs + kind)),
        np.concatenate((at, at)),
        np.concatenate((np.ones(size), count[job])),
        np.concatenate((np.ones(jobs), capacity)),
    )
    return solve_linear(programme, present=np.zeros(size), method=method).x.reshape(rate.shape)


def _stated(rate: np.ndarray, count: np.ndarray, capacity: np.ndarray) -> np.ndarray:
    jobs, size = len(rate), rate.size
    at = np.arange(size)
    job, kind = np.divmod(at, TYPES)
    data = GavelRound(
        entry=at,
        job=job,
        throughput=rate.ravel(),
        usage=np.eye(TYPES)[kind] * count[job][:, None],
        num_workers=capacity,
        jobs=jobs,
    )
    return np.asarray(total_throughput(data, np.ones(jobs)).x).reshape(rate.shape)
