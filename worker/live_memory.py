"""Live clusters that this process holds in memory between their rounds. The rows are the truth: what is held here only saves reading them.

What is held is used only by a worker whose fencing number follows at once on the one under which it was put here: nobody else can have
written the cluster's rounds or its executor's state in between. It is taken out for a step, and is gone unless the whole step was committed.
"""

from __future__ import annotations

import threading
from weakref import WeakKeyDictionary

from backend.database import Database
from worker.live_cluster import LiveCluster


class LiveMemory:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: WeakKeyDictionary[Database, dict[str, tuple[int, LiveCluster]]] = (
            WeakKeyDictionary()
        )

    def take(self, database: Database, cluster_id: str, *, fencing: int) -> LiveCluster | None:
        """Take the cluster out; None if there is none, or others held the lease since."""
        with self._lock:
            under, found = self._held.get(database, {}).pop(cluster_id, (None, None))
        return found if under is not None and under + 1 == fencing else None

    def keep(self, database: Database, cluster: LiveCluster, *, fencing: int) -> None:
        with self._lock:
            self._held.setdefault(database, {})[cluster.id] = (fencing, cluster)

    def forget(self, database: Database) -> None:
        """As a process that has just been started."""
        with self._lock:
            self._held.pop(database, None)


MEMORY = LiveMemory()
