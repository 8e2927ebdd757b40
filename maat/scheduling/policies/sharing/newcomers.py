"""Find GPUs for a job that holds none: idle ones, else GPUs shared with partners.

Only looks: `shortest_first.py` starts the job.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from maat.scheduling.batch_split import Split
from maat.scheduling.job import JobId
from maat.scheduling.policies.sharing.batches import Batches
from maat.scheduling.policies.sharing.gpu_counts import GpuCounts
from maat.scheduling.policies.sharing.gpu_holders import GpuHolders
from maat.scheduling.policies.sharing.limit_places import LimitPlaces
from maat.scheduling.policies.sharing.partner_search import PartnerSearch, may_share
from maat.scheduling.policies.sharing.partners import (
    Judge,
    Offer,
    OpenGpus,
    Partner,
    Site,
    best_site,
)
from maat.scheduling.rounds import Grant, RoundInput


@dataclass(frozen=True)
class Start:
    """How a job would start: its type, grant, halvings, and GPUs shared by partner."""

    gpu_type: int
    grant: Grant
    halvings: int = 0
    shared: Mapping[JobId, int] = field(default_factory=dict)


@dataclass(frozen=True)
class SharingRule:
    """Which partners a newcomer joins, and which GPUs it takes; see `share`.

    `needs_slowdowns`: whether it joins nobody of whom the slowdowns are not known.
    """

    judge: Judge
    idle_first: bool
    needs_slowdowns: bool = False


@dataclass(frozen=True)
class Newcomers:
    """What newcomers can get. `holders` is None if grants name no GPUs."""

    round_input: RoundInput
    rule: SharingRule
    batches: Batches
    places: LimitPlaces
    counts: GpuCounts
    holders: GpuHolders | None
    search: PartnerSearch

    def start(self, row: int) -> Start | None:
        """Return how a job starts: alone, else shared; None if it waits."""
        alone = self._alone(row)
        return self._shared(row) if alone is None else alone

    def sharing_types(self, row: int) -> Iterator[int]:
        """Yield the types on which partners hold as many GPUs as the job would share."""
        if may_share(self.round_input.jobs[row]):
            for t in self.batches.types(row):
                if self._to_share(row, t) <= self.counts.joinable(t) and self.places.fit(row, t):
                    yield t

    def possible_partners(self, row: int) -> list[Partner]:
        """Return the jobs that leave room for this one, and that it could join if that paid."""
        spec = self.round_input.jobs[row].spec
        found = []
        for t in self.sharing_types(row):
            partners, ways = self.search.partners(spec, t), self.batches.ways(row, t)
            if ways and partners.of:
                room = np.flatnonzero(partners.fits(ways).any(axis=1))
                found += [partners.of[i] for i in room.tolist()]
        return found

    def _alone(self, row: int) -> Start | None:
        """Return a start on idle GPUs of the fastest type that has enough."""
        count = self.round_input.jobs[row].spec.requested_gpus
        for t in self.batches.types(row):
            if self.counts.idle(t) >= count and self.places.fit(row, t):
                name = self.round_input.cluster.type_names[t]
                gpus = None if self.holders is None else self.holders.packed(name, count)
                plan = self.batches.whole_plan(row, t)
                return Start(t, Grant(name, count, batch=plan, gpus=gpus))
        return None

    def _shared(self, row: int) -> Start | None:
        """Return a start with partners, on the fastest type where they suffice."""
        for t in self.sharing_types(row):
            if self.holders is None:
                start = self._with_first_offers(row, t)
            else:
                start = self._at_best_site(row, t, self.holders)
            if start is not None:
                return start
        return None

    def _to_share(self, row: int, t: int) -> int:
        """Return how many GPUs of partners the job needs on a type."""
        requested = self.round_input.jobs[row].spec.requested_gpus
        return requested - (self.counts.idle(t) if self.rule.idle_first else 0)

    # ---- by counts: the placer chooses the GPUs

    def _with_first_offers(self, row: int, t: int) -> Start | None:
        """Return a start with the first partners offered that suffice."""
        ways, needed = self.batches.ways(row, t), self._to_share(row, t)
        waiting = ways[0].solo_seconds if ways else math.inf
        partners = self.search.partners(self.round_input.jobs[row].spec, t)
        offers = _enough(self.rule.judge(ways, partners, waiting), needed)
        if not offers:
            return None
        shared: dict[JobId, int] = {}
        for offer in offers:
            shared[offer.partner.job_id] = min(offer.partner.alone, needed)
            needed -= shared[offer.partner.job_id]
        split = max((offer.split for offer in offers), key=lambda split: split.halvings)
        return self._sharing(row, t, shared, split)

    # ---- by placement: the grant names the GPUs

    def _at_best_site(self, row: int, t: int, holders: GpuHolders) -> Start | None:
        site = self._best_site(row, t, holders)
        if site is None:
            return None
        shared = {
            offer.partner.job_id: len(set(holders.alone(offer.partner.job_id)) & set(site.gpus))
            for offer in site.offers
        }
        return self._sharing(row, t, shared, site.split, site.gpus)

    def _best_site(self, row: int, t: int, holders: GpuHolders) -> Site | None:
        """Return the set of GPUs with the least added seconds, on one node or on several.

        All partners on its GPUs must be offered for that number of nodes.
        """
        ways, spec = self.batches.ways(row, t), self.round_input.jobs[row].spec
        if not ways:
            return None
        partners, count = self.search.partners(spec, t), spec.requested_gpus
        name = self.round_input.cluster.type_names[t]
        idle = holders.idle(name) if self._uses_idle(t) else []
        found = []
        for apart in (False, True) if count > 1 else (False,):
            ways_there = tuple(way.apart() for way in ways) if apart else ways
            offers = sorted(
                self.rule.judge(ways_there, partners, ways[0].solo_seconds),
                key=lambda offer: offer.added_seconds,
            )
            offered = (
                (gpu, number)
                for number, offer in enumerate(offers)
                for gpu in holders.alone(offer.partner.job_id)
            )
            gpus = OpenGpus.of(idle, offered, holders.node_of)
            sets = gpus.across_nodes(count) if apart else gpus.within_nodes(count)
            found.append(best_site(sets, offers, ways_there))
        return min(
            (site for site in found if site is not None),
            key=lambda site: site.added_seconds,
            default=None,
        )

    def _uses_idle(self, t: int) -> bool:
        return self.rule.idle_first and self.counts.idle(t) > 0

    def _sharing(
        self,
        row: int,
        t: int,
        shared: Mapping[JobId, int],
        split: Split,
        gpus: tuple[int, ...] | None = None,
    ) -> Start:
        grant = Grant(
            self.round_input.cluster.type_names[t],
            self.round_input.jobs[row].spec.requested_gpus,
            share_with=tuple(shared),
            shared_gpus=sum(shared.values()),
            batch=split.plan,
            gpus=gpus,
        )
        return Start(t, grant, split.halvings, shared)


def _enough(offers: Sequence[Offer], needed: int) -> list[Offer]:
    """Return the first offers with `needed` GPUs in total, or none."""
    taken: list[Offer] = []
    for offer in offers:
        taken.append(offer)
        if sum(o.partner.alone for o in taken) >= needed:
            return taken
    return []
