"""The submit form's preview speaks of GPUs that the cluster has."""

from __future__ import annotations

from frontend.pages.submit.preview import expectation, there

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


def test_what_is_best_has_at_least_the_gpus_that_the_job_wants() -> None:
    series = [
        {
            "gpu_type": "t4",
            "points": [
                {"gpu_count": count, "goodput": goodput, "total_batch_size": 32}
                for count, goodput in ((4, 9.0), (8, 5.0))
            ],
        }
    ]

    assert "best with 4 GPUs" in str(expectation(series, 1))
    assert "best with 8 GPUs" in str(expectation(series, 5))
    assert expectation(series, 9) == []
