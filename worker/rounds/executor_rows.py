"""An executor's state in the database: a head per cluster, and two texts per unfinished job.

Only the executor reads what is in them.
"""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa
from sqlmodel import Session

from backend.models import ClusterRuntime, ExecutorJob, ExecutorSamples
from maat.scheduling.job import JobId
from worker.executors.protocol import StateChanges, StoredJob, StoredState
from worker.writes import Write

_JOBS: sa.Table = ExecutorJob.__table__  # type: ignore[attr-defined]
_SAMPLES: sa.Table = ExecutorSamples.__table__  # type: ignore[attr-defined]


def stored_state(session: Session, runtime: ClusterRuntime | None) -> StoredState | None:
    """Read the state; None before the first round."""
    if runtime is None or runtime.executor_state is None:
        return None
    texts = sa.select(_JOBS.c.job_id, _JOBS.c.standing, _SAMPLES.c.samples).join(
        _SAMPLES, _SAMPLES.c.job_id == _JOBS.c.job_id
    )
    rows = session.connection().execute(texts.where(_JOBS.c.cluster_id == runtime.cluster_id))
    jobs = {job_id: StoredJob(standing, samples) for job_id, standing, samples in rows}
    return StoredState(runtime.executor_state, jobs)


def state_writes(changes: StateChanges, cluster_id: str) -> list[Write]:
    """Return the writes that bring the rows up to date."""
    ended = [{"of_job": job_id} for job_id in changes.gone]
    new = {
        text: [
            {"job_id": job_id, "cluster_id": cluster_id, text: getattr(stored, text)}
            for job_id, stored in changes.new.items()
        ]
        for text in StoredJob._fields
    }
    return [
        Write(sa.insert(_JOBS), new["standing"]),
        Write(sa.insert(_SAMPLES), new["samples"]),
        _update(_JOBS, "standing", changes.standing),
        _update(_SAMPLES, "samples", changes.samples),
        *(
            Write(sa.delete(table).where(table.c.job_id == sa.bindparam("of_job")), ended)
            for table in (_SAMPLES, _JOBS)
        ),
    ]


def _update(table: sa.Table, name: str, texts: Mapping[JobId, str]) -> Write:
    statement = (
        sa.update(table)
        .where(table.c.job_id == sa.bindparam("of_job"))
        .values({name: sa.bindparam(name)})
    )
    return Write(statement, [{"of_job": job_id, name: text} for job_id, text in texts.items()])
