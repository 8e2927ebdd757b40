"""Where the search for a fit's minimum begins: lines through what the samples say, in closed form.

For a known overlap and line of T_grad, the synchronisation of each sample follows from its step
(Pollux eq. 11), and alpha and beta from a line through these. Several lines are tried, at many
overlaps. Step times across nodes and within one err apart from each other, so the loss of every
choice of lines is put together from few parts.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from maat.scheduling.arrays import FloatArray
from maat.scheduling.fitting.loss import GAMMA_WEIGHT, SLOPE_WEIGHT, Priors, compute_seconds
from maat.scheduling.fitting.quadratic import CEILING, FLOOR, GAMMA, SLOPES

# Beta over alpha of a line: where a steep line meets all samples exactly, the search cannot leave
# it for the flatter one that costs less.
STEEP, GENTLE, FLAT = 2.0, 0.1, 0.01
LINES = 4  # as fitted, gentle, flat, and next to nothing
NOTHING = 1e-5  # of T_grad: in logarithms it is a long way down from a cost to none


class Tried(NamedTuple):
    """Every choice of lines at G gammas. An axis of LINES for each group of samples, then G."""

    gammas: FloatArray  # (G,)
    lines: list[FloatArray]  # alpha and beta by group, (LINES, G, 2) each
    loss: FloatArray  # (LINES, G), or (LINES, LINES, G)

    @property
    def best(self) -> tuple[int, ...]:
        """Return the indices of the lowest loss."""
        return tuple(int(at) for at in np.unravel_index(self.loss.argmin(), self.loss.shape))

    def without_lines(self, of: tuple[int, ...]) -> Tried:
        """Return what has another line in each group."""
        loss = self.loss.copy()
        for axis, line in enumerate(of[:-1]):
            loss[(slice(None),) * axis + (line,)] = np.inf
        return self._replace(loss=loss)


class Starts:
    """Closed-form points at any gamma, and their losses."""

    def __init__(self, table: FloatArray, prior: Priors) -> None:
        nodes, replicas, batch, step, sync, weight = table.T
        self._start = np.log(prior.start[:GAMMA])
        measured, share = compute_seconds(step, sync), weight / weight.sum()
        alpha, beta = _compute_line(batch, measured, weight, _fixed(prior, 0))
        self._start[:2] = math.log(alpha), math.log(beta)
        compute = alpha + beta * batch
        self._compute_root = math.sqrt(float(np.log(compute / measured) ** 2 @ share))
        log_stretch, shared = np.log(step / compute), replicas > 1
        self._alone = float((log_stretch**2)[~shared] @ share[~shared])
        of_samples = np.stack((compute, log_stretch, np.maximum(replicas - 2.0, 0.0), share))
        self.groups = [
            _Group(of_samples[:, chosen], slope, _fixed(prior, slope[1]))
            for chosen, slope in zip(
                (shared & (nodes > 1), shared & (nodes == 1)), SLOPES, strict=True
            )
            if chosen.any()
        ]

    def at(self, gammas: FloatArray) -> Tried:
        """Return all choices of lines at these gammas."""
        lines = [group.lines(gammas) for group in self.groups]
        squares, penalty = np.full(len(gammas), self._alone), GAMMA_WEIGHT * (gammas - 1.0) ** 2
        for group, of_group in zip(self.groups, lines, strict=True):
            squares = squares[..., None, :] + group.squares(of_group, gammas)
            slope = of_group[:, :, 1] / of_group[:, :, 0]
            penalty = penalty[..., None, :] + SLOPE_WEIGHT * slope**2
        return Tried(gammas, lines, self._compute_root + np.sqrt(squares) + penalty)

    def point(self, tried: Tried, at: tuple[int, ...]) -> FloatArray:
        """Return the point of these indices, shape (7,)."""
        point = np.append(self._start, tried.gammas[at[-1]])
        for group, lines, line in zip(self.groups, tried.lines, at, strict=False):
            point[list(group.slope)] = np.log(lines[line, at[-1]])
        return np.asarray(np.clip(point, FLOOR, CEILING))


class _Group:
    """The samples of several replicas across nodes, or within one; M of them."""

    def __init__(
        self, of_samples: FloatArray, slope: tuple[int, int], fixed_beta: float | None
    ) -> None:
        self._compute, self._log_stretch, self._beyond_two, self._share = of_samples
        self.slope, self._fixed_beta = slope, fixed_beta
        if fixed_beta is not None:
            self._beyond_two = np.zeros_like(self._beyond_two)

    def lines(self, gammas: FloatArray) -> FloatArray:
        """Return alpha and beta of T_sync by line, at each gamma: (LINES, G, 2).

        T_sync = T_grad ((T_step / T_grad)^gamma - 1)^(1 / gamma), by eq. 11. A sample counts by
        what its T_sync changes in log T_step.
        """
        power = gammas[:, None] * np.maximum(self._log_stretch, 1e-9)
        less_one = -np.expm1(-power)
        sync = np.exp((power + np.log(less_one)) / gammas[:, None])
        sync = np.maximum(self._compute * sync, 1e-6)
        counts = self._share * np.maximum(less_one / sync, 1e-6) ** 2
        alpha, beta = _line(self._beyond_two, sync, counts)
        # A cost of exactly nothing has no slope in its logarithm, and steep lines are penalised.
        least = np.maximum(1e-2 * sync.max(axis=1), 1e-7)
        beta = np.maximum(beta, 1e-3 * least)
        alpha = np.maximum(np.maximum(alpha, least), beta / STEEP)
        level = np.maximum((counts * sync).sum(-1) / counts.sum(-1), least)
        nothing = np.full_like(level, max(1e-6, NOTHING * float(self._compute.min())))
        lines = np.empty((LINES, len(gammas), 2))
        lines[:, :, 0] = alpha, np.maximum(alpha, beta / GENTLE), level, nothing
        lines[:, :, 1] = beta, beta, FLAT * level, FLAT * nothing
        if self._fixed_beta is not None:
            lines[:, :, 1] = self._fixed_beta
        return lines

    def squares(self, lines: FloatArray, gammas: FloatArray) -> FloatArray:
        """Return the sums of squared errors of log T_step, shape (LINES, G)."""
        sync = lines[:, :, :1] + lines[:, :, 1:] * self._beyond_two  # (LINES, G, M)
        gamma = gammas[:, None]
        stretch = np.logaddexp(0.0, gamma * np.log(sync / self._compute)) / gamma
        sums: FloatArray = (stretch - self._log_stretch) ** 2 @ self._share
        return sums


def _fixed(prior: Priors, parameter: int) -> float | None:
    return None if prior.is_free[parameter] else float(prior.start[parameter])


def _compute_line(
    batch: FloatArray, compute: FloatArray, weight: FloatArray, fixed_alpha: float | None
) -> tuple[float, float]:
    """Return alpha and beta of T_grad, by relative errors."""
    counts = weight / compute**2
    if fixed_alpha is None:
        alpha, beta = (float(part) for part in _line(batch, compute, counts))
    else:
        alpha = fixed_alpha
        beta = float(counts @ (batch * (compute - alpha)) / (counts @ batch**2))
    least = 1e-6 * float(compute.min())
    return max(alpha, least), max(beta, least / float(batch.max()))


def _line(x: FloatArray, y: FloatArray, counts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return alpha, beta >= 0 of the lines alpha + beta x of least squared error.

    x has shape (N,), y and what each point counts (..., N).
    """
    weighted = counts * y
    one, x1, x2 = counts.sum(-1), counts @ x, counts @ (x * x)
    y0, y1 = weighted.sum(-1), weighted @ x
    spread = one * x2 - x1 * x1
    determined = spread > 1e-12 * one * x2
    safe = np.where(determined, spread, 1.0)
    intercept = np.where(determined, (x2 * y0 - x1 * y1) / safe, y0 / one)
    slope = np.where(determined, (one * y1 - x1 * y0) / safe, 0.0)
    through_origin = intercept < 0
    intercept = np.where(through_origin, 0.0, np.where(slope < 0, y0 / one, intercept))
    slope = np.where(through_origin, y1 / np.where(x2 > 0, x2, 1.0), np.maximum(slope, 0.0))
    return intercept, slope
