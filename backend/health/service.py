"""Whether the database answers and rounds are made.

Reveals nothing about any tenant.
"""

from __future__ import annotations

import math
from datetime import datetime
from importlib.metadata import version

from sqlmodel import Session, col, select

from backend.clocktime import utc_now
from backend.clusters.models import Cluster
from backend.rounds.models import Round
from maat.api.fields import rfc3339
from maat.api.service import HealthOut, WorkerOut

_MISSED_ROUNDS = 3
# A round dated further ahead than this was committed before the clock was set back.
_CLOCKS_APART_SECONDS = 5.0


def seen_again(health: HealthOut, seconds: float) -> HealthOut:
    """Repeat the last answer because the database has not answered since.

    `seconds`: how long ago that was.
    """
    age = health["worker"]["last_round_age_seconds"]
    worker = WorkerOut(
        state=health["worker"]["state"],
        last_round_age_seconds=None if age is None else age + seconds,
    )
    return HealthOut(
        status="degraded",
        version=health["version"],
        database="slow",
        disk=health["disk"],
        checked_seconds_ago=seconds,
        worker=worker,
        time=rfc3339(utc_now()),
    )


def health(worker: WorkerOut, *, has_room: bool, is_damaged: bool) -> HealthOut:
    """Return the health. `has_room`: whether the data folder takes more."""
    well = has_room and not is_damaged and worker["state"] != "stale"
    return HealthOut(
        status="ok" if well else "degraded",
        version=version("maat"),
        database="damaged" if is_damaged else "ok",
        disk="ok" if has_room else "full",
        checked_seconds_ago=0.0,
        worker=worker,
        time=rfc3339(utc_now()),
    )


def worker_health(session: Session, now: datetime, *, stale_seconds: float) -> WorkerOut:
    """Return the health of the cluster that is worst off.

    A paused cluster makes no rounds.
    """
    rounds = select(Round.committed_at).where(Round.cluster_id == Cluster.id)
    # By number: after a clock was set back, the newest round has an earlier date.
    latest = rounds.order_by(col(Round.number).desc()).limit(1).scalar_subquery()
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
