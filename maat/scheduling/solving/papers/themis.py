"""Themis's auction (Mahajan et al., NSDI 2020, section 5.2): the proportionally fair choice.

    max_x  prod_i V_i(x_i)    with at most one bundle per job, and the GPUs of the offer

V_i is 1 / rho of job i with its bundle. x picks one bundle or none, so that

    log V_i(x_i)  =  log V_i(nothing) + sum_b x_ib log( V_i(b) / V_i(nothing) )

and the logarithm of the product is linear. The hidden payments c_i solve the same programme without
job i; the policy asks for them (policies/shares/auction.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import cvxpy as cp
import numpy as np
from scipy.sparse import csr_array

from maat.scheduling.arrays import FloatArray, IntArray
from maat.scheduling.solving.papers.cvxpy_solver import (
    MixedLimits,
    price_of,
    run_mixed,
    run_relaxed,
)
from maat.scheduling.solving.papers.stated_answer import StatedAnswer


@dataclass(frozen=True)
class ThemisAuction:
    """The data of an auction: P bids of jobs, R limits.

    `log_gain`: log(V_i(b) / V_i(nothing)) of each bid, (P,). `job`: i, (P,). `usage`: what bundle b
    takes under every limit, (P, R). `offered`: what each limit leaves, (R,).
    """

    log_gain: FloatArray
    job: IntArray
    usage: IntArray
    offered: IntArray


def solve(data: ThemisAuction, limits: MixedLimits) -> StatedAnswer:
    """Return which bids win, (P,), and the price of each limit by the relaxation."""
    won = Statement(data, whole=True)
    relaxed = Statement(data, whole=False)
    run_relaxed(relaxed.problem)
    return replace(
        run_mixed(won.problem, won.x, limits),
        prices=price_of(relaxed.gpus, len(data.offered)),
    )


class Statement:
    """The programme; `whole`: x is binary, else in [0, 1]."""

    def __init__(self, data: ThemisAuction, *, whole: bool) -> None:
        bids = len(data.log_gain)
        self.x = cp.Variable(bids, boolean=True) if whole else cp.Variable(bids, bounds=[0, 1])
        _, row = np.unique(data.job, return_inverse=True)
        of_job = csr_array((np.ones(bids), (row, np.arange(bids))))
        # Themis section 5.2: max prod_i V_i(x_i), by its logarithm.
        objective = cp.Maximize(data.log_gain @ self.x)
        one_each = of_job @ self.x <= 1
        self.gpus = data.usage.T.astype(np.float64) @ self.x <= np.maximum(data.offered, 0)
        self.problem = cp.Problem(objective, [one_each, self.gpus])
