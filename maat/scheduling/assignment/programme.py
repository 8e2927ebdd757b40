"""From a goodput matrix and an objective over its pairs to grants.

Builds the assignment programme around what is pinned, and reads its answer.
"""

from __future__ import annotations

import numpy as np

from maat.scheduling.arrays import BoolArray, FloatArray, IntArray
from maat.scheduling.assignment.by_tenant import solve_by_tenant
from maat.scheduling.assignment.objective import Objective
from maat.scheduling.assignment.reasons import AssignmentReasons
from maat.scheduling.assignment.stated import solve_by_cvxpy
from maat.scheduling.free_capacity import free_places
from maat.scheduling.job import JobId
from maat.scheduling.limits import membership, places_taken
from maat.scheduling.matrix import GoodputMatrix
from maat.scheduling.rounds import Decision, Grant, RoundInput
from maat.scheduling.solving.assignment.problem import Assignment, AssignmentProblem, SolveOptions
from maat.scheduling.solving.assignment.solver import solve
from maat.scheduling.solving.engines import Solver


def assign(
    round_input: RoundInput,
    matrix: GoodputMatrix,
    objective: Objective,
    *,
    options: SolveOptions,
    solver: Solver = Solver.PRICES,
    with_batch: bool = True,
) -> Decision:
    """Return the grants that maximise the summed value of the chosen pairs.

    Pins and limits are kept.

    Args:
        objective: Of the P pairs of the matrix.
        solver: What solves the programme. CVXPY breaks no ties by chance (`options.tie_seed`).
        with_batch: Whether grants carry a batch plan.
    """
    pairs, value = matrix.pairs, objective.value
    open_pairs = np.flatnonzero(~_pinned_rows(round_input)[pairs.job] & (pairs.gpu_count > 0))
    present = present_pairs(round_input, matrix)[open_pairs]
    at = value[open_pairs]
    answer: Assignment | None = None
    if solver is Solver.CVXPY:
        problem = _problem(round_input, matrix, open_pairs, at, present)
        answer = solve_by_cvxpy(
            round_input, objective, problem, open_pairs=open_pairs, options=options
        )
    else:
        answer = solve_by_tenant(round_input, pairs, open_pairs, at, present, options)
    if answer is None:
        answer = solve(_problem(round_input, matrix, open_pairs, at, present), options)
    chosen = _grants(round_input, matrix, open_pairs[answer.chosen], with_batch=with_batch)
    grants = {**round_input.pinned, **chosen}
    reasons = AssignmentReasons(
        round_input, matrix, value, grants, answer.report, objective.idle_penalty
    )
    return Decision(grants, answer.report, reasons, matrix=matrix, utility=value)


def _problem(
    round_input: RoundInput,
    matrix: GoodputMatrix,
    open_pairs: IntArray,
    value: FloatArray,
    present: BoolArray,
) -> AssignmentProblem:
    """Return the programme of all jobs together."""
    pairs, limits = matrix.pairs, round_input.limits
    count = pairs.gpu_count[open_pairs]
    rows = membership(
        limits,
        round_input.jobs,
        round_input.cluster.type_names,
        job=pairs.job[open_pairs],
        gpu_type=pairs.gpu_type[open_pairs],
        count=count,
    )
    return AssignmentProblem(
        value=value,
        places=count,
        job=pairs.job[open_pairs],
        membership=rows,
        capacity=free_places(round_input),
        present=present,
        limit_names=tuple(limit.name for limit in limits),
        taken=places_taken(limits, rows, count)
        if any(limit.places_by_count for limit in limits)
        else None,
    )


def _grants(
    round_input: RoundInput, matrix: GoodputMatrix, chosen: IntArray, *, with_batch: bool
) -> dict[JobId, Grant]:
    """Return the grants of the chosen pairs, in their order."""
    pairs, names = matrix.pairs, round_input.cluster.type_names
    grants = {}
    for pair, j, t, count, nodes in zip(
        chosen.tolist(),
        pairs.job[chosen].tolist(),
        pairs.gpu_type[chosen].tolist(),
        pairs.gpu_count[chosen].tolist(),
        pairs.node_count[chosen].tolist(),
        strict=True,
    ):
        plan = pairs.plans.plan(pair) if with_batch and pairs.known[pair] else None
        grants[matrix.job_ids[j]] = Grant(names[t], count, node_count=nodes, batch=plan)
    return grants


def present_pairs(round_input: RoundInput, matrix: GoodputMatrix) -> BoolArray:
    """Return which pairs are what their job holds now, shape (P,)."""
    kind = np.full(len(round_input.jobs), -1, dtype=np.int64)
    count = np.zeros(len(round_input.jobs), dtype=np.int64)
    for j, job in enumerate(round_input.jobs):
        if job.allocation is not None:
            kind[j] = round_input.cluster.type_index[job.allocation.gpu_type]
            count[j] = job.allocation.gpu_count
    pairs = matrix.pairs
    present: BoolArray = (pairs.gpu_type == kind[pairs.job]) & (pairs.gpu_count == count[pairs.job])
    return present


def _pinned_rows(round_input: RoundInput) -> BoolArray:
    return np.array([job.id in round_input.pinned for job in round_input.jobs], dtype=bool)
