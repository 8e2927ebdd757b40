"""The simulated executor's state: a row per unfinished job, and one for the rest.

Writes only what changed. It remembers what the rows hold: after a round that cannot be committed,
this memory must not be used again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import sqlalchemy as sa
from sqlmodel import Session

from backend.columns import json_text
from backend.models import ClusterRuntime, ExecutorJob, ExecutorSamples
from maat.scheduling.arrays import FloatArray
from maat.scheduling.belief import TypeBelief
from maat.scheduling.fitting import Sample, fit_throughput
from maat.scheduling.job import JobId
from maat.simulation.job_snapshot import JobSnapshot, beliefs_from_json, samples_to_json
from maat.simulation.simulated_job import SimulatedJob
from worker.writes import Write

_JOBS: sa.Table = ExecutorJob.__table__  # type: ignore[attr-defined]
_SAMPLES: sa.Table = ExecutorSamples.__table__  # type: ignore[attr-defined]


@dataclass(frozen=True)
class StoredJob:
    """The stored state of a job, and its beliefs by GPU type."""

    standing: JobSnapshot
    by_type: Mapping[str, TypeBelief]


@dataclass(frozen=True)
class StoredExecutor:
    """The stored state of a cluster's executor.

    `nodes`: the layout by which its GPUs are numbered; `now`: cluster time up to which its jobs
    were simulated.
    """

    nodes: list[list[Any]]
    now: float
    jobs: Mapping[JobId, StoredJob]


def stored_executor(session: Session, runtime: ClusterRuntime | None) -> StoredExecutor | None:
    """Read the state; None before the first round."""
    if runtime is None or runtime.executor_state is None:
        return None
    texts = sa.select(_JOBS.c.job_id, _JOBS.c.standing, _SAMPLES.c.samples).join(
        _SAMPLES, _SAMPLES.c.job_id == _JOBS.c.job_id
    )
    rows = session.connection().execute(texts.where(_JOBS.c.cluster_id == runtime.cluster_id)).all()
    jobs = {
        job_id: StoredJob(JobSnapshot.from_json(json.loads(standing)), _beliefs(samples))
        for job_id, standing, samples in rows
    }
    return StoredExecutor(
        runtime.executor_state["nodes"], float(runtime.executor_state["now"]), jobs
    )


@lru_cache(maxsize=20_000)
def fit_once(samples: tuple[Sample, ...]) -> FloatArray:
    """Fit the model of these samples; cached.

    Jobs of one model have equal samples, and an executor may be restored in every round.
    """
    found = fit_throughput(samples)
    found.setflags(write=False)
    return found


@lru_cache(maxsize=20_000)
def _beliefs(samples: str) -> Mapping[str, TypeBelief]:
    return beliefs_from_json(json.loads(samples), fitter=fit_once)


class ExecutorRows:
    """What the rows of one cluster hold, and the writes that bring them up to date."""

    def __init__(self, cluster_id: str, jobs: Mapping[JobId, StoredJob]) -> None:
        self._cluster_id, self._held = cluster_id, dict(jobs)

    def changes(
        self, jobs: Mapping[JobId, SimulatedJob], *, touched: Iterable[JobId] | None = None
    ) -> list[Write]:
        """Return the writes that make the rows equal to these jobs.

        They count as written from now on. `touched`: the jobs that may differ from their rows.
        """
        new: list[dict[str, Any]] = []
        moved: list[dict[str, Any]] = []
        new_samples: list[dict[str, Any]] = []
        learnt: list[dict[str, Any]] = []
        for job_id in jobs if touched is None else touched:
            job = jobs[job_id]
            held, now = (
                self._held.get(job_id),
                StoredJob(JobSnapshot.of(job), job.agent.belief.by_type),
            )
            mine = {"job_id": job_id, "cluster_id": self._cluster_id}
            if held is None:
                new.append({**mine, "standing": json_text(now.standing.to_json())})
                new_samples.append({**mine, "samples": json_text(samples_to_json(now.by_type))})
            elif held.by_type is not now.by_type:
                learnt.append(
                    {"of_job": job_id, "samples": json_text(samples_to_json(now.by_type))}
                )
            if held is not None and held.standing != now.standing:
                moved.append({"of_job": job_id, "standing": json_text(now.standing.to_json())})
            self._held[job_id] = now
        return [
            Write(sa.insert(_JOBS), new),
            Write(sa.insert(_SAMPLES), new_samples),
            Write(
                sa.update(_JOBS)
                .where(_JOBS.c.job_id == sa.bindparam("of_job"))
                .values(standing=sa.bindparam("standing")),
                moved,
            ),
            Write(
                sa.update(_SAMPLES)
                .where(_SAMPLES.c.job_id == sa.bindparam("of_job"))
                .values(samples=sa.bindparam("samples")),
                learnt,
            ),
            *self._without([job_id for job_id in self._held if job_id not in jobs]),
        ]

    def _without(self, ended: list[JobId]) -> list[Write]:
        for job_id in ended:
            del self._held[job_id]
        rows = [{"of_job": job_id} for job_id in ended]
        return [
            Write(sa.delete(table).where(table.c.job_id == sa.bindparam("of_job")), rows)
            for table in (_SAMPLES, _JOBS)
        ]
