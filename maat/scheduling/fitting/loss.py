"""What a fit minimises, and what it fixes because no sample shows it.

Pollux section 4.1. Without a multi-node sample there is no multi-node cost, and so on. A job is
therefore explored upwards.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from maat.scheduling.arrays import BoolArray, FloatArray
from maat.scheduling.fitting.samples import Sample
from maat.scheduling.throughput import NEGLIGIBLE_SECONDS, PARAMETER_COUNT

START = np.array([0.1, 0.01, 0.1, 0.01, 0.1, 0.01, 1.001])
LOWER = np.array([1e-8] * 6 + [1.0])
UPPER = np.array([np.inf] * 6 + [10.0])
GAMMA_WEIGHT = 1e-3
SLOPE_WEIGHT = 1e-2


class Priors(NamedTuple):
    """Where a search begins, and its bounds; shape (7,) each.

    A parameter of which the samples say nothing is fixed: lower = upper.
    """

    start: FloatArray
    lower: FloatArray
    upper: FloatArray

    @property
    def is_free(self) -> BoolArray:
        """Return which parameters the samples decide, shape (7,)."""
        free: BoolArray = self.lower < self.upper
        return free


def priors(samples: Sequence[Sample] | FloatArray) -> Priors:
    """Return the priors of Pollux section 4.1, as its published code has them.

    `samples`: as rows of Sample, or the same as an array.
    """
    nodes, replicas, batch, step, sync, weight = np.array(samples, dtype=np.float64).T
    start, lower, upper = START.copy(), LOWER.copy(), UPPER.copy()

    def fix(index: int, value: float) -> None:
        start[index] = lower[index] = upper[index] = value

    if (batch == batch[0]).all():
        compute = float(np.average(compute_seconds(step, sync), weights=weight))
        fix(0, compute / 2)
    if not (nodes > 1).any():
        fix(2, NEGLIGIBLE_SECONDS)
        fix(3, NEGLIGIBLE_SECONDS)
    if not ((nodes == 1) & (replicas > 1)).any():
        fix(4, NEGLIGIBLE_SECONDS)
        fix(5, NEGLIGIBLE_SECONDS)
    if not (replicas > 2).any():
        fix(3, NEGLIGIBLE_SECONDS)
        fix(5, NEGLIGIBLE_SECONDS)
    return Priors(start, lower, upper)


def compute_seconds(step: FloatArray, sync: FloatArray) -> FloatArray:
    """Return the time of forward and backward pass in a step."""
    return np.maximum(step - sync, NEGLIGIBLE_SECONDS)


class FitLoss:
    """The loss of fit_throughput for S samples: (7,) -> loss and its gradient, (7,).

    Compute and synchronisation are linear in the parameters, so both are one product with a design
    matrix, shape (S, 6). Their overlap is a log-sum-exp: log T_step = logaddexp(gamma log T_grad,
    gamma log T_sync) / gamma.
    """

    def __init__(self, samples: Sequence[Sample] | FloatArray) -> None:
        nodes, replicas, batch, step, sync, self.weight = np.array(samples, dtype=np.float64).T
        synced, across = replicas > 1, nodes > 1
        extra = np.maximum(replicas - 2, NEGLIGIBLE_SECONDS)
        one, none = np.ones_like(batch), np.zeros_like(batch)
        outside, inside = synced & across, synced & ~across
        self.compute_design = np.stack((one, batch, none, none, none, none), axis=1)
        self.sync_design = np.stack(
            (none, none, 1.0 * outside, outside * extra, 1.0 * inside, inside * extra), axis=1
        )
        self.unsynced = np.where(synced, 0.0, NEGLIGIBLE_SECONDS)
        self.log_compute = np.log(compute_seconds(step, sync))
        self.log_step = np.log(step)

    def __call__(self, x: FloatArray) -> tuple[float, FloatArray]:
        gamma = x[6]
        compute = self.compute_design @ x[:6]
        sync = self.sync_design @ x[:6] + self.unsynced
        log_compute, log_sync = np.log(compute), np.log(sync)
        overlap = np.logaddexp(gamma * log_compute, gamma * log_sync)
        weight = np.exp(gamma * log_compute - overlap)

        rms_compute, d_compute = _rms(log_compute - self.log_compute, self.weight)
        rms_step, d_step = _rms(overlap / gamma - self.log_step, self.weight)
        by_compute = (d_compute + d_step * weight) / compute
        by_sync = d_step * (1.0 - weight) / sync
        mean_log = log_sync + weight * (log_compute - log_sync)

        gradient = np.empty(PARAMETER_COUNT)
        gradient[:6] = by_compute @ self.compute_design + by_sync @ self.sync_design
        gradient[6] = d_step @ (mean_log - overlap / gamma) / gamma + 2 * GAMMA_WEIGHT * (gamma - 1)
        penalty = GAMMA_WEIGHT * (gamma - 1) ** 2
        for alpha, beta in ((2, 3), (4, 5)):
            slope = x[beta] / x[alpha]
            penalty += SLOPE_WEIGHT * slope**2
            gradient[beta] += 2 * SLOPE_WEIGHT * slope / x[alpha]
            gradient[alpha] -= 2 * SLOPE_WEIGHT * slope**2 / x[alpha]
        return rms_compute + rms_step + float(penalty), gradient


def _rms(error: FloatArray, weight: FloatArray) -> tuple[float, FloatArray]:
    """Return the weighted root mean square and its derivative.

    The derivative is zero at an exact fit, where the root has none.
    """
    weighted, total = weight * error, float(weight.sum())
    value = math.sqrt(float(weighted @ error) / total)
    return value, weighted / (total * value) if value > 1e-12 else np.zeros_like(error)
