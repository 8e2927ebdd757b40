"""The contract of every executor that a live cluster can have, through worker.executors.protocol.

It also runs on the tests' own executor: the contract asks for nothing that only a simulator has.
"""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pytest
from fake_executor import FakeExecutor, Mischief, World
from hand_clock import HandClock
from training_world import OwnTables

from backend.models import Job as JobRow
from maat.scheduling.cluster import Cluster
from maat.scheduling.efficiency import noise_scale
from maat.scheduling.events import TERMINAL, Event, EventKind, may_follow
from maat.scheduling.explain import ReasonCode
from maat.scheduling.limits import capacity_limits
from maat.scheduling.loop import plan_round
from maat.scheduling.pins import pinned_grants
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES
from maat.scheduling.rounds import Changes, RoundInput
from maat.vocabulary import ExecutorKind, JobState
from worker.executors import EXECUTORS, ExecutorEntry
from worker.executors.numbering import layout, new_numbers
from worker.executors.protocol import (
    JobStatus,
    News,
    Observation,
    Pause,
    Restoration,
    StateChanges,
    StoredJob,
    StoredState,
)
from worker.executors.simulated_beliefs import PARTS
from worker.jobs.pauses import without_paused
from worker.writes import Write

CLUSTER = Cluster.parse("t4=2x4,a100=1x4")
WITHOUT_FIRST_NODE = Cluster.of(CLUSTER.nodes[1:])
ROUND_SECONDS = 60.0
TENANTS = {"ten_1": "tenant"}


def _behaving() -> ExecutorEntry:
    worlds: dict[str, World] = {}
    return ExecutorEntry(
        lambda given: FakeExecutor(given, worlds.setdefault(given.cluster_id, World()), Mischief())
    )


@dataclass
class Driven:
    """An executor of a live cluster, driven as a worker drives it, without a database."""

    entry: ExecutorEntry
    name: str
    cluster: Cluster = CLUSTER
    clock: HandClock = field(default_factory=lambda: HandClock(30.0))
    rows: dict[str, JobRow] = field(default_factory=dict)
    stored: StoredState | None = None
    events: list[Event] = field(default_factory=list)
    round_number: int = 1
    tables: OwnTables | None = None
    left: list[Write] = field(default_factory=list)
    paused: Mapping[str, Pause] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.entry.read is not None:
            self.tables = OwnTables(self.entry, self.name)

    def begin(self, count: int = 3) -> Driven:
        new = [row(f"job-{number}") for number in range(count)]
        self.rows = {one.id: one for one in new}
        self.executor = self.entry.restore(self._restoration(()))
        return self

    def restart(self, cluster: Cluster | None = None, *, cancelled: Sequence[str] = ()) -> None:
        """End the worker, and restore from what was stored."""
        before, self.cluster = layout(self.cluster), cluster or self.cluster
        self.executor = self.entry.restore(
            self._restoration(cancelled, new_numbers(before, self.cluster))
        )

    def _restoration(
        self, cancelled: Sequence[str], numbers: dict[int, int] | None = None
    ) -> Restoration:
        news = self._news(list(self.rows.values()), cancelled)
        return Restoration(self.name, self.cluster, self.clock, news, self.stored, numbers)

    def go_on(
        self,
        *,
        submitted: Sequence[str] = (),
        cancelled: Sequence[str] = (),
        paused: Sequence[str] = (),
    ) -> None:
        new = [row(name, at=self.clock.time) for name in submitted]
        self.rows |= {one.id: one for one in new}
        self.paused = dict.fromkeys(paused, Pause(ReasonCode.HELD_BY_USER))
        self.executor.go_on(self._news(new, cancelled))

    def _news(self, jobs: Sequence[JobRow], cancelled: Sequence[str]) -> News:
        own = None if self.tables is None else self.tables.read(self.rows)
        return News(jobs, TENANTS, cancelled, own, self.paused)

    def observe(self) -> Observation:
        seen = without_paused(self.executor.observe(), self.paused)
        self._record(seen.state.events)
        return seen

    def _record(self, events: Sequence[Event]) -> None:
        self.events += events
        for event in events:
            if event.state in TERMINAL:
                self.rows.pop(event.job_id, None)
            elif event.state is not None and event.job_id in self.rows:
                self.rows[event.job_id].state = event.state.value

    def decide(self, seen: Observation) -> Changes:
        state = seen.state
        limits, pins = capacity_limits(state.cluster), pinned_grants(state.jobs, state.cluster)
        number = self.round_number
        given = RoundInput(
            state.now, number, ROUND_SECONDS, state.jobs, state.cluster, limits, pinned=pins
        )
        return plan_round(given, POLICIES.build("fifo"), PLACERS.build("packed-sticky")).changes

    def round(self) -> tuple[Observation, list[JobStatus]]:
        """Observe, decide and apply, and store what the executor would have stored."""
        seen = self.observe()
        changes = self.decide(seen)
        self.store()
        applied = self.executor.apply(changes)
        self._record(applied.events)
        self.store()
        self.round_number += 1
        if self.tables is not None:
            self.tables.live(self.clock.time)
        self.clock.time += ROUND_SECONDS
        return seen, list(applied.statuses)

    def store(self) -> StateChanges:
        """Store what changed, as text that only the executor reads."""
        changes, writes = self.executor.take_changes(), self.executor.take_writes()
        if self.tables is None:
            self.left += writes  # for others: it never reads them again
        else:
            self.tables.write(writes)
        jobs = {} if self.stored is None else dict(self.stored.jobs)
        assert not changes.new.keys() & jobs.keys()
        jobs |= changes.new
        for job_id, text in changes.standing.items():
            jobs[job_id] = jobs[job_id]._replace(standing=text)
        for job_id, text in changes.samples.items():
            jobs[job_id] = jobs[job_id]._replace(samples=text)
        for job_id in changes.gone:
            del jobs[job_id]
        assert all(isinstance(text, str) for stored in jobs.values() for text in stored)
        head = json.loads(json.dumps(dict(self.executor.head())))
        self.stored = StoredState(head, {i: StoredJob(*map(str, job)) for i, job in jobs.items()})
        return changes

    def play(self, rounds: int) -> Iterator[Observation]:
        for _ in range(rounds):
            yield self.round()[0]
            self.go_on()


