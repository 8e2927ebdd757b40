"""Who would share GPUs with whom, and what that costs all of them: partners, offers, sets of GPUs. Grants nothing.

A set of GPUs is judged by added seconds: the newcomer's end, and how much later everybody whom it meets there ends, from now on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from maat.scheduling.arrays import BoolArray, FloatArray
from maat.scheduling.batch_split import Split, both_fit
from maat.scheduling.job import JobId


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
    """A partner that a newcomer would join, and the way it would run its batch there. `added_seconds`: what the pair alone would cost, where
    that was computed."""

    partner: Partner
    split: Split
    added_seconds: float = 0.0


@dataclass(frozen=True)
class Partners:
    """P partners as arrays of shape (P,). What nobody knows is NaN."""

    of: tuple[Partner, ...]

    @cached_property
    def seconds(self) -> FloatArray:
        """Remaining seconds alone."""
        return np.array([partner.split.solo_seconds for partner in self.of], dtype=np.float64)

    @cached_property
    def memory_share(self) -> FloatArray:
        return np.array([partner.split.memory_share for partner in self.of], dtype=np.float64)

    @cached_property
    def xi(self) -> FloatArray:
        return np.array([partner.xi for partner in self.of], dtype=np.float64)

    @cached_property
    def xi_newcomer(self) -> FloatArray:
        return np.array([partner.xi_newcomer for partner in self.of], dtype=np.float64)

    def fits(self, ways: Sequence[Split]) -> BoolArray:
        """Whether there is memory beside each partner for each way to run the newcomer's batch; shape (P, W)."""
        return both_fit(self.memory_share[:, None], np.array([way.memory_share for way in ways]))


# (all ways to run the newcomer's batch, partners in order of their first GPU, seconds that it takes after waiting) -> whom to join, best first
Judge = Callable[[Sequence[Split], Partners, float], Sequence[Offer]]


@dataclass(frozen=True, slots=True)
class Site:
    """A set of GPUs for a newcomer: those of the partners in `offers`, as many as `shared`, and idle ones."""

    gpus: tuple[int, ...]
    offers: tuple[Offer, ...]
    shared: int
    split: Split
    added_seconds: float


@dataclass(frozen=True, slots=True)
class OpenGpus:
    """GPUs that a newcomer may have, by node, and whose they are: numbers of offers, -1 for nobody. In order of preference within each node."""

    by_node: Mapping[int, Sequence[tuple[int, int]]]

    @classmethod
    def of(
        cls, idle: Iterable[int], offered: Iterable[tuple[int, int]], node_of: Sequence[int]
    ) -> OpenGpus:
        """`offered`: (GPU, number of the offer). Idle GPUs before others, those of better offers before those of worse."""
        by_node: dict[int, list[tuple[int, int]]] = {}
        for gpu, number in sorted(
            [*((gpu, -1) for gpu in idle), *offered], key=lambda one: (one[1], one[0])
        ):
            by_node.setdefault(node_of[gpu], []).append((gpu, number))
        return cls(by_node)

    def within_nodes(self, count: int) -> list[Sequence[tuple[int, int]]]:
        """For each node with that many, the first of its GPUs."""
        return [gpus[:count] for gpus in self.by_node.values() if len(gpus) >= count]

    def across_nodes(self, count: int) -> list[Sequence[tuple[int, int]]]:
        """The first of all; of the last offer that is needed, GPUs on nodes that are taken from already come first."""
        every = sorted(
            (one for gpus in self.by_node.values() for one in gpus),
            key=lambda one: (one[1], one[0]),
        )
        if len(every) < count:
            return []
        last = every[count - 1][1]
        sure = [one for one in every if one[1] < last]
        node = {gpu: n for n, gpus in self.by_node.items() for gpu, _ in gpus}
        used = {node[gpu] for gpu, _ in sure}
        rest = sorted(
            (one for one in every if one[1] == last),
            key=lambda one: (node[one[0]] not in used, node[one[0]], one[0]),
        )
        return [[*sure, *rest][:count]]


def best_site(
    sets: Iterable[Sequence[tuple[int, int]]], offers: Sequence[Offer], ways: Sequence[Split]
) -> Site | None:
    """Of these sets the one of least added seconds; the first of equal ones, and None if there is none.

    `ways`: all ways to run the newcomer's batch, by number of halvings, with the seconds that they take on such a set. No set costs less than
    the dearest of its pairs would alone, so that those which cannot win are not computed.
    """
    bounded = sorted(
        ((_least(chosen, offers, ways), number, chosen) for number, chosen in enumerate(sets)),
        key=lambda one: one[:2],
    )
    best: Site | None = None
    for bound, _, chosen in bounded:
        if best is not None and bound >= best.added_seconds:
            break
        site = _site(chosen, offers, ways)
        if best is None or site.added_seconds < best.added_seconds:
            best = site
    return best


def _least(
    chosen: Sequence[tuple[int, int]], offers: Sequence[Offer], ways: Sequence[Split]
) -> float:
    return max(
        (offers[number].added_seconds for _, number in chosen if number >= 0),
        default=ways[0].solo_seconds,
    )


def _site(
    chosen: Sequence[tuple[int, int]], offers: Sequence[Offer], ways: Sequence[Split]
) -> Site:
    met = [offers[number] for number in sorted({number for _, number in chosen if number >= 0})]
    split = max((offer.split for offer in met), key=lambda split: split.halvings, default=ways[0])
    seconds = (
        met[0].added_seconds
        if len(met) == 1
        else added_seconds(ways[split.halvings].solo_seconds, [offer.partner for offer in met])
    )
    gpus = tuple(sorted(gpu for gpu, _ in chosen))
    return Site(
        gpus, tuple(met), sum(number >= 0 for _, number in chosen), ways[split.halvings], seconds
    )


def added_seconds(newcomer: float, partners: Sequence[Partner]) -> float:
    """The newcomer's end, and how much later than alone each partner ends, where all of them meet now; any number of partners.

    The newcomer goes at the pace that the worst of those who are still there leaves it (`newcomer`: its seconds alone).
    """
    now, left = 0.0, newcomer
    there = sorted(partners, key=_end_beside)
    for position, partner in enumerate(there):
        pace = max(_known(other.xi_newcomer) for other in there[position:])
        end = _end_beside(partner)
        if now + left * pace <= end:
            now += left * pace
            return now + sum(_delay(other, now) for other in there)
        now, left = end, left - (end - now) / pace
    return now + left + sum(_delay(other, now + left) for other in there)


def _end_beside(partner: Partner) -> float:
    """When the partner ends if the newcomer is there all the time."""
    return partner.split.solo_seconds * _known(partner.xi)


def _delay(partner: Partner, until: float) -> float:
    """How much later a partner ends for the company that it has from now `until` then."""
    xi = _known(partner.xi)
    return min(until, _end_beside(partner)) * (1.0 - 1.0 / xi)


def _known(xi: float | None) -> float:
    return math.inf if xi is None else xi
