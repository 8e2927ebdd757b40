"""Which job holds which GPU now, and how much is free where.

Pure: reads rows, returns an answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from backend.clocktime import cluster_seconds, shown_at, this_moment
from backend.clusters.models import Cluster, Node
from backend.clusters.topology import capacity_by_type
from maat.api.clusters import ClusterStateOut, GpuHolderOut, GpuOut, NodeRoom

Holders: TypeAlias = Sequence[GpuHolderOut]


def cluster_state(
    cluster: Cluster,
    nodes: Sequence[Node],
    holders_of: Mapping[int, Holders],
    *,
    as_of_seconds: float | None,
    past_round: int | None = None,
) -> ClusterStateOut:
    """Build the state.

    `holders_of`: the jobs on each GPU that any holds, as shown, by its number. `past_round`: the
    round of which it is the state; None for the present. What was drained or out of order then is
    not known.
    """
    is_past = past_round is not None
    gpus = list(_gpus(nodes, holders_of, is_past=is_past))
    faults = {node.name: node.fault for node in nodes if node.fault is not None and not is_past}
    free = [g for g in gpus if not g["drained"] and not g["held"] and g["node"] not in faults]
    latest = cluster.next_round_number - 1
    free_on = Counter(gpu["node"] for gpu in free)
    rooms = [
        NodeRoom(node=n.name, gpu_type=n.gpu_type, gpu_count=n.gpu_count, free_gpus=free_on[n.name])
        for n in nodes
    ]
    return ClusterStateOut(
        now=shown_at(cluster, cluster_seconds(cluster, this_moment())),
        round_number=past_round if is_past else latest if latest > 0 else None,
        as_of=None if as_of_seconds is None else shown_at(cluster, as_of_seconds),
        gpus=gpus,
        capacity_by_type=dict(capacity_by_type(nodes, usable_only=True)),
        used_by_type=_count(nodes, (gpu["gpu_type"] for gpu in gpus if gpu["held"])),
        free_by_type=_count(nodes, (gpu["gpu_type"] for gpu in free)),
        free_gpus_by_node=rooms,
        faults=faults,
        largest_free_on_one_node={
            t: max(r["free_gpus"] for r in rooms if r["gpu_type"] == t)
            for t in dict.fromkeys(n.gpu_type for n in nodes)
        },
    )


def gpu_types_of(nodes: Iterable[Node]) -> list[str]:
    """Return the type of every GPU, by its number in the cluster."""
    return [node.gpu_type for node in nodes for _ in range(node.gpu_count)]


def _gpus(
    nodes: Iterable[Node], holders_of: Mapping[int, Holders], *, is_past: bool
) -> Iterable[GpuOut]:
    number = 0
    for node in nodes:
        drained = set() if is_past else set(node.drained_gpus)
        for index in range(node.gpu_count):
            first, *others = holders_of.get(number, ()) or (None,)
            yield GpuOut(
                gpu=number,
                node=node.name,
                index=index,
                gpu_type=node.gpu_type,
                drained=index in drained,
                held=first is not None,
                job_id=None if first is None else first["job_id"],
                job_name=None if first is None else first["job_name"],
                tenant=None if first is None else first["tenant"],
                shared_with=[other for other in others if other is not None],
            )
            number += 1


def _count(nodes: Iterable[Node], types: Iterable[str]) -> dict[str, int]:
    found = dict.fromkeys((node.gpu_type for node in nodes), 0)
    for name in types:
        found[name] += 1
    return found
