"""Why jobs got what they got: the reasons that Sia's assignment gives."""

from __future__ import annotations

from typing import Any

import pytest
from scheduling.examples import belief, job, round_of, spec

from maat.scheduling.cluster import Cluster, Node
from maat.scheduling.explain import ReasonCode, Reasons, sentence_of
from maat.scheduling.job import Job
from maat.scheduling.limits import Limit, LimitKind
from maat.scheduling.loop import plan_round
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES
from maat.scheduling.policies.sia import Sia
from maat.scheduling.rounds import RoundInput
from maat.vocabulary import Adaptivity


def why(round_input: RoundInput, job_id: str) -> Reasons:
    return Sia().allocate(round_input).reasons[job_id]


def known(name: str, **changes: object) -> Job:
    return job(spec(name, **changes), belief(t4=0.5, rtx=0.3))


def test_a_granted_job_learns_what_it_got_and_what_came_second() -> None:
    reason = why(round_of("t4=1x2,rtx=1x1", known("x")), "x")
    assert reason.primary is ReasonCode.GRANTED
    assert (reason.evidence["gpu_type"], reason.evidence["gpu_count"]) == ("t4", 2)
    assert (reason.evidence["runner_up_gpu_type"], reason.evidence["runner_up_gpu_count"]) == (
        "rtx",
        1,
    )
    best, second = reason.evidence["value"], reason.evidence["runner_up_value"]
    assert isinstance(best, float)
    assert isinstance(second, float)
    assert best > second
    assert (
        reason.evidence["goodput_samples_per_second"]
        > reason.evidence["runner_up_goodput_samples_per_second"]
    )  # type: ignore[operator]


def test_a_job_without_an_alternative_has_no_runner_up() -> None:
    evidence = why(round_of("t4=1x1", known("x")), "x").evidence
    assert not [name for name in evidence if name.startswith("runner_up")]


def test_a_job_of_which_nothing_is_known_claims_no_goodput() -> None:
    assert (
        why(round_of("t4=1x1", job(spec("x"))), "x").evidence["goodput_samples_per_second"] is None
    )


@pytest.mark.parametrize(("given", "value"), [(0.0, "0"), (0.5, "0.5")])
def test_a_job_that_is_worth_no_gpus_to_the_objective_learns_which_parameter_keeps_it_idle(
    given: float, value: str
) -> None:
    round_input = round_of("t4=1x2,rtx=1x1", known("x"))
    decision = Sia(idle_penalty=given).allocate(round_input)
    reason = decision.reasons["x"]
    assert not decision.grants
    assert reason.primary is ReasonCode.IDLE_COSTS_LESS
    enough = reason.evidence["idle_penalty_above"]
    assert isinstance(enough, float)
    costs = (
        f"With the policy's idle_penalty of {value}, "
        "leaving it idle costs the objective no more than any GPUs that it could have"
    )
    assert reason.sentence == f"{costs}: set idle_penalty above {enough:g}."
    assert not Sia(idle_penalty=enough).allocate(round_input).grants
    assert Sia(idle_penalty=enough + 1e-6).allocate(round_input).grants


def test_a_job_that_others_outbid_waits_for_capacity_whatever_the_idle_penalty() -> None:
    decision = Sia(p=0.5, idle_penalty=0.0).allocate(
        round_of("t4=1x1", known("a", gpu_types=("t4",)), known("b", gpu_types=("t4",)))
    )
    (waiting,) = {"a", "b"} - set(decision.grants)
    assert decision.reasons[waiting].primary is ReasonCode.WAITING_CAPACITY


def test_a_waiting_job_learns_which_limit_binds_and_at_what_price() -> None:
    decision = Sia().allocate(
        round_of("t4=1x1", known("a", gpu_types=("t4",)), known("b", gpu_types=("t4",)))
    )
    (waiting,) = {"a", "b"} - set(decision.grants)
    reason = decision.reasons[waiting]
    assert reason.primary is ReasonCode.WAITING_CAPACITY
    assert reason.evidence["binding_limit"] == "capacity:t4"
    assert reason.evidence["price"] > 0  # type: ignore[operator]


