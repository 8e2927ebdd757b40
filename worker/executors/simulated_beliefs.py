"""What was believed of simulated jobs, kept beyond their end: what agents report of real ones.

The executor's own state of a job is deleted when it ends. Finish-time fairness needs the gradients
of its whole training and the step times that were measured until its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sa

from backend.columns import json_text
from backend.models import EndedBelief, GradientSample
from maat.scheduling.job import JobId
from maat.simulation.job_snapshot import samples_to_json
from maat.simulation.simulated_job import SimulatedJob
from worker.writes import Write

PARTS = 16  # of a job's work: its gradients are noted once in each
_GRADIENTS: sa.Table = GradientSample.__table__  # type: ignore[attr-defined]
_ENDED: sa.Table = EndedBelief.__table__  # type: ignore[attr-defined]


class BeliefNotes:
    """Collects the rows of one step."""

    def __init__(self) -> None:
        self._gradients: list[dict[str, Any]] = []
        self._ended: dict[JobId, dict[str, Any]] = {}

    def note_gradients(
        self, jobs: Iterable[SimulatedJob], before: Mapping[JobId, int], *, at: float
    ) -> None:
        """Note the gradients of jobs that have come to another part of their work.

        `before`: `parts_of` the jobs at the last observation. Nothing is remembered but that, so a
        worker that goes on from rows notes the same.
        """
        for job in jobs:
            part = before.get(job.spec.id)
            gradient = job.agent.belief.gradient
            if part is None or gradient is None or _part_of(job) == part:
                continue
            self._gradients.append(
                {
                    "job_id": job.spec.id,
                    "at_seconds": at,
                    "square": gradient.square,
                    "variance": gradient.variance,
                    "steps": 1,
                    "batch_size": job.spec.initial_batch_size,
                    "progress": job.ledger.done_work,
                }
            )

    def note_ended(self, jobs: Iterable[SimulatedJob]) -> None:
        """Note the step times of jobs that have finished."""
        for job in jobs:
            samples = json_text(samples_to_json(job.agent.belief.by_type))
            self._ended[job.spec.id] = {"job_id": job.spec.id, "samples": samples}

    def take_writes(self) -> list[Write]:
        """Return what was collected, and forget it here."""
        again = [{"of_job": job_id} for job_id in self._ended]  # one that it once had lost
        writes = [
            Write(sa.insert(_GRADIENTS), self._gradients),
            Write(sa.delete(_ENDED).where(_ENDED.c.job_id == sa.bindparam("of_job")), again),
            Write(sa.insert(_ENDED), list(self._ended.values())),
        ]
        self._gradients, self._ended = [], {}
        return [write for write in writes if write.rows]


def parts_of(jobs: Mapping[JobId, SimulatedJob]) -> dict[JobId, int]:
    """Return the part of its work that each job is in which holds GPUs: no other one goes on."""
    return {job_id: _part_of(job) for job_id, job in jobs.items() if job.allocation is not None}


def _part_of(job: SimulatedJob) -> int:
    """The number of the part of its work that a job is in; 0 until gradients are known."""
    if job.agent.belief.gradient is None or job.total_work <= 0:
        return 0
    return 1 + min(int(PARTS * job.ledger.done_work / job.total_work), PARTS - 1)
