"""K-means and silhouette against exhaustive search."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maat.scheduling.clustering import line_clusters, plane_clusters, silhouette

numbers = st.lists(st.integers(0, 30), min_size=1, max_size=9).map(
    lambda values: np.array(values, dtype=np.float64) / 10
)


def spread(values: np.ndarray, labels: np.ndarray) -> float:
    return float(
        sum(
            ((values[labels == k] - values[labels == k].mean()) ** 2).sum()
            for k in np.unique(labels)
        )
    )


def least_spread(values: np.ndarray, clusters: int) -> float:
    """Every way to cut the sorted numbers into stretches."""
    ordered = np.sort(values)
    cuts = combinations(range(1, len(ordered)), clusters - 1)
    return min(
        spread(ordered, np.searchsorted(cut, np.arange(len(ordered)), side="right"))
        for cut in map(list, cuts)
    )


@given(values=numbers, most=st.integers(1, 6))
def test_clusters_on_a_line_are_the_best_there_are(values: np.ndarray, most: int) -> None:
    partitions = line_clusters(values, most)
    assert len(partitions) == min(most, len(set(values.tolist())))
    for clusters, labels in enumerate(partitions, start=1):
        assert set(labels.tolist()) == set(range(clusters))
        assert spread(values, labels) == pytest.approx(least_spread(values, clusters), abs=1e-9)
        assert all(
            labels[i] <= labels[j]
            for i in range(len(values))
            for j in range(len(values))
            if values[i] <= values[j]
        )


@given(values=numbers, draw=st.data())
def test_the_silhouette_is_that_of_its_definition(values: np.ndarray, draw: st.DataObject) -> None:
    labels = np.array(
        draw.draw(st.lists(st.integers(0, 2), min_size=len(values), max_size=len(values)))
    )
    assert silhouette(values, labels) == pytest.approx(by_definition(values, labels))


def by_definition(values: np.ndarray, labels: np.ndarray) -> float:
    if len(set(labels.tolist())) < 2:
        return 0.0
    each = []
    for i, mine in enumerate(labels):
        mates = [abs(values[i] - v) for j, v in enumerate(values) if j != i and labels[j] == mine]
        others = [
            [abs(values[i] - v) for v in values[labels == name]]
            for name in set(labels.tolist()) - {mine}
        ]
        a, b = (np.mean(mates) if mates else 0.0), min(np.mean(other) for other in others)
        each.append((b - a) / max(a, b) if mates and max(a, b) > 0 else 0.0)
    return float(np.mean(each))


def test_clusters_in_the_plane_find_what_lies_together() -> None:
    centres = np.array([[0.1, 0.9], [0.5, 0.5], [0.9, 0.1]])
    around = np.array([[0.02, 0.0], [-0.02, 0.0], [0.0, 0.02], [0.0, -0.02]])
    points = (centres[:, None, :] + around).reshape(-1, 2)
    found = plane_clusters(points, 3, np.random.default_rng(1))
    assert found[np.argsort(found[:, 0])] == pytest.approx(centres)
