"""Claims of a decision: each yields, in sentences, what breaks it. None of them decides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from maat.scheduling.arrays import IntArray
from maat.scheduling.checks import check_decision
from maat.scheduling.errors import ContractViolation
from maat.scheduling.explain import ReasonCode
from maat.scheduling.job import JobId
from maat.scheduling.matrix import evaluate_pairs
from maat.scheduling.own.decision import can_train
from maat.scheduling.rounds import Decision, Grant, RoundInput

Claim = Callable[[Decision, RoundInput], Iterator[str]]


def keeps_the_rules_of_every_round(decision: Decision, round_input: RoundInput) -> Iterator[str]:
    try:
        check_decision(decision, round_input)
    except ContractViolation as broken:
        yield str(broken)


def exceeds_no_limit_unless_pinned_jobs_already_do(
    decision: Decision, round_input: RoundInput
) -> Iterator[str]:
    used, pinned = (_places(g, round_input) for g in (decision.grants, round_input.pinned))
    for limit in round_input.limits:
        if used[limit.name] > max(limit.places, pinned[limit.name]):
            yield f"it grants {used[limit.name]} of the {limit.places} places of {limit.name}"


def _places(grants: Mapping[JobId, Grant], round_input: RoundInput) -> Counter[str]:
    """Return the places that grants take, by the limit's name."""
    used: Counter[str] = Counter()
    for job_id, grant in grants.items():
        job = round_input.job_by_id.get(job_id)
        for limit in round_input.limits if job is not None else ():
            if job and limit.counts(job.spec, grant.gpu_type, grant.gpu_count):
                used[limit.name] += grant.gpu_count
    return used


def grants_only_what_each_job_can_use(decision: Decision, round_input: RoundInput) -> Iterator[str]:
    for job_id, grant in decision.grants.items():
        what = f"it grants {job_id} {grant.gpu_count} {grant.gpu_type}"
        job = round_input.job_by_id.get(job_id)
        if job is None:
            yield f"{what}, which is no job of the round"
            continue
        if grant.gpu_type not in round_input.cluster.type_names:
            yield f"{what}, which is no type of the cluster"
        if job_id in round_input.pinned:
            continue
        spec = job.spec
        if grant.gpu_type not in spec.memory or (
            spec.gpu_types is not None and grant.gpu_type not in spec.gpu_types
        ):
            yield f"{what}, a type on which it cannot run"
        if grant.gpu_count < spec.min_gpus:
            yield f"{what}, and it takes at least {spec.min_gpus}"
        if spec.max_gpus is not None and grant.gpu_count > spec.max_gpus:
            yield f"{what}, and it takes at most {spec.max_gpus}"
        if grant.gpu_count % (unit := spec.gpus_per_replica.get(grant.gpu_type, 1)):
            yield f"{what}, and each of its replicas takes {unit}"


def gives_a_rigid_job_exactly_what_it_asks_for_or_nothing(
    decision: Decision, round_input: RoundInput
) -> Iterator[str]:
    for job in round_input.jobs:
        grant = decision.grants.get(job.id)
        if job.spec.is_rigid and grant is not None and grant.gpu_count != job.spec.gpu_count:
            yield f"{job.id} asks for {job.spec.gpu_count} GPUs and is granted {grant.gpu_count}"


def leaves_a_pinned_job_what_it_holds(decision: Decision, round_input: RoundInput) -> Iterator[str]:
    for job in round_input.jobs:
        held, grant = job.allocation, decision.grants.get(job.id)
        if held is None or not (job.restarting or not job.spec.preemptible):
            continue
        if grant is None or (grant.gpu_type, grant.gpu_count) != (held.gpu_type, held.gpu_count):
            got = "nothing" if grant is None else f"{grant.gpu_count} {grant.gpu_type}"
            yield f"{job.id} must keep its {held.gpu_count} {held.gpu_type} and is granted {got}"


def breaks_no_promise_of_a_latency_bound_job_knowingly(
    decision: Decision, round_input: RoundInput
) -> Iterator[str]:
    cluster = round_input.cluster
    rows = [
        row
        for row, job in enumerate(round_input.jobs)
        if job.spec.promised_seconds is not None
        and job.id in decision.grants
        and job.id not in round_input.pinned
        and can_train(job, decision.grants[job.id], round_input)
    ]
    given = [decision.grants[round_input.jobs[row].id] for row in rows]
    kinds = _ints([cluster.type_index[grant.gpu_type] for grant in given])
    nodes = [
        grant.node_count or -(-grant.gpu_count // int(cluster.gpus_per_node[kind]))
        for grant, kind in zip(given, kinds, strict=True)
    ]
    pairs = evaluate_pairs(
        round_input.jobs,
        cluster,
        job=_ints(rows),
        gpu_type=kinds,
        gpu_count=_ints([grant.gpu_count for grant in given]),
        node_count=_ints(nodes),
        column=np.zeros(len(rows), dtype=np.int64),
        projection=round_input.projection,
    )
    for pair in np.flatnonzero(pairs.known & (pairs.goodput != 1.0)).tolist():
        job, grant = round_input.jobs[rows[pair]], given[pair]
        yield (
            f"{job.id} promises a batch within {job.spec.promised_seconds:g} s, which "
            f"{grant.gpu_count} {grant.gpu_type} are known to break"
        )


def _ints(values: list[int]) -> IntArray:
    return np.array(values, dtype=np.int64)


def gives_every_job_a_reason(decision: Decision, round_input: RoundInput) -> Iterator[str]:
    known = {job.id for job in round_input.jobs}
    for job_id in sorted(set(decision.reasons) ^ known):
        yield f"{job_id} {'has no reason' if job_id in known else 'is no job, and has a reason'}"
    for job in round_input.jobs:
        if job.id not in decision.reasons:
            continue
        reason = decision.reasons[job.id]
        if not reason.sentence:
            yield f"the reason of {job.id} has no sentence"
        for name, value in reason.evidence.items():
            if value is not None and not isinstance(value, int | float | str):
                yield f"the evidence {name} of {job.id} is a {type(value).__name__}"
        if job.id in round_input.pinned:
            if reason.primary is not ReasonCode.PINNED:
                yield f"{job.id} is pinned, and its reason is {reason.primary}"
        elif (reason.primary is ReasonCode.GRANTED) != (job.id in decision.grants):
            yield f"the reason of {job.id} is {reason.primary}, which is not so"


def has_a_certificate_that_bounds_what_was_decided(
    decision: Decision, round_input: RoundInput
) -> Iterator[str]:
    report = decision.report
    if not np.isfinite([report.objective, report.bound, report.gap]).all():
        yield "objective, bound or gap of its report is not finite"
    elif report.bound < report.objective - 1e-9 * abs(report.objective):
        yield f"the bound {report.bound:g} is below the objective {report.objective:g}"
    known = {limit.name for limit in round_input.limits}
    for name, price in report.prices.items():
        if name not in known and not name.startswith("shape:"):
            yield f"it prices {name}, which is no limit of the round and no shape"
        if not price >= 0:
            yield f"the price of {name} is {price:g}"


CLAIMS: tuple[Claim, ...] = (
    keeps_the_rules_of_every_round,
    exceeds_no_limit_unless_pinned_jobs_already_do,
    grants_only_what_each_job_can_use,
    gives_a_rigid_job_exactly_what_it_asks_for_or_nothing,
    leaves_a_pinned_job_what_it_holds,
    breaks_no_promise_of_a_latency_bound_job_knowingly,
    gives_every_job_a_reason,
    has_a_certificate_that_bounds_what_was_decided,
)