def test_a_job_held_back_by_its_tenants_quota_has_that_reason() -> None:
    quota = Limit("quota:default", LimitKind.QUOTA, 1, tenant="default")
    decision = Sia().allocate(round_of("t4=1x4", known("a"), known("b"), limits=[quota]))
    (waiting,) = {"a", "b"} - set(decision.grants)
    reason = decision.reasons[waiting]
    assert reason.primary is ReasonCode.WAITING_QUOTA
    assert reason.evidence["binding_limit"] == "quota:default"


def test_a_job_that_needs_more_than_its_tenants_quota_has_that_reason() -> None:
    quota = Limit("quota:default", LimitKind.QUOTA, 1, tenant="default")
    reason = why(round_of("t4=1x4", known("x", min_gpus=2), limits=[quota]), "x")
    assert reason.primary is ReasonCode.EXCEEDS_QUOTA_LIMIT
    assert reason.evidence["binding_limit"] == "quota:default"


def test_a_wide_job_runs_across_what_drained_nodes_leave_if_the_policy_may_scatter_it() -> None:
    halves = Cluster.of([Node(f"n{i}", "t4", 4, drained=frozenset({3})) for i in range(3)])
    wide = known("x", adaptivity=Adaptivity.RIGID, gpu_count=8, batch_size=320)
    for policy in ("fifo", "srtf"):
        placed = plan_round(
            round_of(halves, wide), POLICIES.build(policy), PLACERS.build("packed-sticky")
        ).placement.placement
        assert len(placed.by_job["x"]) == 8


def test_a_count_that_no_batch_size_fits_differs_from_a_cluster_that_is_too_small() -> None:
    narrow = known("x", adaptivity=Adaptivity.RIGID, gpu_count=4, batch_size=2)
    reason = why(round_of("t4=1x4", narrow), "x")
    assert reason.primary is ReasonCode.NO_CONFIGURATION
    assert (
        reason.evidence["needed_gpus"],
        reason.evidence["largest_type_gpus"],
        reason.evidence["batch_size"],
    ) == (4, 4, 2)


@pytest.mark.parametrize(
    ("cluster", "offered"),
    [("t4=1x4", "1, 2, 4 of t4"), ("a100=1x7,t4=1x3", "1, 2, 4 of a100; 1, 2 of t4")],
)
def test_counts_that_the_policy_does_not_have_are_named_beside_those_that_it_has(
    cluster: str, offered: str
) -> None:
    reason = why(round_of(cluster, known("x", min_gpus=3, max_gpus=3)), "x")
    assert reason.primary is ReasonCode.NO_CONFIGURATION
    assert reason.sentence == (
        f"The policy gives these numbers of GPUs: {offered}. It asks for 3 and no other number."
    )


def test_a_job_too_large_for_what_drained_nodes_leave_has_that_reason() -> None:
    halves = Cluster.of(
        [Node(f"n{i}", "t4", 4, drained=frozenset({1, 2, 3})) for i in range(3)]
        + [Node("n3", "t4", 2)]
    )
    rigid = known("x", adaptivity=Adaptivity.RIGID, gpu_count=4, batch_size=320)
    reason = why(round_of(halves, rigid), "x")
    assert reason.primary in {ReasonCode.NO_CONFIGURATION, ReasonCode.WAITING_CAPACITY}
    assert reason.evidence["binding_limit"] == "shape:t4>=4"


def test_a_job_behind_pinned_ones_waits_for_capacity() -> None:
    pinned = job(spec("pinned", preemptible=False), belief(t4=0.5), held=(0, 1), started_at=0.0)
    reason = why(round_of("t4=1x2", pinned, known("x", gpu_types=("t4",))), "x")
    assert reason.primary is ReasonCode.WAITING_CAPACITY
    assert reason.evidence["binding_limit"] == "capacity:t4"


