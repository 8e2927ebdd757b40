"""SJF-BSBF: shortest job first; where idle GPUs lack, it shares with the running jobs of most benefit, if any (Algorithms 1 and 2)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from maat.scheduling.batch_split import Split
from maat.scheduling.pair_rule import gains, sequential_mean, together_mean
from maat.scheduling.parameters import knob, parameter_hash
from maat.scheduling.policies.sharing.partners import Offer, Partners
from maat.scheduling.policies.sharing.shortest_first import share
from maat.scheduling.rounds import Decision, RoundInput


@dataclass(frozen=True)
class SjfBsbf:
    """A newcomer joins running jobs only where the pair's mean completion time is below that of waiting for the running one's end."""

    idle_first: bool = knob(
        True,
        "Whether a job that shares takes all idle GPUs before those of others; else those of others alone.",
        source="the authors' code: yes; SJF-BSBF section V-B 2: no",
    )
    by_placement: bool = knob(
        True,
        "Whether times are computed on the very GPUs that a job would get, nodes included, and those of best end are chosen; else wherever partners stand.",
        source="SJF-BSBF: no; its time model knows no nodes",
    )
    round_seconds: float = knob(
        10.0,
        "Time between rounds.",
        unit="s",
        source="the authors' code",
        minimum=1.0,
        maximum=86400.0,
    )
    name: str = "sjf-bsbf"

    def allocate(self, round_input: RoundInput) -> Decision:
        memory = round_input.state.for_owner(self.name, parameter_hash(self))
        return share(
            round_input,
            memory,
            best_benefit,
            idle_first=self.idle_first,
            by_placement=self.by_placement,
        )


def best_benefit(ways: Sequence[Split], partners: Partners, waiting: float, /) -> list[Offer]:
    """Algorithm 2: of each partner the per-GPU batch with the least mean completion time; those that gain by sharing, by that time.

    Of ways that fit in memory beside the partner. `waiting`: the newcomer's seconds where it waits for the end instead. Without known speeds and
    slowdowns there is nothing to compare, and no offer.
    """
    if not ways or not partners.of or not math.isfinite(ways[0].solo_seconds):
        return []
    running, newcomer = partners.seconds[:, None], np.array([way.solo_seconds for way in ways])
    mean = np.where(
        partners.fits(ways),
        together_mean(running, newcomer, partners.xi[:, None], partners.xi_newcomer[:, None]),
        np.inf,
    )
    known = np.isfinite(partners.seconds) & ~np.isnan(partners.xi) & ~np.isnan(partners.xi_newcomer)
    best = mean.argmin(axis=1)
    least = mean[np.arange(len(best)), best]
    shares = known & gains(least, sequential_mean(partners.seconds, np.asarray(waiting)))
    order = [i for i in np.argsort(least, kind="stable").tolist() if shares[i]]
    return [
        Offer(partners.of[i], ways[best[i]], float(2.0 * least[i] - partners.seconds[i]))
        for i in order
    ]
