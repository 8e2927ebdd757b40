"""The clusters that run commands: which have work, and one look at what runs on each."""

from __future__ import annotations

import logging
import time

from sqlmodel import col, select

from backend.attempts.folders import cluster_folder
from backend.clusters.repository import nodes_of
from backend.database import Database
from backend.models import Cluster, Job
from backend.secret_key import secret_key
from backend.settings import Settings
from maat.vocabulary import ExecutorKind
from worker.engines import ENGINES
from worker.lease import leased
from worker.live import note_cluster
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


def reconcile_cluster(database: Database, cluster_id: str, settings: Settings) -> bool:
    """Look at what runs, act on it, and record how the jobs stand.

    Returns whether another look is worth its cost before the usual time: processes are about to
    end, and others may wait for their GPUs.

    Does nothing while another worker holds the cluster's lease, and for a while after its engine
    did not answer: that takes long to find out, and rounds need the lease as well.
    """
    if time.monotonic() - _away.get(cluster_id, -_AWAY_SECONDS) < _AWAY_SECONDS:
        return False
    with leased(database, cluster_id) as fencing:
        if fencing is None:
            return False
        with database.session_scope(writes=False) as session:
            cluster, nodes = session.get_one(Cluster, cluster_id), nodes_of(session, cluster_id)
        root = cluster_folder(settings, cluster)
        engine = ENGINES[ExecutorKind(cluster.executor)](cluster, root, nodes)
        key, allowed = secret_key(settings), settings.allow_commands
        orders = Orders(root, settings.public_url, key, allowed)
        reconciler = Reconciler(database, cluster_id, engine, orders, fencing=fencing)
        try:
            changed = reconciler.run()
        except LeaseLost:
            log.warning("cluster %s: another worker has taken its lease", cluster_id)
            return False
        if not reconciler.answers:
            _away[cluster_id] = time.monotonic()
        elif _is_due(_swept, cluster_id, _STRAYS_EVERY_SECONDS):
            reconciler.end_strays()
        if _is_due(_noted, cluster_id, _NOTED_EVERY_SECONDS, at_once=changed):
            note_cluster(database, cluster_id, fencing)
        return reconciler.awaits_end and engine.capabilities.looks_cheaply


def _is_due(
    last: dict[str, float], cluster_id: str, seconds: float, *, at_once: bool = False
) -> bool:
    """Return whether something is due that happens every so often, and note that it happens."""
    now = time.monotonic()
    if not at_once and now - last.get(cluster_id, -seconds) < seconds:
        return False
    last[cluster_id] = now
    return True
