"""SJF-FFS: shares GPUs with the first running jobs that leave memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from maat.scheduling.batch_split import Split
from maat.scheduling.parameters import knob, parameter_hash
from maat.scheduling.policies.misjudged import length_error_knob, misjudged
from maat.scheduling.policies.sharing.partners import Offer, Partners
from maat.scheduling.policies.sharing.shortest_first import share
from maat.scheduling.protocols import GpuSharing
from maat.scheduling.rounds import Decision, RoundInput


@dataclass(frozen=True)
class SjfFfs:
    """Shortest job first; shares by first fit (SJF-BSBF section VI-A, baseline 4).

    It does not judge the pair. Partners come in order of the first GPU that they hold. A newcomer
    runs the largest per-GPU batch that memory has room for.
    """

    idle_first: bool = knob(
        True,
        "Whether a job that shares takes all idle GPUs first; if not, it takes GPUs of partners "
        "alone.",
        source="the authors' code: yes; the paper's text: no",
    )
    length_error: float = length_error_knob()
    default_round_seconds: ClassVar[float] = 10.0  # the authors' code
    gpu_sharing: ClassVar[GpuSharing] = GpuSharing.CHOSEN
    name: str = "sjf-ffs"

    def allocate(self, round_input: RoundInput) -> Decision:
        memory = round_input.state.for_owner(self.name, parameter_hash(self))
        seen = misjudged(round_input, self.length_error)
        return share(seen, memory, first_fit, idle_first=self.idle_first)


def first_fit(ways: Sequence[Split], partners: Partners, _waiting: float, /) -> list[Offer]:
    """Return every partner that leaves memory for the newcomer, in order."""
    if not ways:
        return []
    fits = partners.fits(ways)
    return [
        Offer(partners.of[i], ways[int(fits[i].argmax())])
        for i in np.flatnonzero(fits.any(axis=1)).tolist()
    ]
