"""Nodes of a cluster as a shape such as `t4=6x4,a100=2x8`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from maat.api.clusters import NodeOut


def shape_in_service(nodes: Iterable[NodeOut]) -> str:
    """Return the GPUs in service by type and node size, in the order of the nodes.

    GPUs that are drained, and nodes that cannot be used, are left out. Empty if none is in service.
    """
    sizes = Counter(
        (node["gpu_type"], node["gpu_count"] - len(node["drained_gpus"]))
        for node in nodes
        if node["fault"] is None
    )
    return ",".join(f"{kind}={count}x{gpus}" for (kind, gpus), count in sizes.items() if gpus)