def row(name: str, *, at: float = 0.0) -> JobRow:
    """A short job on two GPUs, as the database would hold it."""
    return JobRow(
        id=name,
        cluster_id="demo",
        name=name,
        owner_id="usr_1",
        tenant_id="ten_1",
        model="cifar10",
        adaptivity="rigid",
        gpu_count=2,
        batch_size=256,
        work_scale=0.2,
        submitted_seconds=at,
        remaining_work=1.0,
    )


LINES = {**EXECUTORS, "behaving fake": _behaving()}


@pytest.fixture(params=LINES)
def line(request: pytest.FixtureRequest) -> ExecutorEntry:
    return LINES[request.param]


names = (f"cluster-{number}" for number in itertools.count())


@pytest.fixture
def driven(line: ExecutorEntry) -> Driven:
    return Driven(line, next(names)).begin()


def running(driven: Driven) -> dict[str, JobStatus]:
    """Play until every job holds GPUs; their statuses."""
    for _ in range(6):
        seen = driven.round()[0]
        found = {one.job_id: one for one in seen.statuses if one.allocation is not None}
        if len(found) == len(driven.rows):
            driven.go_on()
            return found
        driven.go_on()
    raise AssertionError("not every job got GPUs")


def test_every_name_has_its_line_and_every_line_its_name() -> None:
    assert list(EXECUTORS) == [kind.value for kind in ExecutorKind]


def test_jobs_live_a_life_that_may_be_lived_and_end_once(driven: Driven) -> None:
    lives: dict[str, list[JobState]] = {}
    for _ in driven.play(60):
        pass
    for event in driven.events:
        if event.kind is EventKind.STATE and event.state is not None:
            lives.setdefault(event.job_id, [JobState.SUBMITTED]).append(event.state)
    assert set(lives) == {"job-0", "job-1", "job-2"}
    for life in lives.values():
        assert all(may_follow(*pair) for pair in itertools.pairwise(life)), life
        assert life[-1] is JobState.SUCCEEDED
    assert driven.executor.known == set()
    assert driven.stored is not None
    assert driven.stored.jobs == {}


