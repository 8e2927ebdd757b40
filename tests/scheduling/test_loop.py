"""The round loop: order of commit and apply, its end, and skipped rounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from scheduling.examples import belief, job, spec

from maat.scheduling.cluster import Cluster
from maat.scheduling.events import Event
from maat.scheduling.job import Allocation, Job
from maat.scheduling.limits import Limit, LimitKind
from maat.scheduling.loop import RoundLoop
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES
from maat.scheduling.reservations import Reservation
from maat.scheduling.round_result import RoundResult
from maat.scheduling.rounds import Changes, ClusterState, RoundInput, StoredState
from maat.scheduling.stability import Stability
from maat.scheduling.standing import RoundGrid, RoundsAhead

CLUSTER = Cluster.parse("t4=2x2,rtx=1x2")


@dataclass
class Bench:
    """An executor, a store and a clock in one; keeps the loop's calls in order."""

    jobs: tuple[Job, ...]
    wins: bool = True
    left_over: list[Changes] = field(default_factory=list)
    done: list[tuple[str, int]] = field(default_factory=list)
    played: list[float] = field(default_factory=list)
    time: float = 0.0
    number: int = 1

    def now(self) -> float:
        return self.time

    def sleep_until(self, time: float) -> None:
        self.time = time

    def observe(self) -> ClusterState:
        self.done.append(("observe", self.number))
        self.played.append(self.time)
        return ClusterState(self.time, CLUSTER, self.jobs, jobs_to_come=self.time < 120.0)

    def apply(self, changes: Changes) -> Sequence[Event]:
        self.done.append(("apply", changes.round_number))
        return ()

    def load(self) -> StoredState:
        return StoredState(self.number)

    def commit(self, result: RoundResult, observed: ClusterState) -> bool:
        self.done.append(("commit", result.round_number))
        self.number += self.wins
        return self.wins

    def unapplied(self) -> Sequence[Changes]:
        return tuple(self.left_over)

    def applied(self, changes: Changes, events: Sequence[Event]) -> None:
        self.done.append(("applied", changes.round_number))
        self.left_over = [c for c in self.left_over if c.round_number != changes.round_number]


def loop_on(bench: Bench) -> RoundLoop:
    return RoundLoop(
        policy=POLICIES.build("fifo"),
        placer=PLACERS.build("packed-sticky"),
        executor=bench,
        store=bench,
        clock=bench,
        round_seconds=30.0,
    )


def test_a_round_is_committed_before_it_is_carried_out() -> None:
    bench = Bench((job(spec("x")),))
    stepped = loop_on(bench).step()
    assert stepped is not None
    assert bench.done == [("observe", 1), ("commit", 1), ("apply", 1), ("applied", 1)]


def test_a_round_that_another_worker_committed_is_not_carried_out() -> None:
    bench = Bench((job(spec("x")),), wins=False)
    assert loop_on(bench).step() is None
    assert bench.done == [("observe", 1), ("commit", 1)]


def test_what_a_killed_worker_left_is_applied_before_anything_is_observed() -> None:
    bench = Bench((), left_over=[Changes(4, 0.0)], number=5)
    loop_on(bench).step()
    assert bench.done[:3] == [("apply", 4), ("applied", 4), ("observe", 5)]
    assert bench.left_over == []


def test_the_loop_ends_when_no_job_is_left_and_none_is_to_come() -> None:
    bench = Bench(())
    loop_on(bench).run(until=10_000.0)
    assert [number for what, number in bench.done if what == "commit"] == [1, 2, 3, 4, 5]
    assert bench.time == 120.0


def test_the_loop_ends_when_the_jobs_that_are_left_can_never_run() -> None:
    bench = Bench((job(spec("x", gpu_types=("a100",))),))
    loop_on(bench).run(until=10_000.0)
    assert bench.time == 120.0


def test_the_loop_ends_at_its_time() -> None:
    bench = Bench((job(spec("x")),))
    loop_on(bench).run(until=95.0)
    assert bench.time <= 95.0
    assert bench.number == 5


@dataclass
class Quiet:
    """Skips `passes` rounds whenever the loop asks, and keeps what it was asked."""

    asked: list[tuple[float, float]] = field(default_factory=list)
    passes: int = 0

    def __call__(self, ahead: RoundsAhead) -> int:
        self.asked.append((next(iter(ahead)), ahead.end))
        return self.passes


