"""Reservations: which jobs they bind and when, alone and together.

The reserved GPUs are free when their holder comes.
"""

from __future__ import annotations

import pytest
from scheduling.examples import belief, job, round_of, spec

from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import ClusterError, ParameterError
from maat.scheduling.explain import ReasonCode
from maat.scheduling.limits import LimitKind
from maat.scheduling.policies import POLICIES
from maat.scheduling.reservations import Reservation, check_reservations, reservation_limits
from maat.scheduling.rounds import Decision
from maat.simulation.conditions import Conditions
from maat.simulation.engine import simulate
from maat.simulation.record import SimulationResult
from maat.simulation.scenario import Scenario
from maat.simulation.world_models import catalog_models
from maat.vocabulary import Adaptivity
from maat.workloads.workloads import TraceJob, Workload

CLUSTER = Cluster.parse("t4=2x4")


def test_others_leave_what_is_reserved_and_the_holder_does_not_count() -> None:
    (limit,) = reservation_limits(CLUSTER, [Reservation("t4", 3, tenant="vision")], 0.0)
    assert (limit.kind, limit.places, limit.gpu_type) == (LimitKind.RESERVATION, 5, "t4")
    assert limit.counts(spec("a", tenant="speech"), "t4", 1)
    assert not limit.counts(spec("a", tenant="vision"), "t4", 1)
    (limit,) = reservation_limits(CLUSTER, [Reservation("t4", 3, job_id="a")], 0.0)
    assert not limit.counts(spec("a"), "t4", 1)
    assert limit.counts(spec("b"), "t4", 1)


def test_a_reservation_binds_from_its_start_until_its_end() -> None:
    one = [Reservation("t4", 3, tenant="vision", start=100.0, end=200.0)]
    assert [len(reservation_limits(CLUSTER, one, now)) for now in (99.0, 100.0, 199.0, 200.0)] == [
        0,
        1,
        1,
        0,
    ]


def test_jobs_without_a_reservation_leave_all_reserved_gpus() -> None:
    both = [
        Reservation("t4", 3, tenant="vision"),
        Reservation("t4", 2, tenant="speech"),
        Reservation("t4", 1, tenant="vision"),
    ]
    limits = reservation_limits(CLUSTER, both, 0.0)
    tenants = ("vision", "speech", "default")
    most = {
        t: min((x.places for x in limits if x.counts(spec("a", tenant=t), "t4", 1)), default=8)
        for t in tenants
    }
    assert most == {"vision": 6, "speech": 4, "default": 2}


def test_more_than_is_in_service_reserves_all_of_it_and_other_types_none() -> None:
    assert [
        x.places for x in reservation_limits(CLUSTER, [Reservation("t4", 99, tenant="vision")], 0.0)
    ] == [0]
    assert reservation_limits(CLUSTER, [Reservation("a100", 1, tenant="vision")], 0.0) == ()


def test_too_many_holders_of_one_type_are_refused() -> None:
    many = [Reservation("t4", 1, tenant=f"tenant-{i}") for i in range(7)]
    with pytest.raises(ParameterError, match="reservations: are more holders of one GPU type"):
        reservation_limits(CLUSTER, many, 0.0)


@pytest.mark.parametrize(
    "given",
    [
        {"gpu_count": 0, "tenant": "vision"},
        {"gpu_count": 1},
        {"gpu_count": 1, "tenant": "vision", "job_id": "a"},
        {"gpu_count": 1, "tenant": "vision", "start": 5.0, "end": 5.0},
    ],
)
def test_a_reservation_that_makes_no_sense_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(ParameterError):
        Reservation("t4", **given)  # type: ignore[arg-type]


def decided(policy: str, *reservations: Reservation) -> Decision:
    """Two rigid jobs of six and two GPUs on eight."""
    known = belief(t4=0.1)
    jobs = [
        job(
            spec(name, tenant=name, adaptivity=Adaptivity.RIGID, gpu_count=count, batch_size=192),
            known,
        )
        for name, count in (("a", 6), ("b", 2))
    ]
    return POLICIES.build(policy).allocate(
        round_of(CLUSTER, *jobs, limits=reservation_limits(CLUSTER, reservations, 0.0))
    )


@pytest.mark.parametrize("policy", POLICIES.names)
def test_every_policy_keeps_reserved_gpus_free(policy: str) -> None:
    assert set(decided(policy).grants) == {"a", "b"}
    assert set(decided(policy, Reservation("t4", 4, tenant="b")).grants) == {"b"}
    found = decided(policy, Reservation("t4", 4, job_id="b"))
    assert set(found.grants) == {"b"}
    assert found.reasons["a"].primary is ReasonCode.WAITING_RESERVATION
    assert str(found.reasons["a"].evidence["binding_limit"]).startswith("reservation:t4:job b")
    assert (
        found.reasons["a"].sentence
        == "GPUs that it could use are reserved for others: t4 for job b."
    )


def played(policy: str, *reservations: Reservation, cluster: str = "t4=1x4") -> SimulationResult:
    """One job from the beginning, which wants all GPUs, and one ten minutes later."""
    jobs = (
        TraceJob(
            name="early",
            submit_seconds=0.0,
            model="cifar10",
            gpu_count=4,
            batch_size=512,
            work_scale=0.5,
        ),
        TraceJob(
            name="late",
            submit_seconds=600.0,
            model="cifar10",
            gpu_count=2,
            batch_size=256,
            work_scale=0.1,
        ),
    )
    workload = Workload("two", jobs, "sia")
    placer = "whole-node" if policy == "sia" else "packed-sticky"
    return simulate(
        Scenario(
            workload,
            catalog_models(),
            Cluster.parse(cluster),
            policy=policy,
            placer=placer,
            conditions=Conditions(reservations=reservations),
        )
    )


def test_the_job_that_gpus_are_reserved_for_finds_them_free() -> None:
    waits, finds = played("fifo"), played("fifo", Reservation("t4", 2, job_id="late", end=7200.0))
    assert waits.records[1].queueing_delay is not None
    assert finds.records[1].queueing_delay is not None
    assert finds.records[1].queueing_delay <= 120.0 < waits.records[1].queueing_delay


@pytest.mark.parametrize("policy", POLICIES.names)
def test_whom_a_reservation_keeps_out_runs_when_it_ends(policy: str) -> None:
    result = played(policy, Reservation("t4", 4, tenant="somebody else", end=5000.0))
    assert result.complete
    assert all(record.start is not None and record.start >= 5000.0 for record in result.records)


def test_a_reservation_of_a_type_that_is_not_there_is_refused() -> None:
    with pytest.raises(
        ClusterError, match=r"reservation.gpu_type: is no GPU type of this cluster \(got 'h100'\)"
    ):
        played("fifo", Reservation("h100", 1, tenant="x"))


def test_reservations_of_one_time_together_are_for_no_more_gpus_than_there_are() -> None:
    first, second = (
        Reservation("t4", 5, tenant="vision", end=100.0),
        Reservation("t4", 4, tenant="speech", start=50.0),
    )
    check_reservations([first, Reservation("t4", 4, tenant="speech", start=100.0)], CLUSTER)
    with pytest.raises(ParameterError, match=r"of which there are 8 \(got 9\)"):
        check_reservations([first, second], CLUSTER)
