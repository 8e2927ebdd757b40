"""K-means, exact on a line and approximate in the plane, and the silhouette.

Knows nothing of what is clustered.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from maat.scheduling.arrays import FloatArray, IntArray

RESTARTS = 20
MOST_ITERATIONS = 300


def line_clusters(values: FloatArray, most: int) -> Sequence[IntArray]:
    """Return the best partitions of N numbers into 1, 2, ... `most` clusters.

    Each is an array of labels, shape (N,), 0 for the smallest numbers. The result is exact and
    uses no chance: on a line the clusters of K-means are ranges of the sorted numbers, found by
    dynamic programming. Equal numbers stay together, so there are no more partitions than distinct
    numbers.
    """
    distinct, place, count = np.unique(values, return_inverse=True, return_counts=True)
    spread = _Spread(distinct, count)
    size = len(distinct)
    best = np.array(
        [np.inf]
        + [float(spread.within(np.zeros(1, dtype=np.int64), end)[0]) for end in range(1, size + 1)]
    )
    cuts: list[IntArray] = []
    labels = [np.zeros(len(values), dtype=np.int64)]
    for clusters in range(2, min(most, size) + 1):
        best, cut = _one_more(best, spread, clusters)
        cuts.append(cut)
        labels.append(_labels(cuts, size)[place])
    return labels


class _Spread:
    """Sums of squares around the mean, of ranges of sorted distinct numbers.

    Each number occurs `count` times.
    """

    def __init__(self, sorted_values: FloatArray, count: IntArray) -> None:
        centred = sorted_values - np.average(sorted_values, weights=count)
        self._n = np.concatenate(([0.0], np.cumsum(count)))
        self._sum = np.concatenate(([0.0], np.cumsum(count * centred)))
        self._square = np.concatenate(([0.0], np.cumsum(count * centred**2)))

    def within(self, first: IntArray, end: int) -> FloatArray:
        """Return the sums of the ranges from each of `first` up to before `end`."""
        total = self._sum[end] - self._sum[first]
        spread: FloatArray = (
            self._square[end] - self._square[first] - total**2 / (self._n[end] - self._n[first])
        )
        return spread


def _one_more(best: FloatArray, spread: _Spread, clusters: int) -> tuple[FloatArray, IntArray]:
    """Return the best spread with one more cluster, and where its last one begins.

    `best`, (N + 1,), is the best spread of the first j numbers with one cluster less. The last
    cluster never begins earlier for a longer range, so the answer for the middle bounds the search
    for both halves.
    """
    size = len(best) - 1
    found, cut = np.full(size + 1, np.inf), np.zeros(size + 1, dtype=np.int64)
    open_ranges = [(clusters, size, clusters - 1, size - 1)]
    while open_ranges:
        low, high, first, last = open_ranges.pop()
        if low > high:
            continue
        end = (low + high) // 2
        begins = np.arange(first, min(last, end - 1) + 1)
        total = best[begins] + spread.within(begins, end)
        at = int(np.argmin(total))
        found[end], cut[end] = total[at], begins[at]
        open_ranges += [
            (low, end - 1, first, int(begins[at])),
            (end + 1, high, int(begins[at]), last),
        ]
    return found, cut


def _labels(cuts: Sequence[IntArray], size: int) -> IntArray:
    """Return the labels of the sorted numbers.

    `cuts` has, for each number of clusters, where the last cluster begins.
    """
    labels = np.zeros(size, dtype=np.int64)
    end = size
    for cluster in range(len(cuts), 0, -1):
        begin = int(cuts[cluster - 1][end])
        labels[begin:end] = cluster
        end = begin
    return labels


def silhouette(values: FloatArray, labels: IntArray) -> float:
    """Return the mean silhouette (Rousseeuw 1987) of N numbers in clusters.

    (b - a) / max(a, b), with a the mean distance to the own cluster and b to the nearest other
    one; 0 for a number alone in its cluster. From -1 to 1; 0 for a single cluster.
    """
    names = np.unique(labels)
    if len(names) < 2:
        return 0.0
    total = np.stack(
        [_distances(values, np.sort(values[labels == name])) for name in names], axis=1
    )
    size = np.array([np.count_nonzero(labels == name) for name in names])
    own = labels[:, None] == names
    mates = (size * own).sum(axis=1) - 1
    within = np.divide((total * own).sum(axis=1), mates, out=np.zeros(len(values)), where=mates > 0)
    beyond = np.where(own, np.inf, total / size).min(axis=1)
    larger = np.maximum(within, beyond)
    each = np.divide(
        beyond - within, larger, out=np.zeros(len(values)), where=(larger > 0) & (mates > 0)
    )
    return float(each.mean())


def _distances(values: FloatArray, others: FloatArray) -> FloatArray:
    """Return the sum of distances from each value to all `others`, which are sorted."""
    sums = np.concatenate(([0.0], np.cumsum(others)))
    below = np.searchsorted(others, values, side="right")
    distances: FloatArray = (
        values * below - sums[below] + (sums[-1] - sums[below]) - values * (len(others) - below)
    )
    return distances


def plane_clusters(points: FloatArray, clusters: int, rng: np.random.Generator) -> FloatArray:
    """Return the centroids, (K, 2), of the best of several K-means of points (N, 2).

    Lloyd's algorithm from k-means++ starts.
    """
    tries = [_lloyd(points, _spread_out(points, clusters, rng)) for _ in range(RESTARTS)]
    return min(tries, key=lambda centroids: float(_squared(points, centroids).min(axis=1).sum()))


def _spread_out(points: FloatArray, clusters: int, rng: np.random.Generator) -> FloatArray:
    """Draw the starting points; points far from those drawn before are more likely."""
    chosen = [points[rng.integers(len(points))]]
    while len(chosen) < clusters:
        far = _squared(points, np.array(chosen)).min(axis=1)
        chosen.append(points[rng.choice(len(points), p=far / far.sum())])
    return np.array(chosen)


def _lloyd(points: FloatArray, centroids: FloatArray) -> FloatArray:
    for _ in range(MOST_ITERATIONS):
        nearest = np.argmin(_squared(points, centroids), axis=1)
        moved = np.array(
            [
                points[nearest == k].mean(axis=0) if (nearest == k).any() else c
                for k, c in enumerate(centroids)
            ]
        )
        if np.array_equal(moved, centroids):
            break
        centroids = moved
    return centroids


def _squared(points: FloatArray, centroids: FloatArray) -> FloatArray:
    """Return squared distances, shape (N, K)."""
    squared: FloatArray = ((points[:, None, :] - centroids[None, :, :]) ** 2).sum(axis=2)
    return squared
