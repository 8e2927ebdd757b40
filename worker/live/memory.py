"""Live clusters that this process keeps in memory between their rounds.

The rows are the truth: the memory only saves reading them. It is used only if the worker's fencing
number directly follows the one under which the cluster was stored here: no other worker can have
written rounds or executor state in between. A cluster is taken out for a step, and is put back only
if the whole step was committed.
"""

from __future__ import annotations

import threading
from weakref import WeakKeyDictionary

from backend.database import Database
from worker.live.cluster import LiveCluster


class LiveMemory:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._clusters: WeakKeyDictionary[Database, dict[str, tuple[int, LiveCluster]]] = (
            WeakKeyDictionary()
        )

    def take(self, database: Database, cluster_id: str, *, fencing: int) -> LiveCluster | None:
        """Take the cluster out.

        Returns None if it is missing or another worker has held the lease since.
        """
        with self._lock:
            under, found = self._clusters.get(database, {}).pop(cluster_id, (None, None))
        return found if under is not None and under + 1 == fencing else None

    def keep(self, database: Database, cluster: LiveCluster, *, fencing: int) -> None:
        with self._lock:
            self._clusters.setdefault(database, {})[cluster.id] = (fencing, cluster)

    def forget(self, database: Database) -> None:
        """Forget everything, like a newly started process."""
        with self._lock:
            self._clusters.pop(database, None)


MEMORY = LiveMemory()
