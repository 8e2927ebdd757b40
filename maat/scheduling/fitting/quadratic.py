"""The loss of a fit at many points at once, and the quadratic model that a step is computed from.

Arrays have an axis S of points and N of samples. A point is a row of shape (7,): logarithms of the
first six parameters, then gamma itself. loss.py states the loss for one point.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maat.scheduling.arrays import BoolArray, FloatArray
from maat.scheduling.fitting.loss import GAMMA_WEIGHT, LOWER, SLOPE_WEIGHT, UPPER, FitLoss

GAMMA = 6
FLOOR, CEILING = np.append(np.log(LOWER[:6]), 1.0), np.append(np.full(6, 30.0), UPPER[6])
SLOPES = ((2, 3), (4, 5))  # alpha and beta, across nodes and within one
EXACT = 1e-10  # an error below this has no direction any more
# log(beta / alpha) of both as a product with a point, and the curvature of (beta / alpha)^2.
_SLOPE_LOGS = np.array([[0, 0, -1, 1, 0, 0, 0], [0, 0, 0, 0, -1, 1, 0]], dtype=np.float64)
_SLOPE_BENDS = (4.0 * _SLOPE_LOGS[:, :, None] * _SLOPE_LOGS[:, None, :]).reshape(2, 49)
_GAMMA_BEND = np.diag([0.0] * 6 + [2.0 * GAMMA_WEIGHT])


class Reached(NamedTuple):
    """Points, shape (S, 7), and their losses, shape (S,)."""

    points: FloatArray
    loss: FloatArray

    def best(self, count: int) -> FloatArray:
        """Return the points of lowest loss."""
        return self.points[self.loss.argsort()[:count]]

    def with_others(self, others: Reached) -> Reached:
        return Reached(*(np.concatenate(both) for both in zip(self, others, strict=True)))


class Local(NamedTuple):
    """The loss at S points, and a quadratic model of it: what a step is computed from.

    `curvature` is that of the loss, but as if its two roots were parabolas through their present
    value: so a step goes to an exact fit, not past it.
    """

    points: FloatArray  # (S, 7)
    loss: FloatArray  # (S,)
    gradient: FloatArray  # (S, 7)
    curvature: FloatArray  # (S, 7, 7)

    def only(self, points: BoolArray) -> Local:
        return Local(*(part[points] for part in self))

    def or_better(self, trial: Local) -> Local:
        """Return, point by point, the trial where its loss is lower."""
        lower = trial.loss < self.loss
        return Local(
            *(
                np.where(lower.reshape(-1, *(1,) * (new.ndim - 1)), new, old)
                for old, new in zip(self, trial, strict=True)
            )
        )


class Problem:
    """The loss of FitLoss at many points at once, with its second derivatives."""

    def __init__(self, table: FloatArray) -> None:
        loss = FitLoss(table)
        self._compute_design = loss.compute_design.T[:2].copy()  # (2, N)
        self._sync_design = loss.sync_design.T[2:].copy()  # (4, N)
        self._unsynced = loss.unsynced
        self._log_compute, self._log_step = loss.log_compute, loss.log_step
        self._weight = loss.weight / loss.weight.sum()

    def at(self, points: FloatArray) -> Local:
        """Return the loss and its quadratic model at these points, shape (S, 7).

        With c = log T_grad, y = log T_sync and f = log T_step, all of shape (S, N):
        f = log(exp(gamma c) + exp(gamma y)) / gamma, and df = p dc + q dy with p + q = 1.
        """
        parameters, gamma = np.exp(points[:, :GAMMA]), points[:, GAMMA:]
        compute = parameters[:, :2] @ self._compute_design
        sync = parameters[:, 2:] @ self._sync_design + self._unsynced
        c, ahead = np.log(compute), np.log(sync) - np.log(compute)  # ahead = y - c
        stretch = np.logaddexp(0.0, gamma * ahead) / gamma  # f - c
        p = np.exp(-gamma * stretch)
        q = 1.0 - p
        compute_error, step_error = c - self._log_compute, c + stretch - self._log_step
        compute_root, step_root = self._root(compute_error), self._root(step_error)
        of_compute = self._weight / np.maximum(compute_root, EXACT)[:, None]
        of_step = self._weight / np.maximum(step_root, EXACT)[:, None]
        compute_pull, step_pull = of_compute * compute_error, of_step * step_error

        by_compute = parameters[:, :2, None] * self._compute_design / compute[:, None, :]
        by_sync = parameters[:, 2:, None] * self._sync_design / sync[:, None, :]
        by_gamma = (q * ahead - stretch) / gamma
        total_pull = compute_pull + step_pull * p
        mixed = step_pull * p * q
        bend = mixed * gamma

        gradient, curvature = np.empty_like(points), np.empty((*points.shape, 7))
        gradient[:, :2] = _times(by_compute, total_pull)
        gradient[:, 2:6] = _times(by_sync, step_pull * q)
        gradient[:, 6] = (step_pull * by_gamma).sum(-1)
        curvature[:, :2, :2] = _quadratic(
            by_compute, of_compute + of_step * p * p + bend - total_pull, by_compute
        )
        curvature[:, 2:6, 2:6] = _quadratic(
            by_sync, of_step * q * q + bend - step_pull * q, by_sync
        )
        curvature[:, :2, 2:6] = _quadratic(by_compute, of_step * p * q - bend, by_sync)
        curvature[:, :2, 6] = _times(by_compute, of_step * p * by_gamma - mixed * ahead)
        curvature[:, 2:6, 6] = _times(by_sync, of_step * q * by_gamma + mixed * ahead)
        curvature[:, 6, 6] = (
            of_step * by_gamma**2 + (mixed * ahead**2 - 2.0 * step_pull * by_gamma) / gamma
        ).sum(-1)
        each = np.arange(GAMMA)
        curvature[:, each, each] += gradient[:, :GAMMA]  # of logarithms
        curvature[:, 2:6, :2] = curvature[:, :2, 2:6].transpose(0, 2, 1)
        curvature[:, 6, :GAMMA] = curvature[:, :GAMMA, 6]

        penalty, its_gradient, its_curvature = _penalties(points)
        return Local(
            points,
            compute_root + step_root + penalty,
            gradient + its_gradient,
            curvature + its_curvature,
        )

    def best_of(self, points: FloatArray) -> Reached:
        """Return the best of each column of points, shape (V, S, 7)."""
        losses = self.loss(points.reshape(-1, 7)).reshape(points.shape[:2])
        best, each = losses.argmin(axis=0), np.arange(points.shape[1])
        return Reached(points[best, each], losses[best, each])

    def loss(self, points: FloatArray) -> FloatArray:
        """Return the loss alone, shape (S,)."""
        parameters, gamma = np.exp(points[:, :GAMMA]), points[:, GAMMA:]
        c = np.log(parameters[:, :2] @ self._compute_design)
        y = np.log(parameters[:, 2:] @ self._sync_design + self._unsynced)
        f = np.logaddexp(gamma * c, gamma * y) / gamma
        roots = self._root(c - self._log_compute) + self._root(f - self._log_step)
        return roots + _penalties(points)[0]

    def _root(self, error: FloatArray) -> FloatArray:
        """Return the weighted root mean squares, shape (S,)."""
        root: FloatArray = np.sqrt((error * error) @ self._weight)
        return root


def _times(slopes: FloatArray, per_sample: FloatArray) -> FloatArray:
    """Return sums over samples: (S, P, N) by (S, N) gives (S, P)."""
    sums: FloatArray = np.matmul(slopes, per_sample[:, :, None])[:, :, 0]
    return sums


def _quadratic(left: FloatArray, per_sample: FloatArray, right: FloatArray) -> FloatArray:
    """Return left diag(per_sample) right^T, shape (S, P, Q)."""
    products: FloatArray = np.matmul(left * per_sample[:, None, :], right.transpose(0, 2, 1))
    return products


def _penalties(points: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the penalties on gamma and on both slopes: (S,), gradient (S, 7), curvature."""
    beyond = points[:, GAMMA] - 1.0
    of_slopes = SLOPE_WEIGHT * np.exp(2.0 * (points @ _SLOPE_LOGS.T))  # (S, 2)
    gradient = 2.0 * of_slopes @ _SLOPE_LOGS
    gradient[:, GAMMA] = 2.0 * GAMMA_WEIGHT * beyond
    curvature = (of_slopes @ _SLOPE_BENDS).reshape(-1, 7, 7) + _GAMMA_BEND
    return GAMMA_WEIGHT * beyond**2 + of_slopes.sum(-1), gradient, curvature
