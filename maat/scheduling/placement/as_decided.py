"""Placement for policies that decide nodes themselves (Pollux): each job's GPUs are taken on just the nodes that its grant names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from maat.scheduling.explain import ReasonCode, Reasons
from maat.scheduling.job import JobId
from maat.scheduling.placement.free_gpus import FreeGpus
from maat.scheduling.placement.packed import pack
from maat.scheduling.rounds import Decision, Grant, Placement, PlacementResult, RoundInput


@dataclass(frozen=True)
class AsDecided:
    """Jobs keep their GPUs where the decision leaves them as many on the same nodes. A grant that names no nodes is packed."""

    name: str = "as-decided"

    def place(self, decision: Decision, round_input: RoundInput) -> PlacementResult:
        free = FreeGpus(round_input.cluster)
        found: dict[JobId, Sequence[int]] = {}
        for job_id in sorted(decision.grants, key=lambda job_id: job_id not in round_input.pinned):
            held = _kept(job_id, decision.grants[job_id], round_input)
            if held is not None and free.are_free(held):
                free.take(held)
                found[job_id] = held
        unplaced = {}
        for job_id, grant in decision.grants.items():
            if job_id not in found:
                gpus = _on_its_nodes(free, grant, round_input) or pack(free, grant)
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


def _kept(job_id: JobId, grant: Grant, round_input: RoundInput) -> tuple[int, ...] | None:
    """The GPUs that the job holds, if they are what it was granted, node for node."""
    held, cluster = round_input.job_by_id[job_id].allocation, round_input.cluster
    if held is None or (held.gpu_type, held.gpu_count) != (grant.gpu_type, grant.gpu_count):
        return None
    by_node = Counter(cluster.nodes[node].id for node in cluster.gpu_node[list(held.gpus)].tolist())
    return held.gpus if grant.gpus_by_node is None or by_node == grant.gpus_by_node else None


def _on_its_nodes(free: FreeGpus, grant: Grant, round_input: RoundInput) -> list[int] | None:
    """The lowest free GPUs of the nodes that the grant names; None where it names none, or one of them lacks room."""
    if grant.gpus_by_node is None:
        return None
    number = {node.id: n for n, node in enumerate(round_input.cluster.nodes)}
    wanted = {number[name]: count for name, count in grant.gpus_by_node.items() if name in number}
    if sum(wanted.values()) != grant.gpu_count or any(
        free.counts[node] < count for node, count in wanted.items()
    ):
        return None
    return [gpu for node, count in wanted.items() for gpu in free.take_from(node, count)]
