"""Themis's auction (Mahajan et al., NSDI 2020): the proportionally fair choice.

Section 3.3, "Mechanism: Partial Allocation Auctions": the one-shot auction.

    max_x  prod_i V_i(x_i)    with at most one bundle per job, and the GPUs of the offer

V_i is 1 / rho of job i with its bundle. x picks one bundle or none, so that

    log V_i(x_i)  =  log V_i(nothing) + sum_b x_ib log( V_i(b) / V_i(nothing) )

and the logarithm of the product is linear. The hidden payments c_i solve the same programme without
job i; the policy asks for them (policies/shares/auction.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import cvxpy as cp

from maat.scheduling.arrays import FloatArray, IntArray
from maat.scheduling.solving.papers.choice import Choices
from maat.scheduling.solving.papers.cvxpy_solver import MixedLimits
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
    rows = Choices(data.job, data.usage, data.offered)
    # max prod_i V_i(x_i), by its logarithm
    return rows.best(lambda x: cp.Maximize(data.log_gain @ x), limits)
