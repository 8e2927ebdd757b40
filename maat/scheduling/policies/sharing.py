"""What policies that share GPUs have in common (SJF-BSBF Algorithm 1): shortest first, idle GPUs, else beside partners. Judges no pair.

No job is preempted or moved for another. A GPU holds two jobs at most, however many the cluster allows: the pair rule knows two.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from maat.scheduling.assignment import exceeds, free_places, never_fits, waiting_for
from maat.scheduling.explain import ReasonCode, Reasons
from maat.scheduling.goodput import BatchPlan
from maat.scheduling.job import Job, JobId
from maat.scheduling.limits import Limit
from maat.scheduling.policies.ordering import in_order, requests
from maat.scheduling.rounds import Decision, Grant, PolicyState, RoundInput
from maat.scheduling.solver import SolveReport
from maat.scheduling.sub_batch import Split, job_halved, splits

HALVINGS = "halvings"


@dataclass(frozen=True, slots=True)
class Partner:
    """A job on whose GPUs a newcomer may come. `alone`: how many it holds without company; `xi`: its slowdown beside the newcomer, whose own is
    `xi_newcomer`; None where nobody knows them."""

    job_id: JobId
    alone: int
    split: Split
    xi: float | None
    xi_newcomer: float | None


@dataclass(frozen=True, slots=True)
class Offer:
    """A partner that a newcomer would join, and the way it would run its batch there."""

    partner: Partner
    split: Split


# (all ways to run the newcomer's batch, partners in order of their first GPU) -> whom to join, best first
Judge = Callable[[Sequence[Split], Sequence[Partner]], Sequence[Offer]]


def share(round_input: RoundInput, memory: PolicyState, judge: Judge, *, idle_first: bool) -> Decision:
    """What runs stays; then the shortest first on idle GPUs, else beside the partners that `judge` offers.

    `idle_first`: a job that shares takes all idle GPUs and as many of partners' as it lacks (the authors' code); else partners' alone (the
    paper's text). A partner of which only some GPUs are needed is joined on those. Of several, the one that leaves least memory sets the
    newcomer's per-GPU batch. Where the offered partners do not suffice the job waits, with nothing.
    """
    table = _Table(round_input, memory)
    waiting = [row for row in range(len(round_input.jobs)) if not table.keep(row)]
    for row in in_order({row: table.rank(row) for row in waiting}):
        if not table.alone(row) and not table.together(row, judge, idle_first=idle_first):
            table.refuse(row)
    return Decision(table.grants, SolveReport(), table.reasons, state=replace(memory, data=table.remembered()))


def fitting(ways: Sequence[Split], partner: Partner) -> list[Split]:
    """The ways whose memory is there beside the partner, the largest batch first."""
    return [way for way in ways if way.fits_beside(partner.split)]


class _Table:
    """Grants given so far in one round, GPUs that are idle or hold one job, and the places that limits leave."""

    def __init__(self, round_input: RoundInput, memory: PolicyState) -> None:
        self._input, self._wanted = round_input, requests(round_input)
        self._halvings: Mapping[str, Any] = memory.data.get(HALVINGS, {})  # type: ignore[assignment]
        self._left: list[int] = free_places(round_input).tolist()
        self._ways: dict[tuple[int, int], tuple[Split, ...]] = {}
        self._types_of: dict[int, list[int]] = {}
        self._rows = {job.id: row for row, job in enumerate(round_input.jobs)}
        self._stays: set[JobId] = set()
        self._unjoined: dict[JobId, int] = {}
        self._joinable = [0] * len(round_input.cluster.type_names)
        self._unshared: set[JobId] = set()
        self.grants: dict[JobId, Grant] = dict(round_input.pinned)
        self.reasons: dict[JobId, Reasons] = {}
        self._idle = self._count_gpus()

    # ---- what runs

    def keep(self, row: int) -> bool:
        """Let a running job be where it is; False for one that has no GPUs, or GPUs that it can no longer have."""
        job = self._input.jobs[row]
        if job.id in self._input.pinned:
            evidence = {"restarting": int(job.restarting), "preemptible": int(job.spec.preemptible)}
            self.reasons[job.id] = Reasons(ReasonCode.PINNED, evidence)
            return True
        if job.id not in self._stays:
            return False
        t = self._types(row)[0]
        self._grant(row, t, Grant(self._input.cluster.type_names[t], job.spec.requested_gpus, batch=self._running_plan(row, t)), {})
        return True

    def _count_gpus(self) -> list[int]:
        """Find who stays; by type, how many usable GPUs nobody who stays holds."""
        cluster = self._input.cluster
        self._stays = {job.id for row, job in enumerate(self._input.jobs) if self._may_stay(row)}
        held = {job.id: job.allocation for job in self._input.jobs if job.id in self._stays and job.allocation is not None}
        holders = Counter(gpu for allocation in held.values() for gpu in allocation.gpus)
        idle = [int(n) for n in cluster.usable_gpus]
        for gpu in holders:
            idle[int(cluster.gpu_type_of[gpu])] -= 1
        for job_id, pin in self._input.pinned.items():
            if job_id not in self._stays:  # on GPUs out of service: it is to be placed anew
                idle[cluster.type_index[pin.gpu_type]] -= pin.gpu_count
        if cluster.jobs_per_gpu > 1:
            for job_id, allocation in sorted(held.items(), key=lambda item: item[1].gpus[0]):
                alone = sum(holders[gpu] == 1 for gpu in allocation.gpus)
                self._leave_open(job_id, cluster.type_index[allocation.gpu_type], alone)
        return [max(count, 0) for count in idle]

    def _may_stay(self, row: int) -> bool:
        """Whether a job's GPUs are all in service, what it asks for, and within the limits; takes its places then."""
        job = self._input.jobs[row]
        held = job.allocation
        if held is None or not self._input.cluster.gpu_available[list(held.gpus)].all():
            return False
        if job.id in self._input.pinned:
            return True
        t = self._input.cluster.type_index[held.gpu_type]
        if held.gpu_count != job.spec.requested_gpus or t not in self._types(row) or not self._fits(row, t):
            return False
        for r in self._limits(row, t):
            self._left[r] -= held.gpu_count
        return True

    def _running_plan(self, row: int, t: int) -> BatchPlan | None:
        """How a job that stays runs its batch: as it was told when it started."""
        job, plan = self._input.jobs[row], self._wanted.plan(row, t)
        told = int(self._halvings.get(job.id, 0))
        if plan is None or not told:
            return plan
        plans = job_halved(job, plan, self._input.cluster.type_names[t])
        return plans[min(told, len(plans) - 1)]

    def _split_of(self, row: int, t: int) -> Split | None:
        """The same with what it takes in time and memory; None where no batch is known for it."""
        ways = self._splits(row, t)
        told = self._halvings.get(self._input.jobs[row].id, 0)
        return ways[min(int(told), len(ways) - 1)] if ways else None

    # ---- newcomers

    def rank(self, row: int) -> tuple[float, float]:
        """Remaining time on the fastest type, then order of submission."""
        best = min((ways[0].solo_seconds for t in self._types(row) if (ways := self._splits(row, t))), default=math.inf)
        return best, self._input.jobs[row].spec.submitted_at

    def alone(self, row: int) -> bool:
        """Grant idle GPUs of the fastest type that has enough."""
        job = self._input.jobs[row]
        for t in self._types(row):
            if self._idle[t] >= job.spec.requested_gpus and self._fits(row, t):
                ways = self._splits(row, t)
                plan = ways[0].plan if ways else self._wanted.plan(row, t)
                self._start(row, t, Grant(self._input.cluster.type_names[t], job.spec.requested_gpus, batch=plan), 0, {})
                return True
        return False

    def together(self, row: int, judge: Judge, *, idle_first: bool) -> bool:
        """Grant GPUs beside partners, on the fastest type where those that are offered have enough."""
        job = self._input.jobs[row]
        if not _may_share(job):
            return False
        for t in self._types(row):
            needed = job.spec.requested_gpus - (self._idle[t] if idle_first else 0)
            if needed <= self._joinable[t] and self._fits(row, t):
                self._unshared.add(job.id)
                joined = self._joined(judge(self._splits(row, t), self._partners(row, t)), needed)
                if joined:
                    self._join(row, t, joined, needed)
                    return True
        return False

    def _joined(self, offers: Sequence[Offer], needed: int) -> list[Offer]:
        """The first offers that have enough GPUs together; none where they have not."""
        taken: list[Offer] = []
        for offer in offers:
            taken.append(offer)
            if sum(o.partner.alone for o in taken) >= needed:
                return taken
        return []

    def _join(self, row: int, t: int, joined: Sequence[Offer], needed: int) -> None:
        job, split = self._input.jobs[row], max((offer.split for offer in joined), key=lambda split: split.halvings)
        left = needed
        for offer in joined:
            many = min(offer.partner.alone, left)
            self._leave_open(offer.partner.job_id, t, -many)
            left -= many
        partners = tuple(offer.partner.job_id for offer in joined)
        name, count = self._input.cluster.type_names[t], job.spec.requested_gpus
        grant = Grant(name, count, share_with=partners, shared_gpus=needed, batch=split.plan)
        self._start(row, t, grant, split.halvings, {"shared_gpus": needed, "shares_with": ", ".join(partners)})

    def _start(self, row: int, t: int, grant: Grant, halvings: int, evidence: Mapping[str, float | int | str | None]) -> None:
        job = self._input.jobs[row]
        for r in self._limits(row, t):
            self._left[r] -= grant.gpu_count
        own = grant.gpu_count - grant.shared_gpus
        self._idle[t] -= own
        if self._input.cluster.jobs_per_gpu > 1:
            self._leave_open(job.id, t, own)
        self._halvings = {**self._halvings, job.id: halvings}
        self._grant(row, t, grant, evidence)

    def _grant(self, row: int, t: int, grant: Grant, evidence: Mapping[str, float | int | str | None]) -> None:
        job = self._input.jobs[row]
        self.grants[job.id] = grant
        batch: dict[str, float | int | str | None] = {}
        if grant.batch is not None:
            batch = {"per_gpu_batch_size": grant.batch.per_gpu_batch_size, "accumulation_steps": grant.batch.accumulation_steps}
        self.reasons[job.id] = Reasons(ReasonCode.GRANTED, {"gpu_type": grant.gpu_type, "gpu_count": grant.gpu_count, **batch, **evidence})

    def _leave_open(self, job_id: JobId, t: int, gpus: int) -> None:
        """So many more GPUs of a type are held by this job without company."""
        self._unjoined[job_id] = self._unjoined.get(job_id, 0) + gpus
        self._joinable[t] += gpus

    def _partners(self, row: int, t: int) -> list[Partner]:
        """Jobs that hold GPUs of a type without company, those that the table says do not fit beside the job left out."""
        job, known = self._input.jobs[row], self._input.interference
        found = []
        for job_id, alone in self._unjoined.items():
            other = self._input.job_by_id[job_id]
            split = self._split_of(self._rows[job_id], t) if alone and self._type_of(job_id) == t and _may_share(other) else None
            if split is None:
                continue
            xi = known.get((other.spec.model, job.spec.model, self.grants[job_id].gpu_count))
            xi_newcomer = known.get((job.spec.model, other.spec.model, job.spec.requested_gpus))
            if xi is None or xi_newcomer is None or math.isfinite(xi + xi_newcomer):
                found.append(Partner(job_id, alone, split, xi, xi_newcomer))
        return found

    # ---- who gets nothing

    def refuse(self, row: int) -> None:
        job, types = self._input.jobs[row], self._types(row)
        possible = [t for t in types if not self._too_small(row, t)]
        if not types:
            self.reasons[job.id] = never_fits(self._wanted.jobs[row], self._input, needed=job.spec.requested_gpus)
        elif not possible:
            self.reasons[job.id] = exceeds(self._too_small(row, types[0]))
        else:
            self.reasons[job.id] = self._waiting(row, possible)

    def _waiting(self, row: int, possible: Sequence[int]) -> Reasons:
        job = self._input.jobs[row]
        idle = max(self._idle[t] for t in possible)
        evidence: dict[str, float | int | str | None] = {"needed_gpus": job.spec.requested_gpus, "idle_gpus": idle}
        lacking = next((limit for t in possible for limit in self._lacking(row, t)), None)
        if lacking is not None:
            return Reasons(waiting_for(lacking), {**evidence, "binding_limit": lacking.name})
        joinable = max(self._joinable[t] for t in possible)
        code = ReasonCode.SHARING_NO_GAIN if job.id in self._unshared else ReasonCode.BEHIND_IN_ORDER
        return Reasons(code, {**evidence, "gpus_with_one_job": joinable})

    def _too_small(self, row: int, t: int) -> list[Limit]:
        """The limits that the job's request breaks by itself on a type."""
        needed = self._input.jobs[row].spec.requested_gpus
        return [limit for r in self._limits(row, t) if (limit := self._input.limits[r]).places < needed]

    def _lacking(self, row: int, t: int) -> list[Limit]:
        needed = self._input.jobs[row].spec.requested_gpus
        return [self._input.limits[r] for r in self._limits(row, t) if self._left[r] < needed]

    # ---- looked up

    def remembered(self) -> dict[str, object]:
        """How often the per-GPU batch of each running job was halved, where it was."""
        return {HALVINGS: {job_id: int(h) for job_id, h in self._halvings.items() if h and job_id in self.grants}}

    def _type_of(self, job_id: JobId) -> int:
        return self._input.cluster.type_index[self.grants[job_id].gpu_type] if job_id in self.grants else -1

    def _types(self, row: int) -> list[int]:
        """The types on which a job can run: what it holds, then the fastest."""
        if row not in self._types_of:
            held = self._input.jobs[row].allocation
            present = None if held is None else self._input.cluster.type_index[held.gpu_type]
            self._types_of[row] = sorted(self._wanted.fastest_types(row), key=lambda t: t != present)
        return self._types_of[row]

    def _splits(self, row: int, t: int) -> tuple[Split, ...]:
        """The ways to run a job's batch on a type; none where no batch is known for it."""
        if (row, t) not in self._ways:
            plan = self._wanted.plan(row, t) if t in self._wanted.usable[row] else None
            name = self._input.cluster.type_names[t]
            self._ways[row, t] = () if plan is None else splits(self._input.jobs[row], plan, gpu_type=name, round_input=self._input)
        return self._ways[row, t]

    def _limits(self, row: int, t: int) -> list[int]:
        spec, name = self._input.jobs[row].spec, self._input.cluster.type_names[t]
        return [r for r, limit in enumerate(self._input.limits) if limit.counts(spec, name, spec.requested_gpus)]

    def _fits(self, row: int, t: int) -> bool:
        return not self._lacking(row, t)


def _may_share(job: Job) -> bool:
    """Who has promised an answer in time keeps its GPUs to itself."""
    return job.spec.promised_seconds is None
