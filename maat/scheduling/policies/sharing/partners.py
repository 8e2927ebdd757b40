"""Partners, offers and sets of GPUs, and what sharing would cost.

A set of GPUs is judged by its added seconds: the seconds until the newcomer ends, plus the delay
of every partner on the set.
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
    """A job that a newcomer may join.

    `alone`: how many GPUs it holds alone; `split`: how it runs its batch; `xi`: its slowdown by
    the newcomer, and `xi_newcomer`: the newcomer's slowdown by it, None if not known.
    """

    job_id: JobId
    alone: int
    split: Split
    xi: float | None
    xi_newcomer: float | None

    @property
    def is_known(self) -> bool:
        """Whether it is known what the two lose beside each other."""
        return self.xi is not None and self.xi_newcomer is not None


@dataclass(frozen=True, slots=True)
class Offer:
    """A partner that a newcomer would join, and the newcomer's batch there.

    `added_seconds`: what the pair alone would cost; 0 if the policy does not compute it.
    """

    partner: Partner
    split: Split
    added_seconds: float = 0.0


@dataclass(frozen=True)
class Partners:
    """P partners as arrays of shape (P,); unknown values are NaN."""

    of: tuple[Partner, ...]

    @cached_property
    def seconds(self) -> FloatArray:
        """Remaining seconds if the partner ran alone."""
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
        """Return whether memory has room for each partner and each way, shape (P, W).

        `ways`: the W ways to run the newcomer's batch.
        """
        return both_fit(self.memory_share[:, None], np.array([way.memory_share for way in ways]))


# Arguments: all ways to run the newcomer's batch; partners in order of their first GPU; the seconds
# that the newcomer takes if it waits for the partner's end. Returns the partners to join, best
# first.
Judge = Callable[[Sequence[Split], Partners, float], Sequence[Offer]]


@dataclass(frozen=True, slots=True)
class Site:
    """GPUs for a newcomer: `shared` GPUs of partners, and idle ones."""

    gpus: tuple[int, ...]
    offers: tuple[Offer, ...]
    shared: int
    split: Split
    added_seconds: float


@dataclass(frozen=True, slots=True)
class OpenGpus:
    """GPUs that a newcomer may take, by node, best first.

    Each is (GPU, number of the offer), with number -1 for an idle GPU.
    """

    by_node: Mapping[int, Sequence[tuple[int, int]]]

    @classmethod
    def of(
        cls, idle: Iterable[int], offered: Iterable[tuple[int, int]], node_of: Sequence[int]
    ) -> OpenGpus:
        """Sort GPUs by node: idle ones first, then those of better offers.

        `offered`: (GPU, number of the offer).
        """
        by_node: dict[int, list[tuple[int, int]]] = {}
        for gpu, number in sorted(
            [*((gpu, -1) for gpu in idle), *offered], key=lambda one: (one[1], one[0])
        ):
            by_node.setdefault(node_of[gpu], []).append((gpu, number))
        return cls(by_node)

    def within_nodes(self, count: int) -> list[Sequence[tuple[int, int]]]:
        """Return, for each node with enough GPUs, its first `count`."""
        return [gpus[:count] for gpus in self.by_node.values() if len(gpus) >= count]

    def across_nodes(self, count: int) -> list[Sequence[tuple[int, int]]]:
        """Return one set of the first `count` GPUs of all nodes, if there are.

        Of the last offer that is needed, GPUs on nodes already in the set come first.
        """
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
    """Return the set with the least added seconds; None without sets.

    Of equal sets the first is taken. A set costs at least as much as its most expensive pair would
    alone; sets with a bound above the best cost are skipped.

    Args:
        ways: All ways to run the newcomer's batch, by number of halvings, with the seconds that
            they take on such a set.
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
    """Return the seconds to the newcomer's end plus the delay of each partner.

    All jobs meet now. The newcomer, which takes `newcomer` seconds alone, runs at the pace of the
    worst slowdown by a partner that still runs.
    """
    now, left = 0.0, newcomer
    there = sorted(partners, key=_end_beside)
    for position, partner in enumerate(there):
        pace = max(_or_infinite(other.xi_newcomer) for other in there[position:])
        end = _end_beside(partner)
        if now + left * pace <= end:
            now += left * pace
            return now + sum(_delay(other, now) for other in there)
        now, left = end, left - (end - now) / pace
    return now + left + sum(_delay(other, now + left) for other in there)


def _end_beside(partner: Partner) -> float:
    """Return when the partner ends if the newcomer stays to its end."""
    return partner.split.solo_seconds * _or_infinite(partner.xi)


def _delay(partner: Partner, until: float) -> float:
    """Return how much later a partner ends if it shares until then."""
    xi = _or_infinite(partner.xi)
    return 0.0 if xi == 1.0 else min(until, _end_beside(partner)) * (1.0 - 1.0 / xi)


def _or_infinite(xi: float | None) -> float:
    return math.inf if xi is None else xi
