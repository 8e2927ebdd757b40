"""Tests of the simulated executor: what it reveals of a job, when, and what moves cost.

The rules of every executor are tested in contracts/.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from simulation.small import spec, truth

from maat.scheduling.cluster import Cluster
from maat.scheduling.events import EventKind
from maat.scheduling.job import Allocation
from maat.scheduling.rounds import Change, ChangeKind, Changes, Grant
from maat.simulation.engine import JumpingClock
from maat.simulation.executor import SimulatedExecutor
from maat.simulation.fidelity import FIDELITIES, Fidelity
from maat.simulation.world_models import catalog_models
from maat.vocabulary import JobState, ProfilingMode
from maat.workloads.workloads import TraceJob

CLUSTER = Cluster.parse("t4=2x2,a100=1x2,rtx=1x2")
QUIET = FIDELITIES["sia-artifact"]


def executor_with(
    fidelity: Fidelity,
    *,
    restart_seconds: float = 30.0,
    cluster: Cluster = CLUSTER,
    **changes: object,
) -> tuple[SimulatedExecutor, JumpingClock]:
    """An executor to which one job was submitted."""
    clock = JumpingClock()
    executor = SimulatedExecutor(cluster, clock, fidelity)
    executor.submit(spec(**changes), truth(), restart_seconds=restart_seconds)
    return executor, clock


def move(
    executor: SimulatedExecutor, number: int, *gpus: int
) -> list[tuple[EventKind, JobState | None]]:
    """Let the job have these GPUs."""
    kind = CLUSTER.type_names[CLUSTER.gpu_type_of[gpus[0]]]
    job = executor.jobs["x"]
    change = Change(
        "x",
        ChangeKind.START if job.allocation is None else ChangeKind.MIGRATE,
        job.allocation,
        Allocation(kind, gpus),
        Grant(kind, len(gpus)),
    )
    return [(event.kind, event.state) for event in executor.apply(Changes(number, 0.0, (change,)))]


def test_a_job_is_seen_from_its_submission_on() -> None:
    executor, clock = executor_with(QUIET, submitted_at=100.0)
    state = executor.observe()
    assert (state.jobs, state.jobs_to_come) == ((), True)
    clock.sleep_until(120.0)
    state = executor.observe()
    assert [job.id for job in state.jobs] == ["x"]
    assert not state.jobs_to_come
    assert [(event.time, event.state) for event in state.events] == [(100.0, JobState.PENDING)]


def test_without_profiling_nothing_is_known_before_the_first_run() -> None:
    executor, _ = executor_with(QUIET)
    assert executor.observe().jobs[0].belief.by_type == {}


def test_profiling_takes_its_time_is_charged_and_shows_one_gpu_of_every_type() -> None:
    executor, clock = executor_with(FIDELITIES["paper"])
    assert executor.observe().jobs == ()
    clock.sleep_until(20.0)
    (job,) = executor.observe().jobs
    assert set(job.belief.by_type) == {"t4", "a100"}, "the model does not run on rtx"
    for known in job.belief.by_type.values():
        assert {(s.node_count, s.replica_count) for s in known.samples} == {(1, 1)}
        assert len(known.samples) > 3
    assert executor.jobs["x"].ledger.profiling_gpu_seconds == {"t4": 20.0, "a100": 20.0}


def test_two_counts_are_profiled_one_after_the_other_and_charged_for_their_gpus() -> None:
    """20 s on one GPU, then 20 s on two: 60 GPU-seconds of a type."""
    cluster = Cluster.parse("t4=2x4,a100=2x1")
    executor, clock = executor_with(
        FIDELITIES["paper"].revealing(ProfilingMode.TWO_COUNTS), cluster=cluster
    )
    assert executor.observe().jobs == ()
    clock.sleep_until(39.0)
    assert executor.observe().jobs == ()
    clock.sleep_until(40.0)
    (job,) = executor.observe().jobs

    shapes = {
        kind: {(s.node_count, s.replica_count) for s in known.samples}
        for kind, known in job.belief.by_type.items()
    }
    assert shapes == {"t4": {(1, 1), (1, 2)}, "a100": {(1, 1), (2, 2)}}
    assert executor.jobs["x"].ledger.profiling_gpu_seconds == {"t4": 60.0, "a100": 60.0}


def test_a_job_that_may_have_one_gpu_is_profiled_on_no_second() -> None:
    clock = JumpingClock()
    mode = FIDELITIES["paper"].revealing(ProfilingMode.TWO_COUNTS)
    executor = SimulatedExecutor(CLUSTER, clock, mode)
    executor.submit(spec(max_gpus=1), truth(), restart_seconds=30.0)
    clock.sleep_until(20.0)
    executor.observe()
    assert executor.jobs["x"].ledger.profiling_gpu_seconds == {"t4": 20.0, "a100": 20.0}


def test_an_oracle_shows_every_configuration_at_no_cost() -> None:
    executor, _ = executor_with(replace(FIDELITIES["paper"], profiling=ProfilingMode.ORACLE))
    (job,) = executor.observe().jobs
    assert {(s.node_count, s.replica_count) for s in job.belief.by_type["t4"].samples} == {
        (1, 1),
        (1, 2),
        (2, 4),
    }
    assert executor.jobs["x"].ledger.profiling_gpu_seconds == {}


def test_what_was_requested_is_shown_on_every_type_at_its_true_pace_and_at_no_cost() -> None:
    clock = JumpingClock()
    executor = SimulatedExecutor(
        CLUSTER, clock, FIDELITIES["paper"].revealing(ProfilingMode.REQUESTED)
    )
    executor.submit(spec(gpu_count=3, batch_size=120), truth(slowdown=1.5), restart_seconds=0.0)
    (job,) = executor.observe().jobs
    assert {kind: known.samples for kind, known in job.belief.by_type.items()} == {
        "t4": (
            pytest.approx((2, 3, 20, 1.5, 0.0, 1.0), abs=1e-6),
        )  # 40 samples a GPU are two passes of 20; a100 has but two GPUs
    }
    assert executor.jobs["x"].ledger.profiling_gpu_seconds == {}


def test_a_fidelity_may_tell_a_policy_something_else_than_the_others() -> None:
    preset = replace(QUIET, profiling_by_policy={"fifo": ProfilingMode.ORACLE})
    assert preset.as_known_to("fifo").profiling is ProfilingMode.ORACLE
    assert preset.as_known_to("srtf").profiling is ProfilingMode.NO_PROFILE
    assert (
        preset.revealing(ProfilingMode.BOOTSTRAP).as_known_to("fifo").profiling
        is ProfilingMode.BOOTSTRAP
    )


def test_who_is_told_the_pace_of_the_request_alone_is_not_held_to_the_traces_batch_in_truth() -> (
    None
):
    told = replace(QUIET, profiling_by_policy={"fifo": ProfilingMode.REQUESTED})
    assert QUIET.plan_within_trace_batch
    assert [told.as_known_to(policy).plan_within_trace_batch for policy in ("fifo", "srtf")] == [
        False,
        True,
    ]
    model, job = (
        catalog_models()["cifar10"],
        TraceJob(name="a", submit_seconds=0.0, model="cifar10", gpu_count=6, batch_size=2048),
    )
    assert [
        model.job_spec(job, told.as_known_to(policy)).max_batch_size for policy in ("fifo", "srtf")
    ] == [4096, 2048]


def test_a_replica_of_several_gpus_is_profiled_on_all_of_them_and_charged_for_them() -> None:
    clock = JumpingClock()
    executor = SimulatedExecutor(CLUSTER, clock, FIDELITIES["paper"])
    executor.submit(spec(gpus_per_replica={"t4": 2}), truth(), restart_seconds=0.0)
    clock.sleep_until(20.0)
    (job,) = executor.observe().jobs
    assert {s.replica_count for s in job.belief.by_type["t4"].samples} == {1}
    assert executor.jobs["x"].ledger.profiling_gpu_seconds == {"t4": 40.0, "a100": 20.0}


def test_a_job_that_starts_is_starting_until_it_has_loaded() -> None:
    executor, clock = executor_with(QUIET)
    executor.observe()
    assert move(executor, 1, 0) == [(EventKind.STATE, JobState.STARTING)]
    clock.sleep_until(60.0)
    assert [(event.time, event.state) for event in executor.observe().events] == [
        (30.0, JobState.RUNNING)
    ]
    assert move(executor, 2, 4) == [(EventKind.STATE, JobState.RESTARTING)]


@pytest.mark.parametrize(
    ("gpus", "free"), [((2, 3), True), ((0, 2), False), ((0, 1, 2, 3), False), ((4, 5), False)]
)
def test_moves_of_the_same_shape_are_free_in_the_published_simulator_alone(
    gpus: tuple[int, ...], free: bool
) -> None:
    executor, clock = executor_with(QUIET)
    executor.observe()
    move(executor, 1, 0, 1)
    clock.sleep_until(60.0)
    executor.observe()
    assert (move(executor, 2, *gpus) == [(EventKind.ALLOCATED, None)]) == free
    assert executor.jobs["x"].ledger.restarts == int(not free)

    executor, clock = executor_with(replace(QUIET, free_moves_of_same_shape=False))
    executor.observe()
    move(executor, 1, 0, 1)
    assert move(executor, 2, *gpus) == [(EventKind.STATE, JobState.RESTARTING)]


def test_a_job_that_ends_is_finished_and_seen_no_more() -> None:
    executor, clock = executor_with(QUIET, restart_seconds=0.0)
    executor.observe()
    move(executor, 1, 0)
    clock.sleep_until(180.0)
    state = executor.observe()
    assert state.jobs == ()
    assert [(event.time, event.state) for event in state.events] == [(100.0, JobState.SUCCEEDED)]
    assert set(executor.finished) == {"x"}


def test_a_share_of_the_standard_training_is_that_much_work() -> None:
    executor = SimulatedExecutor(CLUSTER, JumpingClock(), QUIET)
    executor.submit(spec(), truth(), restart_seconds=0.0, work_scale=0.25)
    assert executor.observe().jobs[0].remaining_work == 250.0


@pytest.mark.parametrize(("beyond_plan", "most"), [(False, 40), (True, 400)])
def test_a_job_trains_within_its_declared_batch_size_unless_the_fidelity_lets_it_go_beyond_the_plan(
    beyond_plan: bool, most: int
) -> None:
    executor, clock = executor_with(
        replace(FIDELITIES["paper"], plan_within_trace_batch=beyond_plan), max_batch_size=40
    )
    clock.sleep_until(60.0)
    executor.observe()
    assert executor.jobs["x"].agent.max_batch_size == most
