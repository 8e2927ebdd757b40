"""Whether a new job should share a running job's GPUs or wait for its end.

SJF-BSBF Theorem 1. Knows two jobs, no cluster. The paper's sign test is not used: it treats its
case 1 only for an immediate start, and chooses wrongly there. The optimum is always at an end
point, start now or wait for the end, so the two are compared.
"""

from __future__ import annotations

import numpy as np

from maat.scheduling.arrays import BoolArray, FloatArray

_TIE = 1e-9  # relative: a tie in exact arithmetic is no gain


def sequential_mean(running: FloatArray, newcomer: FloatArray) -> FloatArray:
    """Return the mean completion time if the new job waits: S = R + N / 2.

    Seconds, shapes broadcast. `running`: remaining solo seconds R of the running job; `newcomer`:
    solo seconds N of the new job.
    """
    mean: FloatArray = np.asarray(running) + np.asarray(newcomer) / 2.0
    return mean


def together_mean(
    running: FloatArray, newcomer: FloatArray, xi_running: FloatArray, xi_newcomer: FloatArray
) -> FloatArray:
    """Return the mean completion time if the new job starts now.

    While both run, each is slowed by its xi >= 1 (eq. 21 and 25 at kappa = 0).

        newcomer last:   N/2 + R xi_R (1 - 1 / (2 xi_N))
        newcomer first:  R/2 + N xi_N (1 - 1 / (2 xi_R))

    Seconds, shapes broadcast.
    """
    R, N, xi_R, xi_N = (
        np.asarray(x, dtype=np.float64) for x in (running, newcomer, xi_running, xi_newcomer)
    )
    last = N / 2.0 + R * xi_R * (1.0 - 1.0 / (2.0 * xi_N))
    first = R / 2.0 + N * xi_N * (1.0 - 1.0 / (2.0 * xi_R))
    return np.where(N * xi_N >= R * xi_R, last, first)


def gains(together: FloatArray, sequential: FloatArray) -> BoolArray:
    """Return whether sharing is better than waiting; a tie is not."""
    better: BoolArray = np.asarray(together) < np.asarray(sequential) * (1.0 - _TIE)
    return better


def gains_at_any_length(xi_running: FloatArray, xi_newcomer: FloatArray) -> BoolArray:
    """Return whether sharing is better than waiting, however long the two jobs take.

    The worst newcomer is one that ends with the running job or after it. Its own N / 2 is on both
    sides of the comparison, and R divides out:

        xi_R (1 - 1 / (2 xi_N)) < 1

    Shapes broadcast; False for a slowdown that is not known (NaN).
    """
    xi_R, xi_N = (np.asarray(x, dtype=np.float64) for x in (xi_running, xi_newcomer))
    return gains(xi_R * (1.0 - 1.0 / (2.0 * xi_N)), np.ones_like(xi_R))
