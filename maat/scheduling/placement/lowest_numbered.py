"""Gavel's placement: the largest jobs first, each on the GPUs that it held, else on the free ones of the lowest numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from maat.scheduling.explain import ReasonCode, Reasons
from maat.scheduling.job import JobId
from maat.scheduling.placement.free_gpus import FreeGpus
from maat.scheduling.rounds import Decision, Grant, Placement, PlacementResult, RoundInput


@dataclass(frozen=True)
class LowestNumbered:
    """Jobs may straddle nodes. Of jobs of one size, those that keep their GPUs are placed before the others."""

    name: str = "lowest-numbered"

    def place(self, decision: Decision, round_input: RoundInput) -> PlacementResult:
        free = FreeGpus(round_input.cluster)
        found: dict[JobId, Sequence[int]] = {}
        pinned = [job_id for job_id in decision.grants if job_id in round_input.pinned]
        _keep(free, found, pinned, decision, round_input)
        for size in sorted({grant.gpu_count for grant in decision.grants.values()}, reverse=True):
            group = [job_id for job_id, grant in decision.grants.items() if grant.gpu_count == size and job_id not in found]
            _keep(free, found, group, decision, round_input)
            for job_id in group:
                if job_id not in found:
                    gpus = _lowest(free, decision.grants[job_id])
                    if gpus is not None:
                        found[job_id] = gpus
        unplaced = {
            job_id: Reasons(ReasonCode.FRAGMENTED, {"gpu_type": grant.gpu_type, "gpu_count": grant.gpu_count})
            for job_id, grant in decision.grants.items()
            if job_id not in found
        }
        return PlacementResult(Placement.of({job_id: found[job_id] for job_id in decision.grants if job_id in found}), unplaced)


def _keep(free: FreeGpus, found: dict[JobId, Sequence[int]], job_ids: Sequence[JobId], decision: Decision, round_input: RoundInput) -> None:
    """Leave those where they are that are granted what they hold and whose GPUs are free."""
    for job_id in job_ids:
        held, grant = round_input.job_by_id[job_id].allocation, decision.grants[job_id]
        if held is not None and (held.gpu_type, held.gpu_count) == (grant.gpu_type, grant.gpu_count) and free.are_free(held.gpus):
            free.take(held.gpus)
            found[job_id] = held.gpus


def _lowest(free: FreeGpus, grant: Grant) -> list[int] | None:
    """Free GPUs of the type, lowest number first; None where there are not enough."""
    nodes = free.nodes_of_type(grant.gpu_type)
    if free.counts[nodes].sum() < grant.gpu_count:
        return None
    taken: list[int] = []
    for node in nodes.tolist():
        taken += free.take_from(node, grant.gpu_count - len(taken))
    return taken
