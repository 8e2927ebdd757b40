"""Claims of a policy under quotas, weights of tenants and priority classes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from maat.contracts.generated import TENANTS
from maat.contracts.repeating import copy_of, differences
from maat.contracts.subject import Subject, Trial
from maat.scheduling.explain import ReasonCode
from maat.scheduling.job import Job
from maat.scheduling.limits import LimitKind
from maat.scheduling.loop import plan_round
from maat.scheduling.protocols import GpuSharing, Policy
from maat.scheduling.quotas import TenantQuota
from maat.scheduling.quotas.demand import demand_of
from maat.scheduling.quotas.rounds import quota_limits
from maat.scheduling.rounds import Decision, RoundInput
from maat.scheduling.solving.report import SolveReport
from maat.vocabulary import PRIORITIES, priority_class


def no_tenant_has_more_than_its_ceiling(subject: Subject, trial: Trial) -> Iterator[str]:
    decision, round_input = _planned(subject, trial)
    kept, quotas = _pinned(round_input), _quotas_of(round_input)
    for (tenant, gpu_type), gpus in _gpus_by_tenant(decision, round_input).items():
        ceiling = quotas[tenant].ceiling.get(gpu_type, gpus)
        if gpus > max(ceiling, kept[tenant, gpu_type]):
            yield f"{tenant} gets {gpus} {gpu_type}, and its quota allows {ceiling}"


def reasons_name_only_the_job_s_own_tenant(subject: Subject, trial: Trial) -> Iterator[str]:
    decision, round_input = _planned(subject, trial)
    for job in round_input.jobs:
        reason = decision.reasons[job.id]
        if reason.primary in (ReasonCode.WAITING_QUOTA, ReasonCode.EXCEEDS_QUOTA_LIMIT):
            others = {*TENANTS} - {job.spec.tenant, "default"}
            if any(name in reason.sentence for name in others):
                yield f"the reason of {job.id} names another tenant: {reason.sentence}"
            if str(reason.evidence["quota_used_gpus"]) not in reason.sentence:
                yield f"the reason of {job.id} does not say what its tenant uses"


def rows_of_quotas_leave_pinned_jobs_what_they_hold(
    subject: Subject, trial: Trial
) -> Iterator[str]:
    _, round_input = _planned(subject, trial)
    for limit in round_input.limits:
        if limit.kind is LimitKind.QUOTA:
            kept = sum(
                pin.gpu_count
                for job_id, pin in round_input.pinned.items()
                if limit.counts(round_input.job_by_id[job_id].spec, pin.gpu_type, pin.gpu_count)
            )
            if limit.places < kept:
                yield f"{limit.name} has {limit.places} places, and pinned jobs hold {kept}"


def nobody_is_kept_below_its_guarantee_by_what_others_borrow(
    subject: Subject, trial: Trial
) -> Iterator[str]:
    """What a waiting job needs within the guarantee is idle, or others hold it by right.

    By right: what is guaranteed to them, and what their pinned jobs hold. It is asked of the first
    decision of a round: a second one lends what the policy itself left idle in the first.
    """
    round_input, policy = trial.round_input, subject.policy
    decision = _first_decision(round_input, policy)
    has, kept, quotas = (
        _gpus_by_tenant(decision, round_input),
        _pinned(round_input),
        _quotas_of(round_input),
    )
    cluster, demand = round_input.cluster, demand_of(round_input, policy)
    could_use = {job.id: most for job, most in zip(round_input.jobs, demand.most, strict=True)}
    for job in _waiting(decision, round_input):
        for t in np.flatnonzero(could_use[job.id]).tolist():
            gpu_type, mine = cluster.type_names[t], job.spec.tenant
            room = quotas[mine].guaranteed.get(gpu_type, 0) - has[mine, gpu_type]
            need = _least(job, gpu_type, policy)
            if not 0 < need <= room or need > cluster.usable_gpus[t]:
                continue
            idle = _places(gpu_type, round_input, policy) - sum(has[x, gpu_type] for x in quotas)
            borrowed = sum(
                max(has[x, gpu_type] - max(q.guaranteed.get(gpu_type, 0), kept[x, gpu_type]), 0)
                for x, q in quotas.items()
                if x != mine
            )
            if idle < need and borrowed != 0 and borrowed + idle >= need:
                yield (
                    f"{job.id} of {mine} waits for {need} {gpu_type} that are guaranteed to it, "
                    f"and others borrow {borrowed}"
                )


def decides_the_same_again_under_quotas(subject: Subject, trial: Trial) -> Iterator[str]:
    first, _ = _planned(subject, trial)
    again = plan_round(copy_of(trial.round_input), subject.policy, subject.placer).decision
    yield from differences(first, again)


def lower_classes_hold_nothing_that_a_waiting_job_was_offered(
    subject: Subject, trial: Trial
) -> Iterator[str]:
    """Who waits while lower classes of its tenant hold what it needs has refused it.

    In the first decision of the round these classes leave all that it and those before it could
    use. It waits there too: what it lacks is not what they hold.
    """
    policy = subject.policy
    decision, round_input = _planned(subject, trial)
    drawn = _without_rows(round_input)
    first = _first_decision(drawn, policy)
    demand = demand_of(drawn, policy).most.tolist()
    for job in _waiting(decision, round_input):
        for t, gpu_type in enumerate(round_input.cluster.type_names):
            if not 0 < _least(job, gpu_type, policy) <= _lower_hold(job, gpu_type, decision, drawn):
                continue
            lower = _lower_hold(job, gpu_type, first, drawn)
            wanted = sum(
                demand[row][t]
                for row, other in enumerate(drawn.jobs)
                if _of_one_team(other, job, drawn)
                and not _is_lower(other, job, drawn)
                and other.id not in drawn.pinned
            )
            room = _places(gpu_type, drawn, policy)
            if job.id in first.grants or (lower != 0 and lower + wanted > room):
                yield f"{job.id} waits for {gpu_type} that lower classes of its tenant hold"


def nobody_lost_all_to_what_others_were_lent(subject: Subject, trial: Trial) -> Iterator[str]:
    """Who waits though it was granted GPUs at first did not lose them to other tenants."""
    decision, round_input = _planned(subject, trial)
    first = _first_decision(_without_rows(round_input), subject.policy)
    before, after = (_gpus_of(each, round_input) for each in (first, decision))
    for job in _waiting(decision, round_input):
        mine = job.spec.tenant
        if not (round_input.quotas and job.id in first.grants and after[mine] < before[mine]):
            continue
        for tenant in after:
            if after[tenant] > before[tenant]:
                yield f"{job.id} of {mine} lost its GPUs to what {tenant} was lent"


def _planned(subject: Subject, trial: Trial) -> tuple[Decision, RoundInput]:
    result = trial.planned(subject)
    return result.decision, result.round_input


def _first_decision(round_input: RoundInput, policy: Policy) -> Decision:
    rows = quota_limits(round_input, policy)
    return policy.allocate(replace(round_input, limits=round_input.limits + rows))


def _without_rows(round_input: RoundInput) -> RoundInput:
    kept = tuple(limit for limit in round_input.limits if limit.kind is not LimitKind.QUOTA)
    return replace(round_input, limits=kept)


def _quotas_of(round_input: RoundInput) -> Mapping[str, TenantQuota]:
    given = {quota.tenant: quota for quota in round_input.quotas}
    tenants = {job.spec.tenant for job in round_input.jobs}
    return {name: given.get(name, TenantQuota(tenant=name)) for name in tenants}


def _gpus_by_tenant(decision: Decision, round_input: RoundInput) -> Counter[tuple[str, str]]:
    """Return GPUs by tenant and type."""
    held: Counter[tuple[str, str]] = Counter()
    for job_id, grant in decision.grants.items():
        held[round_input.job_by_id[job_id].spec.tenant, grant.gpu_type] += grant.gpu_count
    return held


def _pinned(round_input: RoundInput) -> Counter[tuple[str, str]]:
    return _gpus_by_tenant(Decision(dict(round_input.pinned), SolveReport(), {}), round_input)


def _gpus_of(decision: Decision, round_input: RoundInput) -> Counter[str]:
    """Return GPUs by tenant."""
    gpus: Counter[str] = Counter()
    for (tenant, _), count in _gpus_by_tenant(decision, round_input).items():
        gpus[tenant] += count
    return gpus


def _places(gpu_type: str, round_input: RoundInput, policy: Policy) -> int:
    """Return the GPUs of a type that jobs can have together, whatever the policy makes of them.

    One job each where it need not share them, and what reservations for others leave.
    """
    cluster = round_input.cluster
    sharing = getattr(policy, "gpu_sharing", GpuSharing.PLACES_AS_GPUS)
    everywhere = sharing is GpuSharing.PLACES_AS_GPUS
    usable = int(cluster.usable_gpus[cluster.type_index[gpu_type]])
    reserved = [
        limit.places
        for limit in round_input.limits
        if limit.kind is LimitKind.RESERVATION
        and limit.gpu_type == gpu_type
        and all(limit.counts(job.spec, gpu_type, 1) for job in round_input.jobs)
    ]
    return min(usable * (cluster.jobs_per_gpu if everywhere else 1), *reserved, 10**9)


def _waiting(decision: Decision, round_input: RoundInput) -> list[Job]:
    return [job for job in round_input.jobs if job.id not in decision.grants]


def _least(job: Job, gpu_type: str, policy: Policy) -> int:
    """Return the fewest GPUs of a type that the policy could give the job; zero if none."""
    if not job.spec.may_use(gpu_type):
        return 0
    unit = job.spec.replica_gpus(gpu_type)
    if job.spec.is_rigid or not getattr(policy, "chooses_gpu_counts", False):
        return job.spec.requested_gpus if job.spec.requested_gpus % unit == 0 else 0
    return -(-max(job.spec.requested_gpus, 1) // unit) * unit


def _lower_hold(job: Job, gpu_type: str, decision: Decision, round_input: RoundInput) -> int:
    """Return the GPUs that lower classes of the job's team hold, without those of pinned jobs."""
    return sum(
        grant.gpu_count
        for job_id, grant in decision.grants.items()
        if grant.gpu_type == gpu_type
        and job_id not in round_input.pinned
        and _is_lower(round_input.job_by_id[job_id], job, round_input)
    )


def _is_lower(one: Job, other: Job, round_input: RoundInput) -> bool:
    """Return whether the first is of a lower class of the same team."""
    classes = [PRIORITIES[priority_class(job.spec.priority)] for job in (one, other)]
    return _of_one_team(one, other, round_input) and classes[0] < classes[1]


def _of_one_team(one: Job, other: Job, round_input: RoundInput) -> bool:
    """Return whether two jobs are of the same tenant, or there are no quotas."""
    return not round_input.quotas or one.spec.tenant == other.spec.tenant
