"""What no shares of time can exceed in Gavel's programmes, by the prices of an answer.

Weak duality, whatever the prices are: an inaccurate solver gives a loose bound, and no wrong one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from maat.scheduling.arrays import FloatArray, IntArray

HALVINGS = 60


@dataclass(frozen=True)
class Rows:
    """The constraints of section 3.1 over V entries of X.

    `of_job`: shape (rows, V), 1 where an entry is a job's. `usage`: shape (V, R). `num_workers`:
    shape (R,).
    """

    of_job: csr_array
    usage: IntArray
    num_workers: IntArray


@dataclass(frozen=True)
class Prices:
    """The prices, none negative, of the rows of jobs, of limits (R,), and of further rows."""

    jobs: FloatArray
    limits: FloatArray
    further: FloatArray


def most_gain(gain: FloatArray, rows: Rows, prices: Prices) -> float:
    """Return a bound on gain . X, `gain` of shape (V,).

    For any X of section 3.1, with prices p of jobs and l of limits:

        gain . X  <=  gain . X + p . (1 - of_job X) + l . (num_workers - usage^T X)
                  <=  sum p + l . num_workers + sum_v max(0, gain - of_job^T p - usage l)_v

    as 0 <= X_v <= 1.
    """
    reduced = gain - rows.of_job.T @ prices.jobs - rows.usage @ prices.limits
    left = np.maximum(rows.num_workers, 0) @ prices.limits
    return float(prices.jobs.sum() + left + np.maximum(reduced, 0.0).sum())


def most_pace(gain: FloatArray, needed: float, rows: Rows, prices: Prices) -> float:
    """Return a bound on s, if gain . X >= s needed for every X that reaches s; infinite if none.

    So it is if gain sums throughputs with weights y, and `needed` sums with y what each is to be
    at s = 1: y = further prices for the largest minimum (s itself) and the makespan (1 / s).
    """
    return most_gain(gain, rows, prices) / needed if needed > 0 else float("inf")


def least_rho(
    gain: FloatArray, rows: Rows, prices: Prices, *, past: FloatArray, to_come: FloatArray
) -> float:
    """Return what no largest rho is below, with weights y = the further prices.

    Throughput is at least to_come / (rho - past) of every job, shapes (J,), so that

        sum_m y_m to_come_m / (rho - past_m)  <=  gain . X  <=  most_gain

    The left side falls with rho: where it exceeds the right one, no X reaches rho.
    """
    most, y = most_gain(gain, rows, prices), prices.further
    low = float(past.max(initial=0.0))
    at = y * to_come > 0
    if not at.any() or most <= 0:
        return low
    step = 1.0
    while _needed(y[at], to_come[at], low + step - past[at]) > most:
        step *= 2.0
    high = low + step
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if _needed(y[at], to_come[at], middle - past[at]) > most:
            low = middle
        else:
            high = middle
    return low


def _needed(y: FloatArray, to_come: FloatArray, left: FloatArray) -> float:
    with np.errstate(divide="ignore"):
        return float((y * to_come / np.maximum(left, 0.0)).sum())
