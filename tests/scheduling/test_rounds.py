"""One round: what it changes, its pinned jobs, and which decisions are refused."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from scheduling.examples import belief, job, round_of, spec

from maat.scheduling.checks import check_decision, check_placement
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import ContractViolation
from maat.scheduling.explain import ReasonCode
from maat.scheduling.goodput import BatchPlan
from maat.scheduling.job import Allocation, Job
from maat.scheduling.limits import Limit, LimitKind
from maat.scheduling.loop import difference, plan_round
from maat.scheduling.pins import pinned_grants
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES
from maat.scheduling.rounds import (
    Change,
    ChangeKind,
    Decision,
    Grant,
    Placement,
    PlacementResult,
    PolicyState,
)
from maat.scheduling.solving.report import SolveReport

CLUSTER = Cluster.parse("t4=2x2,rtx=1x2")


def decided(**grants: Grant) -> Decision:
    return Decision(grants, SolveReport(), {})


def placed(**gpus: Sequence[int]) -> PlacementResult:
    return PlacementResult(Placement.of(gpus))


def kinds(
    *jobs: Job, batch: BatchPlan | None = None, **gpus: Sequence[int]
) -> dict[str, ChangeKind]:
    round_input = round_of(CLUSTER, *jobs)
    grants = {
        name: Grant(CLUSTER.type_names[CLUSTER.gpu_type_of[held[0]]], len(held), batch=batch)
        for name, held in gpus.items()
    }
    return {
        c.job_id: c.kind for c in difference(round_input, decided(**grants), placed(**gpus)).items
    }


def test_changes_are_named_for_what_happens_to_the_job() -> None:
    jobs = [
        job(spec("new")),
        job(spec("stays"), held=(0,), started_at=0.0),
        job(spec("stops"), held=(1,), started_at=0.0),
        job(spec("waits")),
    ]
    assert kinds(*jobs, new=(2, 3), stays=(0,)) == {
        "new": ChangeKind.START,
        "stops": ChangeKind.PREEMPT,
    }


def test_more_gpus_of_a_type_are_a_rescale_and_others_or_another_type_a_migration() -> None:
    one = job(spec("x"), held=(0,), started_at=0.0)
    assert kinds(one, x=(0, 1)) == {"x": ChangeKind.RESCALE}
    assert kinds(one, x=(1,)) == {"x": ChangeKind.MIGRATE}
    assert kinds(one, x=(4, 5)) == {"x": ChangeKind.MIGRATE}


def test_a_job_that_ran_before_resumes() -> None:
    assert kinds(job(spec("x"), started_at=10.0), x=(0,)) == {"x": ChangeKind.RESUME}


def test_a_batch_plan_reaches_a_job_that_stays_where_it_is() -> None:
    one = job(spec("x"), held=(0,), started_at=0.0)
    assert kinds(one, batch=BatchPlan(64, 64, 0), x=(0,)) == {"x": ChangeKind.BATCH}


def test_a_change_holds_what_was_before_and_what_is_after() -> None:
    round_input = round_of(CLUSTER, job(spec("x"), held=(0,), started_at=0.0))
    grant = Grant("t4", 2)
    (change,) = difference(round_input, decided(x=grant), placed(x=(0, 1))).items
    assert change == Change(
        "x", ChangeKind.RESCALE, Allocation("t4", (0,)), Allocation("t4", (0, 1)), grant
    )


def test_jobs_that_restart_or_may_not_be_preempted_are_pinned_while_they_hold_gpus() -> None:
    jobs = [
        job(spec("restarting"), held=(0,), restarting=True),
        job(spec("reserved", preemptible=False), held=(2, 3)),
        job(spec("free"), held=(1,)),
        job(spec("waiting", preemptible=False)),
    ]
    round_input = round_of(CLUSTER, *jobs)
    assert pinned_grants(round_input.jobs, CLUSTER) == {
        "restarting": Grant("t4", 1, node_count=1),
        "reserved": Grant("t4", 2, node_count=1),
    }


@pytest.mark.parametrize(
    ("grants", "message"),
    [
        ({"y": Grant("t4", 1)}, "a grant to y, which is not in this round"),
        ({"x": Grant("t4", 0)}, "job x cannot use 0 t4"),
        ({"x": Grant("a100", 1)}, "job x cannot use 1 a100"),
        ({"x": Grant("t4", 1)}, "outside its 2 to 3"),
        ({"x": Grant("t4", 4)}, "outside its 2 to 3"),
        ({"x": Grant("rtx", 3)}, "limit capacity:rtx allows 2 places; the decision takes 3"),
        (
            {"x": Grant("t4", 3), "held": Grant("t4", 1, node_count=1)},
            "limit quota allows 2 places",
        ),
    ],
)
def test_a_decision_that_breaks_a_rule_is_stopped(grants: dict[str, Grant], message: str) -> None:
    quota = Limit("quota", LimitKind.QUOTA, 2, gpu_type="t4")
    jobs = [
        job(spec("x", min_gpus=2, max_gpus=3, gpu_types=("t4", "rtx"))),
        job(spec("held", preemptible=False), held=(0,)),
    ]
    with pytest.raises(ContractViolation, match=message):
        check_decision(
            decided(**{"held": Grant("t4", 1), **grants}), round_of(CLUSTER, *jobs, limits=[quota])
        )


def test_a_decision_that_moves_a_pinned_job_is_stopped() -> None:
    round_input = round_of(CLUSTER, job(spec("held", preemptible=False), held=(0,)))
    with pytest.raises(ContractViolation, match="job held is pinned to 1 t4 and was granted None"):
        check_decision(decided(), round_input)


@pytest.mark.parametrize(
    ("gpus", "message"),
    [
        ({"x": (6, 7)}, "a GPU that the cluster does not have"),
        ({"x": (0,)}, r"was granted .* and placed on GPUs \(0,\)"),
        ({"x": (4, 5)}, "placed on other types"),
        ({"x": (0, 0)}, "one place to two jobs"),
        ({}, r"granted, neither placed nor explained: \['x'\]"),
    ],
)
def test_a_placement_that_breaks_a_rule_is_stopped(
    gpus: dict[str, Sequence[int]], message: str
) -> None:
    with pytest.raises(ContractViolation, match=message):
        check_placement(
            placed(**gpus), decided(x=Grant("t4", 2)), round_of(CLUSTER, job(spec("x")))
        )


def test_state_left_by_another_policy_or_other_parameters_is_not_read() -> None:
    state = PolicyState("las", "1", {"job": 3})
    assert state.for_owner("las", "1") is state
    assert state.for_owner("las", "2") == PolicyState("las", "2")
    assert state.for_owner("sia", "1") == PolicyState("sia", "1")


def test_chance_of_a_round_is_the_same_each_time_it_is_planned() -> None:
    first, again = (round_of(CLUSTER, seed=3, round_number=7).rng.random() for _ in range(2))
    assert first == again
    assert first != round_of(CLUSTER, seed=3, round_number=8).rng.random()


def test_the_placer_gives_the_reason_of_a_job_that_it_could_not_place() -> None:
    held = [
        job(spec("a", preemptible=False), held=(0,)),
        job(spec("b", preemptible=False), held=(2,)),
    ]
    wide = job(spec("wide", gpu_count=2, gpu_types=("t4",)), belief(t4=0.5))
    result = plan_round(
        round_of(CLUSTER, *held, wide), POLICIES.build("fifo"), PLACERS.build("whole-node")
    )
    assert result.reasons["wide"].primary is ReasonCode.FRAGMENTED
    assert result.reasons["a"].primary is ReasonCode.PINNED