def quietly(
    bench: Bench,
    quiet: Quiet,
    *,
    policy: str = "fifo",
    placer: str = "packed-sticky",
    **others: Any,
) -> RoundLoop:
    built = POLICIES.build(policy), PLACERS.build(placer)
    return RoundLoop(
        policy=built[0],
        placer=built[1],
        executor=bench,
        store=bench,
        clock=bench,
        round_seconds=30.0,
        skip_rounds=quiet,
        **others,
    )


def holder(*, held: bool = True, batch_size: int | None = 10) -> Job:
    """A job that asks for one t4, and as a rule has it."""
    asks = job(spec("x", gpu_count=1, batch_size=batch_size, gpu_types=("t4",)), belief(t4=0.1))
    return replace(asks, allocation=Allocation("t4", (0,)), started_at=0.0) if held else asks


def test_skipped_rounds_are_not_run() -> None:
    bench = Bench((holder(),))
    quietly(bench, Quiet(passes=2)).run(until=240.0)
    assert bench.played == [0.0, 90.0, 180.0]


def test_a_decision_stands_until_the_end_of_the_run_or_the_next_reservation() -> None:
    bench, quiet = Bench((holder(),)), Quiet()
    reservations = [Reservation("t4", 1, tenant="other", start=100.0, end=140.0)]
    quietly(bench, quiet, reservations=reservations).run(until=200.0)
    assert quiet.asked == [
        (30.0, 100.0),
        (60.0, 100.0),
        (90.0, 100.0),
        (180.0, pytest.approx(200.0)),
    ]


@pytest.mark.parametrize(
    ("only", "policy", "placer"),
    [
        (holder(held=False), "fifo", "packed-sticky"),
        (holder(), "sia", "whole-node"),
        (holder(), "fifo", "random"),
        (holder(batch_size=None), "fifo", "packed-sticky"),
    ],
    ids=[
        "a job starts",
        "a policy that does not say",
        "a placer that draws",
        "a batch size that was chosen",
    ],
)
def test_a_round_that_the_next_may_not_repeat_is_followed_by_it(
    only: Job, policy: str, placer: str
) -> None:
    bench, quiet = Bench((only,)), Quiet()
    quietly(bench, quiet, policy=policy, placer=placer).run(until=90.0)
    assert quiet.asked == []
    assert bench.played == [0.0, 30.0, 60.0, 90.0]


def test_without_jobs_every_round_is_like_the_last() -> None:
    bench, quiet = Bench(()), Quiet(passes=3)
    quietly(bench, quiet, policy="sia", placer="whole-node").run(until=10_000.0)
    assert bench.played == [0.0, 120.0]


def test_a_round_never_seen_by_the_clock_has_its_number_of_the_grid() -> None:
    grid = RoundGrid(5.0, 0.1)
    for number in (0, 1, 7, 12_345, 15_000_000_000):
        assert grid.first_from(grid.time(number)) == number
        assert grid.first_from(math.nextafter(grid.time(number), math.inf)) == number + 1


def test_a_policys_own_interval_holds_unless_another_is_given() -> None:
    bench = Bench(())
    own = RoundLoop(
        policy=POLICIES.build("sia"),
        placer=PLACERS.build("whole-node"),
        executor=bench,
        store=bench,
        clock=bench,
    )
    assert own.round_seconds == 60.0
    assert loop_on(bench).round_seconds == 30.0


def test_limits_beyond_the_clusters_own_are_kept_by_every_round() -> None:
    bench = Bench((job(spec("a", gpu_count=2)), job(spec("b", gpu_count=2))))
    quota = Limit("quota", LimitKind.QUOTA, 2, tenant="default")
    loop = RoundLoop(
        policy=POLICIES.build("fifo"),
        placer=PLACERS.build("packed-sticky"),
        executor=bench,
        store=bench,
        clock=bench,
        extra_limits=[quota],
    )
    stepped = loop.step()
    assert stepped is not None
    assert set(stepped[0].decision.grants) == {"a"}
    assert isinstance(stepped[0].round_input, RoundInput)


def test_the_end_of_a_stay_brings_a_round() -> None:
    stays = replace(holder(), held_since=0.0)
    bench, quiet = Bench((stays,)), Quiet()
    quietly(bench, quiet, stability=Stability(least_stay_seconds=100.0)).run(until=200.0)
    ends = [end for _, end in quiet.asked]
    assert ends == [100.0, 100.0, 100.0, *[pytest.approx(200.0)] * (len(ends) - 3)]
