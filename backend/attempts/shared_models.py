"""Of which models all tenants' evidence counts together. Commits nothing; the worker calls it."""

from __future__ import annotations

from sqlmodel import Session, col, select

from backend.attempts.models import SharedModel
from backend.clusters.models import Cluster
from maat.scheduling.evidence import EVERY_MODEL, SharedModels


def shared_models(session: Session, cluster: Cluster) -> SharedModels:
    """Return those an administrator named; all where jobs are played.

    There a name is the catalog's, and the simulator measures, whom no tenant can deceive.
    """
    if not cluster.runs_commands:
        return EVERY_MODEL
    names = session.exec(select(SharedModel.model).order_by(col(SharedModel.model)))
    return SharedModels(frozenset(names))
