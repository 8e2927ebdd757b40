"""How many jobs were active at a time, exactly, from the times at which they came and ended."""

from __future__ import annotations

import numpy as np

from maat.scheduling.arrays import FloatArray, IntArray


class ActiveJobs:
    """The number n(t) of active jobs, as a function of time.

    `submitted`, `ended`, shape (J,): seconds; infinite for a job that has not ended.
    """

    def __init__(self, submitted: FloatArray, ended: FloatArray) -> None:
        self._origin = float(submitted.min()) if len(submitted) else 0.0
        self._begun = _Ramps(submitted - self._origin)
        self._over = _Ramps(ended[np.isfinite(ended)] - self._origin)

    def mean(self, begin: FloatArray, end: FloatArray) -> FloatArray:
        """Return the time-weighted mean of n(t) from `begin` to `end`; shapes (K,).

        n_avg = 1 / (end - begin) x integral of n(t) dt. At a single moment, n at that moment.
        """
        first, last = begin - self._origin, end - self._origin
        length = last - first
        whole = self._integral(last) - self._integral(first)
        at_once = (self._begun.count(last) - self._over.count(last)).astype(np.float64)
        return np.where(length > 0, whole / np.where(length > 0, length, 1.0), at_once)

    def _integral(self, until: FloatArray) -> FloatArray:
        return self._begun.integral(until) - self._over.integral(until)


class _Ramps:
    """The sum over moments m of max(t - m, 0), by sorted moments and their running sum."""

    def __init__(self, moments: FloatArray) -> None:
        self._moments = np.sort(moments)
        self._sums = np.concatenate([[0.0], np.cumsum(self._moments)])

    def count(self, until: FloatArray) -> IntArray:
        return np.searchsorted(self._moments, until, side="right").astype(np.int64)

    def integral(self, until: FloatArray) -> FloatArray:
        passed = self.count(until)
        found: FloatArray = passed * until - self._sums[passed]
        return found
