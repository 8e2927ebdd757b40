"""What a round of a live cluster knows of the slowdown of jobs on one GPU."""

from __future__ import annotations

from collections.abc import Mapping

from sqlmodel import Session

from backend.attempts.slowdowns import measured_slowdowns
from backend.models import Cluster
from maat.scheduling.interference import DeclaredSlowdowns, Slowdowns, SlowdownsByName

NOTHING_SHARED: Mapping[tuple[str, str, int], float] = {}


def known_interference(
    session: Session, cluster: Cluster, declared: Slowdowns | None
) -> Mapping[tuple[str, str, int], float]:
    """Return slowdowns by the names of jobs: what was measured, else what is declared."""
    if cluster.jobs_per_gpu == 1:
        return NOTHING_SHARED
    measured = measured_slowdowns(session, cluster, declared)
    return SlowdownsByName(measured, *(() if declared is None else (declared,)))


def played_interference(
    session: Session, cluster: Cluster, declared: DeclaredSlowdowns | None
) -> Mapping[tuple[str, str, int], float] | None:
    """Return by what jobs on one GPU slow each other where rounds are played; None if none can be.

    As decisions know it. A policy may share GPUs without knowing a pair, and what does not fit by
    the table may have been put together all the same: such pairs run at the table's worst slowdown.
    """
    if cluster.jobs_per_gpu == 1:
        return None
    if declared is None:
        return SlowdownsByName(measured_slowdowns(session, cluster), otherwise=1.0)
    bounded = declared.bounded()
    measured = measured_slowdowns(session, cluster, bounded)
    return SlowdownsByName(measured, bounded, otherwise=declared.worst)
