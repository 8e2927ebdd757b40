"""The loss of a fit at a point, and the quadratic model that a step is computed from.

A point has shape (7,): logarithms of the first six parameters, then gamma itself. loss.py states
the loss in the parameters. N: samples.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from maat.scheduling.arrays import FloatArray
from maat.scheduling.fitting.loss import GAMMA_WEIGHT, LOWER, SLOPE_WEIGHT, UPPER, FitLoss

GAMMA = 6
FLOOR, CEILING = np.append(np.log(LOWER[:6]), 1.0), np.append(np.full(6, 30.0), UPPER[6])
SLOPES = ((2, 3), (4, 5))  # alpha and beta, across nodes and within one
EXACT = 1e-10  # an error below this has no direction any more


class Local(NamedTuple):
    """The loss at a point, and a quadratic model of it.

    `curvature` is that of the loss, but as if its two roots were parabolas through their present
    value: so a step goes to an exact fit, not past it.
    """

    point: FloatArray  # (7,)
    loss: float
    gradient: FloatArray  # (7,)
    curvature: FloatArray  # (7, 7)


class Problem:
    """The loss of FitLoss at points, with its second derivatives."""

    def __init__(self, table: FloatArray) -> None:
        loss = FitLoss(table)
        self._design = np.ascontiguousarray((loss.compute_design + loss.sync_design).T)  # (6, N)
        self._unsynced = loss.unsynced
        self._log_compute, self._log_step = loss.log_compute, loss.log_step
        self._weight = loss.weight / loss.weight.sum()

    def at(self, point: FloatArray) -> Local:
        """Return the loss and its quadratic model at a point, shape (7,).

        With c = log T_grad, y = log T_sync and f = log T_step, all of shape (N,):
        f = log(exp(gamma c) + exp(gamma y)) / gamma, and

            df  = p dc + q dy + f_gamma dgamma,  p + q = 1
            d2f = p d2c + q d2y + p q gamma v v' - 2 f_gamma / gamma dgamma^2
            v   = dc - dy - (y - c) / gamma dgamma

        c and y are logarithms of sums of exponentials: d2c = diag(dc) - dc dc'. So the curvature
        is a sum over columns of four kinds, dc, dy, df and v, each times what it counts.
        """
        gamma, count = float(point[GAMMA]), len(self._weight)
        terms = np.exp(point[:GAMMA])[:, None] * self._design
        compute, sync = terms[0] + terms[1], terms[2:].sum(0) + self._unsynced
        c = np.log(compute)
        ahead = np.log(sync) - c  # y - c
        stretch = np.logaddexp(0.0, gamma * ahead) / gamma  # f - c
        p = np.exp(-gamma * stretch)
        q = 1.0 - p
        compute_root, of_compute, compute_pull = self._root(c - self._log_compute)
        step_root, of_step, step_pull = self._root(c + stretch - self._log_step)
        by_gamma = (q * ahead - stretch) / gamma

        columns = np.zeros((7, 4 * count))
        dc, dy, df, v = (columns[:, count * k : count * (k + 1)] for k in range(4))
        np.divide(terms[:2], compute, out=dc[:2])
        np.divide(terms[2:], sync, out=dy[2:6])
        np.multiply(dc[:2], p, out=df[:2])
        np.multiply(dy[2:6], q, out=df[2:6])
        df[GAMMA] = by_gamma
        np.subtract(dc, dy, out=v)
        v[GAMMA] = ahead / -gamma

        pull_of_p, pull_of_q = step_pull * p, step_pull * q
        counts = np.concatenate(
            (of_compute - compute_pull - pull_of_p, -pull_of_q, of_step, pull_of_p * q * gamma)
        )
        gradient = columns[:, :count] @ compute_pull + df @ step_pull
        curvature = (columns * counts) @ columns.T
        curvature.ravel()[: 7 * GAMMA : 8] += gradient[:GAMMA]  # the diagonal of logarithms
        curvature[GAMMA, GAMMA] -= 2.0 * float(step_pull @ by_gamma) / gamma
        penalty = _penalise(point, gradient, curvature)
        return Local(point, compute_root + step_root + penalty, gradient, curvature)

    def _root(self, error: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Return the weighted root mean square, its curvature and its slope per error, (N,)."""
        root = math.sqrt(float((error * error) @ self._weight))
        bend = self._weight / max(root, EXACT)
        return root, bend, bend * error


def _penalise(point: FloatArray, gradient: FloatArray, curvature: FloatArray) -> float:
    """Return the penalties on gamma and on both slopes; add their derivatives in place."""
    beyond = float(point[GAMMA]) - 1.0
    gradient[GAMMA] += 2.0 * GAMMA_WEIGHT * beyond
    curvature[GAMMA, GAMMA] += 2.0 * GAMMA_WEIGHT
    penalty = GAMMA_WEIGHT * beyond**2
    for alpha, beta in SLOPES:
        of_slope = SLOPE_WEIGHT * math.exp(2.0 * float(point[beta] - point[alpha]))
        penalty += of_slope
        gradient[alpha] -= 2.0 * of_slope
        gradient[beta] += 2.0 * of_slope
        for one, other, sign in ((alpha, alpha, 1), (beta, beta, 1), (alpha, beta, -1)):
            curvature[one, other] += 4.0 * sign * of_slope
        curvature[beta, alpha] -= 4.0 * of_slope
    return penalty
