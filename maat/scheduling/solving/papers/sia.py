"""Sia's programme of one round (Jayaram Subramanya et al., SOSP 2023, section 3.4).

For p > 0, over A (and B, of rigid jobs) binary:

    max_A  sum_i ( sum_j A_ij (r_i G_ij)^p + lambda (1 - ||A_i||_1) )        (4)
    max_B  sum_i ( sum_g B_ig (r_i T_ig)^p + lambda (1 - ||B_i||_1) )        (5), rigid jobs

For p < 0 the sum is minimised. Two things differ from the print. Lambda is a penalty (section 3.4):
under `max` its sign is therefore minus. And a job's terms count by its weight, which is 1 in the
paper.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import cvxpy as cp
import numpy as np

from maat.scheduling.arrays import BoolArray, FloatArray, IntArray
from maat.scheduling.solving.papers.choice import Choices, Programme, sums_by_job
from maat.scheduling.solving.papers.cvxpy_solver import MixedLimits
from maat.scheduling.solving.papers.stated_answer import StatedAnswer


@dataclass(frozen=True)
class SiaRound:
    """The data of a round: P pairs (i, j) of a job and a configuration, R limits.

    `utility`: (r_i G_ij)^p, with r_i of eq. 3 and G normalised by row, (P,). `job`: i, (P,).
    `rigid`: whether i is a rigid job, (P,). `weight`: of job i, (P,). `usage`: places that the pair
    takes under every limit, (P, R): GPUs of each type, quotas, reservations. `capacity`: (R,).
    `minimised`: p < 0.
    """

    utility: FloatArray
    job: IntArray
    rigid: BoolArray
    weight: FloatArray
    usage: IntArray
    capacity: IntArray
    idle_penalty: float
    minimised: bool


def solve(data: SiaRound, limits: MixedLimits) -> StatedAnswer:
    """Return which pairs are chosen, (P,), and the price of each limit by the relaxation."""
    return _choices(data).best(partial(_objective, data), limits)


def programme(data: SiaRound) -> cp.Problem:
    """Return the programme over binary A and B."""
    return Programme(_choices(data), partial(_objective, data), whole=True).problem


def _choices(data: SiaRound) -> Choices:
    """Return the rows of section 3.4.

    At most one configuration per job, ||A_i||_1 <= 1 and ||B_i||_1 <= 1; the GPUs of each type, and
    quotas, reservations, what nodes can hold.
    """
    return Choices(data.job, data.usage, data.capacity)


def _objective(data: SiaRound, x: cp.Variable) -> cp.Minimize | cp.Maximize:
    """Return the objective over x: A_ij of adaptive jobs, B_ig of rigid ones.

    1 if job i runs in configuration j.
    """
    adaptive, rigid = np.flatnonzero(~data.rigid), np.flatnonzero(data.rigid)
    total = sum(
        _summed(data, x, pairs)  # Sia eq. 4, then Sia eq. 5
        for pairs in (adaptive, rigid)
        if len(pairs)
    )
    return cp.Minimize(total) if data.minimised else cp.Maximize(total)


def _summed(data: SiaRound, x: cp.Variable, pairs: IntArray) -> cp.Expression:
    """Return sum_i w_i (sum_j A_ij (r_i G_ij)^p + lambda (1 - ||A_i||_1)) over the pairs' jobs.

    Lambda is taken negatively if the sum is maximised.
    """
    jobs = sums_by_job(data.job[pairs])
    weight = _of_each(data.weight[pairs], data.job[pairs])
    penalty = data.idle_penalty if data.minimised else -data.idle_penalty
    A = x[pairs]
    gained = jobs @ cp.multiply(data.utility[pairs], A)  # sum_j A_ij (r_i G_ij)^p
    idle = 1 - jobs @ A  # 1 - ||A_i||_1
    return cp.sum(cp.multiply(weight, gained + penalty * idle))


def _of_each(values: FloatArray, job: IntArray) -> FloatArray:
    """Return the value of each job, of values by pair."""
    _, first = np.unique(job, return_index=True)
    return values[first]
