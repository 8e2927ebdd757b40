"""AlloX on rounds small enough to reckon by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from scheduling.examples import belief, round_of, spec
from scheduling.examples import job as job_of

from maat.scheduling.belief import Belief
from maat.scheduling.job import Job, JobSpec
from maat.scheduling.policies.allox import AlloX
from maat.scheduling.policies.requests import requests
from maat.scheduling.rounds import RoundInput

SLOW, FAST = 0.1, 0.01


def job_with(declared: JobSpec, known: Belief, *, work: float, held: Sequence[int] = ()) -> Job:
    return replace(job_of(declared, known, held), remaining_work=work)


def waiting(name: str, work: float, *, slow: float = SLOW, **changes: Any) -> Job:
    """A job of one GPU; passes take `slow` or 0.01 seconds, and a little for each sample."""
    declared = spec(name, gpu_count=1, batch_size=32, **changes)
    return job_with(declared, belief(t4=slow, a100=FAST), work=work)


def granted(round_input: RoundInput, **knobs: Any) -> Mapping[str, str]:
    decision = AlloX(**knobs).allocate(round_input)
    return {job_id: grant.gpu_type for job_id, grant in decision.grants.items()}


def test_the_longer_of_two_jobs_waits_for_the_fast_gpu_unless_the_slow_one_ends_it_sooner() -> None:
    """A step of 32 samples takes 0.042 s on the a100; on the t4 0.132 s, or the longer's 0.062 s.

    Of 1000 and 2000 steps, in turn: 42 + (42 + 84) = 168 s. With the longer one on the t4: 42 + 264
    = 306 s, or 42 + 124 = 166 s.
    """
    for slow, expected in ((0.1, {"short": "a100"}), (0.03, {"short": "a100", "long": "t4"})):
        jobs = [waiting("long", 64_000.0, slow=slow), waiting("short", 32_000.0)]
        round_input = round_of("t4=1x1,a100=1x1", *jobs)
        alone = 64_000 / requests(round_input).goodput[0]
        assert alone.tolist() == pytest.approx([2000 * (slow + 0.032), 84.0], rel=1e-3)
        assert granted(round_input) == expected


def test_a_running_job_keeps_its_gpu_before_shorter_ones() -> None:
    running = job_with(
        spec("running", gpu_count=1, batch_size=32), belief(a100=FAST), held=(0,), work=1e9
    )
    jobs = [running, waiting("short", 32.0)]
    assert granted(round_of("a100=1x1", *jobs)) == {"running": "a100"}


def test_a_job_of_several_gpus_counts_as_its_gpu_seconds() -> None:
    """Two GPUs for 42 s are 84 GPU-seconds: more than one GPU for 63 s."""
    wide = job_with(spec("wide", gpu_count=2, batch_size=64), belief(a100=FAST), work=64_000.0)
    narrow = waiting("narrow", 48_000.0)
    round_input = round_of("a100=1x2", wide, narrow)
    seconds = [64_000.0, 48_000.0] / requests(round_input).goodput[:, 0]
    assert seconds[0] < seconds[1] < 2 * seconds[0]
    assert granted(round_input) == {"narrow": "a100"}


def test_only_the_first_come_are_matched_if_only_a_share_is() -> None:
    jobs = [
        waiting("first", 64_000.0, submitted_at=0.0),
        waiting("second", 32_000.0, submitted_at=1.0),
        waiting("third", 3_200.0, submitted_at=2.0),
        waiting("fourth", 320.0, submitted_at=3.0),
    ]
    round_input = round_of("a100=1x1", *jobs)
    assert granted(round_input) == {"fourth": "a100"}
    assert granted(round_input, considered_share=0.5) == {"second": "a100"}
    assert granted(round_input, considered_share=0.0) == {"first": "a100"}
