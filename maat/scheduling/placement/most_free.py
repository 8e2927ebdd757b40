"""Placement as in the published Pollux simulator: who is granted what it holds stays; others take GPUs from the node with most free."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from maat.scheduling.explain import ReasonCode, Reasons
from maat.scheduling.job import JobId
from maat.scheduling.placement.free_gpus import FreeGpus
from maat.scheduling.rounds import Decision, Grant, Placement, PlacementResult, RoundInput


@dataclass(frozen=True)
class MostFree:
    """Few nodes for large jobs, and no node kept whole for them: a small job, too, goes where most GPUs are free."""

    name: str = "most-free"

    def place(self, decision: Decision, round_input: RoundInput) -> PlacementResult:
        free = FreeGpus(round_input.cluster)
        found: dict[JobId, Sequence[int]] = {}
        for job_id, grant in decision.grants.items():
            held = round_input.job_by_id[job_id].allocation
            if (
                held is not None
                and (held.gpu_type, held.gpu_count) == (grant.gpu_type, grant.gpu_count)
                and free.are_free(held.gpus)
            ):
                free.take(held.gpus)
                found[job_id] = held.gpus
        unplaced = {}
        for job_id, grant in decision.grants.items():
            if job_id not in found:
                gpus = from_most_free(free, grant)
                if gpus is None:
                    unplaced[job_id] = Reasons(
                        ReasonCode.FRAGMENTED,
                        {"gpu_type": grant.gpu_type, "gpu_count": grant.gpu_count},
                    )
                else:
                    found[job_id] = gpus
        return PlacementResult(
            Placement.of({job_id: found[job_id] for job_id in decision.grants if job_id in found}),
            unplaced,
        )


def from_most_free(free: FreeGpus, grant: Grant) -> list[int] | None:
    """GPUs for a grant, node after node from the one with most free GPUs on (the first of several); None where there are not enough."""
    nodes = free.nodes_of_type(grant.gpu_type)
    if free.counts[nodes].sum() < grant.gpu_count:
        return None
    taken: list[int] = []
    for node in nodes[np.argsort(-free.counts[nodes], kind="stable")].tolist():
        taken += free.take_from(node, grant.gpu_count - len(taken))
        if len(taken) == grant.gpu_count:
            break
    return taken
