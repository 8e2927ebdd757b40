"""SJF-BSBF: shares GPUs where two jobs gain by it (Algorithms 1 and 2)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from maat.scheduling.arrays import BoolArray
from maat.scheduling.batch_split import Split
from maat.scheduling.pair_rule import (
    gains,
    gains_at_any_length,
    sequential_mean,
    together_mean,
)
from maat.scheduling.parameters import knob, parameter_hash
from maat.scheduling.policies.misjudged import length_error_knob, misjudged
from maat.scheduling.policies.sharing.partners import Offer, Partners
from maat.scheduling.policies.sharing.shortest_first import share
from maat.scheduling.protocols import GpuSharing
from maat.scheduling.rounds import Decision, RoundInput


@dataclass(frozen=True)
class SjfBsbf:
    """Shortest job first; shares if the pair's mean completion time is lower.

    The alternative is to wait until the running job ends. A pair of which other slowdowns are known
    than when it was joined is judged again, and parted if it loses.
    """

    idle_first: bool = knob(
        True,
        "Whether a job that shares takes all idle GPUs first; if not, it takes GPUs of partners "
        "alone.",
        source="the authors' code: yes; SJF-BSBF section V-B 2: no",
    )
    by_placement: bool = knob(
        True,
        "Whether the policy names the GPUs, by times that include the cost of several nodes; if "
        "not, it ranks partners regardless of their nodes.",
        source="SJF-BSBF: no; its time model knows no nodes",
    )
    length_error: float = length_error_knob()
    default_round_seconds: ClassVar[float] = 10.0  # the authors' code
    gpu_sharing: ClassVar[GpuSharing] = GpuSharing.CHOSEN
    name: str = "sjf-bsbf"

    def allocate(self, round_input: RoundInput) -> Decision:
        memory = round_input.state.for_owner(self.name, parameter_hash(self))
        return share(
            misjudged(round_input, self.length_error),
            memory,
            best_benefit,
            idle_first=self.idle_first,
            by_placement=self.by_placement,
            needs_slowdowns=True,
        )


def best_benefit(ways: Sequence[Split], partners: Partners, waiting: float, /) -> list[Offer]:
    """Return the partners with which sharing beats waiting, best first.

    Where both lengths are known, the pair's mean completion times are compared, and pairs come by
    that mean. Where one is not, the pair must gain at any length, and comes after those. A partner
    of unknown slowdown is not offered.

    Args:
        waiting: The newcomer's seconds alone, after it has waited for the partner's end.
    """
    if not ways or not partners.of:
        return []
    known = np.isfinite(partners.seconds) & math.isfinite(ways[0].solo_seconds)
    return [
        *_of_known_length(ways, partners, waiting, known),
        *_at_any_length(ways, partners, known),
    ]


def _of_known_length(
    ways: Sequence[Split], partners: Partners, waiting: float, known: BoolArray
) -> Iterator[Offer]:
    """Yield the partners by mean completion time (Theorem 1).

    For each the per-GPU batch of least mean is chosen, among those that fit in memory.
    """
    if not known.any():
        return
    running, newcomer = partners.seconds[:, None], np.array([way.solo_seconds for way in ways])
    mean = np.where(
        partners.fits(ways),
        together_mean(running, newcomer, partners.xi[:, None], partners.xi_newcomer[:, None]),
        np.inf,
    )
    slowed = ~np.isnan(partners.xi) & ~np.isnan(partners.xi_newcomer)
    best = mean.argmin(axis=1)
    least = mean[np.arange(len(best)), best]
    shares = known & slowed & gains(least, sequential_mean(partners.seconds, np.asarray(waiting)))
    for i in np.argsort(least, kind="stable").tolist():
        if shares[i]:
            yield Offer(partners.of[i], ways[best[i]], float(2.0 * least[i] - partners.seconds[i]))


def _at_any_length(ways: Sequence[Split], partners: Partners, known: BoolArray) -> Iterator[Offer]:
    """Yield the partners of which a length is not known, in their order.

    The newcomer runs its whole batch: what more passes cost is not known either.
    """
    shares = (
        ~known
        & partners.fits(ways[:1])[:, 0]
        & gains_at_any_length(partners.xi, partners.xi_newcomer)
    )
    for i in np.flatnonzero(shares).tolist():
        yield Offer(partners.of[i], ways[0], math.inf)