def test_each_job_has_one_status_that_agrees_with_what_the_scheduler_sees(driven: Driven) -> None:
    ended = set()
    for seen in driven.play(40):
        statuses = {status.job_id: status for status in seen.statuses}
        assert len(statuses) == len(seen.statuses)
        assert statuses.keys() <= driven.executor.known | statuses.keys()
        assert not ended & statuses.keys(), "ended jobs are told of once"
        held = [gpu for one in seen.statuses if one.allocation for gpu in one.allocation.gpus]
        assert len(held) == len(set(held))
        for job in seen.state.jobs:
            one = statuses[job.id]
            assert one.ended is None
            assert job.allocation == one.allocation or one.starting
        for one in seen.statuses:
            assert 0.0 <= one.progress <= 1.0
            assert math.isfinite(one.remaining_work + one.gpu_seconds + (one.goodput or 0.0))
            if one.ended is not None:
                ended.add(one.job_id)
                assert one.allocation is None
                assert one.ended in [e.state for e in seen.state.events if e.job_id == one.job_id]


def test_what_is_left_for_others_is_left_once(driven: Driven) -> None:
    for _ in driven.play(60):
        driven.restart()
    kept: Counter[tuple[str, str]] = Counter()
    for write in driven.left:
        table = write.statement.table.name  # type: ignore[attr-defined]
        for one in write.rows or ():
            if "job_id" in one:
                kept[table, one["job_id"]] += 1
    ended = {count for (table, _), count in kept.items() if table == "ended_beliefs"}
    noted = [count for (table, _), count in kept.items() if table == "job_gradients"]
    assert ended <= {1}
    assert all(2 < count <= PARTS for count in noted)
    assert len(noted) == sum(table == "ended_beliefs" for table, _ in kept)


def test_the_noise_scale_of_gradients_that_are_left_is_that_of_the_job(driven: Driven) -> None:
    """phi = M0 var / sqr (Pollux eq. 5): M0 is the initial batch size, whatever plan runs."""
    told: dict[str, set[float]] = {}
    for seen in driven.play(60):
        for one in seen.statuses:
            if one.noise_scale is not None:
                told.setdefault(one.job_id, set()).add(one.noise_scale)
    rows = [
        row
        for write in driven.left
        if write.statement.table.name == "job_gradients"  # type: ignore[attr-defined]
        for row in write.rows or ()
    ]
    for row in rows:
        phi = float(noise_scale(row["square"], row["variance"], row["batch_size"]))
        assert any(math.isclose(phi, one) for one in told[row["job_id"]])


def test_gpu_time_and_restarts_never_fall(driven: Driven) -> None:
    before: dict[str, JobStatus] = {}
    for seen in driven.play(20):
        for one in seen.statuses:
            earlier = before.get(one.job_id, one)
            assert one.gpu_seconds >= earlier.gpu_seconds
            assert one.restarts >= earlier.restarts
            assert one.started_at == earlier.started_at or earlier.started_at is None
            before[one.job_id] = one


def test_a_round_that_is_applied_twice_is_applied_once(driven: Driven) -> None:
    for _ in range(3):
        changes = driven.decide(driven.observe())
        first = driven.executor.apply(changes)
        driven._record(first.events)
        driven.store()
        again = driven.executor.apply(changes)
        assert list(again.events) == []
        assert list(again.statuses) == list(first.statuses)
        assert driven.executor.take_changes() == StateChanges()
        driven.round_number, driven.clock.time = driven.round_number + 1, driven.clock.time + 60.0
        driven.go_on()


def test_observing_twice_at_one_time_shows_the_same_and_tells_nothing_twice(
    driven: Driven,
) -> None:
    running(driven)
    first = driven.observe()
    driven.store()
    again = driven.observe()
    live = [one for one in first.statuses if one.ended is None]
    assert [one for one in again.statuses if one.ended is None] == live
    assert list(again.state.events) == []
    assert driven.executor.take_changes() == StateChanges()


