"""The contract of the simulated executor, under every policy and fidelity.

Applying a round twice equals applying it once, and a restart continues as if it had not happened.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pytest
from hand_clock import HandClock
from hypothesis import given, settings
from hypothesis import strategies as st

from maat.scheduling.belief import MemoisingFitter
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import MaatError
from maat.scheduling.events import Event, EventKind, may_follow
from maat.scheduling.job import Allocation, Job
from maat.scheduling.limits import capacity_limits
from maat.scheduling.loop import plan_round
from maat.scheduling.pins import pinned_grants
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES
from maat.scheduling.rounds import Change, ChangeKind, Changes, ClusterState, Grant, RoundInput
from maat.simulation.executor import SimulatedExecutor
from maat.simulation.fidelity import FIDELITIES
from maat.simulation.world_models import catalog_models
from maat.vocabulary import JobState
from maat.workloads.workloads import TraceJob

CLUSTER = Cluster.parse("t4=2x4,a100=1x4")
MODELS = catalog_models()
FITTER = MemoisingFitter()
ROUND_SECONDS = 60.0


@dataclass
class Driven:
    """An executor with its clock, driven by rounds of one policy."""

    executor: SimulatedExecutor
    clock: HandClock
    policy: str
    round_number: int = 1
    events: list[Event] = field(default_factory=list)

    def observe(self) -> ClusterState:
        state = self.executor.observe()
        self.events += state.events
        return state

    def decide(self, state: ClusterState) -> Changes:
        limits, pins = capacity_limits(CLUSTER), pinned_grants(state.jobs, CLUSTER)
        round_input = RoundInput(
            state.now, self.round_number, ROUND_SECONDS, state.jobs, CLUSTER, limits, pinned=pins
        )
        placer = PLACERS.build("whole-node" if self.policy == "sia" else "packed-sticky")
        return plan_round(round_input, POLICIES.build(self.policy), placer).changes

    def play(self, rounds: int, *, times_applied: int = 1) -> None:
        for _ in range(rounds):
            changes = self.decide(self.observe())
            for _ in range(times_applied):
                self.events += self.executor.apply(changes)
            self.round_number += 1
            self.clock.time += ROUND_SECONDS

    def seen(self) -> str:
        """All that the executor shows and keeps, as text."""
        jobs = [shown(job) for job in self.observe().jobs]
        return json.dumps({"dump": self.executor.dump(), "jobs": jobs}, sort_keys=True)


def shown(job: Job) -> object:
    beliefs = {
        kind: [list(map(list, known.samples)), known.parameters.tolist()]
        for kind, known in job.belief.by_type.items()
    }
    held = None if job.allocation is None else [job.allocation.gpu_type, list(job.allocation.gpus)]
    return [
        job.id,
        job.remaining_work,
        held,
        dict(job.attained_gpu_seconds),
        job.restarts,
        job.restarting,
        job.started_at,
        beliefs,
    ]


def trace_jobs(submissions: Sequence[tuple[int, str]]) -> list[TraceJob]:
    """Short jobs: a hundredth of a training each, 600 s apart at most."""
    return [
        TraceJob(
            name=f"job-{i}",
            submit_seconds=float(at),
            model=model,
            gpu_count=1 + i % 3,
            batch_size=None,
            work_scale=0.01,
        )
        for i, (at, model) in enumerate(submissions)
    ]


def fresh(
    jobs: Sequence[TraceJob], policy: str, fidelity: str, *, without: frozenset[str] = frozenset()
) -> Driven:
    """A new executor to which these jobs were submitted."""
    clock = HandClock()
    executor = SimulatedExecutor(CLUSTER, clock, FIDELITIES[fidelity], fitter=FITTER)
    for job in jobs:
        if job.name not in without:
            model = MODELS[job.model]
            spec = model.job_spec(job, FIDELITIES[fidelity])
            executor.submit(
                spec, model.truth, restart_seconds=model.restart_seconds, work_scale=job.work_scale
            )
    return Driven(executor, clock, policy)


workloads = st.lists(
    st.tuples(st.integers(0, 600), st.sampled_from(("cifar10", "bert", "yolov3"))),
    min_size=1,
    max_size=5,
).map(trace_jobs)
policies = st.sampled_from(POLICIES.names)
fidelities = st.sampled_from(sorted(FIDELITIES))


@settings(max_examples=10)
@given(jobs=workloads, policy=policies, fidelity=fidelities, rounds=st.integers(1, 12))
def test_carrying_a_round_out_twice_is_carrying_it_out_once(
    jobs: list[TraceJob], policy: str, fidelity: str, rounds: int
) -> None:
    once, twice = fresh(jobs, policy, fidelity), fresh(jobs, policy, fidelity)
    once.play(rounds)
    twice.play(rounds, times_applied=2)
    assert twice.seen() == once.seen()
    assert twice.events == once.events


@settings(max_examples=10)
@given(
    jobs=workloads,
    policy=policies,
    fidelity=fidelities,
    before=st.integers(0, 12),
    after=st.integers(1, 10),
)
def test_a_restarted_executor_goes_on_exactly_as_the_uninterrupted_one(
    jobs: list[TraceJob], policy: str, fidelity: str, before: int, after: int
) -> None:
    running = fresh(jobs, policy, fidelity)
    running.play(before)
    kept = json.loads(json.dumps(running.executor.dump()))

    restarted = fresh(jobs, policy, fidelity, without=frozenset(running.executor.finished))
    restarted.executor.load(kept)
    restarted.clock.time, restarted.round_number = running.clock.time, running.round_number
    running.events.clear()

    running.play(after)
    restarted.play(after)
    assert restarted.seen() == running.seen()
    assert restarted.events == running.events


@settings(max_examples=10)
@given(jobs=workloads, policy=policies, fidelity=fidelities)
def test_the_events_of_a_job_are_a_life_that_may_be_lived(
    jobs: list[TraceJob], policy: str, fidelity: str
) -> None:
    played = fresh(jobs, policy, fidelity)
    played.play(25)
    lives: dict[str, list[tuple[float, JobState]]] = {job.name: [] for job in jobs}
    for event in played.events:
        if event.kind is EventKind.STATE and event.state is not None:
            lives[event.job_id].append((event.time, event.state))
    for name, life in lives.items():
        assert life[0][1] is JobState.PENDING, name
        for (earlier, before), (later, after) in pairwise(life):
            assert may_follow(before, after), (name, life)
            assert earlier <= later, (name, life)


@settings(max_examples=10)
@given(jobs=workloads, policy=policies, fidelity=fidelities)
def test_nothing_that_was_done_is_undone(jobs: list[TraceJob], policy: str, fidelity: str) -> None:
    played = fresh(jobs, policy, fidelity)
    remaining: dict[str, float] = {}
    for _ in range(12):
        for job in played.observe().jobs:
            assert job.remaining_work <= remaining.get(job.id, np.inf)
            remaining[job.id] = job.remaining_work
        played.play(1)


def test_observing_twice_at_one_time_shows_the_same_and_happens_once() -> None:
    played = fresh(trace_jobs([(0, "cifar10"), (0, "bert")]), "sia", "sia-artifact")
    played.play(2)
    first, again = played.executor.observe(), played.executor.observe()
    assert [shown(job) for job in first.jobs] == [shown(job) for job in again.jobs]
    assert again.events == ()


def test_a_change_to_a_job_that_has_ended_or_was_cancelled_is_passed_over() -> None:
    played = fresh(trace_jobs([(0, "cifar10"), (0, "bert")]), "fifo", "sia-artifact")
    changes = played.decide(played.observe())
    played.executor.cancel("job-0")
    assert {event.job_id for event in played.executor.apply(changes)} == {"job-1"}
    assert [job.id for job in played.observe().jobs] == ["job-1"]


def test_a_cancelled_job_is_never_seen_again_even_before_its_submission() -> None:
    played = fresh(trace_jobs([(0, "cifar10"), (500, "bert")]), "fifo", "sia-artifact")
    played.executor.cancel("job-1")
    played.executor.cancel("job-1")
    played.play(12)
    assert not any(event.job_id == "job-1" for event in played.events)


def test_a_job_is_submitted_once() -> None:
    jobs = trace_jobs([(0, "cifar10")])
    played = fresh(jobs, "fifo", "paper")
    model = MODELS["cifar10"]
    with pytest.raises(MaatError, match="job-0 was submitted before"):
        played.executor.submit(
            model.job_spec(jobs[0], FIDELITIES["paper"]), model.truth, restart_seconds=0.0
        )


def test_the_changes_of_an_earlier_round_come_too_late() -> None:
    played = fresh(trace_jobs([(0, "cifar10")]), "fifo", "sia-artifact")
    started = played.decide(played.observe())
    played.executor.apply(started)
    (start,) = started.items
    elsewhere = Allocation("a100", (8,))
    moved = Change("job-0", ChangeKind.MIGRATE, start.after, elsewhere, Grant("a100", 1))
    played.executor.apply(Changes(2, 0.0, (moved,)))

    assert list(played.executor.apply(started)) == []
    (job,) = played.observe().jobs
    assert (job.allocation, job.restarts) == (elsewhere, 1)
