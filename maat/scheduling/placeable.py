"""Whether nodes can hold what a round granted, and which limits show that not.

Chooses no GPUs: see placement/whole_node.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from maat.scheduling.configuration import ConfigurationTable
from maat.scheduling.job import JobId
from maat.scheduling.limits import Limit, LimitKind
from maat.scheduling.packing import NodeRoom, pack
from maat.scheduling.rounds import Grant, RoundInput
from maat.scheduling.solving.packing_cut import weights_against


def held_as_granted(round_input: RoundInput, job_id: JobId, grant: Grant) -> tuple[int, ...] | None:
    """Return the job's GPUs if they equal its grant and are all usable."""
    held = round_input.job_by_id[job_id].allocation
    if held is None or (held.gpu_type, held.gpu_count) != (grant.gpu_type, grant.gpu_count):
        return None
    return held.gpus if round_input.cluster.gpu_available[list(held.gpus)].all() else None


def room_beside(
    round_input: RoundInput, gpu_type: str, staying: Iterable[tuple[int, ...]]
) -> NodeRoom:
    """Return what the nodes of a type have free beside GPUs of jobs that stay.

    Nodes are in the cluster's order.
    """
    cluster = round_input.cluster
    taken = Counter(node for gpus in staying for node in cluster.gpu_node[list(gpus)].tolist())
    nodes = [n for n, node in enumerate(cluster.nodes) if node.gpu_type == gpu_type]
    whole = tuple(cluster.node_available[nodes].tolist())
    return NodeRoom(whole, tuple(count - taken[n] for n, count in zip(nodes, whole, strict=True)))


def unplaceable(
    round_input: RoundInput, grants: Mapping[JobId, Grant], table: ConfigurationTable
) -> tuple[Limit, ...]:
    """Return a limit for each type whose nodes cannot hold its grants together.

    The grants break it, and all grants that nodes can hold keep it. Running jobs may be moved;
    pinned jobs stay where they are. For clusters whose GPUs are not shared.
    """
    found = (
        _limit_against(round_input, name, grants, table) for name in round_input.cluster.type_names
    )
    return tuple(limit for limit in found if limit is not None)


def _limit_against(
    round_input: RoundInput, gpu_type: str, grants: Mapping[JobId, Grant], table: ConfigurationTable
) -> Limit | None:
    wanted = {job_id: grant for job_id, grant in grants.items() if grant.gpu_type == gpu_type}
    pinned = {
        job_id: held
        for job_id in round_input.pinned
        if job_id in wanted and (held := held_as_granted(round_input, job_id, wanted[job_id]))
    }
    intact = max(node.gpu_count for node in round_input.cluster.nodes_of(gpu_type))
    room = replace(room_beside(round_input, gpu_type, pinned.values()), intact=intact)
    parts = [
        part
        for job_id, grant in wanted.items()
        if job_id not in pinned
        for part in room.parts_of(grant.gpu_count, grant.node_count)
    ]
    if pack(room.free, parts, search=False) is not None:
        return None
    weights = weights_against(parts, room.free)
    if weights is None:
        return None
    return _as_limit(gpu_type, weights, room, table, besides=tuple(pinned))


def _as_limit(
    gpu_type: str,
    weights: Sequence[int],
    room: NodeRoom,
    table: ConfigurationTable,
    *,
    besides: tuple[JobId, ...],
) -> Limit:
    """Return the limit: the weights of its parts are the places of each GPU count."""
    nodes = {c.gpu_count: c.node_count for c in table.configurations if c.gpu_type == gpu_type}
    last = len(weights) - 1
    by_count = [0] + [
        sum(weights[min(part, last)] for part in room.parts_of(count, nodes.get(count)))
        for count in range(1, sum(room.whole) + 1)
    ]
    places = sum(weights[free] for free in room.free)
    name = f"shape:{gpu_type}{_described(weights)}"
    return Limit(
        name,
        LimitKind.TOGETHER,
        places,
        gpu_type=gpu_type,
        besides_jobs=besides,
        places_by_count=tuple(by_count),
    )


def _described(weights: Sequence[int]) -> str:
    """Return `>=5` if each part of at least 5 GPUs counts one, else all weights."""
    first = next(size for size, weight in enumerate(weights) if weight)
    return (
        f">={first}"
        if set(weights[first:]) == {1}
        else ":" + "-".join(str(weight) for weight in weights[1:])
    )
