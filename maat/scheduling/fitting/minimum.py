"""Finds the minimum of a fit's loss: closed-form starts at many overlaps, then Newton steps.

Two properties of the loss (loss.py) defeat a plain descent. It has long valleys: more overlap
(gamma) and dearer synchronisation explain the same step times. And it has a kink wherever samples
are met exactly, since it is a sum of roots. So the search begins at the best closed-form point of
a grid of gammas (starts.py), which is close, and goes on by Newton steps in logarithms of the
parameters, by a model of the loss in which an exact fit is a minimum like any other (quadratic.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from maat.scheduling.arrays import FloatArray, IntArray
from maat.scheduling.fitting.loss import priors
from maat.scheduling.fitting.quadratic import CEILING, EXACT, FLOOR, GAMMA, Local, Problem
from maat.scheduling.fitting.samples import Sample
from maat.scheduling.fitting.starts import Starts

GAMMAS = 1.0 + np.append(0.0, np.geomspace(0.01, 9.0, 39))
BETWEEN = np.linspace(0.0, 1.0, 11)[1:-1]  # how the grid is narrowed around its best gamma
LARGEST_STEP = 3.0  # of a logarithm: a factor of 20
MOST_STEPS = 40
TOLERANCE, TOLERANCE_ALONE = 1e-4, 1e-6  # of the loss
MOST_DAMPING = 1e6


def search_minimum(samples: Sequence[Sample]) -> FloatArray:
    """Return the parameters at the minimum, shape (7,)."""
    table = np.array(samples, dtype=np.float64)
    prior = priors(table)
    problem, starts = Problem(table), Starts(table, prior)
    free = np.flatnonzero(prior.is_free)
    if starts.groups:
        reached = _descend(problem, _starts(starts), free, tolerance=TOLERANCE)
    else:  # nothing overlaps
        begin = starts.point(starts.at(GAMMAS[:1]), (0,))
        reached = _descend(problem, [begin], free[free < 2], tolerance=TOLERANCE_ALONE)
    parameters = np.append(np.exp(reached[:GAMMA]), reached[GAMMA])
    parameters[~prior.is_free] = prior.start[~prior.is_free]
    return parameters


def _starts(starts: Starts) -> list[FloatArray]:
    """Return the best point, and the best with other lines: it may lie in another valley."""
    coarse = starts.at(GAMMAS)
    at = coarse.best[-1]
    below, above = GAMMAS[max(at - 1, 0)], GAMMAS[min(at + 1, len(GAMMAS) - 1)]
    finer = starts.at(below + (above - below) * BETWEEN)
    nearer = finer if finer.loss.min() < coarse.loss.min() else coarse
    others = coarse.without_lines(coarse.best)
    return [starts.point(tried, tried.best) for tried in (nearer, others)]


def _descend(
    problem: Problem, starts: Sequence[FloatArray], columns: IntArray, *, tolerance: float
) -> FloatArray:
    """Return the lowest point that Newton steps over these columns reach."""
    lowest, point = math.inf, starts[0]
    for start in starts:
        reached = _from_start(problem, start, columns, tolerance=tolerance, below=lowest)
        if reached.loss < lowest:
            lowest, point = reached.loss, reached.point
    return point


def _from_start(
    problem: Problem, start: FloatArray, columns: IntArray, *, tolerance: float, below: float
) -> Local:
    """Return where Newton steps lead; give up where they will not come below a loss.

    A first step uphill is followed by a second before both are taken back: along a kink, which
    bends, the first leaves it and the second returns to it further on. If they are taken back,
    steps are shortened (Levenberg and Marquardt).
    """
    lowest = now = problem.at(start)
    damping, uphill = 1e-3, False
    for _ in range(MOST_STEPS):
        move, expected = _newton(now, columns, damping)
        small = tolerance * lowest.loss
        if not uphill and (expected <= small + EXACT or now.loss - 3.0 * expected > below):
            break
        moved = now.point.copy()
        moved[columns] += np.clip(move, -LARGEST_STEP, LARGEST_STEP)
        trial = problem.at(np.clip(moved, FLOOR, CEILING))
        gain = lowest.loss - trial.loss
        if gain > 0:
            lowest = now = trial
            damping, uphill = damping / 8.0, False
            if gain <= small:
                break
        elif not uphill:
            now, uphill = trial, True
        else:
            now, uphill = lowest, False
            damping *= 10.0
            if damping > MOST_DAMPING:
                break
    return lowest


def _newton(local: Local, columns: IntArray, damping: float) -> tuple[FloatArray, float]:
    """Return a step of these columns, (P,), and twice what it should gain.

    A parameter at a bound that it pushes against stays. Where the loss bends downwards, a step
    goes as if it bent upwards as much.
    """
    bend, gradient = local.curvature[columns[:, None], columns], local.gradient[columns]
    unit = 1.0 / np.sqrt(np.maximum(np.abs(bend.diagonal()), 1e-12))
    gradient = gradient * unit
    bend *= unit * unit[:, None]
    at = local.point[columns]
    stuck = ((at <= FLOOR[columns]) & (gradient > 0)) | ((at >= CEILING[columns]) & (gradient < 0))
    if stuck.any():
        gradient[stuck] = 0.0
        bend[stuck] = bend[:, stuck] = 0.0
    values, vectors = np.linalg.eigh(bend)
    along = (gradient @ vectors) / (np.maximum(np.abs(values), 1e-6) + damping)
    step = -(vectors @ along)
    step[stuck] = 0.0
    return step * unit, -float(gradient @ step)
