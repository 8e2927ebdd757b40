"""How long jobs waited, as counts in buckets that grow by a constant factor. Pure.

A sketch of two days is the sum of their counts, so the quantiles of a year are those of its jobs,
not means of daily quantiles. With gamma = (1 + ERROR) / (1 - ERROR) bucket i > 0 holds the waits in
(gamma^(i-1), gamma^i] seconds and bucket 0 those of up to a second; a quantile is answered by the
middle of its bucket, which is at most the share ERROR from the true one (Masson, Rim and Lee,
"DDSketch", VLDB 2019).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

ERROR = 0.01
"""Largest relative error of a quantile above one second; below, it is half a second."""

_GAMMA = (1 + ERROR) / (1 - ERROR)
_PAIR = np.dtype([("bucket", "<i4"), ("count", "<i4")])


def packed(seconds: Iterable[float]) -> bytes:
    """Return the sketch of these waits."""
    waits = np.maximum(np.fromiter(seconds, dtype=np.float64), 1.0)
    buckets = np.ceil(np.log(waits) / np.log(_GAMMA) - 1e-9).astype(np.int64)
    return _pack(*np.unique(buckets, return_counts=True))


def merged(sketches: Iterable[bytes]) -> bytes:
    """Return the sketch of all their waits."""
    pairs = np.frombuffer(b"".join(sketches), dtype=_PAIR)
    counts = np.bincount(pairs["bucket"], weights=pairs["count"])  # buckets are few: no sorting
    buckets = np.flatnonzero(counts)
    return _pack(buckets, counts[buckets])


def quantiles(sketch: bytes, shares: Sequence[float]) -> list[float]:
    """Return the waits in seconds that these shares of the jobs had at most; none without any."""
    pairs = np.frombuffer(sketch, dtype=_PAIR)
    if not len(pairs):
        return []
    passed = np.cumsum(pairs["count"], dtype=np.int64)
    # A share that is n / jobs means n jobs, whatever rounding makes of it.
    ranks = np.maximum(np.ceil(np.array(shares) * passed[-1] - 1e-9), 1)
    buckets = pairs["bucket"][np.searchsorted(passed, ranks)].astype(np.float64)
    waits: list[float] = np.where(buckets == 0, 0.5, 2 * _GAMMA**buckets / (_GAMMA + 1)).tolist()
    return waits


def _pack(buckets: NDArray[np.int64], counts: NDArray[np.generic]) -> bytes:
    pairs = np.empty(len(buckets), dtype=_PAIR)
    pairs["bucket"], pairs["count"] = buckets, counts
    return pairs.tobytes()
