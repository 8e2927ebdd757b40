"""SJF-FFS: shortest job first; where idle GPUs lack, it shares those of the first running jobs that leave memory. Tests no pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from maat.scheduling.batch_split import Split
from maat.scheduling.parameters import knob, parameter_hash
from maat.scheduling.policies.sharing.partners import Offer, Partners
from maat.scheduling.policies.sharing.shortest_first import share
from maat.scheduling.rounds import Decision, RoundInput


@dataclass(frozen=True)
class SjfFfs:
    """First-fit sharing (SJF-BSBF section VI-A, baseline 4): partners in order of the first GPU that they hold.

    Of each newcomer the largest per-GPU batch runs whose memory is there beside its partner.
    """

    idle_first: bool = knob(
        True,
        "Whether a job that shares takes all idle GPUs before those of others; else those of others alone.",
        source="the authors' code: yes; the paper's text: no",
    )
    round_seconds: float = knob(
        10.0,
        "Time between rounds.",
        unit="s",
        source="the authors' code",
        minimum=1.0,
        maximum=86400.0,
    )
    name: str = "sjf-ffs"

    def allocate(self, round_input: RoundInput) -> Decision:
        memory = round_input.state.for_owner(self.name, parameter_hash(self))
        return share(round_input, memory, first_fit, idle_first=self.idle_first)


def first_fit(ways: Sequence[Split], partners: Partners, _waiting: float, /) -> list[Offer]:
    """Every partner beside whom some way of running the newcomer fits, in their order."""
    if not ways:
        return []
    fits = partners.fits(ways)
    return [
        Offer(partners.of[i], ways[int(fits[i].argmax())])
        for i in np.flatnonzero(fits.any(axis=1)).tolist()
    ]
