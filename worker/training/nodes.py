"""Follows the nodes of an engine: which there are, and which of them cannot be used."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

import sqlalchemy as sa
from pydantic import ValidationError
from sqlmodel import col

from backend.clusters.repository import nodes_of
from backend.clusters.service import add_found_nodes
from backend.database import Database
from backend.models import Node
from backend.problems import Invalid
from maat.api.clusters import NodeBody
from worker.engines.protocol import Engine, EngineNode

log = logging.getLogger(__name__)


def follow_nodes(database: Database, cluster_id: str, engine: Engine) -> bool:
    """Record nodes that are new, and why others cannot be used; return whether that changed.

    A node that the engine no longer knows keeps its row. Raises Unreachable.
    """
    found = {node.name: node for node in engine.nodes()}
    rows, added = _rows(database, cluster_id), False
    if engine.capabilities.finds_nodes:
        known = {row.name: row for row in rows}
        added = _add(
            database, cluster_id, [node for node in found.values() if node.name not in known]
        )
        rows = _rows(database, cluster_id) if added else rows
        found = {name: _as_recorded(node, known.get(name)) for name, node in found.items()}
    return _record_faults(database, rows, found) or added


def _rows(database: Database, cluster_id: str) -> Sequence[Node]:
    with database.session_scope(writes=False) as session:
        return nodes_of(session, cluster_id)


def _as_recorded(node: EngineNode, row: Node | None) -> EngineNode:
    """Return the node as one that cannot be used if it is not what its row says."""
    if row is None or (node.gpu_type, node.gpu_count) == (row.gpu_type, row.gpu_count):
        return node
    reason = (
        f"The engine says that it has {node.gpu_count} GPUs of type {node.gpu_type}, and here it "
        f"has {row.gpu_count} of type {row.gpu_type}: give it another name there."
    )
    return replace(node, up=False, reason=reason)


def _add(database: Database, cluster_id: str, nodes: Sequence[EngineNode]) -> bool:
    """Add nodes, one at a time: one that no cluster can have is left out."""
    added = False
    for node in nodes:
        try:
            body = NodeBody(
                name=node.name,
                gpu_type=node.gpu_type,
                gpu_count=node.gpu_count,
                memory_gib=node.memory_gib,
            )
            with database.session_scope() as session:
                add_found_nodes(session, cluster_id, [body])
        except (ValidationError, Invalid) as error:
            log.warning("cluster %s: node %s cannot be added: %s", cluster_id, node.name, error)
        else:
            added = True
    return added


def _record_faults(
    database: Database, rows: Sequence[Node], found: Mapping[str, EngineNode]
) -> bool:
    faults = {row.id: _fault(found.get(row.name)) for row in rows}
    wrong = {row.id: faults[row.id] for row in rows if faults[row.id] != row.fault}
    if wrong:
        with database.session_scope() as session:
            for node_id, fault in wrong.items():
                values = sa.update(Node).where(col(Node.id) == node_id).values(fault=fault)
                session.connection().execute(values)
    return bool(wrong)


def _fault(node: EngineNode | None) -> str | None:
    """Return why a node cannot be used; None if it can."""
    if node is None:
        return "The engine does not know it."
    return None if node.up else (node.reason or "The engine says that it is down.")[:1000]
