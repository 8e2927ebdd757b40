"""What every policy keeps of quotas, weights and priority classes."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from contracts.generated import SOLVED_BY_CVXPY, sampled
from contracts.generated_quotas import crowded_rounds, quota_rounds
from hypothesis import given

from maat.scheduling.explain import ReasonCode
from maat.scheduling.job import Job
from maat.scheduling.limits import Limit, LimitKind
from maat.scheduling.loop import plan_round
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES, suiting_placer
from maat.scheduling.protocols import GpuSharing, Policy
from maat.scheduling.quotas import TenantQuota
from maat.scheduling.quotas.demand import demand_of
from maat.scheduling.quotas.rounds import quota_limits
from maat.scheduling.rounds import Decision, RoundInput
from maat.scheduling.solving.engines import Solver
from maat.scheduling.solving.report import SolveReport
from maat.vocabulary import PRIORITIES, priority_class


@pytest.fixture(params=POLICIES.names, scope="module")
def policy(request: pytest.FixtureRequest) -> Policy:
    return POLICIES.build(request.param)


@pytest.fixture(params=SOLVED_BY_CVXPY, scope="module")
def stated(request: pytest.FixtureRequest) -> Policy:
    """A policy whose programmes are solved by CVXPY."""
    return POLICIES.build(request.param, {"solver": Solver.CVXPY.value})


def quotas_of(round_input: RoundInput) -> Mapping[str, TenantQuota]:
    given_ones = {quota.tenant: quota for quota in round_input.quotas}
    tenants = {job.spec.tenant for job in round_input.jobs}
    return {name: given_ones.get(name, TenantQuota(tenant=name)) for name in tenants}


def held(decision: Decision, round_input: RoundInput) -> Counter[tuple[str, str]]:
    """GPUs by tenant and type."""
    found: Counter[tuple[str, str]] = Counter()
    for job_id, grant in decision.grants.items():
        found[round_input.job_by_id[job_id].spec.tenant, grant.gpu_type] += grant.gpu_count
    return found


def pinned(round_input: RoundInput) -> Counter[tuple[str, str]]:
    return held(Decision(dict(round_input.pinned), SolveReport(), {}), round_input)


def no_tenant_has_more_than_its_ceiling(decision: Decision, round_input: RoundInput) -> None:
    kept = pinned(round_input)
    for (tenant, gpu_type), gpus in held(decision, round_input).items():
        ceiling = quotas_of(round_input)[tenant].ceiling.get(gpu_type, gpus)
        assert gpus <= max(ceiling, kept[tenant, gpu_type])


def nobody_is_kept_below_its_guarantee_by_what_others_borrow(
    decision: Decision, round_input: RoundInput, policy: Policy
) -> None:
    """What a waiting job needs within the guarantee is idle, or others hold it by right.

    By right: what is guaranteed to them, and what their pinned jobs hold.
    """
    has, kept, quotas = held(decision, round_input), pinned(round_input), quotas_of(round_input)
    cluster, demand = round_input.cluster, demand_of(round_input, policy)
    could_use = {job.id: most for job, most in zip(round_input.jobs, demand.most, strict=True)}
    for job in waiting(decision, round_input):
        for t in np.flatnonzero(could_use[job.id]).tolist():
            gpu_type = cluster.type_names[t]
            capacity = places(gpu_type, round_input, policy)
            mine = has[job.spec.tenant, gpu_type]
            room = quotas[job.spec.tenant].guaranteed.get(gpu_type, 0) - mine
            need = least(job, gpu_type, policy)
            if not 0 < need <= room or need > cluster.usable_gpus[cluster.type_index[gpu_type]]:
                continue
            idle = capacity - sum(has[tenant, gpu_type] for tenant in quotas)
            borrowed = sum(
                max(has[t, gpu_type] - max(q.guaranteed.get(gpu_type, 0), kept[t, gpu_type]), 0)
                for t, q in quotas.items()
                if t != job.spec.tenant
            )
            assert idle >= need or borrowed == 0 or borrowed + idle < need


def places(gpu_type: str, round_input: RoundInput, policy: Policy) -> int:
    """The GPUs of a type that jobs can have together, whatever the policy makes of them.

    One job each where it need not share them, and what reservations for others leave.
    """
    cluster = round_input.cluster
    shares = getattr(policy, "gpu_sharing", GpuSharing.PLACES_AS_GPUS)
    everywhere = shares is GpuSharing.PLACES_AS_GPUS
    found = cluster.usable_gpus[cluster.type_index[gpu_type]]
    return min(
        int(found) * (cluster.jobs_per_gpu if everywhere else 1),
        *(
            limit.places
            for limit in round_input.limits
            if limit.kind is LimitKind.RESERVATION
            and limit.gpu_type == gpu_type
            and all(limit.counts(job.spec, gpu_type, 1) for job in round_input.jobs)
        ),
        10**9,
    )


def waiting(decision: Decision, round_input: RoundInput) -> list[Job]:
    return [job for job in round_input.jobs if job.id not in decision.grants]


def least(job: Job, gpu_type: str, policy: Policy) -> int:
    """The fewest GPUs of a type that the policy could give the job; zero if none."""
    if not job.spec.may_use(gpu_type):
        return 0
    unit = job.spec.replica_gpus(gpu_type)
    if job.spec.is_rigid or not getattr(policy, "chooses_gpu_counts", False):
        return job.spec.requested_gpus if job.spec.requested_gpus % unit == 0 else 0
    return -(-max(job.spec.requested_gpus, 1) // unit) * unit


def rows_of_quotas_are_no_lower_than_what_pinned_jobs_hold(
    _: Decision, round_input: RoundInput
) -> None:
    for limit in round_input.limits:
        if limit.kind is LimitKind.QUOTA:
            kept = sum(
                pin.gpu_count
                for job_id, pin in round_input.pinned.items()
                if limit.counts(round_input.job_by_id[job_id].spec, pin.gpu_type, pin.gpu_count)
            )
            assert limit.places >= kept


def reasons_name_nobody_but_the_job_s_own_tenant(
    decision: Decision, round_input: RoundInput
) -> None:
    for job in round_input.jobs:
        reason = decision.reasons[job.id]
        if reason.primary in (ReasonCode.WAITING_QUOTA, ReasonCode.EXCEEDS_QUOTA_LIMIT):
            others = {"vision", "speech"} - {job.spec.tenant}
            assert not any(name in reason.sentence for name in others)
            assert str(reason.evidence["quota_used_gpus"]) in reason.sentence


CLAIMS = (
    no_tenant_has_more_than_its_ceiling,
    rows_of_quotas_are_no_lower_than_what_pinned_jobs_hold,
    reasons_name_nobody_but_the_job_s_own_tenant,
)


@sampled(20)
@given(round_input=quota_rounds())
def test_every_policy_keeps_quotas_and_decides_the_same_again(
    policy: Policy, round_input: RoundInput
) -> None:
    quotas_are_kept_and_the_decision_made_again(policy, round_input)


@sampled(20, usual=3)
@given(round_input=quota_rounds())
def test_quotas_are_kept_with_cvxpy_too(stated: Policy, round_input: RoundInput) -> None:
    quotas_are_kept_and_the_decision_made_again(stated, round_input)


def quotas_are_kept_and_the_decision_made_again(policy: Policy, round_input: RoundInput) -> None:
    placer = PLACERS.build(suiting_placer(policy.name))
    result = plan_round(round_input, policy, placer)
    for claim in CLAIMS:
        claim(result.decision, result.round_input)
    # A second decision lends what the policy itself left idle in the first: the first is the one
    # that must leave room for guarantees.
    rows = quota_limits(round_input, policy)
    first = policy.allocate(replace(round_input, limits=round_input.limits + rows))
    nobody_is_kept_below_its_guarantee_by_what_others_borrow(first, round_input, policy)

    copy = pickle.loads(pickle.dumps(round_input))  # noqa: S301 - our own bytes
    again = plan_round(copy, policy, placer)
    assert list(again.decision.grants.items()) == list(result.decision.grants.items())
    assert again.decision.state == result.decision.state


@pytest.mark.parametrize("placer", PLACERS.names)
@sampled(12)
@given(round_input=quota_rounds())
def test_no_round_under_quotas_breaks_a_rule_under_any_placer(
    placer: str, round_input: RoundInput
) -> None:
    plan_round(round_input, POLICIES.build("las"), PLACERS.build(placer))


@pytest.mark.parametrize("name", ["fifo", "sjf", "srtf", "las", "tiresias"])
@sampled(20)
@given(round_input=quota_rounds() | crowded_rounds())
def test_higher_classes_get_what_they_would_get_alone(name: str, round_input: RoundInput) -> None:
    """Without quotas: as if the lower classes did not exist."""
    everyone = replace(round_input, quotas=())
    policy = POLICIES.build(name)
    placer = PLACERS.build(suiting_placer(name))
    grants = plan_round(everyone, policy, placer).decision.grants
    for boundary in (0, 10, 20):
        above = tuple(
            job
            for job in everyone.jobs
            if job.spec.priority >= boundary or job.id in everyone.pinned
        )
        alone = plan_round(replace(everyone, jobs=above), policy, placer).decision.grants
        high = {job.id for job in above if job.spec.priority >= boundary}
        assert {i: g for i, g in grants.items() if i in high} == {
            i: g for i, g in alone.items() if i in high
        }


def lower_ones_hold_nothing_that_a_waiting_job_was_offered(
    decision: Decision, round_input: RoundInput, policy: Policy
) -> None:
    """Who waits while lower classes of its tenant hold what it needs has refused it.

    In the first decision of the round these classes leave all that it and those before it could
    use. It waits there too: what it lacks is not what they hold.
    """
    drawn = replace(round_input, limits=tuple(x for x in round_input.limits if not is_row(x)))
    rows = quota_limits(drawn, policy)
    first = policy.allocate(replace(drawn, limits=drawn.limits + rows))
    demand = demand_of(drawn, policy).most.tolist()
    for job in waiting(decision, round_input):
        for t, gpu_type in enumerate(round_input.cluster.type_names):
            if 0 < least(job, gpu_type, policy) <= lower_hold(job, gpu_type, decision, drawn):
                assert job.id not in first.grants
                lower = lower_hold(job, gpu_type, first, drawn)
                wanted = sum(
                    demand[row][t]
                    for row, other in enumerate(drawn.jobs)
                    if of_one_team(other, job, drawn)
                    and not is_lower(other, job, drawn)
                    and other.id not in drawn.pinned
                )
                assert lower == 0 or lower + wanted <= places(gpu_type, drawn, policy)


def lower_hold(job: Job, gpu_type: str, decision: Decision, round_input: RoundInput) -> int:
    """The GPUs of a type of lower classes of the job's team; without those of pinned jobs."""
    return sum(
        grant.gpu_count
        for job_id, grant in decision.grants.items()
        if grant.gpu_type == gpu_type
        and job_id not in round_input.pinned
        and is_lower(round_input.job_by_id[job_id], job, round_input)
    )


