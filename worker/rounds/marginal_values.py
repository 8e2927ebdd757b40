"""Sums the prices of finished rounds by day, before old rounds are deleted. Knows no broker."""

from __future__ import annotations

from backend.clusters.repository import all_clusters
from backend.database import Database
from backend.marginal_values.service import add_rounds, unsummed


def sum_prices(database: Database) -> int:
    """Add all finished rounds of all clusters to the daily sums; returns their number.

    Portions are transactions of their own: a worker that is killed has summed some of the rounds,
    each once.
    """
    with database.session_scope(writes=False) as session:
        waiting = [row.id for row in all_clusters(session) if unsummed(session, row.id)]
    return sum(_sum_cluster(database, cluster_id) for cluster_id in waiting)


def _sum_cluster(database: Database, cluster_id: str) -> int:
    done = 0
    while True:
        with database.session_scope() as session:
            added = add_rounds(session, cluster_id)
        done += added
        if not added:
            return done
