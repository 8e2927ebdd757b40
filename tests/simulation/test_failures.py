"""Tests of failing nodes: which fail and when, and that only the jobs on them lose work."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulation.small import spec, truth, under

from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import ClusterError, ParameterError
from maat.scheduling.job import Allocation
from maat.scheduling.policies import POLICIES
from maat.scheduling.rounds import Change, ChangeKind, Changes, Grant
from maat.simulation.conditions import Conditions
from maat.simulation.engine import JumpingClock, simulate
from maat.simulation.executor import SimulatedExecutor
from maat.simulation.failures import Failures, NodeFailure, Outages, RandomFailures
from maat.simulation.fidelity import FIDELITIES
from maat.simulation.record import SimulationResult
from maat.simulation.scenario import Scenario
from maat.simulation.world_models import catalog_models
from maat.vocabulary import JobState
from maat.workloads.generators import generate
from maat.workloads.workloads import TraceJob, Workload

CLUSTER = Cluster.parse("t4=2x2,a100=1x2")
QUIET = FIDELITIES["sia-artifact"]


# ---- when nodes fail


def test_failures_are_the_same_for_the_same_seed_however_they_are_looked_up() -> None:
    failures = RandomFailures(mtbf_hours=1.0, repair_seconds=600.0)
    at_once = Outages(CLUSTER, failures, seed=5).between(-1.0, 100_000.0)
    by_hour, asked = [], Outages(CLUSTER, failures, seed=5)
    for hour in range(100_000 // 3600 + 1):
        asked.down_at(3600.0 * hour)
        by_hour += asked.between(3600.0 * hour, min(3600.0 * (hour + 1), 100_000.0))
    assert list(at_once) == by_hour
    assert list(Outages(CLUSTER, failures, seed=6).between(-1.0, 100_000.0)) != by_hour


def test_nodes_fail_by_themselves_after_the_mean_time_in_service() -> None:
    failures = Outages(CLUSTER, RandomFailures(mtbf_hours=2.0, repair_seconds=3600.0)).between(
        -1.0, 3600.0 * 30_000
    )
    for node in CLUSTER.nodes:
        mine = [f for f in failures if f.node == node.id]
        up = [b.time - a.repaired_at for a, b in pairwise(mine)]
        assert min(up) > 0, "a node fails again only once it is repaired"
        assert np.mean(up) == pytest.approx(7200.0, rel=0.05)


def test_a_failed_node_is_out_of_service_until_it_is_repaired() -> None:
    outages = Outages(
        CLUSTER, (NodeFailure(100.0, "t4-1", 50.0), NodeFailure(120.0, "a100-0", 10.0))
    )
    assert [sorted(outages.down_at(t)) for t in (99.0, 100.0, 125.0, 149.0, 150.0)] == [
        [],
        ["t4-1"],
        ["a100-0", "t4-1"],
        ["t4-1"],
        [],
    ]
    assert outages.cluster_at(100.0).capacity.tolist() == [2, 2]
    assert outages.cluster_at(100.0) is outages.cluster_at(149.0)
    assert outages.cluster_at(150.0) is CLUSTER


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (
            lambda: RandomFailures(0.0),
            ParameterError,
            "mtbf_hours: is no time of 0.1 hours or more",
        ),
        (
            lambda: RandomFailures(float("nan")),
            ParameterError,
            "mtbf_hours: is no time of 0.1 hours or more",
        ),
        (
            lambda: RandomFailures(1.0, -1.0),
            ParameterError,
            "repair_seconds: is no time from zero up",
        ),
        (lambda: NodeFailure(-1.0, "t4-0", 1.0), ParameterError, "time: is no time from zero up"),
        (
            lambda: Outages(CLUSTER, (NodeFailure(1.0, "t4-9", 1.0),)),
            ClusterError,
            "failures: is no node of this cluster",
        ),
    ],
)
def test_failures_that_make_no_sense_are_refused(
    make: object, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        make()  # type: ignore[operator]


# ---- what a failure does to a job


def executor_with(
    *failures: NodeFailure, restart_seconds: float = 0.0
) -> tuple[SimulatedExecutor, JumpingClock]:
    """One job of four epochs, 25 s each on one t4 GPU."""
    clock = JumpingClock()
    executor = SimulatedExecutor(CLUSTER, clock, QUIET, outages=Outages(CLUSTER, failures))
    executor.submit(spec(), truth(), restart_seconds=restart_seconds)
    executor.observe()
    return executor, clock


def hold(executor: SimulatedExecutor, number: int, *gpus: int, now: float = 0.0) -> None:
    job, kind = (
        executor.jobs["x"],
        CLUSTER.type_names[CLUSTER.gpu_type_of[gpus[0]]] if gpus else "t4",
    )
    after = Allocation(kind, gpus) if gpus else None
    change = (
        ChangeKind.PREEMPT
        if after is None
        else ChangeKind.START
        if job.allocation is None
        else ChangeKind.MIGRATE
    )
    executor.apply(
        Changes(
            number,
            now,
            (Change("x", change, job.allocation, after, Grant(kind, len(gpus)) if gpus else None),),
        )
    )


def test_a_job_on_a_failed_node_falls_back_to_the_end_of_its_last_epoch_and_waits() -> None:
    executor, clock = executor_with(NodeFailure(60.0, "t4-0", 1000.0))
    hold(executor, 1, 0)
    clock.sleep_until(70.0)
    state = executor.observe()
    (job,) = state.jobs
    assert job.allocation is None
    assert job.remaining_work == pytest.approx(500.0), (
        "two epochs are kept, ten seconds of the third are not"
    )
    (event,) = [e for e in state.events if e.state is JobState.PREEMPTED]
    assert (event.time, event.data["cause"], event.data["node"]) == (60.0, "node-failed", "t4-0")
    assert event.data["lost_work"] == pytest.approx(100.0)
    assert executor.jobs["x"].ledger.lost_gpu_seconds == pytest.approx(10.0)
    assert executor.jobs["x"].ledger.gpu_seconds == pytest.approx({"t4": 60.0}), (
        "no GPU is held after the failure"
    )
    assert state.cluster.capacity.tolist() == [2, 2]


def test_a_planned_checkpoint_within_an_epoch_is_what_a_job_falls_back_to() -> None:
    executor, clock = executor_with(NodeFailure(70.0, "t4-1", 1000.0))
    hold(executor, 1, 0)
    clock.sleep_until(60.0)
    executor.observe()
    hold(executor, 2, 2, 3, now=60.0)
    clock.sleep_until(70.0)
    (job,) = executor.observe().jobs
    assert job.remaining_work == pytest.approx(400.0)


def test_a_preempted_job_has_saved_all_it_did() -> None:
    executor, clock = executor_with(NodeFailure(62.0, "t4-0", 1.0))
    hold(executor, 1, 0)
    clock.sleep_until(60.0)
    executor.observe()
    hold(executor, 2, now=60.0)
    clock.sleep_until(120.0)
    (job,) = executor.observe().jobs
    assert job.remaining_work == pytest.approx(400.0)
    assert executor.jobs["x"].ledger.interruptions == 0


def test_a_failure_of_another_node_or_after_its_end_leaves_a_job_alone() -> None:
    executor, clock = executor_with(
        NodeFailure(50.0, "t4-1", 10.0), NodeFailure(101.0, "t4-0", 10.0)
    )
    hold(executor, 1, 0)
    clock.sleep_until(120.0)
    assert executor.observe().jobs == ()
    assert executor.finished["x"].finished_at == pytest.approx(100.0)
    assert executor.finished["x"].ledger.interruptions == 0


def test_a_job_on_several_nodes_is_lost_with_any_of_them_and_once() -> None:
    executor, clock = executor_with(NodeFailure(10.0, "t4-1", 5.0), NodeFailure(20.0, "t4-0", 5.0))
    hold(executor, 1, 0, 1, 2, 3)
    clock.sleep_until(60.0)
    executor.observe()
    assert executor.jobs["x"].ledger.interruptions == 1
    assert executor.jobs["x"].ledger.gpu_seconds == pytest.approx({"t4": 40.0})


def test_to_go_on_after_a_failure_is_a_restart_that_is_paid_for() -> None:
    executor, clock = executor_with(NodeFailure(65.0, "t4-0", 1000.0), restart_seconds=10.0)
    hold(executor, 1, 0)
    clock.sleep_until(65.0)
    executor.observe()
    hold(executor, 2, 2, now=65.0)
    clock.sleep_until(180.0)
    executor.observe()
    job = executor.finished["x"]
    assert job.ledger.restarts == 1
    assert job.finished_at == pytest.approx(125.0), (
        "10 s to restore, and 50 s of work from the checkpoint at 500 on"
    )


# ---- whole simulations


def played(policy: str, failures: Failures, *, jobs: int = 8, seed: int = 3) -> SimulationResult:
    placer = "whole-node" if policy == "sia" else "packed-sticky"
    workload = generate("philly", jobs=jobs, hours=0.5, seed=seed, work_scale=0.05)
    cluster = Cluster.parse("t4=4x4,rtx=2x8,a100=1x8")
    return simulate(
        Scenario(
            workload,
            catalog_models(),
            cluster,
            policy=policy,
            placer=placer,
            conditions=Conditions(failures=failures),
            seed=seed,
        )
    )


@pytest.mark.parametrize("policy", POLICIES.names)
def test_all_jobs_end_though_nodes_fail_and_the_same_seed_gives_the_same_result(
    policy: str,
) -> None:
    failures = RandomFailures(mtbf_hours=0.3, repair_seconds=600.0)
    result, again = played(policy, failures), played(policy, failures)
    assert result.complete
    assert result.metrics.failures > 0
    assert result.metrics.interruptions > 0
    assert (result.records, result.metrics, result.spans) == (
        again.records,
        again.metrics,
        again.spans,
    )


def test_failures_cost_time_and_gpu_hours() -> None:
    without, failing = played("fifo", ()), played("fifo", RandomFailures(0.5, 900.0))
    assert failing.metrics.lost_gpu_hours > 0
    assert failing.metrics.avg_jct_hours > without.metrics.avg_jct_hours
    assert failing.metrics.gpu_hours_per_job > without.metrics.gpu_hours_per_job


@settings(max_examples=6, deadline=None)
@given(
    policy=st.sampled_from(POLICIES.names),
    seed=st.integers(0, 50),
    mtbf_hours=st.sampled_from((0.3, 1.0, 5.0)),
)
def test_gpus_are_held_by_nobody_while_their_node_is_down(
    policy: str, seed: int, mtbf_hours: float
) -> None:
    failures = RandomFailures(mtbf_hours, 900.0)
    result = played(policy, failures, jobs=4, seed=seed)
    outages = Outages(result.scenario.cluster, failures, seed=seed)
    for round_number, at in enumerate(result.round_times):
        capacity = outages.cluster_at(at).capacity.tolist()
        assert all(
            c[round_number] <= most
            for c, most in zip(result.gpus_by_type.values(), capacity, strict=True)
        )
    for record in result.records:
        assert record.lost_gpu_seconds <= sum(record.gpu_seconds.values())
        mine = [span for span in result.spans if span.job == record.name]
        assert sum(span.gpu_type is None for span in mine) >= record.interruptions
        assert len([s for s in mine if s.gpu_type is not None]) == record.restarts + 1
        assert [span.start for span in mine] == sorted(span.start for span in mine)
        if record.finish is not None:
            ends = [*(span.start for span in mine[1:]), record.finish]
            held = sum(
                end - span.start
                for span, end in zip(mine, ends, strict=True)
                if span.gpu_type is not None
            )
            assert record.waited == pytest.approx(record.finish - record.submit - held)


@pytest.mark.parametrize("policy", POLICIES.names)
def test_a_job_waits_for_the_repair_of_the_only_node_that_can_run_it(policy: str) -> None:
    workload = Workload(
        "one",
        (
            TraceJob(
                name="only",
                submit_seconds=0.0,
                model="cifar10",
                gpu_count=4,
                batch_size=512,
                work_scale=0.2,
            ),
        ),
        "sia",
    )
    one = Scenario(
        workload, catalog_models(), Cluster.parse("t4=1x4"), policy=policy, placer="packed-sticky"
    )
    broken = simulate(under(one, failures=(NodeFailure(450.0, "t4-0", 7200.0),)))
    assert broken.complete
    assert broken.records[0].interruptions == 1
    assert broken.records[0].restarts >= 1
    lone, record = simulate(one).records[0], broken.records[0]
    assert lone.jct is not None
    assert record.jct is not None
    assert record.jct > lone.jct + 7000.0
