"""The weights of tenants over time: shares of the past are of the weights of then.

Commits nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa
from sqlmodel import Session, col, select

from backend.clocktime import cluster_seconds
from backend.clusters.repository import all_clusters
from backend.fairness.models import WeightChange
from backend.fairness.shares import Weights
from backend.moments import moment_of
from backend.quotas.repository import tenant_weights


def note_weight(session: Session, tenant_id: str, *, before: float, after: float) -> None:
    """Note, in the time of every cluster, that a tenant weighs something else from now on."""
    if before == after:
        return
    moment = moment_of(session)
    session.add_all(
        WeightChange(
            cluster_id=cluster.id,
            tenant_id=tenant_id,
            at_seconds=cluster_seconds(cluster, moment),
            before=before,
            after=after,
        )
        for cluster in all_clusters(session)
    )


def forget_weights(session: Session, tenant_id: str) -> None:
    """Delete what is noted of a tenant, before it is removed itself."""
    mine = sa.delete(WeightChange).where(col(WeightChange.tenant_id) == tenant_id)
    session.connection().execute(mine)


def weights_over(session: Session, cluster_id: str, begin: float, end: float) -> list[Weights]:
    """Return the weights from `begin` to `end`, cluster seconds, in order of time.

    They are those of now, and before each change, latest first, those before it.
    """
    changes = session.exec(
        select(WeightChange)
        .where(WeightChange.cluster_id == cluster_id, col(WeightChange.at_seconds) > begin)
        .order_by(col(WeightChange.at_seconds).desc(), col(WeightChange.id).desc())
    ).all()
    now: Mapping[str, float] = tenant_weights(session)
    found = []
    for change in changes:
        if change.at_seconds < end:
            found.append(Weights(change.at_seconds, now))
        now = {**now, change.tenant_id: change.before}
    return [Weights(begin, now), *reversed(found)]
