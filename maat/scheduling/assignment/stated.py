"""Solves the assignment programme as Sia's paper states it, through CVXPY.

All jobs together, also where quotas would let tenants be solved one by one.
"""

from __future__ import annotations

import numpy as np

from maat.scheduling.arrays import IntArray
from maat.scheduling.assignment.objective import Objective
from maat.scheduling.rounds import RoundInput
from maat.scheduling.solving.assignment.problem import Assignment, AssignmentProblem, SolveOptions
from maat.scheduling.solving.assignment.solver import solve_stated
from maat.scheduling.solving.papers.stated_answer import StatedAnswer


def solve_by_cvxpy(
    round_input: RoundInput,
    objective: Objective,
    problem: AssignmentProblem,
    *,
    open_pairs: IntArray,
    options: SolveOptions,
) -> Assignment:
    """Return the answer over `problem`, whose pairs are `open_pairs` of the matrix."""
    from maat.scheduling.solving.papers import sia
    from maat.scheduling.solving.papers.cvxpy_solver import MixedLimits

    rigid = np.array([job.spec.is_rigid for job in round_input.jobs], dtype=bool)

    def state(pairs: IntArray) -> StatedAnswer:
        at = open_pairs[pairs]
        stated = sia.SiaRound(
            utility=objective.utility[at],
            job=problem.job[pairs],
            rigid=rigid[problem.job[pairs]],
            weight=objective.weight[at],
            usage=problem.usage[pairs],
            capacity=problem.capacity,
            idle_penalty=objective.idle_penalty,
            minimised=objective.minimised,
        )
        return sia.solve(stated, MixedLimits(options.tolerance, options.fallback_seconds))

    return solve_stated(problem, options, state)
