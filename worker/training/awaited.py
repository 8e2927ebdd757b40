"""Watches for the end of attempts that were told to end, between two looks at a cluster.

Other jobs wait for their GPUs. The watch only looks: what an end means is the reconciler's.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from worker.engines.protocol import Engine, Phase, Unreachable

log = logging.getLogger(__name__)

_LOOK_SECONDS = 0.05
_LEAST_REST = 5.0  # of the time that the last look took: many attempts take long to look at
_watches: dict[str, object] = {}  # by cluster, the newest of this process


@dataclass(frozen=True)
class Awaited:
    """Attempts of a cluster that were told to end; their engine looks cheaply."""

    cluster_id: str
    engine: Engine
    attempt_ids: tuple[str, ...]

    def has_end(self) -> bool:
        """Return whether one of them is over. Raises Unreachable."""
        seen = self.engine.look(self.attempt_ids).values()
        return any(each.phase in (Phase.ENDED, Phase.ABSENT) for each in seen)


def watch(awaited: Awaited, *, seconds: float, then: Callable[[], object]) -> threading.Thread:
    """Look for so long whether one has ended, and call `then` if so; return the thread that does.

    A later watch of the same cluster takes the place of this one.
    """
    mine = _watches[awaited.cluster_id] = object()

    def look() -> None:
        until, rest = time.monotonic() + seconds, _LOOK_SECONDS
        while time.monotonic() + rest < until:
            time.sleep(rest)
            if _watches.get(awaited.cluster_id) is not mine:
                return
            begun = time.monotonic()
            if awaited.has_end():
                then()
                return
            rest = max(_LOOK_SECONDS, _LEAST_REST * (time.monotonic() - begun))

    def look_or_leave() -> None:
        try:
            look()
        except Unreachable as error:
            log.info("cluster %s: its engine does not answer: %s", awaited.cluster_id, error)
        except Exception:  # the next look at the cluster comes all the same
            log.exception("cluster %s: no end is watched for", awaited.cluster_id)

    thread = threading.Thread(target=look_or_leave, name="awaited-ends", daemon=True)
    thread.start()
    return thread