@pytest.mark.parametrize(
    ("preemptible", "changes", "cause"),
    [
        (True, {"restarting": True}, "it is starting"),
        (True, {"restarting": True, "restarts": 1}, "it is restarting"),
        (False, {}, "it may not be preempted"),
        (False, {"restarting": True}, "it is starting and it may not be preempted"),
    ],
)
@pytest.mark.parametrize("policy", ["sia", "fifo", "pollux", "sjf-bsbf"])
def test_a_pinned_job_learns_what_pins_it(
    policy: str, preemptible: bool, changes: dict[str, Any], cause: str
) -> None:
    held = job(
        spec("x", preemptible=preemptible),
        belief(t4=0.5),
        held=(0,),
        started_at=0.0,
        **changes,
    )
    decision = POLICIES.build(policy).allocate(round_of("t4=1x2", held))
    reason = decision.reasons["x"]
    assert reason.primary is ReasonCode.PINNED
    assert reason.sentence == f"It keeps what it has: {cause}."


def test_a_round_of_an_earlier_version_names_what_may_pin_a_job() -> None:
    told = sentence_of("PINNED", {"restarting": 0})
    assert told == "It keeps what it has: it is starting or restarting, or it may not be preempted."


def test_a_job_that_no_type_can_run_learns_which_types_there_are() -> None:
    reason = why(round_of("t4=1x2,rtx=1x1", known("x", gpu_types=("a100",))), "x")
    assert reason.primary is ReasonCode.NO_COMPATIBLE_GPU_TYPE
    assert reason.evidence == {"cluster_gpu_types": "t4, rtx", "asked_gpu_types": "a100"}
    assert reason.sentence == "Its GPU type a100 is not in this cluster."


@pytest.mark.parametrize(
    "changes",
    [{"min_gpus": 5}, {"adaptivity": Adaptivity.RIGID, "gpu_count": 5, "batch_size": 320}],
    ids=["minimum", "rigid"],
)
def test_a_job_larger_than_any_type_learns_how_large_the_largest_is(
    changes: dict[str, object],
) -> None:
    reason = why(round_of("t4=1x4,rtx=1x1", known("x", **changes)), "x")
    assert reason.primary is ReasonCode.EXCEEDS_CLUSTER
    assert reason.evidence == {"needed_gpus": 5, "largest_type_gpus": 4}


@pytest.mark.parametrize("code", ReasonCode)
def test_every_reason_has_a_sentence(code: ReasonCode) -> None:
    assert sentence_of(code.value, {}) == Reasons(code).sentence
    assert Reasons(code).sentence.endswith(".")


def test_a_reservation_that_keeps_a_job_out_is_named_by_its_holders() -> None:
    stored = {"binding_limit": "reservation:a100:tenant vision + job j1", "places": 0}
    named = sentence_of(ReasonCode.WAITING_RESERVATION.value, stored)
    assert (
        named == "GPUs that it could use are reserved for others: a100 for tenant vision + job j1."
    )
    assert (
        sentence_of(ReasonCode.WAITING_CAPACITY.value, stored)
        == Reasons(ReasonCode.WAITING_CAPACITY).sentence
    )


def test_who_holds_the_gpus_is_not_said_to_use_them_better_than_the_prices_tell() -> None:
    def said(value: float, price: float) -> str:
        return sentence_of(ReasonCode.WAITING_CAPACITY.value, {"value": value, "price": price})

    assert "gain at least as much" in said(0.39289321881, 0.39289321898)
    assert "gain at least as much" in said(0.1, 0.3)
    assert said(0.1, 0.0) == "Other jobs hold the GPUs that it needs."


def test_a_job_that_gpus_are_free_for_is_not_said_to_lack_them() -> None:
    def said(free: int) -> str:
        evidence = {"needed_gpus": 4, "free_gpus": free}
        return sentence_of(ReasonCode.BEHIND_IN_ORDER.value, evidence)

    assert "GPUs are free for it" in said(4)
    assert "hold the GPUs" in said(3)
