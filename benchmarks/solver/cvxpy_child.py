"""The same programmes in cvxpy, in a process that can be killed.

GLPK_MI does not keep its time limit. Reads problems from .npz files named on the command line after
the solver's name; prints one JSON line when it is ready, and one per problem.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import cvxpy as cp
import numpy as np

from benchmarks.solver.instances import QUEUE_WEIGHT
from maat.scheduling.solving.papers.sia import SiaRound, programme

OPTIONS: dict[str, dict[str, object]] = {
    "HIGHS": {"mip_rel_gap": 1e-4, "threads": 1},
    "GLPK_MI": {},
}


def main(solver: str, *paths: str) -> None:
    _say({})
    for path in paths:
        with np.load(path) as arrays:
            _say(_solve(solver, dict(arrays)))


def _say(figures: dict[str, float | str]) -> None:
    print(json.dumps({**figures, "cpu": time.process_time()}), flush=True)


def _solve(solver: str, arrays: dict[str, np.ndarray]) -> dict[str, float | str]:
    """Return the CPU seconds of building and of solving."""
    began = time.process_time()
    problem = _problem(**arrays)
    data, chain, inverse = problem.get_problem_data(solver)
    built = time.process_time()
    solution = chain.solve_via_data(
        problem, data, warm_start=False, verbose=False, solver_opts=dict(OPTIONS[solver])
    )
    solved = time.process_time()
    problem.unpack_results(solution, chain, inverse)
    return {
        "build": built - began,
        "solve": solved - built,
        "objective": QUEUE_WEIGHT * len(np.unique(arrays["job"])) - float(problem.value),
        "status": problem.status,
    }


def _problem(
    value: np.ndarray,
    places: np.ndarray,
    job: np.ndarray,
    membership: np.ndarray,
    capacity: np.ndarray,
) -> cp.Problem:
    """Return Sia's programme as the product states it; `value`: lambda - (r G)^p."""
    data = SiaRound(
        utility=QUEUE_WEIGHT - value,
        job=job,
        rigid=np.zeros(len(job), dtype=bool),
        weight=np.ones(len(job)),
        usage=membership * places[:, None],
        capacity=capacity,
        idle_penalty=QUEUE_WEIGHT,
        minimised=True,
    )
    return programme(data)


if __name__ == "__main__":
    main(sys.argv[1], *(str(Path(path)) for path in sys.argv[2:]))
