"""The clusters that run commands: which have work, and one look at what runs on each."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

import sqlalchemy as sa
from sqlmodel import col, select

from backend.attempts.folders import cluster_folder
from backend.clusters.repository import nodes_of
from backend.database import Database
from backend.models import AttemptRow, Cluster, Job
from backend.secret_key import secret_key
from backend.settings import Settings
from maat.vocabulary import AttemptState, ExecutorKind
from worker.engines import ENGINES
from worker.live.lease import leased
from worker.live.step import note_cluster
from worker.training.attempts import Rules
from worker.training.awaited import Awaited
from worker.training.orders import Orders
from worker.training.reconcile import LeaseLost, Reconciler

log = logging.getLogger(__name__)

_NOTED_EVERY_SECONDS = 5.0  # progress; what changes otherwise is noted at once
_STRAYS_EVERY_SECONDS = 30.0
_NODES_EVERY_SECONDS = 10.0  # of clusters without work
_AWAY_SECONDS = 10.0
_noted: dict[str, float] = {}
_swept: dict[str, float] = {}
_followed: dict[str, float] = {}
_away: dict[str, float] = {}

_UNASKED = (
    select(AttemptRow.id)
    .join(Job, col(Job.id) == col(AttemptRow.job_id))
    .where(
        col(AttemptRow.cluster_id) == sa.bindparam("cluster"),
        col(AttemptRow.state) != AttemptState.ENDED.value,
        col(AttemptRow.stop_reason).is_(None),
        sa.or_(col(Job.cancel_requested), col(Job.pause_requested)),
    )
    .limit(1)
)
"""A process that nobody has asked to end yet, though its job is cancelled or paused."""


def clusters_to_look_at(database: Database) -> list[str]:
    """Return the clusters of unfinished commands, and now and then those that find their nodes."""
    has_work = (
        select(Job.id)
        .where(Job.cluster_id == Cluster.id, col(Job.finished_seconds).is_(None))
        .exists()
    )
    runs_commands = col(Cluster.executor).in_([kind.value for kind in ENGINES])
    with database.session_scope(writes=False) as session:
        found = session.exec(select(Cluster, has_work).where(runs_commands)).all()
    return [
        cluster.id
        for cluster, works in found
        if works or (cluster.finds_nodes and _is_due(_followed, cluster.id, _NODES_EVERY_SECONDS))
    ]


def runs_commands(database: Database, cluster_id: str) -> bool:
    with database.session_scope(writes=False) as session:
        cluster = session.get(Cluster, cluster_id)
        return cluster is not None and cluster.runs_commands


@dataclass(frozen=True)
class Looked:
    """What is to come of a look before the usual time for the next one.

    `has_more`: there was no time for all moves. `awaited`: what is about to end, if it is worth its
    cost to look for that.
    """

    has_more: bool = False
    awaited: Awaited | None = None


def reconcile_cluster(database: Database, cluster_id: str, settings: Settings) -> Looked:
    """Look at what runs, act on it, and record how the jobs stand.

    Does nothing while another worker holds the cluster's lease, and for a while after its engine
    did not answer: that takes long to find out, and rounds need the lease as well.
    """
    if time.monotonic() - _away.get(cluster_id, -_AWAY_SECONDS) < _AWAY_SECONDS:
        return Looked()
    with leased(database, cluster_id) as fencing:
        if fencing is None:
            return Looked()
        with database.session_scope(writes=False) as session:
            cluster, nodes = session.get_one(Cluster, cluster_id), nodes_of(session, cluster_id)
            unasked = session.exec(_UNASKED, params={"cluster": cluster_id}).first()
        root = cluster_folder(settings, cluster)
        engine = ENGINES[ExecutorKind(cluster.executor)](cluster, root, nodes)
        key, allowed = secret_key(settings), settings.allow_commands
        orders = Orders(root, settings.public_url, key, allowed)
        rules = Rules(agent=settings.agent_seconds)
        reconciler = Reconciler(database, cluster_id, engine, orders, fencing=fencing, rules=rules)
        try:
            changed = reconciler.run() and not reconciler.has_more
            at_once = changed or unasked is not None
            if _is_due(_noted, cluster_id, _NOTED_EVERY_SECONDS, at_once=at_once):
                note_cluster(database, cluster_id, fencing)
                if not reconciler.has_more and reconciler.run():  # it has asked something to end
                    _noted.pop(cluster_id, None)
        except LeaseLost:
            log.warning("cluster %s: another worker has taken its lease", cluster_id)
            return Looked()
        if not reconciler.answers:
            _away[cluster_id] = time.monotonic()
        elif _is_due(_swept, cluster_id, _STRAYS_EVERY_SECONDS):
            reconciler.end_strays()
        awaited = None
        if reconciler.told_to_end and engine.capabilities.looks_cheaply:
            awaited = Awaited(cluster_id, engine, reconciler.told_to_end)
        return Looked(reconciler.has_more, awaited)


def _is_due(
    last: dict[str, float], cluster_id: str, seconds: float, *, at_once: bool = False
) -> bool:
    """Return whether something is due that happens every so often, and note that it happens."""
    now = time.monotonic()
    if not at_once and now - last.get(cluster_id, -seconds) < seconds:
        return False
    last[cluster_id] = now
    return True
