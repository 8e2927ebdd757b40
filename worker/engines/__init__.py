"""Engines run gangs of processes on nodes; protocol.py says what each must keep to.

ENGINES has one line each, by the name that clusters give their executor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from backend.models import Node
from maat.vocabulary import ExecutorKind
from worker.engines.local import LocalEngine
from worker.engines.protocol import Engine, EngineNode

MakeEngine = Callable[[Path, Sequence[Node]], Engine]


def _local(root: Path, nodes: Sequence[Node]) -> Engine:
    return LocalEngine(
        root,
        [
            EngineNode(node.name, node.gpu_type, node.gpu_count, True, memory_gib=node.memory_gib)
            for node in nodes
        ],
    )


ENGINES: Mapping[ExecutorKind, MakeEngine] = {ExecutorKind.LOCAL: _local}
