"""Policies that share GPUs: which jobs pair, with which batch, and which wait.

A pass takes one second whatever its batch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maat.scheduling.batch_split import halved, memory_share
from maat.scheduling.belief import Belief, TypeBelief
from maat.scheduling.cluster import Cluster
from maat.scheduling.explain import ReasonCode, Reasons
from maat.scheduling.fitting import Sample
from maat.scheduling.goodput import BatchPlan
from maat.scheduling.job import UNKNOWN_WORK, Allocation, Job, JobSpec, MemoryLimits
from maat.scheduling.limits import capacity_limits
from maat.scheduling.loop import plan_round
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES
from maat.scheduling.round_result import RoundResult
from maat.scheduling.rounds import Decision, Grant, PolicyState, RoundInput
from maat.vocabulary import Adaptivity

ONE_SECOND = np.array([1.0, 1e-12, 1e-9, 1e-9, 1e-9, 1e-9, 1.0])
LARGEST = 64
CLUSTER = replace(Cluster.parse("t4=1x4"), jobs_per_gpu=2)


def job(
    name: str,
    seconds: float,
    *,
    gpus: int = 1,
    held: tuple[int, ...] | None = None,
    per_gpu: int = 8,
    smallest: int = 1,
    known: bool = True,
) -> Job:
    """A job that alone takes so many seconds.

    Its batch is `per_gpu` of a GPU's 64 samples.
    """
    spec = JobSpec(
        id=name,
        model=name.rstrip("0123456789"),
        submitted_at=0.0,
        work=1.0,
        initial_batch_size=per_gpu * gpus,
        max_batch_size=per_gpu * gpus,
        memory={"t4": MemoryLimits(smallest, LARGEST)},
        adaptivity=Adaptivity.RIGID,
        gpu_count=gpus,
        batch_size=per_gpu * gpus,
    )
    belief = Belief(
        {"t4": TypeBelief((Sample(1, 1, 8, 1.0, 0.0),), lambda samples: ONE_SECOND)}
        if known
        else {}
    )
    allocation = None if held is None else Allocation("t4", held)
    return Job(
        spec,
        belief,
        1.0,
        allocation=allocation,
        started_at=None if held is None else 0.0,
        remaining_steps=seconds,
    )


def given_jobs(
    *jobs: Job, xi: float | Mapping[tuple[str, str, int], float] = 1.2, cluster: Cluster = CLUSTER
) -> RoundInput:
    models = {one.spec.model for one in jobs}
    table = (
        {(a, b, n): xi for a in models for b in models for n in range(1, 9)}
        if isinstance(xi, float)
        else xi
    )
    limits = capacity_limits(cluster)
    return RoundInput(0.0, 1, 10.0, jobs, cluster, limits, interference=table)


def decide(policy: str, round_input: RoundInput, **parameters: object) -> Decision:
    return POLICIES.build(policy, parameters).allocate(round_input)


def planned(policy: str, round_input: RoundInput) -> RoundResult:
    return plan_round(round_input, POLICIES.build(policy), PLACERS.build("shared"))


BOTH = pytest.mark.parametrize("policy", ["sjf-ffs", "sjf-bsbf"])


@BOTH
def test_idle_gpus_go_to_the_shortest_first_and_are_not_shared(policy: str) -> None:
    placed = planned(
        policy, given_jobs(job("long", 100.0, gpus=2), job("short", 10.0, gpus=2))
    ).placement.placement
    assert placed.by_job == {"short": (0, 1), "long": (2, 3)}


@BOTH
def test_what_runs_is_neither_preempted_nor_moved_for_something_shorter(policy: str) -> None:
    result = planned(
        policy,
        given_jobs(job("long", 1e6, gpus=4, held=(0, 1, 2, 3)), job("short", 1.0, gpus=4), xi=6.0),
    )
    assert result.placement.placement.by_job["long"] == (0, 1, 2, 3)
    assert not [
        change
        for change in result.changes.items
        if change.job_id == "long" and change.after != change.before
    ]


@pytest.mark.parametrize(("newcomer", "joins"), [(40.0, True), (60.0, False), (50.0, False)])
def test_bsbf_shares_where_the_pair_ends_sooner_on_average_than_by_waiting(
    newcomer: float, joins: bool
) -> None:
    """The running job has 100 s left; together both run at half speed.

    A job of 40 s has 110 s against 120 s, one of 60 s 140 against 130; at 50 s it is a tie.
    """
    decision = decide(
        "sjf-bsbf",
        given_jobs(
            job("old", 100.0, gpus=4, held=(0, 1, 2, 3)), job("new", newcomer, gpus=2), xi=2.0
        ),
    )
    assert ("new" in decision.grants) is joins
    assert decision.reasons["new"].primary is (
        ReasonCode.GRANTED if joins else ReasonCode.SHARING_NO_GAIN
    )
    if joins:
        assert decision.grants["new"].share_with == ("old",)


def test_ffs_shares_without_asking_what_it_costs() -> None:
    decision = decide(
        "sjf-ffs",
        given_jobs(job("old", 100.0, gpus=4, held=(0, 1, 2, 3)), job("new", 60.0, gpus=2), xi=6.0),
    )
    assert decision.grants["new"].share_with == ("old",)


def test_bsbf_joins_the_pair_of_least_mean_first_and_ffs_the_first_gpu() -> None:
    jobs = (
        job("a", 900.0, gpus=2, held=(0, 1)),
        job("b", 200.0, gpus=2, held=(2, 3)),
        job("new", 20.0, gpus=2),
    )
    assert decide("sjf-bsbf", given_jobs(*jobs)).grants["new"].share_with == ("b",)
    assert decide("sjf-ffs", given_jobs(*jobs)).grants["new"].share_with == ("a",)


def test_the_slowdown_of_each_with_the_other_at_its_own_count_decides() -> None:
    xi = {
        ("old", "new", 4): 1.2,
        ("new", "old", 1): 3.0,
        ("old", "new", 1): 99.0,
        ("new", "old", 4): 99.0,
    }
    jobs = (job("old", 100.0, gpus=4, held=(0, 1, 2, 3)), job("new", 10.0))
    assert "new" in decide("sjf-bsbf", given_jobs(*jobs, xi=xi)).grants


@BOTH
def test_idle_gpus_come_first_and_of_the_partner_no_more_than_lack(policy: str) -> None:
    placed = planned(
        policy, given_jobs(job("old", 100.0, gpus=3, held=(0, 1, 2)), job("new", 10.0, gpus=2))
    )
    assert placed.decision.grants["new"].shared_gpus == 1
    assert placed.placement.placement.by_job["new"] == (0, 3)


@BOTH
def test_by_the_papers_text_a_job_that_shares_leaves_idle_gpus_alone(policy: str) -> None:
    decision = decide(
        policy,
        given_jobs(job("old", 100.0, gpus=3, held=(0, 1, 2)), job("new", 10.0, gpus=2)),
        idle_first=False,
    )
    assert decision.grants["new"].shared_gpus == 2


@BOTH
def test_who_finds_too_few_gpus_waits_with_nothing(policy: str) -> None:
    round_input = given_jobs(
        job("old", 100.0, gpus=2, held=(0, 1)),
        job("full", 9.0, gpus=2, held=(2, 3), per_gpu=64),
        job("new", 5.0, gpus=4),
    )
    decision = decide(policy, round_input)
    assert "new" not in decision.grants
    assert decision.reasons["new"].evidence == {
        "needed_gpus": 4,
        "idle_gpus": 0,
        "gpus_with_one_job": 4,
    }


@BOTH
def test_several_partners_are_joined_where_one_has_too_few_gpus(policy: str) -> None:
    round_input = given_jobs(
        job("a", 100.0, gpus=2, held=(0, 1)),
        job("b", 90.0, gpus=2, held=(2, 3)),
        job("new", 5.0, gpus=4),
    )
    result = planned(policy, round_input)
    assert set(result.decision.grants["new"].share_with) == {"a", "b"}
    assert result.placement.placement.by_job["new"] == (0, 1, 2, 3)


@BOTH
def test_no_gpu_gets_a_third_job(policy: str) -> None:
    round_input = given_jobs(
        job("a", 100.0, gpus=4, held=(0, 1, 2, 3)),
        job("b", 90.0, gpus=4, held=(0, 1, 2, 3)),
        job("new", 1.0),
        xi=1.0,
    )
    assert (
        "new"
        not in decide(policy, replace(round_input, cluster=replace(CLUSTER, jobs_per_gpu=3))).grants
    )


@BOTH
def test_on_gpus_that_hold_one_job_each_nothing_is_shared(policy: str) -> None:
    alone = Cluster.parse("t4=1x4")
    assert (
        "new"
        not in decide(
            policy,
            given_jobs(
                job("old", 100.0, gpus=4, held=(0, 1, 2, 3)), job("new", 1.0), cluster=alone
            ),
        ).grants
    )


@BOTH
def test_a_new_job_halves_its_batch_until_it_fits_with_its_partner_and_accumulates(
    policy: str,
) -> None:
    """48 of 64 samples are taken. Of 32, passes of 2 to 16 samples fit.

    A pass takes a second, so the largest is best.
    """
    round_input = given_jobs(
        job("old", 1000.0, gpus=4, held=(0, 1, 2, 3), per_gpu=48),
        job("new", 10.0, gpus=2, per_gpu=32),
    )
    assert decide(policy, round_input).grants["new"].batch == BatchPlan(64, 16, 1)


@BOTH
def test_where_memory_has_no_room_even_for_the_smallest_batch_nothing_is_shared(
    policy: str,
) -> None:
    round_input = given_jobs(
        job("old", 1000.0, gpus=4, held=(0, 1, 2, 3), per_gpu=48),
        job("new", 10.0, gpus=2, per_gpu=32, smallest=17),
    )
    assert decide(policy, round_input).reasons["new"].primary is ReasonCode.SHARING_NO_GAIN


@BOTH
def test_limits_not_derived_from_memory_leave_room_for_any_job(policy: str) -> None:
    """The one known batch of both is the largest; only the slowdowns pair them."""
    old, new = (
        job(name, seconds, gpus=2, per_gpu=LARGEST)
        for name, seconds in (("old", 1000.0), ("new", 10.0))
    )
    limits = {"t4": MemoryLimits(LARGEST, LARGEST, fills_gpu=False)}
    running = replace(
        old, spec=replace(old.spec, memory=limits), allocation=Allocation("t4", (0, 1))
    )
    newcomer = replace(new, spec=replace(new.spec, memory=limits))
    cluster = replace(Cluster.parse("t4=1x2"), jobs_per_gpu=2)
    assert decide(policy, given_jobs(running, newcomer, cluster=cluster)).grants[
        "new"
    ].batch == BatchPlan(2 * LARGEST, LARGEST, 0)
    assert (
        "new"
        not in decide(policy, given_jobs(running, newcomer, cluster=cluster, xi=math.inf)).grants
    )


@BOTH
def test_the_table_is_read_by_the_name_under_which_it_knows_a_job(policy: str) -> None:
    old, new = job("old", 100.0, held=(0, 1, 2, 3), gpus=4), job("new", 10.0)
    renamed = replace(new, spec=replace(new.spec, shares_as="LM (batch size 20)"))
    table = {
        ("old", "new", 4): 1.0,
        ("new", "old", 1): 1.0,
        ("old", "LM (batch size 20)", 4): math.inf,
        ("LM (batch size 20)", "old", 1): 1.0,
    }
    assert "new" in decide(policy, given_jobs(old, new, xi=table)).grants
    assert "new" not in decide(policy, given_jobs(old, renamed, xi=table)).grants


def test_bsbf_counts_the_time_of_accumulation_and_waiting_with_the_whole_batch() -> None:
    """At xi 1.9 and 100 s left, a job of 40 s would share (108.5 < 120).

    In two passes its 40 s become 80 s (136.6), while waiting stays at 120 s.
    """
    roomy, tight = (job("old", 100.0, gpus=4, held=(0, 1, 2, 3), per_gpu=n) for n in (8, 48))
    assert (
        "new"
        in decide(
            "sjf-bsbf", given_jobs(roomy, job("new", 40.0, gpus=2, per_gpu=32), xi=1.9)
        ).grants
    )
    assert (
        "new"
        not in decide(
            "sjf-bsbf", given_jobs(tight, job("new", 40.0, gpus=2, per_gpu=32), xi=1.9)
        ).grants
    )


@BOTH
def test_a_halved_batch_stays_so_while_its_job_runs_and_leaves_room_to_no_other(
    policy: str,
) -> None:
    first = given_jobs(
        job("old", 1000.0, gpus=4, held=(0, 1, 2, 3), per_gpu=48),
        job("new", 10.0, gpus=2, per_gpu=32),
    )
    began = decide(policy, first)
    later = replace(
        first,
        jobs=(first.jobs[0], replace(first.jobs[1], allocation=Allocation("t4", (0, 1)))),
        state=began.state,
    )
    again = decide(policy, later)
    assert again.grants["new"].batch == began.grants["new"].batch == BatchPlan(64, 16, 1)
    assert again.state == began.state
    assert decide(policy, replace(later, jobs=first.jobs[:1])).state.data == {"halvings": {}}


@BOTH
def test_state_of_other_parameters_is_not_read(policy: str) -> None:
    stranger = PolicyState("srtf", "x", {"halvings": {"new": 2}})
    round_input = given_jobs(job("new", 10.0, gpus=2, per_gpu=32, held=(0, 1)))
    assert decide(policy, replace(round_input, state=stranger)).grants["new"].batch == BatchPlan(
        64, 32, 0
    )


def test_what_sharing_costs_must_be_known_for_a_benefit_but_not_for_first_fit() -> None:
    round_input = given_jobs(job("old", 100.0, gpus=4, held=(0, 1, 2, 3)), job("new", 10.0), xi={})
    assert "new" not in decide("sjf-bsbf", round_input).grants
    assert "new" in decide("sjf-ffs", round_input).grants


@BOTH
def test_models_that_do_not_fit_on_one_gpu_are_kept_apart(policy: str) -> None:
    jobs = (job("old", 100.0, gpus=4, held=(0, 1, 2, 3)), job("new", 10.0))
    assert "new" not in decide(policy, given_jobs(*jobs, xi=math.inf)).grants


@pytest.mark.parametrize(("xi", "joins"), [(1.2, True), (1.49, True), (1.5, False), (2.5, False)])
@pytest.mark.parametrize("unknown", ["old", "new", "both"])
def test_a_job_of_unknown_length_shares_where_that_gains_at_any_length(
    xi: float, joins: bool, unknown: str
) -> None:
    old = job("old", 100.0, gpus=4, held=(0, 1, 2, 3), known=unknown == "new")
    new = job("new", 10.0, gpus=2, known=unknown == "old")
    decision = decide("sjf-bsbf", given_jobs(old, new, xi=xi))
    assert ("new" in decision.grants) is joins
    if joins:
        assert decision.grants["new"].share_with == ("old",)
    else:
        assert decision.reasons["new"].primary is ReasonCode.SHARING_NO_GAIN


def test_a_job_whose_work_nobody_has_said_is_of_unknown_length() -> None:
    """Else any newcomer would rather share with it, at any cost, than wait for its end."""
    old = job("old", 100.0, gpus=4, held=(0, 1, 2, 3))
    endless = replace(
        old,
        spec=replace(old.spec, work=UNKNOWN_WORK),
        remaining_work=UNKNOWN_WORK,
        remaining_steps=None,
    )
    new = job("new", 10.0, gpus=2)
    assert "new" not in decide("sjf-bsbf", given_jobs(endless, new, xi=2.5)).grants
    assert "new" in decide("sjf-bsbf", given_jobs(endless, new, xi=1.2)).grants


def test_jobs_of_unknown_length_come_last_first_come_first_served() -> None:
    full = job("full", 1e6, gpus=3, held=(0, 1, 2), per_gpu=64)
    first, second = (
        replace(one, spec=replace(one.spec, submitted_at=at))
        for one, at in ((job("a", 1.0, known=False), 1.0), (job("b", 1.0, known=False), 2.0))
    )
    long = job("long", 1e5)
    decision = decide("sjf-bsbf", given_jobs(full, second, first, xi=2.5))
    assert set(decision.grants) == {"full", "a"}, "the idle GPU goes to who came first"
    decision = decide("sjf-bsbf", given_jobs(full, second, first, long, xi=2.5))
    assert set(decision.grants) == {"full", "long"}


def test_a_job_of_unknown_length_is_told_that_its_length_is_what_lacks() -> None:
    unknown = job("new", 10.0, known=False)
    old = job("old", 100.0, gpus=4, held=(0, 1, 2, 3))
    waits = decide("sjf-bsbf", given_jobs(old, unknown, xi=2.5)).reasons["new"]
    assert "How long it runs is not known" in waits.sentence
    known = decide("sjf-bsbf", given_jobs(old, job("new", 90.0), xi=2.5)).reasons["new"]
    assert known.primary is ReasonCode.SHARING_NO_GAIN
    assert "not known" not in known.sentence


# ---- pairs of which no slowdown is known


def unknown_pair(*, tenant: str, policy: str = "sjf-bsbf", smallest: int = 1) -> Reasons:
    """Return why a job waits beside one of another tenant or its own, of whom nothing is known."""
    given = given_jobs(
        job("old", 100.0, gpus=4, held=(0, 1, 2, 3), per_gpu=48),
        job("new", 10.0, gpus=2, per_gpu=32, smallest=smallest),
    )
    old, new = given.jobs
    old = replace(old, spec=replace(old.spec, tenant=tenant, model="secret"))
    new = replace(new, spec=replace(new.spec, tenant="mine"))
    return decide(policy, replace(given, jobs=(old, new), interference={})).reasons["new"]


def test_a_job_of_which_no_slowdown_is_known_waits_for_that_reason() -> None:
    why = unknown_pair(tenant="mine")
    assert why.primary is ReasonCode.SHARING_UNKNOWN
    assert (why.evidence["model"], why.evidence["partner_model"]) == ("new", "secret")
    assert "not known how much new and secret slow each other." in why.sentence


def test_the_model_of_another_tenant_is_not_named() -> None:
    why = unknown_pair(tenant="other")
    assert why.primary is ReasonCode.SHARING_UNKNOWN
    assert "secret" not in f"{why.evidence} {why.sentence}"
    assert "how much new and the jobs of other tenants there slow each other." in why.sentence


def test_where_memory_has_no_room_it_is_not_for_a_slowdown_that_the_job_waits() -> None:
    assert unknown_pair(tenant="mine", smallest=17).primary is ReasonCode.SHARING_NO_GAIN


# ---- pairs of which more is known than when they were joined


def joined(xi: float, *jobs: Job) -> RoundInput:
    """Return the round after one in which `new` joined `old` at a slowdown of 1.2."""
    first = given_jobs(*jobs)
    began = decide("sjf-bsbf", first)
    assert began.grants["new"].share_with == ("old",)
    runs = tuple(
        replace(one, allocation=Allocation("t4", (0, 1, 2, 3)), started_at=0.0) for one in jobs
    )
    return replace(given_jobs(*runs, xi=xi), state=began.state)


def pair(old: float = 1000.0, new: float = 900.0, **fields: bool) -> tuple[Job, Job]:
    return (
        job("old", old, gpus=4, held=(0, 1, 2, 3), **fields),
        job("new", new, gpus=4, **fields),
    )


@pytest.mark.parametrize("known", [True, False])
def test_a_pair_that_turns_out_to_lose_is_parted_and_stays_so(known: bool) -> None:
    round_input = joined(2.5, *pair(old=1000.0, new=2000.0, known=known))
    parted = decide("sjf-bsbf", round_input)
    assert set(parted.grants) == {"old"}
    assert parted.reasons["new"].primary is ReasonCode.SHARING_NO_GAIN
    assert "is parted from it" in parted.reasons["new"].sentence
    waits = replace(round_input.jobs[1], allocation=None)
    later = replace(round_input, jobs=(round_input.jobs[0], waits), state=parted.state)
    assert set(decide("sjf-bsbf", later).grants) == {"old"}


def test_the_shorter_of_a_pair_that_is_parted_goes_on() -> None:
    parted = decide("sjf-bsbf", joined(2.5, *pair(old=1000.0, new=900.0)))
    assert set(parted.grants) == {"new"}


@pytest.mark.parametrize("xi", [1.0, 1.1, 1.2, 1.4])
def test_a_pair_that_still_gains_shares_on(xi: float) -> None:
    result = planned("sjf-bsbf", joined(xi, *pair()))
    assert set(result.decision.grants) == {"old", "new"}
    assert not [one for one in result.changes.items if one.before != one.after]


def test_a_pair_is_not_parted_for_less_than_the_restart_costs() -> None:
    """At 1.5 of 30 s left each, sharing ends at 45 s, and waiting at 30 and 60: a tie."""
    assert set(decide("sjf-bsbf", joined(1.52, *pair(30.0, 30.0))).grants) == {"old", "new"}
    assert len(decide("sjf-bsbf", joined(1.52, *pair(9e4, 9e4))).grants) == 1


def test_a_pair_of_which_nothing_new_is_known_is_not_judged_again() -> None:
    """The rule has no preemption: what was joined by the same slowdowns stays to the end."""
    old, new = pair(old=1000.0, new=100.0)
    first = given_jobs(old, new, xi=2.0)
    began = decide("sjf-bsbf", first)
    assert began.grants["new"].share_with == ("old",)
    held = replace(new, allocation=Allocation("t4", (0, 1, 2, 3)), remaining_steps=90.0)
    nearly = replace(old, remaining_steps=100.0)
    again = decide("sjf-bsbf", replace(first, jobs=(nearly, held), state=began.state))
    assert set(again.grants) == {"old", "new"}


def test_who_may_not_be_moved_is_not_parted_from_its_partner() -> None:
    round_input = joined(2.5, *pair(old=1000.0, new=2000.0))
    pins = {name: Grant("t4", 4) for name in ("old", "new")}
    assert set(decide("sjf-bsbf", replace(round_input, pinned=pins)).grants) == {"old", "new"}
    only = {"new": pins["new"]}
    assert set(decide("sjf-bsbf", replace(round_input, pinned=only)).grants) == {"new"}


@BOTH
def test_who_started_this_round_may_be_joined_in_it(policy: str) -> None:
    result = planned(policy, given_jobs(job("a", 10.0, gpus=4), job("b", 100.0, gpus=2), xi=1.0))
    assert result.placement.placement.by_job == {"a": (0, 1, 2, 3), "b": (0, 1)}


@given(
    total=st.integers(1, 5000),
    replicas=st.integers(1, 16),
    accumulation=st.integers(0, 4),
    smallest=st.integers(1, 40),
)
def test_every_halving_keeps_the_total_to_whole_samples_and_takes_about_half_the_memory(
    total: int, replicas: int, accumulation: int, smallest: int
) -> None:
    per_gpu = max(-(-total // (replicas * (accumulation + 1))), 1)
    plan = BatchPlan(replicas * per_gpu * (accumulation + 1), per_gpu, accumulation)
    plans = halved(plan, replicas=replicas, smallest_per_gpu=smallest)
    limits = MemoryLimits(smallest, max(per_gpu, smallest))
    assert plans[0] == plan
    for number, one in enumerate(plans[1:], start=1):
        passes = one.accumulation_steps + 1
        assert passes == (accumulation + 1) * 2**number
        assert one.total_batch_size == replicas * one.per_gpu_batch_size * passes
        assert (
            plan.total_batch_size
            <= one.total_batch_size
            < plan.total_batch_size + replicas * passes
        )
        assert one.per_gpu_batch_size >= smallest
        assert memory_share(one.per_gpu_batch_size, limits) <= memory_share(
            plans[number - 1].per_gpu_batch_size, limits
        )
