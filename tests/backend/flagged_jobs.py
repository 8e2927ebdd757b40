"""A job that is flagged, as a round leaves it."""

from __future__ import annotations

from backend.database import Database
from backend.models import JobFlag
from maat.vocabulary import Doubted


def flag(database: Database, job_id: str, kind: Doubted = Doubted.SPEED) -> None:
    with database.session_scope() as session:
        session.add(
            JobFlag(
                job_id=job_id,
                kind=kind.value,
                attempt=1,
                at_seconds=0.0,
                said=0.001,
                seen=0.1,
                unit="s a step",
            )
        )
