"""The GPUs that attempts hold, as rows, whose key lets nobody else hold one. Commits nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import sqlalchemy as sa
from sqlmodel import Session, col, select

from backend.models import AttemptRow, GpuHold, Node
from worker.training.holds import GpusByNode, free_gpus


def hold(session: Session, attempt_id: str, gpus: GpusByNode, nodes: Mapping[str, Node]) -> None:
    """Hold GPUs for an attempt. Raises IntegrityError if another one holds one of them."""
    session.add_all(
        GpuHold(node_id=nodes[name].id, gpu_index=index, attempt_id=attempt_id)
        for name, indices in gpus.items()
        for index in indices
    )
    session.flush()


def release(session: Session, attempt_ids: Iterable[str]) -> None:
    """Let go of all GPUs that these attempts hold."""
    theirs = col(GpuHold.attempt_id).in_(list(attempt_ids))
    session.connection().execute(sa.delete(GpuHold).where(theirs))


def any_free(session: Session, row: AttemptRow, nodes: Mapping[str, Node]) -> GpusByNode | None:
    """Return GPUs for an attempt whose engine will choose them; None if too few are free."""
    names = {node.id: name for name, node in nodes.items()}
    held = {name: set(node.drained_gpus) for name, node in nodes.items()}
    for one in session.exec(select(GpuHold).where(col(GpuHold.node_id).in_(names))):
        held[names[one.node_id]].add(one.gpu_index)
    sizes = {name: node.gpu_count for name, node in nodes.items()}
    return free_gpus(row.gpus_by_node, held, sizes)
