"""Placement of the published Pollux simulator: the node with most free GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from maat.scheduling.job import JobId
from maat.scheduling.placeable import held_as_granted
from maat.scheduling.placement.free_gpus import FreeGpus
from maat.scheduling.placement.outcome import outcome
from maat.scheduling.rounds import Decision, Grant, PlacementResult, RoundInput


@dataclass(frozen=True)
class MostFree:
    """Place jobs on the nodes with most free GPUs; unchanged jobs keep their GPUs.

    Large jobs span few nodes, but no node is kept whole for them: small jobs, too, go where most
    GPUs are free.
    """

    name: str = "most-free"

    def place(self, decision: Decision, round_input: RoundInput) -> PlacementResult:
        free = FreeGpus(round_input.cluster)
        found: dict[JobId, Sequence[int]] = {}
        for job_id, grant in decision.grants.items():
            held = held_as_granted(round_input, job_id, grant)
            if held is not None and free.are_free(held):
                free.take(held)
                found[job_id] = held
        for job_id, grant in decision.grants.items():
            if job_id not in found:
                gpus = from_most_free(free, grant)
                if gpus is not None:
                    found[job_id] = gpus
        return outcome(decision.grants, found)


def from_most_free(free: FreeGpus, grant: Grant) -> list[int] | None:
    """Take GPUs for a grant from the node with most free GPUs, then from the next.

    Of equal nodes the first is taken. Returns None, with nothing taken, if there are too few.
    """
    nodes = free.nodes_of_type(grant.gpu_type)
    if free.counts[nodes].sum() < grant.gpu_count:
        return None
    taken: list[int] = []
    for node in nodes[np.argsort(-free.counts[nodes], kind="stable")].tolist():
        taken += free.take_from(node, grant.gpu_count - len(taken))
        if len(taken) == grant.gpu_count:
            break
    return taken
