"""Jobs that must stay on their GPUs: until when, by which bound, and what a round says of it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from scheduling.examples import belief, job, round_of, spec

from maat.scheduling.cluster import Cluster, Node
from maat.scheduling.errors import ParameterError
from maat.scheduling.explain import ReasonCode
from maat.scheduling.job import Allocation, Job
from maat.scheduling.loop import plan_round
from maat.scheduling.pins import pinned_grants
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES
from maat.scheduling.rounds import RequiredStay, RoundInput
from maat.scheduling.stability import Stability, required_stays
from maat.vocabulary import Adaptivity

CLUSTER = Cluster.parse("t4=1x4,a100=1x2")
NOW = 100_000.0
HALF_AN_HOUR = Stability(least_stay_seconds=1800.0)
TWO_MOVES = Stability(most_moves_per_hour=2)


def holder(**changes: object) -> Job:
    """A job on the first t4, which it got 10 minutes ago."""
    values = {"held_since": NOW - 600.0, "started_at": 0.0, "known": belief(t4=0.1, a100=0.01)}
    return job(**{"job_spec": spec("x"), "held": (0,), **values, **changes})


def stay_of(
    one: Job, stability: Stability, *, cluster: Cluster = CLUSTER, now: float = NOW
) -> RequiredStay | None:
    typed = round_of(cluster, one).jobs
    return required_stays(typed, cluster, now=now, stability=stability).get("x")


def test_a_job_stays_until_it_has_held_its_gpus_for_the_least_stay() -> None:
    ends = NOW + 1200.0
    assert stay_of(holder(), HALF_AN_HOUR) == RequiredStay(ends, least_stay_seconds=1800.0)
    assert stay_of(holder(), HALF_AN_HOUR, now=ends - 1) is not None
    assert stay_of(holder(), HALF_AN_HOUR, now=ends) is None


def test_a_job_stays_while_it_was_moved_as_often_as_it_may_be_within_the_last_hour() -> None:
    moved = holder(moved_at=(NOW - 4000.0, NOW - 3000.0, NOW - 600.0))
    assert stay_of(moved, TWO_MOVES) == RequiredStay(NOW + 600.0, moves_in_last_hour=2)
    assert stay_of(moved, TWO_MOVES, now=NOW + 600.0) is None
    assert stay_of(moved, Stability(most_moves_per_hour=3)) is None


def test_the_bound_that_ends_later_holds() -> None:
    moved = holder(moved_at=(NOW - 600.0,))
    both = Stability(least_stay_seconds=1800.0, most_moves_per_hour=1)
    assert stay_of(moved, both) == RequiredStay(NOW + 3000.0, moves_in_last_hour=1)


@pytest.mark.parametrize("stability", [Stability(), Stability(least_stay_seconds=0.0)])
def test_without_a_bound_no_job_must_stay(stability: Stability) -> None:
    assert stay_of(holder(), stability) is None


def test_of_the_bounds_of_a_job_and_its_cluster_the_stricter_hold() -> None:
    wants = spec("x", least_stay_seconds=3600.0, most_moves_per_hour=1)
    one = holder(job_spec=wants)
    longer = RequiredStay(NOW + 3000.0, least_stay_seconds=3600.0)
    assert stay_of(one, Stability()) == stay_of(one, HALF_AN_HOUR) == longer
    assert stay_of(one, Stability(7200.0)) == RequiredStay(NOW + 6600.0, least_stay_seconds=7200.0)
    moved = holder(job_spec=wants, held_since=NOW - 5000.0, moved_at=(NOW - 5000.0, NOW - 600.0))
    assert stay_of(moved, TWO_MOVES) == RequiredStay(NOW + 3000.0, moves_in_last_hour=1)


def test_a_job_that_holds_no_gpus_or_for_an_unknown_time_need_not_stay() -> None:
    waits = job(spec("x"), held_since=NOW, moved_at=(NOW, NOW))
    assert stay_of(waits, Stability(1800.0, 1)) is None
    assert stay_of(holder(held_since=None), HALF_AN_HOUR) is None


def test_no_job_stays_on_gpus_that_leave_service() -> None:
    leaves = Cluster.of([Node("t4-0", "t4", 4, frozenset({0}))])
    assert stay_of(holder(), HALF_AN_HOUR, cluster=leaves) is None


@pytest.mark.parametrize(
    "now_says",
    [
        {"gpu_types": ("a100",)},
        {"min_gpus": 2},
        {"gpu_count": 2, "adaptivity": Adaptivity.RIGID, "batch_size": 32},
    ],
    ids=["another type", "more GPUs", "a rigid count"],
)
def test_no_job_stays_on_what_its_owner_no_longer_allows(now_says: Mapping[str, object]) -> None:
    changed = job(spec("x", **now_says), held=(0,), held_since=NOW)
    assert stay_of(changed, HALF_AN_HOUR) is None


@pytest.mark.parametrize("seconds", [-1.0, float("inf"), float("nan")])
def test_a_least_stay_is_a_finite_time(seconds: float) -> None:
    with pytest.raises(ParameterError, match="least_stay_seconds"):
        Stability(least_stay_seconds=seconds)


def test_at_least_one_move_an_hour_is_allowed() -> None:
    with pytest.raises(ParameterError, match="most_moves_per_hour"):
        Stability(most_moves_per_hour=0)


def stays_round(stability: Stability, one: Job) -> RoundInput:
    """A round in which the a100s, ten times as fast, are free."""
    seen = round_of(CLUSTER, one, now=NOW)
    stays = required_stays(seen.jobs, CLUSTER, now=NOW, stability=stability)
    pinned = pinned_grants(seen.jobs, CLUSTER, stays)
    return round_of(CLUSTER, one, now=NOW, pinned=pinned, stays=stays)


@pytest.mark.parametrize("policy", POLICIES.names)
def test_no_policy_moves_a_job_that_must_stay_and_its_reason_says_for_how_long(
    policy: str,
) -> None:
    seen = stays_round(HALF_AN_HOUR, holder())
    result = plan_round(seen, POLICIES.build(policy), PLACERS.build("whole-node"))
    assert result.placement.placement.by_job == {"x": (0,)}
    why = result.reasons["x"]
    assert why.primary is ReasonCode.PINNED
    assert why.sentence == "It keeps what it has: it stays for 20 min more (least stay 30 min)."


def test_a_policy_moves_it_once_it_need_not_stay() -> None:
    seen = stays_round(Stability(least_stay_seconds=300.0), holder())
    result = plan_round(seen, POLICIES.build("sia"), PLACERS.build("whole-node"))
    (change,) = result.changes.items
    assert change.after is not None
    assert (change.before, change.after.gpu_type) == (Allocation("t4", (0,)), "a100")


def test_a_reason_says_how_often_a_job_was_moved() -> None:
    moved = holder(moved_at=(NOW - 3000.0, NOW - 600.0))
    result = plan_round(
        stays_round(TWO_MOVES, moved), POLICIES.build("sia"), PLACERS.build("whole-node")
    )
    assert result.reasons["x"].sentence == (
        "It keeps what it has: it was moved 2 times in the last hour, the most it may be, "
        "and stays for 10 min more."
    )


def test_a_job_that_restarts_says_so_too() -> None:
    seen = stays_round(HALF_AN_HOUR, holder(restarting=True, restarts=1))
    result = plan_round(seen, POLICIES.build("sia"), PLACERS.build("whole-node"))
    assert result.reasons["x"].sentence == (
        "It keeps what it has: it is restarting and it stays for 20 min more (least stay 30 min)."
    )
