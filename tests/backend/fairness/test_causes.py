"""Tests of what made a job late: waiting, starting, too few GPUs or slow ones."""

from __future__ import annotations

from typing import Any

import pytest

from backend.fairness.causes import cause_of, cause_sentence, held_gpus, share_gpus
from backend.models import JobFairness
from maat.vocabulary import WorseOff

SHAPE = [["t4", 4, 3], ["a100", 8, 2]]  # 28 GPUs


def row(rho: float | None, **fields: Any) -> JobFairness:
    given = {"jct_seconds": 100.0, "contention": 7.0, "shape": SHAPE} | fields
    return JobFairness(
        job_id="j", cluster_id="c", tenant_id="t", finished_seconds=0.0, rho=rho, **given
    )


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
    assert words in cause_sentence(cause, life, of)


def test_a_job_that_was_not_late_has_no_cause() -> None:
    assert cause_of(why(waiting=90, running=10), row(1.0)) is None
    assert cause_of(why(waiting=90, running=10), row(None)) is None


def test_the_equal_share_is_that_of_the_jobs_that_were_active() -> None:
    assert share_gpus(row(2.0)) == 4.0
    assert share_gpus(row(2.0, shape=None)) is None
    assert held_gpus(why() | held(2.5)) == 2.5
    assert held_gpus(why()) is None
