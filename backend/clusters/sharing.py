"""How many jobs may share a GPU of a cluster: which values it can take now. Commits nothing."""

from __future__ import annotations

from collections import Counter

from sqlmodel import Session, col, select

from backend.attempts.models import GpuHold
from backend.clusters.models import Cluster, Node
from backend.jobs.models import Job
from backend.problems import Conflict, FieldError, Invalid
from backend.rounds.models import OutboxMessage
from maat.vocabulary import ExecutorKind

_SHARES = (ExecutorKind.SIMULATED, ExecutorKind.LOCAL)
_MOST_NAMED = 4


def check_executor_shares(executor: str, jobs_per_gpu: int) -> None:
    """Raise Invalid if jobs are to share GPUs and the executor cannot place them so."""
    if jobs_per_gpu == 1 or executor in _SHARES:
        return
    message = f"With the executor {executor} a GPU runs one job: it chooses the GPUs itself."
    remedy = f"Give 1, or one of the executors {', '.join(_SHARES)}."
    error = FieldError("/jobs_per_gpu", "cannot_share", message, remedy, jobs_per_gpu)
    raise Invalid(f"{message} {remedy}", errors=[error])


def check_nothing_shared(session: Session, cluster: Cluster) -> None:
    """Raise Conflict while jobs share a GPU of the cluster, or a round that may say so begins.

    One of two jobs would hold a place that there is no more. The caller has locked the cluster.
    """
    names = _jobs_that_share(session, cluster.id)
    if names:
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        raise Conflict(
            f"Jobs share GPUs now: {', '.join(names[:_MOST_NAMED])}{more}. Choose a policy that "
            "shares none, and try again once the next round has parted them; or wait until they "
            "end."
        )
    if _carries_out(session, cluster.id) or _second_places(session, cluster.id):
        raise Conflict("A round that may share GPUs is being carried out. Try again soon.")


def _jobs_that_share(session: Session, cluster_id: str) -> list[str]:
    rows = session.exec(
        select(Job.name, Job.gpus)
        .where(
            Job.cluster_id == cluster_id,
            col(Job.gpus).is_not(None),
            col(Job.finished_seconds).is_(None),
        )
        .order_by(col(Job.id))
    ).all()
    holders = Counter(gpu for _, gpus in rows for gpu in gpus or ())
    return [name for name, gpus in rows if any(holders[gpu] > 1 for gpu in gpus or ())]


def _carries_out(session: Session, cluster_id: str) -> bool:
    waiting = (OutboxMessage.cluster_id == cluster_id, col(OutboxMessage.applied_at).is_(None))
    return session.exec(select(OutboxMessage.id).where(*waiting).limit(1)).first() is not None


def _second_places(session: Session, cluster_id: str) -> bool:
    """Return whether an attempt, which may be ending, holds the second place of a GPU."""
    held = (
        select(GpuHold.slot)
        .join(Node, col(Node.id) == col(GpuHold.node_id))
        .where(Node.cluster_id == cluster_id, GpuHold.slot > 0)
        .limit(1)
    )
    return session.exec(held).first() is not None
