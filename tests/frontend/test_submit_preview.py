"""The submit form's preview speaks of GPUs that the cluster has."""

from __future__ import annotations

from frontend.pages.submit.preview import there

SERIES = [
    {
        "gpu_type": "t4",
        "points": [{"gpu_count": 4, "goodput": 2.0}, {"gpu_count": 16, "goodput": 9.0}],
    },
    {
        "gpu_type": "a100",
        "points": [{"gpu_count": 4, "goodput": 8.0}, {"gpu_count": 16, "goodput": 9.0}],
    },
]


def counts(capacity: dict[str, int] | None) -> dict[str, list[int]]:
    return {
        line["gpu_type"]: [point["gpu_count"] for point in line["points"]]
        for line in there(SERIES, capacity)
    }


def test_counts_beyond_the_cluster_are_left_out_by_type() -> None:
    assert counts({"t4": 16, "a100": 8}) == {"t4": [4, 16], "a100": [4]}


def test_a_type_that_the_cluster_lacks_has_no_point_and_without_a_cluster_all_stand() -> None:
    assert counts({"t4": 16}) == {"t4": [4, 16], "a100": []}
    assert counts(None) == {"t4": [4, 16], "a100": [4, 16]}
