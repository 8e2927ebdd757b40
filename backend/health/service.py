"""Whether the service is well: the database answers, and rounds are made. Says nothing about any tenant."""

from __future__ import annotations

import math
from datetime import datetime
from importlib.metadata import version
from typing import Literal

from pydantic import BaseModel
from sqlmodel import Session, col, select

from backend.clocktime import utc_now
from backend.clusters.models import Cluster
from backend.rounds.models import Round
from backend.web.fields import Timestamp

_MISSED_ROUNDS = 3
_CLOCKS_APART_SECONDS = (
    5.0  # a round that is younger than this was committed before the clock was set back
)


class WorkerOut(BaseModel):
    """`none`: no round has been made yet, or no cluster is to have any. `stale`: some rounds in a row are missing, or the last one is of the
    future: the clock was set back, and no round has come since."""

    state: Literal["ok", "stale", "none"]
    last_round_age_seconds: float | None


class HealthOut(BaseModel):
    """`database`: `slow` where it has not answered in time; `worker` is then what was known `checked_seconds_ago`, its age grown since."""

    status: Literal["ok", "degraded"]
    version: str
    database: Literal["ok", "slow"]
    checked_seconds_ago: float = 0.0
    worker: WorkerOut
    time: Timestamp

    def seen_again(self, seconds: float) -> HealthOut:
        """The same, told `seconds` later because the database has said nothing since."""
        age = self.worker.last_round_age_seconds
        worker = self.worker.model_copy(
            update={"last_round_age_seconds": None if age is None else age + seconds}
        )
        told = {
            "status": "degraded",
            "database": "slow",
            "checked_seconds_ago": seconds,
            "worker": worker,
            "time": utc_now(),
        }
        return self.model_copy(update=told)


def health(session: Session, *, stale_seconds: float) -> HealthOut:
    worker = worker_health(session, utc_now(), stale_seconds=stale_seconds)
    status: Literal["ok", "degraded"] = "degraded" if worker.state == "stale" else "ok"
    return HealthOut(
        status=status, version=version("maat"), database="ok", worker=worker, time=utc_now()
    )


def worker_health(session: Session, now: datetime, *, stale_seconds: float) -> WorkerOut:
    """Of the cluster that is worst off. A paused cluster makes no rounds, and rightly so."""
    rounds = select(Round.committed_at).where(Round.cluster_id == Cluster.id)
    latest = (
        rounds.order_by(col(Round.number).desc()).limit(1).scalar_subquery()
    )  # by number: a clock that was set back dates it before others
    ages = []
    for cluster, at in session.exec(select(Cluster, latest).where(col(Cluster.paused).is_(False))):
        since = at if at is not None and at > cluster.anchor_wall else cluster.anchor_wall
        allowed = max(stale_seconds, _MISSED_ROUNDS * cluster.round_seconds / cluster.speed)
        ages.append(((now - since).total_seconds(), allowed, at is not None))
    if not ages:
        return WorkerOut(state="none", last_round_age_seconds=None)
    age, allowed, any_round = max(
        ages, key=lambda item: math.inf if item[0] < -_CLOCKS_APART_SECONDS else item[0] - item[1]
    )
    if age > allowed or age < -_CLOCKS_APART_SECONDS:
        return WorkerOut(state="stale", last_round_age_seconds=age if any_round else None)
    return WorkerOut(
        state="ok" if any_round else "none", last_round_age_seconds=age if any_round else None
    )
