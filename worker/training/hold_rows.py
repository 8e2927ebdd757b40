"""The GPUs that attempts hold, as rows, whose key lets nobody else hold a place. Commits nothing.

A GPU has as many places (slots) as jobs may share it. The key (node, GPU, slot) is what keeps a
place from being given twice in a race: a slot is only ever one below the number of places.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import sqlalchemy as sa
from sqlmodel import Session, col, select

from backend.models import AttemptRow, GpuHold, Node
from maat.vocabulary import AttemptKind
from worker.training.holds import GpusByNode, free_gpus


class NoPlace(Exception):
    """A GPU has no place for the attempt now."""


class _Taken(NamedTuple):
    """A place that is taken. `is_whole`: nobody may be beside its attempt."""

    slot: int
    is_whole: bool


def hold(
    session: Session,
    row: AttemptRow,
    gpus: GpusByNode,
    nodes: Mapping[str, Node],
    *,
    places: int = 1,
) -> None:
    """Hold a place on each of these GPUs for an attempt.

    A profile holds all places, since it measures the job alone. Beside an attempt that is to end
    nobody begins: what it saves needs the memory, and the round did not pair the two. Raises
    NoPlace, or IntegrityError if another transaction took the place meanwhile.
    """
    taken = _taken(session, [nodes[name].id for name in gpus])
    for name, indices in gpus.items():
        for index in indices:
            key = (nodes[name].id, index)
            for slot in _slots(row, taken.get(key, ()), places):
                hold = GpuHold(node_id=key[0], gpu_index=index, slot=slot, attempt_id=row.id)
                session.add(hold)
    session.flush()


def _slots(row: AttemptRow, taken: Iterable[_Taken], places: int) -> list[int]:
    """Return the slots that an attempt takes of a GPU. Raises NoPlace."""
    used = {one.slot for one in taken}
    free = [slot for slot in range(places) if slot not in used]
    is_profile = row.kind == AttemptKind.PROFILE
    if not free or any(one.is_whole for one in taken) or (is_profile and used):
        raise NoPlace
    return free if is_profile else free[:1]


def _taken(session: Session, node_ids: list[str]) -> Mapping[tuple[str, int], list[_Taken]]:
    """Return the places that are taken on these nodes, by node and GPU."""
    of_hold = (col(GpuHold.node_id), col(GpuHold.gpu_index), col(GpuHold.slot))
    statement = (
        select(*of_hold, col(AttemptRow.stop_reason))
        .join(AttemptRow, col(AttemptRow.id) == col(GpuHold.attempt_id))
        .where(col(GpuHold.node_id).in_(node_ids))
    )
    found: dict[tuple[str, int], list[_Taken]] = {}
    for node_id, index, slot, stop_reason in session.exec(statement):
        found.setdefault((node_id, index), []).append(_Taken(slot, stop_reason is not None))
    return found


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
