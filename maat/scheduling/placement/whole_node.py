"""Sia's placement rules (section 3.1): a) part of a node stays on one node, b) larger allocations take whole nodes, c) evict and try again."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from maat.scheduling.explain import ReasonCode, Reasons
from maat.scheduling.job import JobId
from maat.scheduling.placement.free_gpus import FreeGpus
from maat.scheduling.rounds import Decision, Grant, Placement, PlacementResult, RoundInput


@dataclass(frozen=True)
class WholeNode:
    """Jobs keep their GPUs where that is possible; where the rest does not fit, everybody of that type who may move is placed anew.

    With Sia's configurations, sizes are powers of two or whole nodes, so placing anew, largest first, always fits what the limits allow. A
    rigid job of another size may not fit; it goes without (and says so) rather than be scattered, unless no node is large enough.
    """

    name: str = "whole-node"

    def place(self, decision: Decision, round_input: RoundInput) -> PlacementResult:
        gpus: dict[JobId, Sequence[int]] = {}
        unplaced: dict[JobId, Reasons] = {}
        for gpu_type in round_input.cluster.type_names:
            wanted = {job_id: grant for job_id, grant in decision.grants.items() if grant.gpu_type == gpu_type}
            if wanted:
                _place_type(wanted, round_input, gpus, unplaced)
        in_order = {job_id: gpus[job_id] for job_id in decision.grants if job_id in gpus}
        return PlacementResult(Placement.of(in_order), unplaced)


def _place_type(
    wanted: Mapping[JobId, Grant], round_input: RoundInput, gpus: dict[JobId, Sequence[int]], unplaced: dict[JobId, Reasons]
) -> None:
    """Place the grants of one type: keeping what can be kept, else (rule c) only what is pinned."""
    kept = {job_id: held for job_id, grant in wanted.items() if (held := _held(job_id, grant, round_input)) is not None}
    pinned = {job_id: held for job_id, held in kept.items() if job_id in round_input.pinned}
    found, left = _fill(wanted, kept, round_input)
    if left and len(kept) > len(pinned):
        found, left = _fill(wanted, pinned, round_input)
    gpus.update(found)
    for job_id in left:
        unplaced[job_id] = Reasons(ReasonCode.FRAGMENTED, {"gpu_type": wanted[job_id].gpu_type, "gpu_count": wanted[job_id].gpu_count})


def _held(job_id: JobId, grant: Grant, round_input: RoundInput) -> tuple[int, ...] | None:
    """The GPUs that the job holds, if they are just what it was granted and all still usable."""
    held = round_input.job_by_id[job_id].allocation
    if held is None or (held.gpu_type, held.gpu_count) != (grant.gpu_type, grant.gpu_count):
        return None
    return held.gpus if round_input.cluster.gpu_available[list(held.gpus)].all() else None


def _fill(
    wanted: Mapping[JobId, Grant], kept: Mapping[JobId, tuple[int, ...]], round_input: RoundInput
) -> tuple[dict[JobId, Sequence[int]], list[JobId]]:
    """Keep `kept` where it is and place the others, largest first. Returns what was placed, and who was not."""
    free = FreeGpus(round_input.cluster)
    found: dict[JobId, Sequence[int]] = {}
    for job_id, gpus in kept.items():
        free.take(gpus)
        found[job_id] = gpus
    left = []
    for job_id, grant in sorted(((j, g) for j, g in wanted.items() if j not in kept), key=lambda item: -item[1].gpu_count):
        place = _whole_nodes(free, grant) or _part_of_node(free, grant.gpu_type, grant.gpu_count)
        if place is None:
            left.append(job_id)
        else:
            found[job_id] = place
    return found, left


def _part_of_node(free: FreeGpus, gpu_type: str, count: int, besides: Collection[int] = ()) -> list[int] | None:
    """Rule a: the tightest node that holds it all, for a job which has `besides` already."""
    node = free.tightest(gpu_type, count, besides)
    return None if node is None else free.take_from(node, count, besides)


def _whole_nodes(free: FreeGpus, grant: Grant) -> list[int] | None:
    """Rule b: idle whole nodes of the size that makes up the grant exactly; what is over (rigid jobs) goes to one more node."""
    per_node = int(free.whole[free.nodes_of_type(grant.gpu_type)].max(initial=0))
    size = 1 << (per_node.bit_length() - 1) if per_node else 0
    if grant.node_count is not None and grant.node_count > 1 and grant.gpu_count % grant.node_count == 0:
        size = grant.gpu_count // grant.node_count
    if size == 0 or grant.gpu_count <= per_node:
        return None
    whole, rest = divmod(grant.gpu_count, size)
    idle = free.idle_nodes(grant.gpu_type)
    large = idle[free.whole[idle] >= size]
    if len(large) < whole:
        return None
    nodes = large[np.argsort(free.whole[large], kind="stable")][:whole]
    taken = [gpu for n in nodes.tolist() for gpu in free.take_from(n, size)]
    if rest:
        over = _part_of_node(free, grant.gpu_type, rest, taken)
        if over is None:
            free.give_back(taken)
            return None
        taken += over
    return taken
