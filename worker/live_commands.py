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
_noted: dict[str, float] = {}
_swept: dict[str, float] = {}


def clusters_with_work(database: Database) -> list[str]:
    """Return the clusters of unfinished commands."""
    with database.session_scope(writes=False) as session:
        found = session.exec(
            select(Cluster.id)
            .where(col(Cluster.executor).in_([kind.value for kind in ENGINES]))
            .where(
                select(Job.id)
                .where(Job.cluster_id == Cluster.id, col(Job.finished_seconds).is_(None))
                .exists()
            )
        )
        return list(found)


def reconcile_cluster(database: Database, cluster_id: str, settings: Settings) -> None:
    """Look at what runs, act on it, and record how the jobs stand.

    Does nothing while another worker holds the cluster's lease.
    """
    with leased(database, cluster_id) as fencing:
        if fencing is None:
            return
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
            return
        now = time.monotonic()
        if now - _swept.get(cluster_id, -_STRAYS_EVERY_SECONDS) >= _STRAYS_EVERY_SECONDS:
            _swept[cluster_id] = now
            reconciler.end_strays()
        if changed or now - _noted.get(cluster_id, 0.0) >= _NOTED_EVERY_SECONDS:
            _noted[cluster_id] = now
            note_cluster(database, cluster_id, fencing)
