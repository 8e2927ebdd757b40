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

    `restore`: makes it from what it left; a copy can be asked what the next round would see,
    without any effect. `seconds_until_seen`: how long after its submission the scheduler sees a
    job; None if that depends on a world of the executor's own. `read`: what its own tables say of a
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


def _training(restoration: Restoration) -> LiveExecutor:
    from worker.executors.training import Training

    return Training(restoration)


def _training_tables(session: Session, cluster: ClusterRow) -> Any:
    from worker.training.tables import read_tables

    return read_tables(session, cluster)


EXECUTORS: dict[str, ExecutorEntry] = {
    ExecutorKind.SIMULATED.value: ExecutorEntry(_simulated, _simulated_seconds_until_seen),
    ExecutorKind.LOCAL.value: ExecutorEntry(_training, read=_training_tables),
    ExecutorKind.SLURM.value: ExecutorEntry(_training, read=_training_tables),
}
