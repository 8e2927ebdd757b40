"""What the moves of a job were worth, as its timeline shows it: whatever its efficiency did."""

from __future__ import annotations

from typing import Any

import pytest

from backend.jobs.models import BatchChange, Job, JobAllocation
from backend.jobs.spans import JobTimeline
from backend.models import Cluster

STARTING = 60.0
PROCESSED = 1000.0  # samples per second on one GPU, at any batch size


def lived(*spans: dict[str, Any], now: float = 10_000.0) -> tuple[Job, list[JobAllocation]]:
    """A job and its spans: GPUs, until when, and the efficiency with which it trained."""
    rows: list[JobAllocation] = []
    processed = gained = begin = 0.0
    for number, span in enumerate(spans, start=1):
        end = span.get("until", now)
        rate = span.get("rate", PROCESSED * span["gpus"])
        done = rate * (end - begin - STARTING)
        rows.append(
            JobAllocation(
                id=number,
                job_id="job_a",
                cluster_id="clu",
                round_number=number,
                from_seconds=begin,
                to_seconds=None if end == now else end,
                running_seconds=begin + STARTING,
                gpu_type="a100",
                gpu_count=span["gpus"],
                node_count=1,
                gpus=list(range(span["gpus"])),
                total_batch_size=span.get("batch", 64),
                processed_before=processed,
                processed_after=None if end == now else processed + done,
                gained_before=gained,
                gained_after=None if end == now else gained + done * span["efficiency"],
                noise_scale=span.get("phi"),
            )
        )
        processed, gained, begin = processed + done, gained + done * span["efficiency"], end
    job = Job(id="job_a", processed_samples=processed, gained_samples=gained)
    return job, rows


def shown(
    *spans: dict[str, Any], changes: tuple[BatchChange, ...] = (), now: float = 10_000.0
) -> list[Any]:
    job, rows = lived(*spans, now=now)
    timeline = JobTimeline(job, Cluster(id="clu"), now, changes)
    return [one["move"] for one in timeline.show(rows, before=None)]


def test_efficiency_that_triples_while_gpus_halve_is_behind() -> None:
    """Its effective samples per second are half as many again, and the move cost half of them."""
    first, move = shown(
        {"gpus": 2, "until": 4000.0, "efficiency": 0.2}, {"gpus": 1, "efficiency": 0.6}
    )
    assert first is None
    assert move["outcome"] == "no-faster"
    assert move["net_seconds"] < 0
    assert (move["before_samples_per_second"], move["after_samples_per_second"]) == (2000.0, 1000.0)
    assert move["pays_after_seconds"] is None


def test_efficiency_that_falls_while_gpus_double_is_ahead() -> None:
    _, move = shown({"gpus": 1, "until": 4000.0, "efficiency": 0.9}, {"gpus": 2, "efficiency": 0.3})
    assert move["outcome"] == "paid"
    assert move["net_seconds"] == pytest.approx(2 * 5940.0 - 6000.0)


def test_a_span_of_two_batch_sizes_is_compared_by_the_better_one_at_the_move() -> None:
    """It ran 64 samples for 2,000 s, then 1,024 at twice the throughput: too many at phi = 10."""
    change = BatchChange(
        job_id="job_a",
        cluster_id="clu",
        at_seconds=6060.0,
        total_batch_size=64,
        processed_samples=3_940_000.0 + 2000 * PROCESSED,
    )
    _, move = shown(
        {"gpus": 1, "until": 4000.0, "efficiency": 1.0, "phi": 10.0},
        {"gpus": 1, "efficiency": 0.5, "batch": 1024, "rate": 1500.0, "phi": 10.0},
        changes=(change,),
    )
    assert move["after_samples_per_second"] == pytest.approx(PROCESSED)
    assert move["outcome"] == "no-faster"


def test_other_batch_sizes_without_a_noise_scale_of_that_time_leave_it_unknown() -> None:
    _, move = shown(
        {"gpus": 1, "until": 4000.0, "efficiency": 1.0},
        {"gpus": 2, "efficiency": 0.5, "batch": 128},
    )
    assert (move["outcome"], move["unknown"]) == ("unknown", "no-noise-scale")
    assert move["net_seconds"] is None


def test_gpus_that_it_did_not_come_from_are_not_compared() -> None:
    job, rows = lived(
        {"gpus": 1, "until": 4000.0, "efficiency": 1.0}, {"gpus": 2, "efficiency": 1.0}
    )
    rows[0].to_seconds = 3000.0
    timeline = JobTimeline(job, Cluster(id="clu"), 10_000.0, ())
    assert timeline.show(rows, before=None)[1]["move"]["unknown"] == "held-none"
    assert timeline.show(rows[1:], before=None)[0]["move"] is None
    assert timeline.show(rows[1:], before=rows[0])[0]["move"] is not None


def test_a_new_batch_size_alone_is_no_move() -> None:
    job, rows = lived(
        {"gpus": 1, "until": 4000.0, "efficiency": 1.0}, {"gpus": 2, "efficiency": 1.0}
    )
    rows[1].running_seconds = rows[1].from_seconds
    assert (
        JobTimeline(job, Cluster(id="clu"), 10_000.0, ()).show(rows, before=None)[1]["move"] is None
    )
