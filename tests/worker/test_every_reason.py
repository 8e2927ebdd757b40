"""Every reason that a job may have: one case that forces it, and one like it that shows it absent.

Those of a round come from whole rounds of real policies and placers, the others from live steps.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from live_samples import job as stored_job
from live_samples import make_cluster, step_at, submit
from scheduling.examples import belief, job, round_of, spec
from scheduling.test_ordering import asks
from scheduling.test_pollux import grown
from scheduling.test_sharing import given_jobs, planned
from scheduling.test_sharing import job as runs

from backend.database import Database
from backend.models import Job as JobRow
from backend.models import JobDependency
from maat.scheduling.assignment import programme
from maat.scheduling.errors import InputError
from maat.scheduling.explain import ReasonCode
from maat.scheduling.job import Job
from maat.scheduling.limits import Limit, LimitKind
from maat.scheduling.loop import keep_round, plan_round
from maat.scheduling.own.policy import OwnPolicy
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES
from maat.scheduling.rounds import RoundInput
from maat.scheduling.solving.assignment.problem import Assignment, AssignmentProblem, SolveOptions
from maat.scheduling.solving.assignment.reports import present_kept
from maat.vocabulary import Adaptivity, JobState
from worker.executors.protocol import JobStatus
from worker.jobs.journal import JobJournal, Moment

ONE = Limit("quota:default", LimitKind.QUOTA, 1, tenant="default")


@dataclass(frozen=True)
class Planned:
    """A round of a policy, and the job of which it is asked why."""

    round_input: RoundInput
    of: str = "x"
    policy: str = "sia"
    placer: str = "packed"
    parameters: Any = None

    def reason(self) -> ReasonCode:
        policy = POLICIES.build(self.policy, self.parameters)
        result = plan_round(self.round_input, policy, PLACERS.build(self.placer))
        return result.explained[self.of].primary


def known(name: str = "x", **changes: object) -> Job:
    return job(spec(name, **changes), belief(t4=0.5, rtx=0.3))


def rigid(count: int, *, batch: int = 320, **changes: object) -> Job:
    return known(adaptivity=Adaptivity.RIGID, gpu_count=count, batch_size=batch, **changes)


def only_t4(name: str, **changes: object) -> Job:
    return known(name, gpu_types=("t4",), **changes)


def holds(*gpus: int, name: str = "x", **changes: object) -> Job:
    return job(spec(name, **changes), belief(t4=0.5), held=gpus, started_at=0.0)


def reserved(places: int) -> Limit:
    return Limit("reservation:t4:tenant b", LimitKind.RESERVATION, places, gpu_type="t4")


def fifo(**parameters: str) -> Planned:
    first, wide, last = (
        asks(n, g, submitted=s) for n, g, s in (("a", 2, 1.0), ("b", 3, 2.0), ("x", 1, 3.0))
    )
    return Planned(round_of("t4=1x4", first, wide, last), policy="fifo", parameters=parameters)


def scattered(*, apart: bool) -> Planned:
    """Two GPUs are free on each node, or four on one of them, for a job that asks for four."""
    second = (4, 5) if apart else (2, 3)
    jobs = [
        holds(*held, name=name, preemptible=False, gpu_types=("t4",))
        for name, held in (("a", (0, 1)), ("b", second))
    ]
    wide = asks("x", 4)
    return Planned(round_of("t4=2x4", *jobs, wide), policy="fifo", placer="whole-node")


def pollux(*jobs: Job, nodes: str = "t4=2x4", **parameters: object) -> Planned:
    return Planned(round_of(nodes, *jobs), policy="pollux", placer="packed", parameters=parameters)


def spread_beside(*, pinned: tuple[int, ...]) -> Planned:
    """A job of at least two GPUs, beside one that is pinned: two that are spread share no node."""
    held = grown("a", held=pinned, preemptible=False)
    return pollux(held, grown("x", min_gpus=2, max_gpus=2), nodes="t4=2x2")


Case = Callable[[], ReasonCode]
PLANNED: dict[ReasonCode, tuple[Case, Case]] = {
    ReasonCode.GRANTED: (
        Planned(round_of("t4=1x1", known())).reason,
        Planned(round_of("t4=1x1", known(gpu_types=("a100",)))).reason,
    ),
    ReasonCode.PINNED: (
        Planned(round_of("t4=1x2", holds(0, preemptible=False))).reason,
        Planned(round_of("t4=1x2", holds(0))).reason,
    ),
    ReasonCode.NO_COMPATIBLE_GPU_TYPE: (
        Planned(round_of("t4=1x2", known(gpu_types=("a100",)))).reason,
        Planned(round_of("t4=1x2", known(gpu_types=("a100", "t4")))).reason,
    ),
    ReasonCode.EXCEEDS_CLUSTER: (
        Planned(round_of("t4=1x4", known(min_gpus=5))).reason,
        Planned(round_of("t4=1x4", known(min_gpus=4))).reason,
    ),
    ReasonCode.NO_CONFIGURATION: (
        Planned(round_of("t4=1x4", rigid(4, batch=2))).reason,
        Planned(round_of("t4=1x4", rigid(4))).reason,
    ),
    ReasonCode.EXCEEDS_QUOTA_LIMIT: (
        Planned(round_of("t4=1x4", known(min_gpus=2), limits=[ONE])).reason,
        Planned(round_of("t4=1x4", known(min_gpus=1), limits=[ONE])).reason,
    ),
    ReasonCode.IDLE_COSTS_LESS: (
        Planned(round_of("t4=1x2", known()), parameters={"idle_penalty": 0.0}).reason,
        Planned(round_of("t4=1x2", known())).reason,
    ),
    ReasonCode.WAITING_QUOTA: (
        Planned(
            round_of("t4=1x4", holds(0, name="a", preemptible=False), known(), limits=[ONE])
        ).reason,
        Planned(round_of("t4=1x4", holds(0, name="a", preemptible=False), known())).reason,
    ),
    ReasonCode.WAITING_RESERVATION: (
        Planned(
            round_of("t4=1x2", asks("a", 1), asks("x", 1, submitted=1.0), limits=[reserved(1)]),
            policy="fifo",
        ).reason,
        Planned(
            round_of("t4=1x2", asks("a", 1), asks("x", 1, submitted=1.0), limits=[reserved(2)]),
            policy="fifo",
        ).reason,
    ),
    ReasonCode.WAITING_CAPACITY: (
        Planned(round_of("t4=1x1", holds(0, name="a", preemptible=False), only_t4("x"))).reason,
        Planned(round_of("t4=1x2", holds(0, name="a", preemptible=False), only_t4("x"))).reason,
    ),
    ReasonCode.FRAGMENTED: (scattered(apart=True).reason, scattered(apart=False).reason),
    ReasonCode.BEHIND_IN_ORDER: (fifo().reason, fifo(head_of_line="backfill").reason),
    ReasonCode.SHARING_UNKNOWN: (
        lambda: _shared(40.0, knows=False),
        lambda: _shared(60.0),
    ),
    ReasonCode.SHARING_NO_GAIN: (
        lambda: _shared(60.0),
        lambda: _shared(40.0),
    ),
    ReasonCode.NOT_SEARCHED: (
        pollux(grown("x"), grown("b"), generations=0, remembered=0).reason,
        pollux(grown("x"), grown("b")).reason,
    ),
    ReasonCode.NOT_CHOSEN: (
        lambda: _own({}),
        lambda: _own({"x": ("t4", 1)}),
    ),
    ReasonCode.POLICY_FAILED: (
        lambda: _own(None),
        lambda: _own({"x": ("t4", 1)}),
    ),
    ReasonCode.LOWER_GOODPUT_GAIN: (
        spread_beside(pinned=(0, 2)).reason,
        spread_beside(pinned=(0, 1)).reason,
    ),
}


def _shared(seconds: float, *, knows: bool = True) -> ReasonCode:
    jobs = (runs("old", 100.0, gpus=4, held=(0, 1, 2, 3)), runs("new", seconds, gpus=2))
    given = given_jobs(*jobs, xi=2.0)
    given = given if knows else replace(given, interference={})
    return planned("sjf-bsbf", given).explained["new"].primary


def _own(answer: object) -> ReasonCode:
    """Why it has what it has under a policy that always answers this; None: it fails."""
    round_input, placer = round_of("t4=1x2", known()), PLACERS.build("packed")
    policy = OwnPolicy("own", lambda _: answer)
    try:
        result = plan_round(round_input, policy, placer)
    except InputError as error:
        result = keep_round(round_input, "own", placer, error)
    return result.explained["x"].primary


@pytest.mark.parametrize("code", PLANNED)
def test_a_reason_of_a_round_is_forced_and_is_absent_where_its_cause_is(code: ReasonCode) -> None:
    forced, absent = PLANNED[code]
    assert forced() is code
    assert absent() is not code


def test_a_job_waits_for_the_solver_where_it_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(problem: AssignmentProblem, _: SolveOptions) -> Assignment:
        began = time.process_time()
        return present_kept(problem, began, method="none", message="failed", bound=0.0)

    waits = Planned(round_of("t4=1x2", holds(0, name="a"), known()))
    assert waits.reason() is not ReasonCode.SOLVER_FALLBACK
    monkeypatch.setattr(programme, "solve_by_tenant", lambda *_: None)
    monkeypatch.setattr(programme, "solve", fails)
    assert waits.reason() is ReasonCode.SOLVER_FALLBACK


def test_what_its_owner_and_its_profile_hold_back_says_so_until_it_is_gone(
    database: Database,
) -> None:
    cluster_id = make_cluster(database)
    held, first, last, new = submit(database, cluster_id, count=4, work_scale=0.3)

    def code(job_id: str) -> str:
        return stored_job(database, job_id).reason_code

    assert code(new) == ReasonCode.NOT_YET_CONSIDERED
    with database.session_scope() as session:
        session.get_one(JobRow, held).pause_requested = True
        session.get_one(JobRow, last).after = [first]
        session.add(JobDependency(job_id=last, needed_id=first, cluster_id=cluster_id))
    step_at(database, cluster_id, 2)
    assert code(new) == ReasonCode.PROFILE_INCOMPLETE
    step_at(database, cluster_id, 62)
    assert code(new) == ReasonCode.GRANTED
    assert (code(held), code(last)) == (ReasonCode.HELD_BY_USER, ReasonCode.WAITING_DEPENDENCY)
    with database.session_scope() as session:
        session.get_one(JobRow, held).pause_requested = False
        session.get_one(JobRow, first).cancel_requested = True
    step_at(database, cluster_id, 122, 182)
    assert (code(held), code(last)) == (ReasonCode.GRANTED, ReasonCode.DEPENDENCY_FAILED)
    with database.session_scope() as session:
        session.get_one(JobDependency, (last, first)).is_open = False
    step_at(database, cluster_id, 242)
    assert code(last) == ReasonCode.GRANTED


@pytest.mark.parametrize("held_back", [{"attempt": 1, "wait_seconds": 10.0}, None])
def test_a_job_that_its_executor_keeps_out_of_rounds_says_so(
    held_back: dict[str, Any] | None,
) -> None:
    row = JobRow(
        id="job_a", cluster_id="c", name="a", owner_id="o", tenant_id="t", model="m",
        adaptivity="rigid", state=JobState.PENDING.value, submitted_seconds=0.0,
        remaining_work=1.0,
    )  # fmt: skip
    journal = JobJournal([row], cluster_id="c")
    status = JobStatus("job_a", 0.0, 1.0, 0.0, 0, None, None, None, None, held_back=held_back)
    moment = Moment(10.0, 1, round_of("t4=1x1").cluster)
    journal.record((), [status], moment)
    is_held = journal.jobs["job_a"].reason_code == ReasonCode.HELD_BACK
    assert is_held is (held_back is not None)


LIVE = {
    ReasonCode.SOLVER_FALLBACK: test_a_job_waits_for_the_solver_where_it_failed,
    ReasonCode.HELD_BACK: test_a_job_that_its_executor_keeps_out_of_rounds_says_so,
    **dict.fromkeys(
        (
            ReasonCode.HELD_BY_USER,
            ReasonCode.DEPENDENCY_FAILED,
            ReasonCode.WAITING_DEPENDENCY,
            ReasonCode.PROFILE_INCOMPLETE,
            ReasonCode.NOT_YET_CONSIDERED,
        ),
        test_what_its_owner_and_its_profile_hold_back_says_so_until_it_is_gone,
    ),
}
"""Reasons with a test of their own."""


def test_every_reason_has_a_case() -> None:
    assert set(PLANNED) | set(LIVE) == set(ReasonCode)


def test_what_holds_too_follows_the_deciding_reason_in_order() -> None:
    jobs = (holds(0, name="a", preemptible=False), only_t4("x"))
    quota = Limit("quota:default", LimitKind.QUOTA, 1, tenant="default")
    full = plan_round(
        round_of("t4=1x1", *jobs, limits=[quota]), POLICIES.build("sia"), PLACERS.build("packed")
    ).explained["x"]
    codes = [full.primary, *(other.primary for other in full.also)]
    assert codes == [ReasonCode.WAITING_QUOTA, ReasonCode.WAITING_CAPACITY]
    (capacity,) = full.also
    assert (capacity.evidence["needed_gpus"], capacity.evidence["free_gpus"]) == (1, 0)
    alone = plan_round(
        round_of("t4=1x2", *jobs, limits=[quota]), POLICIES.build("sia"), PLACERS.build("packed")
    ).explained["x"]
    assert (alone.primary, alone.also) == (ReasonCode.WAITING_QUOTA, ())
    assert replace(full, also=()).sentence == full.sentence
