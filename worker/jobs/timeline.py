"""The spans of the jobs' timelines that a step begins and ends: which GPUs, and since when."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from backend.columns import json_text
from backend.models import AllocationReading, BatchChange, JobAllocation
from maat.scheduling.cluster import Cluster
from maat.scheduling.job import Allocation, JobId
from worker.jobs.standing import Readings
from worker.writes import Write

_SPANS: sa.Table = JobAllocation.__table__  # type: ignore[attr-defined]
_BATCHES: sa.Table = BatchChange.__table__  # type: ignore[attr-defined]
_READINGS: sa.Table = AllocationReading.__table__  # type: ignore[attr-defined]
_NO_BATCH = {"total_batch_size": None, "per_gpu_batch_size": None, "accumulation_steps": None}


class Timeline:
    """Collects the writes of one step. A span begins once the one before it has ended."""

    def __init__(self, cluster_id: str) -> None:
        self._cluster_id = cluster_id
        self._planned: list[dict[str, Any]] = []
        self._ended: list[dict[str, Any]] = []
        self._begun: list[dict[str, Any]] = []
        self._ran: list[dict[str, Any]] = []
        self._read: list[dict[str, Any]] = []
        self._batches: list[dict[str, Any]] = []
        self._present: dict[JobId, dict[str, Any]] = {}  # of those begun, by job

    def begin(
        self,
        job_id: JobId,
        allocation: Allocation,
        cluster: Cluster,
        *,
        at: float,
        round_number: int,
        readings: Readings,
        runs: bool = False,
        for_profile: bool = False,
        noise_scale: float | None = None,
    ) -> None:
        """Begin a span. `runs`: the job runs on it at once, without a start.

        `noise_scale`: of its gradients now, in samples.
        """
        gpus = list(allocation.gpus)
        self._present[job_id] = {
            "job_id": job_id,
            "cluster_id": self._cluster_id,
            "round_number": round_number,
            "from_seconds": at,
            "to_seconds": None,
            "gpu_type": allocation.gpu_type,
            "gpu_count": allocation.gpu_count,
            "node_count": len(set(cluster.gpu_node[gpus].tolist())),
            "gpus": json_text(gpus),
            "running_seconds": at if runs else None,
            "for_profile": for_profile,
            "noise_scale": noise_scale,
            **_read("before", readings),
            **_read("after", None),
            **_NO_BATCH,
        }
        self._begun.append(self._present[job_id])

    def plan(self, job_id: JobId, batch: Mapping[str, Any]) -> None:
        """Give the present span its batch.

        A span that began in this step is not stored yet: an update would change the one before it.
        """
        begun = self._present.get(job_id)
        if begun is not None:
            begun.update(batch)
        else:
            self._planned.append({"of_job": job_id, **batch})

    def end_batch(
        self, job_id: JobId, total_batch_size: int, *, at: float, processed_samples: float
    ) -> None:
        """Note until when the present span ran a batch size, and what was counted by then."""
        self._batches.append(
            {
                "job_id": job_id,
                "cluster_id": self._cluster_id,
                "at_seconds": at,
                "total_batch_size": total_batch_size,
                "processed_samples": processed_samples,
            }
        )

    def run(self, job_id: JobId, at: float) -> None:
        """Note that the job runs on its present span, which is stored or began in this step."""
        begun = self._present.get(job_id)
        if begun is None:
            self._ran.append({"of_job": job_id, "ran_at": at})
        elif begun["running_seconds"] is None:
            begun["running_seconds"] = at

    def end(self, job_id: JobId, at: float, readings: Readings) -> None:
        """End the present span, which is stored or began in this step."""
        begun = self._present.pop(job_id, None)
        if begun is not None:
            begun.update(to_seconds=max(at, begun["from_seconds"]), **_read("after", readings))
        else:
            self._ended.append({"of_job": job_id, "ended_at": at, **_read("after", readings)})

    def read(self, at: float, readings: Mapping[JobId, Readings]) -> None:
        """Note the counters of jobs in the middle of their spans."""
        self._read += [
            {"cluster_id": self._cluster_id, "at_seconds": at, "job_id": job_id, **found._asdict()}
            for job_id, found in readings.items()
        ]

    def take_writes(self) -> list[Write]:
        """Return what was collected, and forget it here."""
        still_open = sa.and_(
            _SPANS.c.job_id == sa.bindparam("of_job"), _SPANS.c.to_seconds.is_(None)
        )
        ended_at = sa.bindparam("ended_at", type_=sa.Float)
        began = _SPANS.c.from_seconds
        # No span ends before it began, whenever the executor says that it did.
        end = sa.case((began > ended_at, began), else_=ended_at)
        starts = sa.and_(still_open, _SPANS.c.running_seconds.is_(None))
        ran_at = sa.bindparam("ran_at", type_=sa.Float)
        writes = [
            Write(sa.update(_SPANS).where(still_open), self._planned),
            Write(sa.update(_SPANS).where(starts).values(running_seconds=ran_at), self._ran),
            Write(sa.update(_SPANS).where(still_open).values(to_seconds=end), self._ended),
            Write(sa.insert(_SPANS), self._begun),
            Write(sa.insert(_READINGS), self._read),
            Write(sa.insert(_BATCHES), self._batches),
        ]
        self._planned, self._ended, self._begun, self._present = [], [], [], {}
        self._ran, self._read, self._batches = [], [], []
        return writes


def _read(when: str, readings: Readings | None) -> dict[str, float | None]:
    """Return the columns of a span that hold these counters."""
    processed, gained, lost = (None, None, None) if readings is None else readings
    return {f"processed_{when}": processed, f"gained_{when}": gained, f"lost_{when}": lost}