def test_a_restored_executor_goes_on_as_if_nothing_had_happened(line: ExecutorEntry) -> None:
    whole, cut = Driven(line, next(names)).begin(), Driven(line, next(names)).begin()
    for number in range(12):
        seen, again = whole.round(), cut.round()
        assert again[0].statuses == seen[0].statuses
        assert again[0].state.events == seen[0].state.events
        assert again[1] == seen[1]
        whole.go_on()
        if number % 2:
            cut.restart()
        else:
            cut.go_on()


def test_what_was_told_in_a_step_that_was_not_committed_is_told_again(driven: Driven) -> None:
    driven.round()
    driven.restart()
    lost = driven.executor.observe()
    driven.restart()
    assert driven.executor.observe().state.events == lost.state.events


def test_a_job_that_came_and_one_that_was_cancelled_are_news(driven: Driven) -> None:
    """A cancelled job takes no part in the next round; its processes may end after it."""
    running(driven)
    driven.go_on(submitted=["job-3"], cancelled=["job-1"])
    seen = driven.observe()
    assert "job-1" not in [job.id for job in seen.state.jobs]
    if "job-1" in driven.executor.known:
        driven.round()
        driven.go_on(cancelled=["job-1"])
        driven.observe()
    ends = [event for event in driven.events if event.state is JobState.CANCELLED]
    assert [event.job_id for event in ends] == ["job-1"]
    assert driven.executor.known == {"job-0", "job-2", "job-3"}
    driven.store()
    assert driven.stored is not None
    assert "job-1" not in driven.stored.jobs


@pytest.mark.parametrize("restarts", [False, True])
def test_a_paused_job_holds_no_gpus_and_keeps_its_work(driven: Driven, restarts: bool) -> None:
    """Its processes may take a while to save and end; nobody waits for that."""
    done = running(driven)["job-1"].progress
    for _ in range(4):
        if restarts:
            driven.paused = {"job-1": Pause(ReasonCode.HELD_BY_USER)}
            driven.restart()
        else:
            driven.go_on(paused=["job-1"])
        seen, _ = driven.round()
        (status,) = [one for one in seen.statuses if one.job_id == "job-1"]
        assert status.allocation is None
        assert "job-1" not in [job.id for job in seen.state.jobs]
        assert status.progress >= done
        done = status.progress
    assert "job-1" in driven.executor.known
    driven.go_on()
    for _ in driven.play(60):
        pass
    ends = [event.job_id for event in driven.events if event.state is JobState.SUCCEEDED]
    assert sorted(ends) == ["job-0", "job-1", "job-2"]


def test_a_job_keeps_its_gpus_by_their_new_numbers_or_loses_them_and_says_so(
    driven: Driven,
) -> None:
    before = running(driven)
    driven.restart(WITHOUT_FIRST_NODE)
    after = {one.job_id: one for one in driven.observe().statuses}
    preempted = {event.job_id for event in driven.events if event.state is JobState.PREEMPTED}
    for job_id, one in before.items():
        assert one.allocation is not None
        gpus = [gpu - 4 for gpu in one.allocation.gpus]
        if min(gpus) >= 0:
            held = after[job_id].allocation
            assert held is not None
            assert list(held.gpus) == gpus
        else:
            assert after[job_id].allocation is None
            assert job_id in preempted
    assert preempted
    assert preempted != set(before)


def test_a_job_whose_stored_state_is_gone_is_taken_up_again(driven: Driven) -> None:
    running(driven)
    driven.store()
    assert driven.stored is not None
    kept = {i: job for i, job in driven.stored.jobs.items() if i != "job-1"}
    driven.stored = StoredState(driven.stored.head, kept)
    driven.restart()
    driven.clock.time += ROUND_SECONDS
    seen = driven.observe()
    assert "job-1" in driven.executor.known
    assert "job-1" in {status.job_id for status in seen.statuses}


def test_the_changes_of_an_earlier_round_come_too_late(driven: Driven) -> None:
    first = driven.decide(driven.observe())
    for _ in range(5):
        driven.round()
        driven.go_on()
    driven.observe()
    driven.store()
    assert list(driven.executor.apply(first).events) == []
    assert driven.executor.take_changes() == StateChanges()
