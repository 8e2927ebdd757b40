"""SJF-BSBF: shortest job first; where idle GPUs lack, it shares with the running jobs of most benefit, if any (Algorithms 1 and 2)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from maat.scheduling.pair_rule import gains, sequential_mean, together_mean
from maat.scheduling.parameters import knob, parameter_hash
from maat.scheduling.policies.sharing import Offer, Partner, share
from maat.scheduling.rounds import Decision, RoundInput
from maat.scheduling.sub_batch import Split


@dataclass(frozen=True)
class SjfBsbf:
    """A newcomer joins running jobs only where the pair's mean completion time is below that of waiting for the running one's end."""

    idle_first: bool = knob(
        True,
        "Whether a job that shares takes all idle GPUs before those of others; else those of others alone.",
        source="the authors' code: yes; SJF-BSBF section V-B 2: no",
    )
    round_seconds: float = knob(10.0, "Time between rounds.", unit="s", source="the authors' code", minimum=1.0, maximum=86400.0)
    name: str = "sjf-bsbf"

    def allocate(self, round_input: RoundInput) -> Decision:
        memory = round_input.state.for_owner(self.name, parameter_hash(self))
        return share(round_input, memory, best_benefit, idle_first=self.idle_first)


def best_benefit(ways: Sequence[Split], partners: Sequence[Partner]) -> list[Offer]:
    """Algorithm 2: of each partner the per-GPU batch with the least mean completion time; those that gain by sharing, by that time.

    Of ways that fit in memory beside the partner. Waiting is reckoned with the largest batch: nobody is beside it then. Without known
    speeds and slowdowns there is nothing to compare, and no offer.
    """
    known = [p for p in partners if p.xi is not None and p.xi_newcomer is not None and math.isfinite(p.split.solo_seconds)]
    if not ways or not known or not math.isfinite(ways[0].solo_seconds):
        return []
    running = np.array([[p.split.solo_seconds] for p in known])
    newcomer = np.array([[way.solo_seconds for way in ways]])
    xi, xi_newcomer = np.array([[p.xi] for p in known], dtype=np.float64), np.array([[p.xi_newcomer] for p in known], dtype=np.float64)
    fits = np.array([[way.fits_beside(p.split) for way in ways] for p in known])
    mean = np.where(fits, together_mean(running, newcomer, xi, xi_newcomer), np.inf)
    best = mean.argmin(axis=1)
    least = mean[np.arange(len(known)), best]
    shares = gains(least, sequential_mean(running[:, 0], newcomer[0, 0]))
    order = [int(i) for i in np.argsort(least, kind="stable") if shares[i]]
    return [Offer(known[i], ways[best[i]]) for i in order]
