"""What the last round left: the state of policy and placer, and changes not applied yet."""

from __future__ import annotations

from sqlmodel import Session, col, select

from backend.models import Cluster as ClusterRow
from backend.models import ClusterRuntime, OutboxMessage
from maat.scheduling.rounds import Changes, StoredState
from worker.rounds.changes_json import changes_from_json
from worker.rounds.rows import policy_state_from_json


def stored_by_rounds(session: Session, cluster: ClusterRow) -> StoredState:
    """Return the state from which the next round goes on."""
    runtime = session.get(ClusterRuntime, cluster.id)
    if runtime is None:
        return StoredState(cluster.next_round_number)
    states = (
        policy_state_from_json(runtime.policy_state),
        policy_state_from_json(runtime.placer_state),
    )
    return StoredState(cluster.next_round_number, *states)


def unapplied_changes(session: Session, cluster: ClusterRow) -> list[Changes]:
    """Return the changes of a round just committed, or whose worker was killed."""
    waiting = (OutboxMessage.cluster_id == cluster.id, col(OutboxMessage.applied_at).is_(None))
    return [
        changes_from_json(message.payload)
        for message in session.exec(select(OutboxMessage).where(*waiting))
    ]
