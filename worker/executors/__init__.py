"""The executors that a live cluster can have, by name: one line each.

An executor is imported when a cluster first needs it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlmodel import Session

from backend.models import Cluster as ClusterRow
from maat.vocabulary import ExecutorKind
from worker.executors.protocol import LiveExecutor, Restoration


@dataclass(frozen=True)
class ExecutorEntry:
    """One executor.

    `restore`: makes it from what it left. `seconds_until_seen`: for an executor whose copy can be
    asked what a later round would see, without any effect: how long after its submission the
    scheduler sees a job. None if nothing can be tried with it. `read`: what its own tables say of a
    cluster; None if it has none.
    """

    restore: Callable[[Restoration], LiveExecutor]
    seconds_until_seen: Callable[[], float] | None = None
    read: Callable[[Session, ClusterRow], Any] | None = None


def _simulated(restoration: Restoration) -> LiveExecutor:
    from worker.executors.simulated import SimulatedLive

    return SimulatedLive(restoration)


def _simulated_seconds_until_seen() -> float:
    from worker.executors.simulated import LIVE_FIDELITY

    return LIVE_FIDELITY.profiling_seconds_per_type


EXECUTORS: dict[str, ExecutorEntry] = {
    ExecutorKind.SIMULATED.value: ExecutorEntry(_simulated, _simulated_seconds_until_seen),
}