def nobody_lost_all_to_what_others_were_lent(
    decision: Decision, round_input: RoundInput, policy: Policy
) -> None:
    """Who waits though it was granted GPUs at first did not lose them to other tenants."""
    drawn = replace(round_input, limits=tuple(x for x in round_input.limits if not is_row(x)))
    rows = quota_limits(drawn, policy)
    first = policy.allocate(replace(drawn, limits=drawn.limits + rows))
    before, after = (gpus_of(each, round_input) for each in (first, decision))
    for job in waiting(decision, round_input):
        mine = job.spec.tenant
        if round_input.quotas and job.id in first.grants and after[mine] < before[mine]:
            assert all(after[tenant] <= before[tenant] for tenant in after)


def gpus_of(decision: Decision, round_input: RoundInput) -> Counter[str]:
    """GPUs by tenant."""
    found: Counter[str] = Counter()
    for (tenant, _), gpus in held(decision, round_input).items():
        found[tenant] += gpus
    return found


def is_row(limit: Limit) -> bool:
    return limit.kind is LimitKind.QUOTA


def is_lower(one: Job, other: Job, round_input: RoundInput) -> bool:
    """Whether the first is of a lower class of the same team."""
    classes = [PRIORITIES[priority_class(job.spec.priority)] for job in (one, other)]
    return of_one_team(one, other, round_input) and classes[0] < classes[1]


def of_one_team(one: Job, other: Job, round_input: RoundInput) -> bool:
    """Whether two jobs are of the same tenant, or there are no quotas."""
    return not round_input.quotas or one.spec.tenant == other.spec.tenant


@sampled(20)
@given(round_input=quota_rounds() | crowded_rounds())
def test_no_job_waits_for_gpus_that_lower_classes_hold(
    policy: Policy, round_input: RoundInput
) -> None:
    higher_classes_and_tenants_keep_what_they_got(policy, round_input)


@sampled(20, usual=3)
@given(round_input=quota_rounds() | crowded_rounds())
def test_no_job_waits_for_gpus_that_lower_classes_hold_with_cvxpy_too(
    stated: Policy, round_input: RoundInput
) -> None:
    higher_classes_and_tenants_keep_what_they_got(stated, round_input)


def higher_classes_and_tenants_keep_what_they_got(policy: Policy, round_input: RoundInput) -> None:
    placer = PLACERS.build(suiting_placer(policy.name))
    result = plan_round(round_input, policy, placer)
    for claim in (
        lower_ones_hold_nothing_that_a_waiting_job_was_offered,
        nobody_lost_all_to_what_others_were_lent,
    ):
        claim(result.decision, result.round_input, policy)
