"""Whether the service is well: the database answers, and rounds are made. Says nothing about any tenant."""

from __future__ import annotations

from datetime import datetime
from importlib.metadata import version
from typing import Literal

from pydantic import BaseModel
from sqlmodel import Session, col, func, select

from backend.clocktime import utc_now
from backend.clusters.models import Cluster
from backend.rounds.models import Round
from backend.web.fields import Timestamp

_MISSED_ROUNDS = 3


class WorkerOut(BaseModel):
    """`none`: no round has been made yet, or no cluster is to have any. `stale`: some rounds in a row are missing."""

    state: Literal["ok", "stale", "none"]
    last_round_age_seconds: float | None


class HealthOut(BaseModel):
    status: Literal["ok", "degraded"]
    version: str
    database: Literal["ok"]
    worker: WorkerOut
    time: Timestamp


def health(session: Session, *, stale_seconds: float) -> HealthOut:
    worker = worker_health(session, utc_now(), stale_seconds=stale_seconds)
    status: Literal["ok", "degraded"] = "degraded" if worker.state == "stale" else "ok"
    return HealthOut(status=status, version=version("maat"), database="ok", worker=worker, time=utc_now())


def worker_health(session: Session, now: datetime, *, stale_seconds: float) -> WorkerOut:
    """Of the cluster that is worst off. A paused cluster makes no rounds, and rightly so."""
    latest = select(Round.cluster_id, func.max(Round.committed_at).label("at")).group_by(col(Round.cluster_id)).subquery()
    statement = (
        select(Cluster, latest.c.at)
        .join(latest, latest.c.cluster_id == col(Cluster.id), isouter=True)
        .where(col(Cluster.paused).is_(False))
    )
    ages = []
    for cluster, at in session.exec(statement):
        since = at if at is not None and at > cluster.anchor_wall else cluster.anchor_wall
        allowed = max(stale_seconds, _MISSED_ROUNDS * cluster.round_seconds / cluster.speed)
        ages.append(((now - since).total_seconds(), allowed, at is not None))
    if not ages:
        return WorkerOut(state="none", last_round_age_seconds=None)
    age, allowed, any_round = max(ages, key=lambda item: item[0] - item[1])
    if age > allowed:
        return WorkerOut(state="stale", last_round_age_seconds=age if any_round else None)
    return WorkerOut(state="ok" if any_round else "none", last_round_age_seconds=age if any_round else None)
