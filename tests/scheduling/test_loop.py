"""The round loop: what a round changes, who is pinned, and that a round is carried out by the one that committed it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from scheduling.examples import belief, job, round_of, spec

from maat.scheduling.checks import check_decision, check_placement
from maat.scheduling.cluster import Cluster, Node
from maat.scheduling.errors import ContractViolation
from maat.scheduling.events import Event
from maat.scheduling.explain import ReasonCode
from maat.scheduling.goodput import BatchPlan
from maat.scheduling.job import Allocation, Job
from maat.scheduling.limits import Limit, LimitKind
from maat.scheduling.loop import RoundLoop, difference, pinned_grants, plan_round
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES
from maat.scheduling.reservations import Reservation
from maat.scheduling.rounds import (
    Change,
    ChangeKind,
    Changes,
    ClusterState,
    Decision,
    Grant,
    Placement,
    PlacementResult,
    PolicyState,
    RoundInput,
    RoundResult,
    RoundSeconds,
    StoredState,
)
from maat.scheduling.solving.report import SolveReport
from maat.scheduling.standing import RoundGrid, RoundsAhead

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


# ---- what a round changes ---------------------------------------------------------------------------------------------------------


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


# ---- pins and checks --------------------------------------------------------------------------------------------------------------


def evicted(
    grants: dict[str, Grant], gpus: dict[str, Sequence[int]], *jobs: Job, cluster: Cluster = CLUSTER
) -> tuple[str, ...]:
    round_input = round_of(cluster, *jobs)
    found, where = decided(**grants), placed(**gpus)
    return RoundResult(
        round_input, found, where, difference(round_input, found, where), RoundSeconds(0.0, 0.0)
    ).evicted


def test_a_job_is_evicted_where_it_was_granted_what_it_holds_and_placed_elsewhere_or_granted_gpus_and_placed_nowhere() -> (
    None
):
    holder = job(spec("a"), held=(0,))
    one = {"a": Grant("t4", 1)}
    assert evicted(one, {"a": (1,)}, holder) == ("a",)
    assert evicted(one, {}, holder) == ("a",)
    assert evicted({"a": Grant("t4", 2)}, {}, holder) == ("a",)


def test_a_job_that_the_policy_moves_preempts_or_leaves_is_not_evicted() -> None:
    holder = job(spec("a"), held=(0,))
    assert evicted({"a": Grant("t4", 1)}, {"a": (0,)}, holder) == ()
    assert evicted({"a": Grant("t4", 2)}, {"a": (2, 3)}, holder) == ()
    assert evicted({}, {}, holder) == ()
    assert evicted({"a": Grant("t4", 1)}, {}, job(spec("a"))) == ()


def moved_by_placer(
    grant: Grant, gpus: dict[str, Sequence[int]], *, cluster: Cluster = CLUSTER
) -> tuple[str, ...]:
    round_input = round_of(cluster, job(spec("a"), held=(0,)))
    found, where = decided(a=grant), placed(**gpus)
    return RoundResult(
        round_input, found, where, difference(round_input, found, where), RoundSeconds(0.0, 0.0)
    ).moved_by_placer


def test_a_job_is_moved_by_the_placer_where_the_policy_left_it_and_it_is_placed_elsewhere() -> None:
    same, node = Grant("t4", 1), CLUSTER.nodes[0].id
    assert moved_by_placer(same, {"a": (1,)}) == ("a",)
    assert moved_by_placer(replace(same, gpus_by_node={node: 1}), {"a": (1,)}) == ("a",)
    assert moved_by_placer(replace(same, gpus=(0,)), {"a": (1,)}) == ("a",)


def test_a_job_that_stays_gets_nothing_or_whose_policy_chose_other_gpus_is_not_moved_by_the_placer() -> (
    None
):
    same = Grant("t4", 1)
    assert moved_by_placer(same, {"a": (0,)}) == ()
    assert moved_by_placer(same, {}) == ()
    assert moved_by_placer(Grant("t4", 2), {"a": (2, 3)}) == ()
    assert moved_by_placer(replace(same, gpus_by_node={CLUSTER.nodes[1].id: 1}), {"a": (2,)}) == ()
    assert moved_by_placer(replace(same, gpus=(1,)), {"a": (1,)}) == ()
    assert moved_by_placer(replace(same, share_with=("b",)), {"a": (1,)}) == ()


def test_a_job_whose_gpu_is_out_of_service_is_not_evicted() -> None:
    broken = Cluster.of([Node("t4-0", "t4", 4, drained=frozenset({0}))])
    assert (
        evicted({"a": Grant("t4", 1)}, {"a": (1,)}, job(spec("a"), held=(0,)), cluster=broken) == ()
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


def test_a_job_that_could_not_be_placed_is_told_by_the_placer() -> None:
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


# ---- the loop ---------------------------------------------------------------------------------------------------------------------


@dataclass
class Bench:
    """An executor, a store and a clock in one: it keeps what the loop does to it, in order."""

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


def test_a_round_that_somebody_else_committed_is_not_carried_out() -> None:
    bench = Bench((job(spec("x")),), wins=False)
    assert loop_on(bench).step() is None
    assert bench.done == [("observe", 1), ("commit", 1)]


def test_what_a_killed_worker_left_is_carried_out_before_anything_is_looked_at() -> None:
    bench = Bench((), left_over=[Changes(4, 0.0)], number=5)
    loop_on(bench).step()
    assert bench.done[:3] == [("apply", 4), ("applied", 4), ("observe", 5)]
    assert bench.left_over == []


def test_the_loop_ends_when_nobody_is_left_and_nobody_is_to_come() -> None:
    bench = Bench(())
    loop_on(bench).run(until=10_000.0)
    assert [number for what, number in bench.done if what == "commit"] == [1, 2, 3, 4, 5]
    assert bench.time == 120.0


def test_the_loop_ends_when_those_who_are_left_can_never_run() -> None:
    bench = Bench((job(spec("x", gpu_types=("a100",))),))
    loop_on(bench).run(until=10_000.0)
    assert bench.time == 120.0


def test_the_loop_ends_at_its_time() -> None:
    bench = Bench((job(spec("x")),))
    loop_on(bench).run(until=95.0)
    assert bench.time <= 95.0
    assert bench.number == 5


# ---- rounds that are passed over ---------------------------------------------------------------------------------------------------


@dataclass
class Quiet:
    """Whether rounds may be passed over, as the loop asks; lets as many pass as it is told to."""

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
        pass_over=quiet,
        **others,
    )


def holder(*, held: bool = True, batch_size: int | None = 10) -> Job:
    """A job that asks for one t4, and as a rule has it."""
    asks = job(spec("x", gpu_count=1, batch_size=batch_size, gpu_types=("t4",)), belief(t4=0.1))
    return replace(asks, allocation=Allocation("t4", (0,)), started_at=0.0) if held else asks


def test_rounds_that_were_passed_over_are_not_played() -> None:
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
        "somebody starts",
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
