"""The guess of a backfilling scheduler: planned in order, by time limits, without putting off."""

from __future__ import annotations

import pytest

from benchmarks.forecasting.backfill import Guess, backfill_guesses
from maat.forecasting.present import Present, PresentJob, WaitingJob
from maat.scheduling.belief import Belief
from maat.scheduling.cluster import Cluster
from maat.scheduling.job import Allocation, Job, JobSpec, MemoryLimits
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES
from maat.vocabulary import Adaptivity

SECONDS = {"long": 1000.0, "short": 100.0}


def spec(name: str, gpus: int, *, model: str = "long", submitted_at: float = 0.0) -> JobSpec:
    return JobSpec(
        id=name,
        model=model,
        work=1.0,
        memory={"a100": MemoryLimits(1, 64)},
        adaptivity=Adaptivity.RIGID,
        gpu_count=gpus,
        batch_size=64,
        initial_batch_size=64,
        max_batch_size=64,
        submitted_at=submitted_at,
    )


def present(running: list[tuple[JobSpec, float]], waiting: list[JobSpec]) -> Present:
    taken, jobs = 0, []
    for one, since in running:
        gpus = tuple(range(taken, taken + (one.gpu_count or 0)))
        taken += len(gpus)
        held = Allocation("a100", gpus)
        jobs.append(PresentJob(Job(one, Belief(), 1.0, allocation=held, started_at=since)))
    return Present(
        now=500.0,
        next_round_at=560.0,
        round_seconds=60.0,
        cluster=Cluster.parse("a100=1x8"),
        policy=POLICIES.build("fifo", {}),
        placer=PLACERS.build("packed-sticky", {}),
        jobs=tuple(jobs),
        waiting=tuple(WaitingJob(one) for one in waiting),
    )


def test_a_running_job_ends_at_its_limit_and_the_next_one_starts_then() -> None:
    found = backfill_guesses(
        present([(spec("first", 8), 100.0)], [spec("second", 8)]), lambda one: SECONDS[one.model]
    )

    assert found == {"first": Guess(100.0, 1100.0), "second": Guess(1100.0, 2100.0)}


def test_a_short_job_passes_a_wide_one_that_it_does_not_put_off() -> None:
    state = present(
        [(spec("runs", 6), 100.0)],
        [
            spec("wide", 8, submitted_at=1.0),
            spec("short", 2, model="short", submitted_at=2.0),
            spec("late", 2, submitted_at=3.0),
        ],
    )

    found = backfill_guesses(state, lambda one: SECONDS[one.model])

    assert found["short"].start == 500.0
    assert found["wide"].start == pytest.approx(1100.0)
    assert found["late"].start == pytest.approx(2100.0)  # it would have put off the wide one


def test_a_job_that_never_fits_has_no_guess() -> None:
    assert backfill_guesses(present([], [spec("huge", 9)]), lambda _: 1.0) == {}
