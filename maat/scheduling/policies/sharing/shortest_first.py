"""What policies that share GPUs have in common (SJF-BSBF Algorithm 1): shortest first, idle GPUs, else beside partners. Judges no pair.

No job is preempted or moved for another. A GPU holds two jobs at most, however many the cluster allows: the pair rule knows two.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from maat.scheduling.batch_split import Split
from maat.scheduling.explain import ReasonCode, Reasons
from maat.scheduling.free_capacity import exceeds, free_places, never_fits, waiting_for
from maat.scheduling.job import Job, JobId, JobSpec
from maat.scheduling.limits import Limit
from maat.scheduling.policies.ordering import in_order, requests
from maat.scheduling.policies.sharing.batches import Batches
from maat.scheduling.policies.sharing.gpu_holders import GpuHolders
from maat.scheduling.policies.sharing.partners import (
    Judge,
    Offer,
    OpenGpus,
    Partner,
    Partners,
    Site,
    best_site,
)
from maat.scheduling.rounds import Decision, Grant, PolicyState, RoundInput
from maat.scheduling.solving.report import SolveReport


def share(
    round_input: RoundInput,
    memory: PolicyState,
    judge: Judge,
    *,
    idle_first: bool,
    by_placement: bool = False,
) -> Decision:
    """What runs stays; then the shortest first on idle GPUs, else beside the partners that `judge` offers.

    `idle_first`: a job that shares takes all idle GPUs and as many of partners' as it lacks (the authors' code); else partners' alone (the
    paper's text). A partner of which only some GPUs are needed is joined on those. Of several, the one that leaves least memory sets the
    newcomer's per-GPU batch. Where the offered partners do not suffice the job waits, with nothing.

    `by_placement`: times are those on the very GPUs that a job would get, several nodes included; of the sets of GPUs whose partners are all
    offered there it gets the one with the least added seconds, and the grant names it.
    """
    table = _Table(round_input, memory, by_placement=by_placement)
    waiting = [row for row in range(len(round_input.jobs)) if not table.keep(row)]
    for row in in_order({row: table.batches.rank(row) for row in waiting}):
        if not table.alone(row) and not table.together(row, judge, idle_first=idle_first):
            table.refuse(row)
    return Decision(
        table.grants,
        SolveReport(),
        table.reasons,
        state=replace(memory, data=table.batches.remembered(table.grants)),
    )


class _Table:
    """Grants given so far in one round, GPUs that are idle or hold one job, and the places that limits leave."""

    def __init__(self, round_input: RoundInput, memory: PolicyState, *, by_placement: bool) -> None:
        self._input, self._wanted = round_input, requests(round_input)
        self.batches = Batches(self._wanted, memory)
        self._left: list[int] = free_places(round_input).tolist()
        self._rows = {job.id: row for row, job in enumerate(round_input.jobs)}
        self._stays: set[JobId] = set()
        self._unjoined: dict[JobId, int] = {}
        self._partners_of: dict[tuple[str, int, int], Partners] = {}
        self._joinable = [0] * len(round_input.cluster.type_names)
        self._unshared: set[JobId] = set()
        self.grants: dict[JobId, Grant] = dict(round_input.pinned)
        self.reasons: dict[JobId, Reasons] = {}
        self._idle = self._count_gpus()
        self._holders = self._find_holders() if by_placement else None

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
        t = self.batches.types(row)[0]
        self._grant(
            row,
            Grant(
                self._input.cluster.type_names[t],
                job.spec.requested_gpus,
                batch=self.batches.running_plan(row, t),
            ),
            {},
        )
        return True

    def _count_gpus(self) -> list[int]:
        """Find who stays; by type, how many usable GPUs nobody who stays holds."""
        cluster = self._input.cluster
        self._stays = {job.id for row, job in enumerate(self._input.jobs) if self._may_stay(row)}
        held = {
            job.id: job.allocation
            for job in self._input.jobs
            if job.id in self._stays and job.allocation is not None
        }
        holders = Counter(gpu for allocation in held.values() for gpu in allocation.gpus)
        idle = [int(n) for n in cluster.usable_gpus]
        for gpu in holders:
            idle[int(cluster.gpu_type_of[gpu])] -= 1
        for job_id, pin in self._input.pinned.items():
            if job_id not in self._stays:  # on GPUs out of service: it is to be placed again
                idle[cluster.type_index[pin.gpu_type]] -= pin.gpu_count
        if cluster.jobs_per_gpu > 1:
            for job_id, allocation in sorted(held.items(), key=lambda item: item[1].gpus[0]):
                alone = sum(holders[gpu] == 1 for gpu in allocation.gpus)
                self._leave_open(job_id, cluster.type_index[allocation.gpu_type], alone)
        return [max(count, 0) for count in idle]

    def _find_holders(self) -> GpuHolders:
        """Those who stay on their GPUs; those who are pinned but have to move, on GPUs that are named for them."""
        held = {
            job.id: job.allocation.gpus
            for job in self._input.jobs
            if job.id in self._stays and job.allocation is not None
        }
        holders = GpuHolders(self._input.cluster, held)
        for job_id, pin in self._input.pinned.items():
            gpus = None if job_id in self._stays else holders.packed(pin.gpu_type, pin.gpu_count)
            if gpus is not None:
                holders.take(job_id, gpus)
                self.grants[job_id] = replace(pin, gpus=gpus)
        return holders

    def _may_stay(self, row: int) -> bool:
        """Whether a job's GPUs are all in service, what it asks for, and within the limits; takes its places then."""
        job = self._input.jobs[row]
        held = job.allocation
        if held is None or not self._input.cluster.gpu_available[list(held.gpus)].all():
            return False
        if job.id in self._input.pinned:
            return True
        t = self._input.cluster.type_index[held.gpu_type]
        if (
            held.gpu_count != job.spec.requested_gpus
            or t not in self.batches.types(row)
            or not self._fits(row, t)
        ):
            return False
        for r in self._limits(row, t):
            self._left[r] -= held.gpu_count
        return True

    # ---- newcomers

    def alone(self, row: int) -> bool:
        """Grant idle GPUs of the fastest type that has enough."""
        job = self._input.jobs[row]
        for t in self.batches.types(row):
            if self._idle[t] >= job.spec.requested_gpus and self._fits(row, t):
                name, count = self._input.cluster.type_names[t], job.spec.requested_gpus
                gpus = None if self._holders is None else self._holders.packed(name, count)
                self._start(
                    row,
                    t,
                    Grant(name, count, batch=self.batches.whole_plan(row, t), gpus=gpus),
                    0,
                    {},
                )
                return True
        return False

    def together(self, row: int, judge: Judge, *, idle_first: bool) -> bool:
        """Grant GPUs beside partners, on the fastest type where those that are offered have enough."""
        job = self._input.jobs[row]
        if not _may_share(job):
            return False
        for t in self.batches.types(row):
            needed = job.spec.requested_gpus - (self._idle[t] if idle_first else 0)
            if needed > self._joinable[t] or not self._fits(row, t):
                continue
            self._unshared.add(job.id)
            if self._holders is not None:
                site = self._best_site(row, t, judge, self._holders, idle_first=idle_first)
                if site is not None:
                    self._come_to(row, t, site)
                    return True
            else:
                ways = self.batches.ways(row, t)
                joined = self._joined(
                    judge(ways, self._partners(row, t), ways[0].solo_seconds if ways else math.inf),
                    needed,
                )
                if joined:
                    self._join(row, t, joined, needed)
                    return True
        return False

    def _best_site(
        self, row: int, t: int, judge: Judge, holders: GpuHolders, *, idle_first: bool
    ) -> Site | None:
        """The set of GPUs with the least added seconds, on one node or on several, all of whose partners are offered there."""
        ways, partners = self.batches.ways(row, t), self._partners(row, t)
        if not ways:
            return None
        name, count = self._input.cluster.type_names[t], self._input.jobs[row].spec.requested_gpus
        idle = holders.idle(name) if idle_first and self._idle[t] else []
        found = []
        for apart in (False, True) if count > 1 else (False,):
            so = tuple(way.apart() for way in ways) if apart else ways
            offers = sorted(
                judge(so, partners, ways[0].solo_seconds), key=lambda offer: offer.added_seconds
            )
            beside = (
                (gpu, number)
                for number, offer in enumerate(offers)
                for gpu in holders.alone(offer.partner.job_id)
            )
            gpus = OpenGpus.of(idle, beside, holders.node_of)
            sets = gpus.across_nodes(count) if apart else gpus.within_nodes(count)
            found.append(best_site(sets, offers, so))
        return min(
            (site for site in found if site is not None),
            key=lambda site: site.added_seconds,
            default=None,
        )

    def _come_to(self, row: int, t: int, site: Site) -> None:
        shared = {
            offer.partner.job_id: len(set(self._alone(offer.partner.job_id)) & set(site.gpus))
            for offer in site.offers
        }
        self._share(row, t, shared, site.split, site.gpus)

    def _alone(self, job_id: JobId) -> list[int]:
        return [] if self._holders is None else self._holders.alone(job_id)

    def _joined(self, offers: Sequence[Offer], needed: int) -> list[Offer]:
        """The first offers that have enough GPUs together; none where they have not."""
        taken: list[Offer] = []
        for offer in offers:
            taken.append(offer)
            if sum(o.partner.alone for o in taken) >= needed:
                return taken
        return []

    def _join(self, row: int, t: int, joined: Sequence[Offer], needed: int) -> None:
        split, left, shared = (
            max((offer.split for offer in joined), key=lambda split: split.halvings),
            needed,
            dict[JobId, int](),
        )
        for offer in joined:
            shared[offer.partner.job_id] = min(offer.partner.alone, left)
            left -= shared[offer.partner.job_id]
        self._share(row, t, shared, split, None)

    def _share(
        self,
        row: int,
        t: int,
        shared: Mapping[JobId, int],
        split: Split,
        gpus: tuple[int, ...] | None,
    ) -> None:
        """Grant the job so many GPUs of each partner, and idle ones."""
        for partner, many in shared.items():
            self._leave_open(partner, t, -many)
        name, count, many = (
            self._input.cluster.type_names[t],
            self._input.jobs[row].spec.requested_gpus,
            sum(shared.values()),
        )
        grant = Grant(
            name, count, share_with=tuple(shared), shared_gpus=many, batch=split.plan, gpus=gpus
        )
        self._start(
            row, t, grant, split.halvings, {"shared_gpus": many, "shares_with": ", ".join(shared)}
        )

    def _start(
        self,
        row: int,
        t: int,
        grant: Grant,
        halvings: int,
        evidence: Mapping[str, float | int | str | None],
    ) -> None:
        job = self._input.jobs[row]
        for r in self._limits(row, t):
            self._left[r] -= grant.gpu_count
        own = grant.gpu_count - grant.shared_gpus
        self._idle[t] -= own
        if self._input.cluster.jobs_per_gpu > 1:
            self._leave_open(job.id, t, own)
        if self._holders is not None and grant.gpus is not None:
            self._holders.take(job.id, grant.gpus)
        self.batches.tell(job.id, halvings)
        self._grant(row, grant, evidence)

    def _grant(
        self, row: int, grant: Grant, evidence: Mapping[str, float | int | str | None]
    ) -> None:
        job = self._input.jobs[row]
        self.grants[job.id] = grant
        batch: dict[str, float | int | str | None] = {}
        if grant.batch is not None:
            batch = {
                "per_gpu_batch_size": grant.batch.per_gpu_batch_size,
                "accumulation_steps": grant.batch.accumulation_steps,
            }
        self.reasons[job.id] = Reasons(
            ReasonCode.GRANTED,
            {"gpu_type": grant.gpu_type, "gpu_count": grant.gpu_count, **batch, **evidence},
        )

    def _leave_open(self, job_id: JobId, t: int, gpus: int) -> None:
        """So many more GPUs of a type are held by this job without company."""
        self._unjoined[job_id] = self._unjoined.get(job_id, 0) + gpus
        self._partners_of.clear()
        self._joinable[t] += gpus

    def _partners(self, row: int, t: int) -> Partners:
        """Jobs that hold GPUs of a type without company, those that the table says do not fit beside the job left out.

        The same for all jobs of one name and GPU count while nobody comes.
        """
        spec = self._input.jobs[row].spec
        key = spec.interference_name, spec.requested_gpus, t
        if key not in self._partners_of:
            self._partners_of[key] = Partners(tuple(self._found_partners(spec, t)))
        return self._partners_of[key]

    def _found_partners(self, spec: JobSpec, t: int) -> Iterator[Partner]:
        known = self._input.interference
        for job_id, alone in self._unjoined.items():
            other = self._input.job_by_id[job_id]
            split = (
                self.batches.running_way(self._rows[job_id], t)
                if alone and self._type_of(job_id) == t and _may_share(other)
                else None
            )
            if split is None:
                continue
            if self._holders is not None and self._holders.node_count(job_id) > 1:
                split = split.apart()
            xi = known.get(
                (
                    other.spec.interference_name,
                    spec.interference_name,
                    self.grants[job_id].gpu_count,
                )
            )
            xi_newcomer = known.get(
                (spec.interference_name, other.spec.interference_name, spec.requested_gpus)
            )
            if xi is None or xi_newcomer is None or math.isfinite(xi + xi_newcomer):
                yield Partner(job_id, alone, split, xi, xi_newcomer)

    # ---- who gets nothing

    def refuse(self, row: int) -> None:
        job, types = self._input.jobs[row], self.batches.types(row)
        possible = [t for t in types if not self._too_small(row, t)]
        if not types:
            self.reasons[job.id] = never_fits(
                self._wanted.jobs[row], self._input, needed=job.spec.requested_gpus
            )
        elif not possible:
            self.reasons[job.id] = exceeds(self._too_small(row, types[0]))
        else:
            self.reasons[job.id] = self._waiting(row, possible)

    def _waiting(self, row: int, possible: Sequence[int]) -> Reasons:
        job = self._input.jobs[row]
        idle = max(self._idle[t] for t in possible)
        evidence: dict[str, float | int | str | None] = {
            "needed_gpus": job.spec.requested_gpus,
            "idle_gpus": idle,
        }
        lacking = next((limit for t in possible for limit in self._lacking(row, t)), None)
        if lacking is not None:
            return Reasons(waiting_for(lacking), {**evidence, "binding_limit": lacking.name})
        joinable = max(self._joinable[t] for t in possible)
        code = (
            ReasonCode.SHARING_NO_GAIN if job.id in self._unshared else ReasonCode.BEHIND_IN_ORDER
        )
        return Reasons(code, {**evidence, "gpus_with_one_job": joinable})

    def _too_small(self, row: int, t: int) -> list[Limit]:
        """The limits that the job's request breaks by itself on a type."""
        needed = self._input.jobs[row].spec.requested_gpus
        return [
            limit for r in self._limits(row, t) if (limit := self._input.limits[r]).places < needed
        ]

    def _lacking(self, row: int, t: int) -> list[Limit]:
        needed = self._input.jobs[row].spec.requested_gpus
        return [self._input.limits[r] for r in self._limits(row, t) if self._left[r] < needed]

    # ---- looked up

    def _type_of(self, job_id: JobId) -> int:
        return (
            self._input.cluster.type_index[self.grants[job_id].gpu_type]
            if job_id in self.grants
            else -1
        )

    def _limits(self, row: int, t: int) -> list[int]:
        spec, name = self._input.jobs[row].spec, self._input.cluster.type_names[t]
        return [
            r
            for r, limit in enumerate(self._input.limits)
            if limit.counts(spec, name, spec.requested_gpus)
        ]

    def _fits(self, row: int, t: int) -> bool:
        return not self._lacking(row, t)


def _may_share(job: Job) -> bool:
    """Who has promised an answer in time keeps its GPUs to itself."""
    return job.spec.promised_seconds is None
