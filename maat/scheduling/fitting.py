"""Fitting the throughput model to measured step times (Pollux section 4.1), with an analytic gradient.

What has not been seen is held by prior: no multi-node sample, no multi-node cost, and so on; so that a job is explored upwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from maat.scheduling.arrays import FloatArray
from maat.scheduling.throughput import NEGLIGIBLE_SECONDS, PARAMETER_COUNT

START = np.array([0.1, 0.01, 0.1, 0.01, 0.1, 0.01, 1.001])
LOWER = np.array([1e-8] * 6 + [1.0])
UPPER = np.array([np.inf] * 6 + [10.0])
TOLERANCE = 1e-5
GAMMA_WEIGHT = 1e-3
SLOPE_WEIGHT = 1e-2
ACROSS_OVER_WITHIN = 1.1


class Sample(NamedTuple):
    """One measured (nodes, replicas, per-GPU batch) -> seconds of a whole step, and of its synchronisation alone."""

    node_count: int
    replica_count: int
    per_gpu_batch_size: int
    step_seconds: float
    sync_seconds: float


def fit_throughput(samples: Sequence[Sample]) -> FloatArray:
    """The seven parameters, shape (7,), that minimise

        RMS log error of T_grad + RMS log error of T_step + 1e-3 (gamma - 1)^2 + 1e-2 ((b_n/a_n)^2 + (b_r/a_r)^2)

    by L-BFGS-B. Raises ValueError on an empty list.
    """
    from scipy.optimize import minimize  # 0.3 s to import, and a client or a page never fits

    if not samples:
        raise ValueError("a throughput model needs at least one sample")
    data = np.array(samples, dtype=np.float64)
    nodes, replicas, batch, step, sync = data.T
    start, lower, upper = _priors(nodes, replicas, batch, _compute_seconds(step, sync))
    free = lower < upper
    loss = FitLoss(samples)
    full = start.copy()

    def free_loss(x: FloatArray) -> tuple[float, FloatArray]:
        full[free] = x
        value, gradient = loss(full)
        return value, gradient[free]

    found = minimize(
        free_loss, start[free], jac=True, method="L-BFGS-B", bounds=np.stack((lower[free], upper[free]), axis=1), tol=TOLERANCE
    )
    full[free] = found.x
    if not (nodes > 1).any():
        full[2] = max(full[2], full[4] * ACROSS_OVER_WITHIN)
        full[3] = max(full[3], full[5] * ACROSS_OVER_WITHIN)
    return full


def _priors(nodes: FloatArray, replicas: FloatArray, batch: FloatArray, compute: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Start, lower and upper bounds, shape (7,) each; what the samples say nothing about is fixed (lower = upper)."""
    start, lower, upper = START.copy(), LOWER.copy(), UPPER.copy()

    def fix(index: int, value: float) -> None:
        start[index] = lower[index] = upper[index] = value

    if (batch == batch[0]).all():
        fix(0, float(compute.mean()) / 2)
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
    """What fit_throughput minimises for one set of samples S: parameters, shape (7,), -> loss and its gradient, shape (7,)."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        nodes, replicas, batch, step, sync = np.array(samples, dtype=np.float64).T
        self.batch = batch
        self.log_compute = np.log(_compute_seconds(step, sync))
        self.log_step = np.log(step)
        self.synced = replicas > 1
        self.across = (nodes > 1) & self.synced
        self.within = self.synced & ~self.across
        self.extra = np.maximum(replicas - 2, NEGLIGIBLE_SECONDS)

    def __call__(self, x: FloatArray) -> tuple[float, FloatArray]:
        compute = x[0] + x[1] * self.batch
        sync = np.where(self.across, x[2] + x[3] * self.extra, x[4] + x[5] * self.extra)
        sync = np.where(self.synced, sync, NEGLIGIBLE_SECONDS)
        gamma = x[6]
        larger = np.maximum(compute, sync)
        p, q = (compute / larger) ** gamma, (sync / larger) ** gamma
        total = p + q
        step = larger * total ** (1.0 / gamma)

        error_compute = np.log(compute) - self.log_compute
        error_step = np.log(step) - self.log_step
        rms_compute, d_compute = _rms(error_compute)
        rms_step, d_step = _rms(error_step)

        # d log(step): by compute p/total/compute, by sync q/total/sync, by gamma as below.
        by_compute = d_compute / compute + d_step * p / total / compute
        by_sync = np.where(self.synced, d_step * q / total / sync, 0.0)
        log_p, log_q = np.log(compute / larger), np.log(sync / larger)
        by_gamma = d_step * ((p * log_p + q * log_q) / total / gamma - np.log(total) / gamma**2)

        gradient = np.empty(PARAMETER_COUNT)
        gradient[0] = by_compute.sum()
        gradient[1] = (by_compute * self.batch).sum()
        gradient[2] = by_sync[self.across].sum()
        gradient[3] = (by_sync * self.extra)[self.across].sum()
        gradient[4] = by_sync[self.within].sum()
        gradient[5] = (by_sync * self.extra)[self.within].sum()
        gradient[6] = by_gamma.sum() + 2 * GAMMA_WEIGHT * (gamma - 1)
        penalty = GAMMA_WEIGHT * (gamma - 1) ** 2
        for alpha, beta in ((2, 3), (4, 5)):
            slope = x[beta] / x[alpha]
            penalty += SLOPE_WEIGHT * slope**2
            gradient[beta] += 2 * SLOPE_WEIGHT * slope / x[alpha]
            gradient[alpha] -= 2 * SLOPE_WEIGHT * slope**2 / x[alpha]
        return rms_compute + rms_step + penalty, gradient


def _rms(error: FloatArray) -> tuple[float, FloatArray]:
    """Root mean square and its derivative; zero derivative at an exact fit, where the root has none."""
    value = float(np.sqrt(np.mean(error**2)))
    return value, error / (len(error) * value) if value > 1e-12 else np.zeros_like(error)
