"""Where the search for a fit's minimum begins: lines through what the samples say, in closed form.

For a known overlap, the synchronisation of each sample follows from its step (Pollux eq. 11), and
alpha and beta from a line through these.
"""

from __future__ import annotations

import numpy as np

from maat.scheduling.arrays import BoolArray, FloatArray
from maat.scheduling.fitting.loss import Priors, compute_seconds
from maat.scheduling.fitting.quadratic import CEILING, FLOOR, GAMMA, SLOPES

# Beta over alpha of a start: where a steep line meets all samples exactly, the search cannot leave
# it for the flatter one that costs less.
STEEP, GENTLE, FLAT = 2.0, 0.1, 0.01


class Starts:
    """Points to begin at, for any gamma."""

    def __init__(self, table: FloatArray, known: Priors) -> None:
        nodes, replicas, self._batch, step, sync, self._weight = table.T
        self._compute = compute_seconds(step, sync)
        self._log_stretch = np.log(step) - np.log(self._compute)
        self._beyond_two = np.maximum(replicas - 2, 0.0)
        self._groups = ((replicas > 1) & (nodes > 1), (replicas > 1) & (nodes == 1))
        self._priors = known
        self._log_line = np.log(self._compute_line())

    def at(self, gammas: FloatArray) -> FloatArray:
        """Return points with steep, gentle and flat lines for each gamma, shape (3, S, 7)."""
        points = np.empty((3, len(gammas), 7))
        points[..., :GAMMA] = np.log(self._priors.start[:GAMMA])
        points[..., GAMMA] = gammas
        points[..., :2] = self._log_line
        for group, (alpha, beta) in zip(self._groups, SLOPES, strict=True):
            if group.any():
                points[..., alpha : beta + 1] = np.log(self._sync_lines(group, gammas, beta))
        clipped: FloatArray = np.clip(points, FLOOR, CEILING)
        return clipped

    def _compute_line(self) -> FloatArray:
        """Return alpha and beta of T_grad, shape (2,)."""
        fixed = None if self._priors.is_free[0] else self._priors.start[0]
        counts = self._weight / self._compute**2
        alpha, beta = _line(self._batch, self._compute, counts, alpha=fixed)
        least = 1e-6 * self._compute.min()
        return np.array([max(float(alpha), least), max(float(beta), least / self._batch.max())])

    def _sync_lines(self, group: BoolArray, gammas: FloatArray, beta: int) -> FloatArray:
        """Return alpha and beta of T_sync at each gamma, of three slopes: (3, S, 2).

        T_sync = T_grad ((T_step / T_grad)^gamma - 1)^(1 / gamma), by eq. 11. A sample counts by
        what its T_sync changes in log T_step.
        """
        power = gammas[:, None] * np.maximum(self._log_stretch[group], 1e-9)
        log_less_one = power + np.log(-np.expm1(-power))
        sync = np.maximum(self._compute[group] * np.exp(log_less_one / gammas[:, None]), 1e-6)
        counts = self._weight[group] * np.maximum(-np.expm1(-power) / sync, 1e-6) ** 2
        beyond = self._beyond_two[group] * self._priors.is_free[beta]
        line = np.stack(_line(beyond, sync, counts), axis=1)
        # A cost of exactly nothing has no slope in its logarithm, and steep lines are penalised.
        least = np.maximum(1e-2 * sync.max(axis=1), 1e-7)
        line[:, 1] = np.maximum(line[:, 1], 1e-3 * least)
        line[:, 0] = np.maximum(line[:, 0], least)
        line[:, 0] = np.maximum(line[:, 0], line[:, 1] / STEEP)
        level = np.maximum((counts * sync).sum(-1) / counts.sum(-1), least)
        gentle = np.stack((np.maximum(line[:, 0], line[:, 1] / GENTLE), line[:, 1]), axis=1)
        lines = np.stack((line, gentle, np.stack((level, FLAT * level), axis=1)))
        if not self._priors.is_free[beta]:
            lines[:, :, 1] = self._priors.start[beta]
        return lines


def _line(
    x: FloatArray, y: FloatArray, counts: FloatArray, *, alpha: float | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return alpha, beta >= 0 of the lines alpha + beta x of least squared error.

    x has shape (N,), y and what each point counts (..., N).
    """
    one, x1, x2 = counts.sum(-1), (counts * x).sum(-1), (counts * x * x).sum(-1)
    y0, y1 = (counts * y).sum(-1), (counts * x * y).sum(-1)
    steep = y1 / np.where(x2 > 0, x2, 1.0)  # through the origin
    if alpha is not None:
        return np.asarray(alpha), np.maximum((y1 - alpha * x1) / np.where(x2 > 0, x2, 1.0), 0.0)
    spread = one * x2 - x1 * x1
    known = spread > 1e-12 * one * x2
    safe = np.where(known, spread, 1.0)
    intercept = np.where(known, (x2 * y0 - x1 * y1) / safe, y0 / one)
    slope = np.where(known, (one * y1 - x1 * y0) / safe, 0.0)
    flat, through_origin = slope < 0, intercept < 0
    return (
        np.where(flat, y0 / one, np.where(through_origin, 0.0, intercept)),
        np.where(flat, 0.0, np.where(through_origin, steep, slope)),
    )
