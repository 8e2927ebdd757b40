"""GPUs of one type that are not alike, as PAL sees them: classes of applications, PM scores in bins, the L x V matrix. Places nothing.

A PM score says how slow a GPU is for a class of applications: 1.0 is the median GPU of its type, 1.5 takes half as long again for an iteration.
"""

from __future__ import annotations

import string
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

import numpy as np

from maat.scheduling.arrays import FloatArray, IntArray
from maat.scheduling.clustering import line_clusters, plane_clusters, silhouette
from maat.scheduling.errors import ParameterError

MOST_BINS = 11  # PAL section III-B: K from 2 to 11
OUTLIER_SIGMAS = 3.0


class BinRule(StrEnum):
    """How many bins the scores of a class fall into: as many as the silhouette says (the paper); two, and one per outlier (its code)."""

    SILHOUETTE = "silhouette"
    TWO = "two"


# ---- applications ------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Utilisation:
    """What an application was measured to use, shares 0-1: of DRAM bandwidth, and of the functional unit that is busiest."""

    dram: float
    functional_unit: float

    def __post_init__(self) -> None:
        for name in ("dram", "functional_unit"):
            value = getattr(self, name)
            if not 0 <= value <= 1:
                raise ParameterError(
                    "is no share from 0 to 1",
                    field=name,
                    value=value,
                    remedy="Give measured utilisation as a share.",
                )


@dataclass(frozen=True)
class ApplicationClasses:
    """Classes by falling sensitivity to variability: A computes most. `centroids`, shape (K, 2): DRAM, functional unit."""

    centroids: FloatArray
    members: Mapping[str, str]

    def nearest(self, application: Utilisation) -> str:
        """The class of an application that was not among those that made the classes."""
        return string.ascii_uppercase[
            int(np.argmin(((self.centroids - _point(application)) ** 2).sum(axis=1)))
        ]


def classify(
    applications: Mapping[str, Utilisation], *, class_count: int = 3, seed: int = 0
) -> ApplicationClasses:
    """K-means over (DRAM, peak functional unit) utilisation (PAL section III-A). Raises ParameterError where there are more classes than
    different applications."""
    points = np.array([_point(each) for each in applications.values()]).reshape(-1, 2)
    different = len(np.unique(points, axis=0))
    if not 1 <= class_count <= min(different, len(string.ascii_uppercase)):
        raise ParameterError(
            "is not between 1 and the number of different applications",
            field="class_count",
            value=class_count,
            remedy=f"Give 1 to {different}, or measure more applications.",
        )
    found = plane_clusters(points, class_count, np.random.default_rng(seed))
    order = np.lexsort((found[:, 0], -found[:, 1]))
    classes = ApplicationClasses(found[order], {})
    members = {name: classes.nearest(each) for name, each in applications.items()}
    return ApplicationClasses(classes.centroids, members)


def _point(application: Utilisation) -> FloatArray:
    return np.array([application.dram, application.functional_unit])


# ---- PM scores ---------------------------------------------------------------------------------------------------------------------


def binned(scores: FloatArray, rule: BinRule) -> FloatArray:
    """The score of its bin for each of G GPUs of a type, shape (G,), from their own scores (PAL section III-B).

    SILHOUETTE: K-means over all but those beyond mean + 3 sigma, K of the best silhouette; the bin's score is its centroid, an outlier keeps its own.
    TWO: K-means over all with two clusters and one more for each outlier; the bin's score is its centroid over the median of the centroids.
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
    """Labels by the K from 2 to 11 of the highest mean silhouette, the smallest such K; one bin where all are alike."""
    partitions = line_clusters(scores, MOST_BINS)
    worth = [silhouette(scores, labels) for labels in partitions]
    return partitions[int(np.argmax(worth[1:])) + 1] if len(partitions) > 1 else partitions[0]


def _centroids(scores: FloatArray, labels: IntArray) -> FloatArray:
    means = np.bincount(labels, weights=scores) / np.bincount(labels)
    each: FloatArray = means[labels]
    return each


@lru_cache(maxsize=256)
def bins_of(scores: tuple[float, ...], rule: BinRule) -> FloatArray:
    """`binned`, computed once for the same scores; read only."""
    found = binned(np.array(scores), rule)
    found.setflags(write=False)
    return found


# ---- the L x V matrix --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the L x V matrix: GPUs of at most this score, within a node or across nodes, and the slowdown that follows."""

    within_node: bool
    score: float
    slowdown: float


@lru_cache(maxsize=1024)
def traversal(bin_scores: tuple[float, ...], locality_penalty: float) -> tuple[Entry, ...]:
    """The L x V matrix of distinct bin scores in the order in which PAL walks it: rising slowdown L x V, within a node first where it is equal."""
    entries = [
        Entry(within, score, factor * score)
        for score in sorted(set(bin_scores))
        for within, factor in ((True, 1.0), (False, locality_penalty))
    ]
    return tuple(sorted(entries, key=lambda entry: (entry.slowdown, not entry.within_node)))
