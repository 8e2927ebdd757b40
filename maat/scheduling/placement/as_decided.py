"""Placement for policies that choose the nodes themselves (Pollux)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from maat.scheduling.job import JobId
from maat.scheduling.placeable import held_as_granted
from maat.scheduling.placement.free_gpus import FreeGpus
from maat.scheduling.placement.outcome import outcome
from maat.scheduling.placement.packed import pack
from maat.scheduling.rounds import Decision, Grant, PlacementResult, RoundInput


@dataclass(frozen=True)
class AsDecided:
    """Place each job on the nodes that its grant names.

    A job keeps its GPUs if the grant names the same count on the same nodes. A grant that names
    no nodes is packed.
    """

    name: str = "as-decided"

    def place(self, decision: Decision, round_input: RoundInput) -> PlacementResult:
        free = FreeGpus(round_input.cluster)
        found: dict[JobId, Sequence[int]] = {}
        for job_id in sorted(decision.grants, key=lambda job_id: job_id not in round_input.pinned):
            held = _kept(job_id, decision.grants[job_id], round_input)
            if held is not None and free.are_free(held):
                free.take(held)
                found[job_id] = held
        for job_id, grant in decision.grants.items():
            if job_id not in found:
                gpus = _on_its_nodes(free, grant, round_input) or pack(free, grant)
                if gpus is not None:
                    found[job_id] = gpus
        return outcome(decision.grants, found)


def _kept(job_id: JobId, grant: Grant, round_input: RoundInput) -> tuple[int, ...] | None:
    """Return the GPUs that the job holds, if its grant names the same nodes."""
    held, cluster = held_as_granted(round_input, job_id, grant), round_input.cluster
    if held is None or grant.gpus_by_node is None:
        return held
    by_node = Counter(cluster.nodes[node].id for node in cluster.gpu_node[list(held)].tolist())
    return held if by_node == grant.gpus_by_node else None


def _on_its_nodes(free: FreeGpus, grant: Grant, round_input: RoundInput) -> list[int] | None:
    """Take the lowest free GPUs of the nodes that the grant names.

    Returns None, with nothing taken, if it names no nodes or one of them has too few free GPUs.
    """
    if grant.gpus_by_node is None:
        return None
    number = {node.id: n for n, node in enumerate(round_input.cluster.nodes)}
    wanted = {number[name]: count for name, count in grant.gpus_by_node.items() if name in number}
    if sum(wanted.values()) != grant.gpu_count or any(
        free.counts[node] < count for node, count in wanted.items()
    ):
        return None
    return [gpu for node, count in wanted.items() for gpu in free.take_from(node, count)]
