"""The state of the simulated executor: a snapshot per job, and what the job has learnt.

A snapshot is compared with the stored one before it is turned into text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from backend.columns import json_text
from maat.scheduling.arrays import FloatArray
from maat.scheduling.belief import TypeBelief
from maat.scheduling.fitting import Sample, fit_throughput
from maat.scheduling.job import JobId
from maat.simulation.job_snapshot import JobSnapshot, beliefs_from_json, samples_to_json
from maat.simulation.simulated_job import SimulatedJob
from worker.executors.protocol import StateChanges, StoredJob


@dataclass(frozen=True, slots=True)
class KeptJob:
    """A job's snapshot, and its beliefs by GPU type."""

    standing: JobSnapshot
    by_type: Mapping[str, TypeBelief]

    @classmethod
    def of(cls, job: SimulatedJob) -> KeptJob:
        return cls(JobSnapshot.of(job), job.agent.belief.by_type)

    @classmethod
    def read(cls, stored: StoredJob) -> KeptJob:
        """Read what was stored. Raises SnapshotError."""
        return cls(JobSnapshot.from_json(json.loads(stored.standing)), _beliefs(stored.samples))

    @property
    def standing_text(self) -> str:
        return json_text(self.standing.to_json())

    @property
    def samples_text(self) -> str:
        return json_text(samples_to_json(self.by_type))


class KeptJobs:
    """The jobs as they are stored, and what must be written to store them as they stand."""

    def __init__(self, stored: Mapping[JobId, StoredJob]) -> None:
        self.jobs = {job_id: KeptJob.read(texts) for job_id, texts in stored.items()}

    def take_changes(
        self, jobs: Mapping[JobId, SimulatedJob], *, of: Iterable[JobId] | None
    ) -> StateChanges:
        """Return what to write; it counts as stored from now on."""
        new: dict[JobId, StoredJob] = {}
        standing: dict[JobId, str] = {}
        samples: dict[JobId, str] = {}
        for job_id in jobs if of is None else [job_id for job_id in of if job_id in jobs]:
            held, now = self.jobs.get(job_id), KeptJob.of(jobs[job_id])
            if held is None:
                new[job_id] = StoredJob(now.standing_text, now.samples_text)
            else:
                if held.standing != now.standing:
                    standing[job_id] = now.standing_text
                if held.by_type is not now.by_type:
                    samples[job_id] = now.samples_text
            self.jobs[job_id] = now
        gone = [job_id for job_id in self.jobs if job_id not in jobs]
        for job_id in gone:
            del self.jobs[job_id]
        return StateChanges(new, standing, samples, gone)


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
