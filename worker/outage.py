"""Rehearses the death of a node of this machine: what runs on it is killed, and nothing starts.

    python -m worker.outage CLUSTER NODE down
    python -m worker.outage CLUSTER NODE up

For clusters whose executor is `local`. MAAT_DATA_DIR and MAAT_DATABASE_URL say which Maat.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from sqlmodel import or_, select

from backend.attempts.folders import cluster_folder
from backend.clusters.repository import nodes_of
from backend.database import Database
from backend.models import Cluster
from backend.settings import Settings
from maat.vocabulary import ExecutorKind
from worker.engines import ENGINES
from worker.engines.local import LocalEngine

_REASON = "Its outage is being rehearsed."


def main(arguments: Sequence[str], settings: Settings) -> int:
    """Take a node out of service or back into it; return the exit code of the command."""
    if len(arguments) != 3 or arguments[2] not in ("down", "up"):
        print("usage: python -m worker.outage CLUSTER NODE down|up", file=sys.stderr)
        return 2
    named, node, state = arguments
    database = Database.of(settings)
    try:
        with database.session_scope(writes=False) as session:
            cluster = session.exec(
                select(Cluster).where(or_(Cluster.id == named, Cluster.name == named))
            ).first()
            if cluster is None or cluster.executor != ExecutorKind.LOCAL:
                print(f"{named!r} is no cluster of executor local.", file=sys.stderr)
                return 2
            nodes = nodes_of(session, cluster.id)
    finally:
        database.engine.dispose()
    if node not in [each.name for each in nodes]:
        known = ", ".join(each.name for each in nodes)
        print(f"{node!r} is no node of {named}; its nodes are {known}.", file=sys.stderr)
        return 2
    root = cluster_folder(settings, cluster)
    engine = ENGINES[ExecutorKind.LOCAL](cluster, root, nodes)
    if not isinstance(engine, LocalEngine):
        raise TypeError(f"The engine of this machine is a {type(engine).__name__}.")
    if state == "down":
        engine.set_down(node, _REASON)
    else:
        engine.set_up(node)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Settings()))
