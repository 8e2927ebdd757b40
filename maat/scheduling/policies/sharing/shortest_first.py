"""SJF-FFS and SJF-BSBF: shortest job first, idle GPUs before shared ones.

The loop of SJF-BSBF Algorithm 1. No job is preempted or moved for another, except that a pair is
parted that loses by slowdowns of which it was not known (parting.py). At most two jobs share a GPU,
even if the cluster allows more: the pair rule knows two.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from maat.scheduling.explain import ReasonCode, Reasons
from maat.scheduling.free_capacity import exceeds, never_fits, waiting_for
from maat.scheduling.job import JobId
from maat.scheduling.pins import why_pinned
from maat.scheduling.policies.ordering import in_order
from maat.scheduling.policies.requests import requests
from maat.scheduling.policies.sharing.batches import Batches
from maat.scheduling.policies.sharing.gpu_counts import Holder
from maat.scheduling.policies.sharing.limit_places import LimitPlaces
from maat.scheduling.policies.sharing.newcomers import Newcomers, SharingRule, Start
from maat.scheduling.policies.sharing.parting import SharingPairs, Slowdowns
from maat.scheduling.policies.sharing.partner_search import PartnerSearch
from maat.scheduling.policies.sharing.partners import Judge
from maat.scheduling.policies.sharing.running import counts_beside, holders_beside, staying_jobs
from maat.scheduling.rounds import Decision, Grant, PolicyState, RoundInput
from maat.scheduling.solving.report import SolveReport


def share(
    round_input: RoundInput,
    memory: PolicyState,
    judge: Judge,
    *,
    idle_first: bool,
    by_placement: bool = False,
    needs_slowdowns: bool = False,
) -> Decision:
    """Keep running jobs, but for pairs that lose, then start waiting ones, shortest first.

    A job starts on idle GPUs if there are enough, else on GPUs of the partners that `judge`
    offers. If several partners are joined, the one that leaves least memory sets the newcomer's
    per-GPU batch. If the offered partners have too few GPUs, the job waits with none.

    Args:
        idle_first: If True, a job that shares takes all idle GPUs, and only the missing ones from
            partners (the authors' code). If False, it takes GPUs of partners alone (the paper).
        by_placement: If True, times are those on the GPUs that a job would get, including the cost
            of several nodes. The job gets the set of GPUs with the least added seconds among those
            with offered partners only, and its grant names them.
        needs_slowdowns: Whether `judge` offers no partner of which a slowdown is not known.
    """
    batches, places = Batches(requests(round_input), memory), LimitPlaces(round_input)
    pairs = SharingPairs(round_input, batches, memory)
    parted = pairs.to_part(judge)
    staying = staying_jobs(round_input, batches, places, leaving=parted.keys())
    counts = counts_beside(round_input, staying)
    holders, moved = holders_beside(round_input, staying) if by_placement else (None, {})
    search = PartnerSearch(round_input, batches, counts, holders)
    rule = SharingRule(judge, idle_first, needs_slowdowns)
    newcomers = Newcomers(round_input, rule, batches, places, counts, holders, search)
    grants: dict[JobId, Grant] = {**round_input.pinned, **moved}
    reasons: dict[JobId, Reasons] = {}
    waiting = []
    for row, job in enumerate(round_input.jobs):
        if job.id in round_input.pinned:
            reasons[job.id] = why_pinned(job)
        elif job.id in staying:
            grants[job.id] = _kept(round_input, batches, row)
            reasons[job.id] = _granted(grants[job.id])
        else:
            waiting.append(row)
    for row in in_order({row: batches.rank(row) for row in waiting}):
        job, start = round_input.jobs[row], newcomers.start(row)
        if start is None:
            reasons[job.id] = _refused(newcomers, row, parted)
        else:
            _apply(newcomers, row, start)
            grants[job.id] = start.grant
            reasons[job.id] = _granted(start.grant)
    data = {**batches.remembered(grants), **pairs.remembered(grants)}
    return Decision(grants, SolveReport(), reasons, state=replace(memory, data=data))


def _kept(round_input: RoundInput, batches: Batches, row: int) -> Grant:
    """Return the grant of a job that keeps its GPUs."""
    t = batches.types(row)[0]
    return Grant(
        round_input.cluster.type_names[t],
        round_input.jobs[row].spec.requested_gpus,
        batch=batches.running_plan(row, t),
    )


def _apply(newcomers: Newcomers, row: int, start: Start) -> None:
    """Take places and GPUs for a job that starts, and note how its batch is split."""
    job_id, grant = newcomers.round_input.jobs[row].id, start.grant
    newcomers.places.take(row, start.gpu_type)
    alone = grant.gpu_count - grant.shared_gpus
    newcomers.counts.start(
        Holder(job_id, start.gpu_type, grant.gpu_count, alone), shared=start.shared
    )
    if newcomers.holders is not None and grant.gpus is not None:
        newcomers.holders.take(job_id, grant.gpus)
    newcomers.batches.start(job_id, start.halvings)


# ---- reasons


def _granted(grant: Grant) -> Reasons:
    evidence: dict[str, float | int | str | None] = {
        "gpu_type": grant.gpu_type,
        "gpu_count": grant.gpu_count,
    }
    if grant.batch is not None:
        evidence["per_gpu_batch_size"] = grant.batch.per_gpu_batch_size
        evidence["accumulation_steps"] = grant.batch.accumulation_steps
    if grant.share_with:
        evidence["shared_gpus"] = grant.shared_gpus
        evidence["shares_with"] = ", ".join(grant.share_with)
    return Reasons(ReasonCode.GRANTED, evidence)


def _refused(newcomers: Newcomers, row: int, parted: Mapping[JobId, Slowdowns]) -> Reasons:
    """Return why a job gets no GPUs: it never fits, exceeds a limit, was parted, or waits."""
    types, places = newcomers.batches.types(row), newcomers.places
    possible = [t for t in types if not places.too_small(row, t)]
    if not types:
        wanted = newcomers.batches.wanted.jobs[row]
        needed = wanted.spec.requested_gpus
        return never_fits(wanted, newcomers.round_input, needed=needed)
    if not possible:
        return exceeds(places.too_small(row, types[0]))
    known = parted.get(newcomers.round_input.jobs[row].id)
    if known is not None:
        slowdowns = {"slowdown": known.first, "partner_slowdown": known.second}
        return Reasons(ReasonCode.SHARING_NO_GAIN, slowdowns)
    return _waiting(newcomers, row, possible)


def _waiting(newcomers: Newcomers, row: int, possible: Sequence[int]) -> Reasons:
    counts = newcomers.counts
    evidence: Mapping[str, float | int | str | None] = {
        "needed_gpus": newcomers.round_input.jobs[row].spec.requested_gpus,
        "idle_gpus": max(counts.idle(t) for t in possible),
    }
    by = "shorter jobs, and jobs that run already,"
    if math.isinf(newcomers.batches.rank(row)[0]):
        by = "jobs of known length or that came before it, and jobs that run already,"
        evidence = {**evidence, "length_is_known": False}
    lacking = next((limit for t in possible for limit in newcomers.places.lacking(row, t)), None)
    if lacking is not None:
        held = {"binding_limit": lacking.name, "held_by": by}
        return Reasons(waiting_for(lacking), {**evidence, **held})
    could_share = any(True for _ in newcomers.sharing_types(row))
    code = ReasonCode.SHARING_NO_GAIN if could_share else ReasonCode.BEHIND_IN_ORDER
    unknown = _unknown_pair(newcomers, row) if could_share else {}
    return Reasons(
        ReasonCode.SHARING_UNKNOWN if unknown else code,
        {**evidence, "gpus_with_one_job": max(map(counts.joinable, possible)), **unknown},
    )


def _unknown_pair(newcomers: Newcomers, row: int) -> Mapping[str, float | int | str | None]:
    """Return the models of a pair of which no slowdown is known; empty if there is none.

    The partner's model is named to a job of its own tenant only.
    """
    partners = newcomers.possible_partners(row) if newcomers.rule.needs_slowdowns else []
    unknown = [partner for partner in partners if not partner.is_known]
    if not unknown:
        return {}
    spec, by_id = newcomers.round_input.jobs[row].spec, newcomers.round_input.job_by_id
    others = [by_id[partner.job_id].spec for partner in unknown]
    mine = next((other.model for other in others if other.tenant == spec.tenant), None)
    known = len(unknown) < len(partners)
    return {"model": spec.model, "partner_model": mine, "gains_nowhere_else": int(known)}
