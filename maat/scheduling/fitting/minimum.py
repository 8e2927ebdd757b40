"""Finds the minimum of a fit's loss: one search per overlap, then all parameters together.

Two properties of the loss (loss.py) defeat a plain descent. It has long valleys: more overlap
(gamma) and dearer synchronisation explain the same step times. And it has a kink wherever samples
are met exactly, since it is a sum of roots. For a fixed gamma, in logarithms of the parameters,
neither is left: Newton steps (quadratic.py) from a closed-form start (starts.py) arrive within two
or three. So gamma is searched on a grid that is narrowed around its best point, and only then
moves with the others. All gammas of a grid are worked out at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from maat.scheduling.arrays import FloatArray, IntArray
from maat.scheduling.fitting.loss import priors
from maat.scheduling.fitting.quadratic import CEILING, EXACT, FLOOR, GAMMA, Local, Problem, Reached
from maat.scheduling.fitting.samples import Sample
from maat.scheduling.fitting.starts import Starts

GAMMAS = 1.0 + np.append(0.0, np.geomspace(0.03, 9.0, 19))
PARTS, NARROWINGS = 4, 2  # how the grid is narrowed around its best gamma
LARGEST_STEP = 3.0  # of a logarithm: a factor of 20


def search_minimum(samples: Sequence[Sample]) -> FloatArray:
    """Return the parameters at the minimum, shape (7,)."""
    table = np.array(samples, dtype=np.float64)
    known = priors(table)
    problem, starts = Problem(table), Starts(table, known)
    free = np.flatnonzero(known.is_free)
    shared = bool((table[:, 1] > 1).any())
    if shared:
        inner = free[free != GAMMA]
        reached = _over_overlaps(problem, starts, inner)
        reached = _descend(problem, reached.best(2), free, steps=20, tolerance=1e-4)
    else:  # nothing overlaps
        reached = _descend(
            problem, starts.at(GAMMAS[:1])[0], free[free < 2], steps=30, tolerance=1e-6
        )
    point = reached.points[int(reached.loss.argmin())]
    parameters = np.append(np.exp(point[:GAMMA]), point[GAMMA])
    parameters[~known.is_free] = known.start[~known.is_free]
    if not shared:
        parameters[GAMMA] = 1.0
    return parameters


def _over_overlaps(problem: Problem, starts: Starts, inner: IntArray) -> Reached:
    """Return points at several gammas, close together around the best."""
    coarse = nearer = problem.best_of(starts.at(GAMMAS))
    for _ in range(NARROWINGS):
        between = problem.best_of(starts.at(_between(_around_best(nearer))))
        nearer = nearer.with_others(between)
    best = np.concatenate((nearer.best(2), coarse.best(1)))[:, GAMMA]
    begin = starts.at(np.append(best, 1.0)).reshape(-1, 7)
    return _descend(problem, begin, inner, steps=4, tolerance=1e-3)


def _between(gammas: FloatArray) -> FloatArray:
    """Return gammas that divide the way from each to the next into equal parts."""
    shares = np.arange(1, PARTS)[:, None] / PARTS
    divided: FloatArray = gammas[:-1] * (1 - shares) + gammas[1:] * shares
    return divided.ravel()


def _around_best(reached: Reached) -> FloatArray:
    """Return the best gamma and its neighbours, in order."""
    order = reached.points[:, GAMMA].argsort()
    at = int(reached.loss[order].argmin())
    gammas: FloatArray = reached.points[order[max(at - 1, 0) : at + 2], GAMMA]
    return gammas


def _descend(
    problem: Problem, points: FloatArray, columns: IntArray, *, steps: int, tolerance: float
) -> Reached:
    """Return where Newton steps over these columns lead from each point.

    A step that does not lower the loss is tried again, shortened (Levenberg and Marquardt).
    """
    local, damping = problem.at(points), np.full(len(points), 1e-3)
    for _ in range(steps):
        move, expected = _newton(local, columns, damping)
        moved = local.points.copy()
        moved[:, columns] += np.clip(move, -LARGEST_STEP, LARGEST_STEP)
        trial = problem.at(np.clip(moved, FLOOR, CEILING))
        gain = local.loss - trial.loss
        small = tolerance * local.loss
        arrived = (expected <= small + EXACT) | ((gain > 0) & (gain <= small))
        local = local.or_better(trial)
        damping = np.where(gain > 0, damping / 8, damping * 10)
        hopeless = local.loss - 3 * np.maximum(expected, 0.0) > local.loss.min()
        if (arrived | hopeless | (damping > 1e6)).all():
            break
        local, damping = local.only(~hopeless), damping[~hopeless]
    return Reached(local.points, local.loss)


def _newton(local: Local, columns: IntArray, damping: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return a step per point, (S, P), and twice what it should gain, (S,).

    A parameter at a bound that it pushes against stays. Where the loss bends downwards, a step
    goes as if it bent upwards as much.
    """
    each = np.abs(local.curvature[:, columns, columns])
    unit = 1.0 / np.sqrt(np.maximum(each, 1e-12))
    gradient, at = local.gradient[:, columns] * unit, local.points[:, columns]
    stuck = ((at <= FLOOR[columns]) & (gradient > 0)) | ((at >= CEILING[columns]) & (gradient < 0))
    gradient[stuck] = 0.0
    bend = local.curvature[:, columns[:, None], columns] * unit[:, :, None] * unit[:, None, :]
    bend[stuck[:, :, None] | stuck[:, None, :]] = 0.0
    values, vectors = np.linalg.eigh(bend)
    along = np.matmul(gradient[:, None, :], vectors)[:, 0, :]
    along /= np.maximum(np.abs(values), 1e-6) + damping[:, None]
    step = -np.matmul(vectors, along[:, :, None])[:, :, 0]
    step[stuck] = 0.0
    return step * unit, -(gradient * step).sum(-1)
