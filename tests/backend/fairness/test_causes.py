"""Tests of what made a job late: waiting, starting, too few GPUs or slow ones."""

from __future__ import annotations

from typing import Any

import pytest

from backend.fairness.causes import cause_of, cause_sentence, held_gpus, share_gpus
from backend.models import Job, JobFairness
from maat.vocabulary import Adaptivity, WorseOff

SHAPE = [["t4", 4, 3], ["a100", 8, 2]]  # 28 GPUs


def row(rho: float | None, **fields: Any) -> JobFairness:
    given = {"jct_seconds": 100.0, "contention": 7.0, "shape": SHAPE} | fields
    return JobFairness(
        job_id="j", cluster_id="c", tenant_id="t", finished_seconds=0.0, rho=rho, **given
    )


def job(**fields: Any) -> Job:
    given = {"model": "bert", "adaptivity": Adaptivity.ADAPTIVE.value, "state": "succeeded"}
    seconds = {"submitted_seconds": 0.0, "remaining_work": 0.0}
    names = {"name": "j", "cluster_id": "c", "tenant_id": "t", "owner_id": "o"}
    return Job(**{**given, **seconds, **names, **fields})


def why(**seconds: float) -> dict[str, Any]:
    parts = dict.fromkeys(("waiting", "profiling", "starting", "running", "paused"), 0.0) | seconds
    return {f"{name}_seconds": value for name, value in parts.items()}


def held(gpus: float, hours: float = 2.0) -> dict[str, Any]:
    return {"held_hours": hours, "held_gpu_hours": {"t4": gpus * hours}}


@pytest.mark.parametrize(
    ("life", "rho", "cause", "words"),
    [
        (why(waiting=60, running=40) | held(1), 2.0, WorseOff.WAITED, "waited"),
        (why(starting=60, running=40) | held(1), 2.0, WorseOff.STARTED, "restarted"),
        (why(running=100) | held(1), 2.0, WorseOff.FEW_GPUS, "1 on average, of 4."),
        (why(running=100) | held(3.9), 2.0, WorseOff.SLOW_GPUS, "t4"),
        (why(running=100), 2.0, WorseOff.SLOW_GPUS, "more slowly than alone"),
    ],
)
def test_what_took_most_of_the_delay_is_the_cause(
    life: dict[str, Any], rho: float, cause: WorseOff, words: str
) -> None:
    of = row(rho)
    assert cause_of(life, of) is cause
    assert words in cause_sentence(cause, life, of, job())


ALONE = {
    "gpu_type": "t4",
    "gpu_count": 1,
    "alone_gpu_type": "t4",
    "alone_gpu_count": 2,
}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"preemptible": False}, "Its owner forbids preemption: it keeps the GPUs with which it"),
        ({"max_gpus": 2}, "Its owner lets it have 2 GPUs at most."),
        (
            {"adaptivity": "rigid", "gpu_count": 1},
            "Its owner asks for 1 GPU, no more and no fewer.",
        ),
        (
            {"gpu_types": ["t4"]},
            "Its owner lets it use t4 only: 12 of the cluster's 28 GPUs.",
        ),
        (
            {"reason_code": "GRANTED", "reason_evidence": ALONE | {"alone_limit": "ceiling:t4:x"}},
            "By its last round, its tenant's quota kept it from 2 t4.",
        ),
        (
            {
                "reason_code": "PINNED",
                "reason_evidence": {"stays_for_seconds": 60.0, "least_stay_seconds": 600.0},
            },
            "A bound on moves kept it on its first GPUs to its end.",
        ),
    ],
)
def test_what_kept_a_job_on_few_gpus_is_named(fields: dict[str, Any], words: str) -> None:
    life = why(running=100) | held(1)
    said = cause_sentence(WorseOff.FEW_GPUS, life, row(2.0), job(**fields))
    assert said.startswith("Mostly because it held fewer GPUs than its equal share: 1 on average")
    assert words in said
    assert "owner" not in cause_sentence(WorseOff.WAITED, life, row(2.0), job(**fields))


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"max_gpus": 16},
        {"gpu_types": ["t4", "a100"]},
        {"reason_code": "GRANTED", "reason_evidence": ALONE | {"alone_limit": "capacity:t4"}},
        {
            "reason_code": "PINNED",
            "reason_evidence": {"stays_for_seconds": 60.0},
            "restarts": 1,
        },
    ],
)
def test_what_does_not_bind_a_job_is_not_said(fields: dict[str, Any]) -> None:
    said = cause_sentence(WorseOff.FEW_GPUS, why(running=100) | held(1), row(2.0), job(**fields))
    assert said == "Mostly because it held fewer GPUs than its equal share: 1 on average, of 4."


def test_a_job_that_was_not_late_has_no_cause() -> None:
    assert cause_of(why(waiting=90, running=10), row(1.0)) is None
    assert cause_of(why(waiting=90, running=10), row(None)) is None


def test_the_equal_share_is_that_of_the_jobs_that_were_active() -> None:
    assert share_gpus(row(2.0)) == 4.0
    assert share_gpus(row(2.0, shape=None)) is None
    assert held_gpus(why() | held(2.5)) == 2.5
    assert held_gpus(why()) is None
