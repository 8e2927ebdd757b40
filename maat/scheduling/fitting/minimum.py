"""Finds the minimum of a fit's loss (loss.py): one search per overlap, then all parameters.

Two properties of the loss defeat a plain descent. It has long valleys: more overlap (gamma) and
dearer synchronisation explain the same step times. And it has a kink wherever samples are met
exactly, since it is a sum of roots. For a fixed gamma, in logarithms of the parameters, neither is
left: Newton steps from a closed-form start arrive within two or three. So gamma is searched on a
grid that is narrowed around its best point, and only then moves with the others.

All overlaps of a grid are worked out at once: arrays have an axis S of points and N of samples. A
point is a row of shape (7,): logarithms of the first six parameters, then gamma itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from maat.scheduling.arrays import BoolArray, FloatArray, IntArray
from maat.scheduling.fitting.loss import (
    GAMMA_WEIGHT,
    LOWER,
    SLOPE_WEIGHT,
    UPPER,
    FitLoss,
    Priors,
    compute_seconds,
    priors,
)
from maat.scheduling.fitting.samples import Sample

GAMMAS = 1.0 + np.append(0.0, np.geomspace(0.03, 9.0, 19))
PARTS, NARROWINGS = 4, 2  # how the grid is narrowed around its best gamma
# Beta over alpha of a start: where a steep line meets all samples exactly, the search cannot leave
# it for the flatter one that costs less.
STEEP, GENTLE, FLAT = 2.0, 0.1, 0.01
LARGEST_STEP = 3.0  # of a logarithm: a factor of 20
_GAMMA = 6
_FLOOR, _CEILING = np.append(np.log(LOWER[:6]), 1.0), np.append(np.full(6, 30.0), UPPER[6])
_SLOPES = ((2, 3), (4, 5))  # alpha and beta, across nodes and within one
# log(beta / alpha) of both as a product with a point, and the curvature of (beta / alpha)^2.
_SLOPE_LOGS = np.array([[0, 0, -1, 1, 0, 0, 0], [0, 0, 0, 0, -1, 1, 0]], dtype=np.float64)
_SLOPE_BENDS = (4.0 * _SLOPE_LOGS[:, :, None] * _SLOPE_LOGS[:, None, :]).reshape(2, 49)
_GAMMA_BEND = np.diag([0.0] * 6 + [2.0 * GAMMA_WEIGHT])
EXACT = 1e-10  # an error below this has no direction any more


def search_minimum(samples: Sequence[Sample]) -> FloatArray:
    """Return the parameters at the minimum, shape (7,)."""
    table = np.array(samples, dtype=np.float64)
    known = priors(table)
    problem, starts = Problem(table), _Starts(table, known)
    free = np.flatnonzero(known.is_free)
    shared = bool((table[:, 1] > 1).any())
    if shared:
        inner = free[free != _GAMMA]
        reached = _over_overlaps(problem, starts, inner)
        reached = _descend(problem, reached.best(2), free, steps=20, tolerance=1e-4)
    else:  # nothing overlaps
        reached = _descend(
            problem, starts.at(GAMMAS[:1])[0], free[free < 2], steps=30, tolerance=1e-6
        )
    point = reached.points[int(reached.loss.argmin())]
    parameters = np.append(np.exp(point[:_GAMMA]), point[_GAMMA])
    parameters[~known.is_free] = known.start[~known.is_free]
    if not shared:
        parameters[_GAMMA] = 1.0
    return parameters


class _Reached(NamedTuple):
    """Points, shape (S, 7), and their losses, shape (S,)."""

    points: FloatArray
    loss: FloatArray

    def best(self, count: int) -> FloatArray:
        return self.points[self.loss.argsort()[:count]]

    def with_others(self, others: _Reached) -> _Reached:
        return _Reached(*(np.concatenate(both) for both in zip(self, others, strict=True)))

    def around_best(self) -> FloatArray:
        """Return the best gamma and its neighbours, in order."""
        order = self.points[:, _GAMMA].argsort()
        at = int(self.loss[order].argmin())
        gammas: FloatArray = self.points[order[max(at - 1, 0) : at + 2], _GAMMA]
        return gammas


def _over_overlaps(problem: Problem, starts: _Starts, inner: IntArray) -> _Reached:
    """Return points at several gammas, close together around the best."""
    coarse = nearer = problem.best_of(starts.at(GAMMAS))
    for _ in range(NARROWINGS):
        between = problem.best_of(starts.at(_between(nearer.around_best())))
        nearer = nearer.with_others(between)
    best = np.concatenate((nearer.best(2), coarse.best(1)))[:, _GAMMA]
    begin = starts.at(np.append(best, 1.0)).reshape(-1, 7)
    return _descend(problem, begin, inner, steps=4, tolerance=1e-3)


def _between(gammas: FloatArray) -> FloatArray:
    """Return gammas that divide the way from each to the next into equal parts."""
    shares = np.arange(1, PARTS)[:, None] / PARTS
    divided: FloatArray = gammas[:-1] * (1 - shares) + gammas[1:] * shares
    return divided.ravel()


class _Starts:
    """Where the search begins at a gamma: lines through what the samples say, in closed form."""

    def __init__(self, table: FloatArray, known: Priors) -> None:
        nodes, replicas, self._batch, step, sync, self._weight = table.T
        self._compute = compute_seconds(step, sync)
        self._log_stretch = np.log(step) - np.log(self._compute)
        self._beyond_two = np.maximum(replicas - 2, 0.0)
        self._groups = ((replicas > 1) & (nodes > 1), (replicas > 1) & (nodes == 1))
        self._known = known

    def at(self, gammas: FloatArray) -> FloatArray:
        """Return points with steep, gentle and flat lines for each gamma, shape (3, S, 7)."""
        points = np.empty((3, len(gammas), 7))
        points[..., :_GAMMA] = np.log(self._known.start[:_GAMMA])
        points[..., _GAMMA] = gammas
        points[..., :2] = np.log(self._compute_line())
        for group, (alpha, beta) in zip(self._groups, _SLOPES, strict=True):
            if group.any():
                points[..., alpha : beta + 1] = np.log(self._sync_lines(group, gammas, beta))
        clipped: FloatArray = np.clip(points, _FLOOR, _CEILING)
        return clipped

    def _compute_line(self) -> FloatArray:
        """Return alpha and beta of T_grad, shape (2,)."""
        fixed = None if self._known.is_free[0] else self._known.start[0]
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
        beyond = self._beyond_two[group] * self._known.is_free[beta]
        line = np.stack(_line(beyond, sync, counts), axis=1)
        # A cost of exactly nothing has no slope in its logarithm, and steep lines are penalised.
        least = np.maximum(1e-2 * sync.max(axis=1), 1e-7)
        line[:, 1] = np.maximum(line[:, 1], 1e-3 * least)
        line[:, 0] = np.maximum(line[:, 0], least)
        line[:, 0] = np.maximum(line[:, 0], line[:, 1] / STEEP)
        level = np.maximum((counts * sync).sum(-1) / counts.sum(-1), least)
        gentle = np.stack((np.maximum(line[:, 0], line[:, 1] / GENTLE), line[:, 1]), axis=1)
        lines = np.stack((line, gentle, np.stack((level, FLAT * level), axis=1)))
        if not self._known.is_free[beta]:
            lines[:, :, 1] = self._known.start[beta]
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


class _Local(NamedTuple):
    """The loss at S points, and a quadratic model of it: what a step is computed from.

    `curvature` is that of the loss, but as if its two roots were parabolas through their present
    value: so a step goes to an exact fit, not past it.
    """

    points: FloatArray  # (S, 7)
    loss: FloatArray  # (S,)
    gradient: FloatArray  # (S, 7)
    curvature: FloatArray  # (S, 7, 7)

    def only(self, points: BoolArray) -> _Local:
        return _Local(*(part[points] for part in self))

    def or_better(self, trial: _Local) -> _Local:
        """Return, point by point, the trial where its loss is lower."""
        lower = trial.loss < self.loss
        return _Local(
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

    def at(self, points: FloatArray) -> _Local:
        """Return the loss and its quadratic model at these points, shape (S, 7).

        With c = log T_grad, y = log T_sync and f = log T_step, all of shape (S, N):
        f = log(exp(gamma c) + exp(gamma y)) / gamma, and df = p dc + q dy with p + q = 1.
        """
        parameters, gamma = np.exp(points[:, :_GAMMA]), points[:, _GAMMA:]
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
        each = np.arange(_GAMMA)
        curvature[:, each, each] += gradient[:, :_GAMMA]  # of logarithms
        curvature[:, 2:6, :2] = curvature[:, :2, 2:6].transpose(0, 2, 1)
        curvature[:, 6, :_GAMMA] = curvature[:, :_GAMMA, 6]

        penalty, its_gradient, its_curvature = _penalties(points)
        return _Local(
            points,
            compute_root + step_root + penalty,
            gradient + its_gradient,
            curvature + its_curvature,
        )

    def best_of(self, points: FloatArray) -> _Reached:
        """Return the best of each column of points, shape (V, S, 7)."""
        losses = self.loss(points.reshape(-1, 7)).reshape(points.shape[:2])
        best, each = losses.argmin(axis=0), np.arange(points.shape[1])
        return _Reached(points[best, each], losses[best, each])

    def loss(self, points: FloatArray) -> FloatArray:
        """Return the loss alone, shape (S,)."""
        parameters, gamma = np.exp(points[:, :_GAMMA]), points[:, _GAMMA:]
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
    beyond = points[:, _GAMMA] - 1.0
    of_slopes = SLOPE_WEIGHT * np.exp(2.0 * (points @ _SLOPE_LOGS.T))  # (S, 2)
    gradient = 2.0 * of_slopes @ _SLOPE_LOGS
    gradient[:, _GAMMA] = 2.0 * GAMMA_WEIGHT * beyond
    curvature = (of_slopes @ _SLOPE_BENDS).reshape(-1, 7, 7) + _GAMMA_BEND
    return GAMMA_WEIGHT * beyond**2 + of_slopes.sum(-1), gradient, curvature


def _descend(
    problem: Problem, points: FloatArray, columns: IntArray, *, steps: int, tolerance: float
) -> _Reached:
    """Return where Newton steps over these columns lead from each point.

    A step that does not lower the loss is tried again, shortened (Levenberg and Marquardt).
    """
    local, damping = problem.at(points), np.full(len(points), 1e-3)
    for _ in range(steps):
        move, expected = _newton(local, columns, damping)
        moved = local.points.copy()
        moved[:, columns] += np.clip(move, -LARGEST_STEP, LARGEST_STEP)
        trial = problem.at(np.clip(moved, _FLOOR, _CEILING))
        gain = local.loss - trial.loss
        small = tolerance * local.loss
        arrived = (expected <= small + EXACT) | ((gain > 0) & (gain <= small))
        local = local.or_better(trial)
        damping = np.where(gain > 0, damping / 8, damping * 10)
        hopeless = local.loss - 3 * np.maximum(expected, 0.0) > local.loss.min()
        if (arrived | hopeless | (damping > 1e6)).all():
            break
        local, damping = local.only(~hopeless), damping[~hopeless]
    return _Reached(local.points, local.loss)


def _newton(local: _Local, columns: IntArray, damping: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return a step per point, (S, P), and twice what it should gain, (S,).

    A parameter at a bound that it pushes against stays. Where the loss bends downwards, a step
    goes as if it bent upwards as much.
    """
    each = np.abs(local.curvature[:, columns, columns])
    unit = 1.0 / np.sqrt(np.maximum(each, 1e-12))
    gradient, at = local.gradient[:, columns] * unit, local.points[:, columns]
    stuck = ((at <= _FLOOR[columns]) & (gradient > 0)) | (
        (at >= _CEILING[columns]) & (gradient < 0)
    )
    gradient[stuck] = 0.0
    bend = local.curvature[:, columns[:, None], columns] * unit[:, :, None] * unit[:, None, :]
    bend[stuck[:, :, None] | stuck[:, None, :]] = 0.0
    values, vectors = np.linalg.eigh(bend)
    along = np.matmul(gradient[:, None, :], vectors)[:, 0, :]
    along /= np.maximum(np.abs(values), 1e-6) + damping[:, None]
    step = -np.matmul(vectors, along[:, :, None])[:, :, 0]
    step[stuck] = 0.0
    return step * unit, -(gradient * step).sum(-1)
