"""Engines run gangs of processes on nodes; protocol.py says what each must keep to.

ENGINES has one line each, by the name that clusters give their executor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from backend.models import Cluster, Node
from maat.api.clusters import SlurmParameters
from maat.vocabulary import ExecutorKind
from worker.engines.local import LocalEngine
from worker.engines.protocol import Engine, EngineNode
from worker.engines.slurm import SlurmEngine

MakeEngine = Callable[[Cluster, Path, Sequence[Node]], Engine]


def _local(cluster: Cluster, root: Path, nodes: Sequence[Node]) -> Engine:
    if cluster.finds_nodes:
        return LocalEngine(root, None)
    return LocalEngine(
        root,
        [
            EngineNode(node.name, node.gpu_type, node.gpu_count, True, memory_gib=node.memory_gib)
            for node in nodes
        ],
    )


def _slurm(cluster: Cluster, root: Path, _: Sequence[Node]) -> Engine:
    return SlurmEngine(root, SlurmParameters.model_validate(cluster.executor_parameters))


ENGINES: Mapping[ExecutorKind, MakeEngine] = {
    ExecutorKind.LOCAL: _local,
    ExecutorKind.SLURM: _slurm,
}
