"""Packed placement (PAL's baselines): as few nodes as possible; sticky keeps a job's GPUs, non-sticky places everybody anew each round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from maat.scheduling.explain import ReasonCode, Reasons
from maat.scheduling.job import JobId
from maat.scheduling.parameters import knob
from maat.scheduling.placement.free_gpus import FreeGpus
from maat.scheduling.rounds import Decision, Grant, Placement, PlacementResult, RoundInput


@dataclass(frozen=True)
class Packed:
    """An exact-fit node, else the tightest that fits, else the nodes with most free GPUs."""

    sticky: bool = knob(True, "Whether jobs keep their GPUs until they end or are preempted.", source="PAL section V")
    name: str = "packed"

    def place(self, decision: Decision, round_input: RoundInput) -> PlacementResult:
        free = FreeGpus(round_input.cluster)
        found: dict[JobId, Sequence[int]] = {}
        for job_id, grant in decision.grants.items():
            held = round_input.job_by_id[job_id].allocation
            keeps = self.sticky or job_id in round_input.pinned
            if (
                keeps
                and held is not None
                and (held.gpu_type, held.gpu_count) == (grant.gpu_type, grant.gpu_count)
                and free.are_free(held.gpus)
            ):
                free.take(held.gpus)
                found[job_id] = held.gpus
        unplaced = {}
        for job_id, grant in decision.grants.items():
            if job_id not in found:
                gpus = pack(free, grant)
                if gpus is None:
                    unplaced[job_id] = Reasons(ReasonCode.FRAGMENTED, {"gpu_type": grant.gpu_type, "gpu_count": grant.gpu_count})
                else:
                    found[job_id] = gpus
        return PlacementResult(Placement.of({job_id: found[job_id] for job_id in decision.grants if job_id in found}), unplaced)


def pack(free: FreeGpus, grant: Grant) -> list[int] | None:
    """GPUs for a grant on as few nodes as possible; None where there are not enough."""
    node = free.tightest(grant.gpu_type, grant.gpu_count)
    if node is not None:
        return free.take_from(node, grant.gpu_count)
    nodes = free.nodes_of_type(grant.gpu_type)
    if free.counts[nodes].sum() < grant.gpu_count:
        return None
    taken: list[int] = []
    for roomiest in nodes[np.argsort(-free.counts[nodes], kind="stable")].tolist():
        taken += free.take_from(roomiest, grant.gpu_count - len(taken))
    return taken
