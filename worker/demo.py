"""Runs the demo cluster: plays the end of its history, then submits arriving jobs.

It begins with whole weeks that were played beforehand (backend/demo/history.py). What lies between
them and the moment at which it was made are real rounds on a clock that is wound forward: the pages
show them like any other rounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import monotonic

from sqlmodel import Session, col, select

from backend.clocktime import cluster_seconds, wind_to
from backend.database import Database
from backend.demo.arrivals import Arrival, arrivals, hour_of_week
from backend.demo.cluster import DEMO_CLUSTER
from backend.demo.examples import ask_for_examples, examples_are_missing
from backend.demo.people import ensure_people
from backend.jobs.service import submit_unless_known
from backend.models import Cluster, Job
from backend.moments import moment_of
from backend.queue import Queue
from worker.live.snapshot import is_due
from worker.live.step import step_cluster

# Seconds between rounds of the history; fine in its last hours, which the pages show first.
COARSE_SECONDS, FINE_SECONDS = 300.0, 120.0
FINE_HISTORY_SECONDS = 7200.0
# Wall seconds of history in one beat: other clusters have rounds too, and between tasks a worker
# shows life.
AT_ONCE_SECONDS = 2.0
# A busy worker submits an arrival late, up to this; arrivals while it was down are dropped.
LOOKED_BACK_WALL_SECONDS = 30.0


def live_on(database: Database, queue: Queue) -> None:
    """Run one beat of the demo cluster; do nothing if there is none."""
    with database.session_scope(writes=False) as session:
        found, asks = _demo_cluster(session), examples_are_missing(session)
    if found is None:
        return
    if asks:
        with database.session_scope() as session:
            ask_for_examples(session, queue)
    ends = monotonic() + AT_ONCE_SECONDS
    while wind_forward(database, found.id):
        made = step_cluster(database, found.id)
        if made is None or monotonic() >= ends:
            break
    submit_arrivals(database, found.id)


def wind_forward(database: Database, cluster_id: str) -> bool:
    """Move the clock of a cluster with unplayed history to its next round, unless one is due.

    A round that is not made now, since a worker that died still has the cluster, is made later: no
    history passes without its rounds. Submits the jobs that arrive on the way. Returns False if the
    history is complete.
    """
    with database.session_scope() as session:
        cluster = session.get_one(Cluster, cluster_id, with_for_update=True)
        moment = moment_of(session)
        now = cluster_seconds(cluster, moment)
        if not _has_history_to_come(cluster, now):
            return False
        if is_due(session, cluster, moment):
            return True
        history = _history_seconds(cluster)
        step = COARSE_SECONDS if now < history - FINE_HISTORY_SECONDS else FINE_SECONDS
        until = min(now + step, history)
        for arrival in _arrivals(cluster, after=now, until=until):
            wind_to(cluster, moment_of(session), arrival.seconds)
            _submit(session, [arrival])
        wind_to(cluster, moment_of(session), until)
        session.add(cluster)
        return True


def is_in_its_history(database: Database, cluster_id: str) -> bool:
    """Whether the clock of this cluster is being wound forward: what is foretold is soon past."""
    with database.session_scope(writes=False) as session:
        cluster = session.get(Cluster, cluster_id)
        if cluster is None or cluster.name != DEMO_CLUSTER.name:
            return False
        return _has_history_to_come(cluster, cluster_seconds(cluster, moment_of(session)))


def submit_arrivals(database: Database, cluster_id: str) -> None:
    """Submit the jobs that have arrived by now and are not stored yet.

    Most beats find none, and then take no writer's lock.
    """
    with database.session_scope(writes=False) as session:
        cluster = session.get_one(Cluster, cluster_id)
        now = cluster_seconds(cluster, moment_of(session))
        due = list(
            _arrivals(cluster, after=now - LOOKED_BACK_WALL_SECONDS * cluster.speed, until=now)
        )
        ids = [arrival.body.external_id for arrival in due]
        known = set(
            session.exec(
                select(Job.external_id).where(
                    col(Job.cluster_id) == cluster_id, col(Job.external_id).in_(ids)
                )
            )
        )
    missing = [arrival for arrival in due if arrival.body.external_id not in known]
    if missing:
        with database.session_scope() as session:
            _submit(session, missing)


def _demo_cluster(session: Session) -> Cluster | None:
    return session.exec(select(Cluster).where(Cluster.name == DEMO_CLUSTER.name)).first()


def _arrivals(cluster: Cluster, *, after: float, until: float) -> Iterator[Arrival]:
    begins_at = hour_of_week(cluster.epoch)
    return arrivals(cluster.id, after=after, until=until, begins_at=begins_at)


def _has_history_to_come(cluster: Cluster, now: float) -> bool:
    return not cluster.paused and now < _history_seconds(cluster)


def _history_seconds(cluster: Cluster) -> float:
    """Return how long the history is; zero for a cluster whose time begins when it is made."""
    return (cluster.created_at - cluster.epoch).total_seconds()


def _submit(session: Session, due: Sequence[Arrival]) -> None:
    people = ensure_people(session)
    for arrival in due:
        if arrival.member in people:
            submit_unless_known(session, people[arrival.member], arrival.body)
