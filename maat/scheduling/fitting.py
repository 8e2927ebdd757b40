"""Fits the throughput model to measured step times, with an analytic gradient.

Pollux section 4.1. Priors fix what the samples do not show: without a multi-node sample there is
no multi-node cost, and so on. A job is therefore explored upwards.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from maat.scheduling.arrays import FloatArray
from maat.scheduling.one_thread import one_blas_thread
from maat.scheduling.throughput import NEGLIGIBLE_SECONDS, PARAMETER_COUNT

START = np.array([0.1, 0.01, 0.1, 0.01, 0.1, 0.01, 1.001])
LOWER = np.array([1e-8] * 6 + [1.0])
UPPER = np.array([np.inf] * 6 + [10.0])
TOLERANCE = 1e-5
MODEL_ERROR = 0.05
"""Relative error of the model itself: no sample counts more for being known better than this."""
SINGLE_DEVIATION = 0.3
"""Relative deviation of single step times that is assumed as long as few were measured."""
_ASSUMED_STEPS = 4
GAMMA_WEIGHT = 1e-3
SLOPE_WEIGHT = 1e-2
ACROSS_OVER_WITHIN = 1.1


class Sample(NamedTuple):
    """One measurement at (nodes, replicas, per-GPU batch).

    Seconds of a whole step, and of its synchronisation alone. `weight`: how much it counts in a
    fit, 0-1 (`weight_of_mean`).
    """

    node_count: int
    replica_count: int
    per_gpu_batch_size: int
    step_seconds: float
    sync_seconds: float
    weight: float = 1.0


def weight_of_mean(count: int, mean: float, deviation: float) -> float:
    """Return how much the mean of `count` step times counts in a fit, 0-1.

    By inverse variance: e^2 / (e^2 + s^2 / count), with e the model's own relative error and s the
    relative deviation of single steps. Four steps of an assumed deviation count with those
    measured.
    """
    measured = (deviation / mean) ** 2 * max(count - 1, 0)
    variance = (_ASSUMED_STEPS * SINGLE_DEVIATION**2 + measured) / (
        _ASSUMED_STEPS + max(count - 1, 0)
    )
    return MODEL_ERROR**2 / (MODEL_ERROR**2 + variance / max(count, 1))


def fit_throughput(samples: Sequence[Sample], *, across_over_within: float = 0.0) -> FloatArray:
    """Return the seven parameters, shape (7,), by L-BFGS-B. They minimise

        RMS log error of T_grad + RMS log error of T_step
            + 1e-3 (gamma - 1)^2 + 1e-2 ((b_n/a_n)^2 + (b_r/a_r)^2)

    with samples counting by their weights in both means.

    Args:
        across_over_within: The least ratio of synchronisation cost across nodes to that within
            one, while no sample spans several nodes. Pollux section 4.1 has 0, so that a job is
            tried there; its published code has 1.1 (ACROSS_OVER_WITHIN).

    Raises:
        ValueError: There is no sample.
    """
    from scipy.optimize import minimize  # takes 0.3 s; a client or a page never fits

    if not samples:
        raise ValueError("a throughput model needs at least one sample")
    data = np.array(samples, dtype=np.float64)
    nodes, replicas, batch, step, sync, weight = data.T
    compute = float(np.average(_compute_seconds(step, sync), weights=weight))
    start, lower, upper = _priors(nodes, replicas, batch, compute)
    # Fixed parameters stay in the minimiser: they change the steps of the others, and the search
    # ends (at 1e-5) before that effect is gone.
    at = _Remembered(FitLoss(samples))
    with one_blas_thread():
        found = minimize(
            at.loss,
            start,
            jac=at.gradient,
            method="L-BFGS-B",
            bounds=np.stack((lower, upper), axis=1),
            tol=TOLERANCE,
        )
    full = np.asarray(found.x, dtype=np.float64)
    if not (nodes > 1).any():
        full[2] = max(full[2], full[4] * across_over_within)
        full[3] = max(full[3], full[5] * across_over_within)
    return full


def _priors(
    nodes: FloatArray, replicas: FloatArray, batch: FloatArray, compute: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return start, lower and upper bounds, shape (7,) each.

    A parameter of which the samples say nothing is fixed (lower = upper).
    """
    start, lower, upper = START.copy(), LOWER.copy(), UPPER.copy()

    def fix(index: int, value: float) -> None:
        start[index] = lower[index] = upper[index] = value

    if (batch == batch[0]).all():
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
    return start, lower, upper


def _compute_seconds(step: FloatArray, sync: FloatArray) -> FloatArray:
    return np.maximum(step - sync, NEGLIGIBLE_SECONDS)


class FitLoss:
    """The loss of fit_throughput for S samples: (7,) -> loss and its gradient, (7,).

    Compute and synchronisation are linear in the parameters, so both are one product with a design
    matrix, shape (S, 6). Their overlap is a log-sum-exp: log T_step = logaddexp(gamma log T_grad,
    gamma log T_sync) / gamma.
    """

    def __init__(self, samples: Sequence[Sample]) -> None:
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
        self.log_compute = np.log(_compute_seconds(step, sync))
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


class _Remembered:
    """Loss and gradient, computed once for both.

    The minimiser asks for one after the other at the same point.
    """

    def __init__(self, both: FitLoss) -> None:
        self._both, self._point, self._gradient = both, b"", np.zeros(0)

    def loss(self, x: FloatArray) -> float:
        value, self._gradient = self._both(x)
        self._point = x.tobytes()
        return value

    def gradient(self, x: FloatArray) -> FloatArray:
        if x.tobytes() != self._point:
            self.loss(x)
        return self._gradient


def _rms(error: FloatArray, weight: FloatArray) -> tuple[float, FloatArray]:
    """Return the weighted root mean square and its derivative.

    The derivative is zero at an exact fit, where the root has none.
    """
    weighted, total = weight * error, float(weight.sum())
    value = math.sqrt(float(weighted @ error) / total)
    return value, weighted / (total * value) if value > 1e-12 else np.zeros_like(error)
