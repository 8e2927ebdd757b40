"""Fits the catalog's models to all measurements, offline.

Agents fit their few samples online with scheduling.fitting.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from maat.models.measurements import EpochTable, StepTable
from maat.scheduling.arrays import BoolArray, FloatArray
from maat.scheduling.efficiency import efficiency, noise_scale
from maat.scheduling.fitting import ACROSS_OVER_WITHIN
from maat.scheduling.fitting.loss import LOWER
from maat.scheduling.one_thread import one_blas_thread
from maat.scheduling.throughput import ThroughputParameters, pass_seconds, step_seconds

CURVE_POINTS = 20
# Relative errors beyond this count linearly, not squared: single measurements are off by more.
_SOFT_ERROR = 0.1
_COMPUTE_WEIGHT = 0.5
_EARLY = 1.5
_SYNC_SHARES = (1.0, 0.1, 0.01)
_GAMMAS = (1.01, 1.5, 3.0)
_LOG_LOWEST, _LOG_HIGHEST = float(np.log(LOWER[0])), float(np.log(1e3))
_HIGHEST_GAMMA = 10.0


@dataclass(frozen=True)
class Measurements:
    """Distinct measured points of one model on one GPU type, shapes (S,).

    Seconds of a step, and of its compute alone.
    """

    node_count: FloatArray
    replica_count: FloatArray
    gpu_count: FloatArray
    per_gpu_batch: FloatArray
    step_seconds: FloatArray
    compute_seconds: FloatArray

    def __len__(self) -> int:
        return len(self.step_seconds)

    @property
    def localities(self) -> tuple[BoolArray, BoolArray, BoolArray]:
        """Masks of the points: one replica, several within a node, several across nodes."""
        several = self.replica_count > 1
        across = several & (self.node_count > 1)
        return ~several, several & ~across, across


@dataclass(frozen=True, slots=True)
class Fit:
    """Parameters, and the error of the step times that they predict.

    Median and 95th percentile of |relative error|.
    """

    parameters: ThroughputParameters
    median_error: float
    p95_error: float
    within_measured: bool
    across_measured: bool


def measurements_of(table: StepTable) -> Measurements:
    """Return every placement row, and the scalability rows that repeat none."""
    rows = [
        (len(placement), sum(map(int, placement)), batch, step, sync)
        for placement, columns in table.by_placement.items()
        for batch, step, sync in zip(*columns, strict=True)
    ]
    seen = {row[:3] for row in rows}
    rows += [row for row in map(tuple, table.scalability.tolist()) if row[:3] not in seen]
    nodes, gpus, batch, step, sync = np.array(rows, dtype=np.float64).T
    return Measurements(nodes, gpus // table.gpus_per_replica, gpus, batch, step, step - sync)


def fit_measurements(measured: Measurements) -> Fit:
    """Return the seven parameters that minimise the log errors, shape (7,).

    Errors are of step and compute times; each locality has the same weight. Nonlinear least squares
    from nine fixed starts. What has no measurement is derived: without measured synchronisation
    across nodes, 1.1 x that within; without any within, that across.
    """
    _, within, across = measured.localities
    free = np.array(
        [
            True,
            True,
            across.any(),
            _slopes(measured, across),
            within.any(),
            _slopes(measured, within),
            True,
        ]
    )
    best = min(
        (_descend(measured, start, free) for start in _starts(measured)), key=lambda found: found[0]
    )[1]
    parameters = _completed(
        best, within_measured=bool(within.any()), across_measured=bool(across.any())
    )
    error = np.abs(_predicted(np.array(parameters), measured) / measured.step_seconds - 1.0)
    return Fit(
        parameters,
        float(np.median(error)),
        float(np.quantile(error, 0.95)),
        bool(within.any()),
        bool(across.any()),
    )


def _slopes(measured: Measurements, locality: BoolArray) -> bool:
    return bool((measured.replica_count[locality] > 2).any())


def _starts(measured: Measurements) -> list[FloatArray]:
    """Starting points, shape (7,): logarithms of six parameters, then gamma."""
    slope, intercept = np.polyfit(measured.per_gpu_batch, measured.compute_seconds, 1)
    beta = max(float(slope), 1e-6)
    alpha = max(float(intercept), float(np.quantile(measured.compute_seconds, 0.05)) / 2)
    several = measured.replica_count > 1
    sync = max(float(np.median((measured.step_seconds - measured.compute_seconds)[several])), 1e-4)
    return [
        np.array(
            [
                *np.log(
                    [alpha, beta, sync * share, sync * share / 20, sync * share, sync * share / 20]
                ),
                gamma,
            ]
        )
        for share in _SYNC_SHARES
        for gamma in _GAMMAS
    ]


def _descend(
    measured: Measurements, start: FloatArray, free: BoolArray
) -> tuple[float, FloatArray]:
    """Return (loss, seven parameters) at the local minimum below a start.

    Parameters that are not free stay negligible.
    """
    from scipy.optimize import least_squares

    lower = np.append(np.full(6, _LOG_LOWEST), 1.0)
    upper = np.append(np.full(6, _LOG_HIGHEST), _HIGHEST_GAMMA)
    weights = _weights(measured)
    log_step, log_compute = np.log(measured.step_seconds), np.log(measured.compute_seconds)

    def parameters(point: FloatArray) -> FloatArray:
        full = lower.copy()
        full[free] = point
        return np.append(np.exp(full[:6]), full[6])

    def residuals(point: FloatArray) -> FloatArray:
        now = parameters(point)
        step_error = np.log(_predicted(now, measured)) - log_step
        compute_error = np.log(pass_seconds(now, measured.per_gpu_batch)) - log_compute
        return np.concatenate(
            (weights * _softened(step_error), _COMPUTE_WEIGHT * weights * _softened(compute_error))
        )

    inside = np.clip(start, lower + 1e-9, upper - 1e-9)
    with one_blas_thread():
        found = least_squares(
            residuals, inside[free], bounds=(lower[free], upper[free]), x_scale="jac", max_nfev=200
        )
    return float(found.cost), parameters(found.x)


def _weights(measured: Measurements) -> FloatArray:
    """Square roots of weights that sum to 1, shape (S,).

    Without them, thousands of odd placements across nodes would outweigh one GPU.
    """
    weights = np.zeros(len(measured))
    for locality in measured.localities:
        if locality.any():
            weights[locality] = 1.0 / locality.sum()
    return np.asarray(np.sqrt(weights / weights.sum()), dtype=np.float64)


def _softened(error: FloatArray) -> FloatArray:
    """r sqrt(2 / (1 + sqrt(1 + (r/s)^2))), whose square is linear in r beyond s.

    Up to s its square grows like r^2.
    """
    softened: FloatArray = error * np.sqrt(2.0 / (1.0 + np.sqrt(1.0 + (error / _SOFT_ERROR) ** 2)))
    return softened


def _predicted(parameters: FloatArray, measured: Measurements) -> FloatArray:
    return step_seconds(
        parameters,
        measured.per_gpu_batch,
        node_count=measured.node_count,
        replica_count=measured.replica_count,
    )


def _completed(
    found: FloatArray, *, within_measured: bool, across_measured: bool
) -> ThroughputParameters:
    full = found.copy()
    if not across_measured:
        full[2:4] = full[4:6] * ACROSS_OVER_WITHIN
    elif not within_measured:
        full[4:6] = full[2:4]
    return ThroughputParameters(*full.tolist())


def noise_scale_curve(epochs: EpochTable) -> tuple[tuple[float, float], ...]:
    """Return at most 20 points (share of training done, phi in samples).

    Statistics differ by the batch size at which they were measured. A point's phi is the one whose
    efficiencies at all measured batch sizes are closest, in log, to those from each batch size's
    own statistics, averaged over its epochs.
    """
    initial = float(epochs.initial_batch_size)
    batch = epochs.batch_sizes.astype(np.float64)[:, None]
    measured = np.log(
        efficiency(
            noise_scale(epochs.gradient_square, epochs.gradient_variance, initial),
            np.asarray(initial),
            batch,
        )
    )
    ends = np.concatenate(([0.0], epochs.boundaries)) / epochs.total_progress
    curve = []
    for first, after in itertools.pairwise(_part_edges(epochs.epoch_count)):
        share = float(ends[first] + ends[after]) / 2
        curve.append(
            (
                share,
                _closest_noise_scale(measured[:, first:after].mean(axis=1), initial, batch[:, 0]),
            )
        )
    return tuple(curve)


def _part_edges(epoch_count: int) -> list[int]:
    """First epochs of the curve's parts, and the end.

    Parts are finer at the beginning of training, where noise grows fastest.
    """
    edges = epoch_count * np.linspace(0.0, 1.0, CURVE_POINTS + 1) ** _EARLY
    return [int(edge) for edge in np.unique(np.rint(edges))]


def _closest_noise_scale(log_efficiency: FloatArray, initial: float, batch: FloatArray) -> float:
    from scipy.optimize import minimize_scalar

    def loss(log_phi: float) -> float:
        return float(
            np.sum(
                (np.log(efficiency(np.exp(log_phi), np.asarray(initial), batch)) - log_efficiency)
                ** 2
            )
        )

    low, high = np.log(initial * 1e-4), np.log(initial * 1e6)
    grid = np.linspace(low, high, 200)
    near = grid[int(np.argmin([loss(point) for point in grid]))]
    step = grid[1] - grid[0]
    found = minimize_scalar(
        loss,
        bounds=(max(near - step, low), min(near + step, high)),
        method="bounded",
        options={"xatol": 1e-6},
    )
    return float(np.exp(found.x))
