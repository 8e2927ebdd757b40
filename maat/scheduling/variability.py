"""Variability among GPUs of one type, as PAL models it: binned PM scores, L x V.

Places nothing. A PM score is the slowness of a GPU for a class of applications: 1.0 is the median
GPU of its type; at 1.5 an iteration takes half as long again.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from functools import lru_cache

import numpy as np

from maat.scheduling.arrays import FloatArray, IntArray
from maat.scheduling.clustering import line_clusters, silhouette

MOST_BINS = 11  # PAL section III-B: K from 2 to 11
OUTLIER_SIGMAS = 3.0


class BinRule(StrEnum):
    """Into how many bins the scores of a class fall.

    SILHOUETTE: as many as maximise the silhouette (the paper). TWO: two, and one per outlier (its
    published code).
    """

    SILHOUETTE = "silhouette"
    TWO = "two"


def binned(scores: FloatArray, rule: BinRule) -> FloatArray:
    """Return the score of its bin for each of G GPUs of a type, shape (G,).

    PAL section III-B. SILHOUETTE: K-means over all scores but those above mean + 3 sigma, with the
    K of the best silhouette; the bin's score is its centroid, and an outlier keeps its own score.
    TWO: K-means over all scores with two clusters and one more for each outlier; the bin's score
    is its centroid over the median of the centroids.
    """
    outlier = scores > scores.mean() + OUTLIER_SIGMAS * (
        scores.std(ddof=1) if len(scores) > 1 else 0.0
    )
    if rule is BinRule.TWO:
        centroid = _centroids(scores, line_clusters(scores, 2 + int(outlier.sum()))[-1])
        relative: FloatArray = centroid / np.median(np.unique(centroid))
        return relative
    found = scores.copy()
    found[~outlier] = _centroids(scores[~outlier], _best_partition(scores[~outlier]))
    return found


def _best_partition(scores: FloatArray) -> IntArray:
    """Return labels by the K from 2 to 11 of the highest mean silhouette.

    Of equal ones the smallest K; one bin if all scores are equal.
    """
    partitions = line_clusters(scores, MOST_BINS)
    worth = [silhouette(scores, labels) for labels in partitions]
    return partitions[int(np.argmax(worth[1:])) + 1] if len(partitions) > 1 else partitions[0]


def _centroids(scores: FloatArray, labels: IntArray) -> FloatArray:
    means = np.bincount(labels, weights=scores) / np.bincount(labels)
    each: FloatArray = means[labels]
    return each


@lru_cache(maxsize=256)
def bins_of(scores: tuple[float, ...], rule: BinRule) -> FloatArray:
    """Return `binned`, computed once for the same scores; read only."""
    found = binned(np.array(scores), rule)
    found.setflags(write=False)
    return found


class Locality(IntEnum):
    """How far apart a job's GPUs may be: the rows of the L x V matrix."""

    NODE = 0
    RACK = 1
    ANYWHERE = 2


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the L x V matrix and its slowdown.

    It allows GPUs of at most this score, as far apart as `locality` says.
    """

    locality: Locality
    score: float
    slowdown: float


@lru_cache(maxsize=1024)
def traversal(
    bin_scores: tuple[float, ...], locality_penalty: float, rack_penalty: float = 1.0
) -> tuple[Entry, ...]:
    """Return the L x V matrix of distinct bin scores in PAL's order.

    That is rising slowdown L x V; of equal ones, the nearest GPUs first. A further penalty across
    racks gives the matrix a third row.
    """
    factors = {Locality.NODE: 1.0, Locality.ANYWHERE: locality_penalty * rack_penalty}
    if rack_penalty > 1:
        factors[Locality.RACK] = locality_penalty
    entries = [
        Entry(locality, score, factor * score)
        for score in sorted(set(bin_scores))
        for locality, factor in factors.items()
    ]
    return tuple(sorted(entries, key=lambda entry: (entry.slowdown, entry.locality)))
