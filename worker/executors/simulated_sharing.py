"""What simulated jobs lose on GPUs that they share: measured as agents of real ones report it.

A step of the cluster is a report. It counts if a job trained beside the same partner from one step
to the next, both on the GPUs that they had: how many samples it processed in that time tells its
step time, and the agent knows the one alone.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from backend.attempts.sharing import ADD_SAMPLE, MeasuredPair, Partner, sample_row
from maat.scheduling.belief import Fitter
from maat.scheduling.fitting import weight_of_mean
from maat.scheduling.goodput import BatchPlan
from maat.scheduling.job import Allocation, JobId
from maat.simulation.simulated_job import SimulatedJob
from worker.writes import Write

Jobs = Mapping[JobId, SimulatedJob]


@dataclass(frozen=True, slots=True)
class Beside:
    """A job that trains, its partner, and what it had processed so far."""

    partner: JobId
    held: Allocation
    plan: BatchPlan
    processed_samples: float


class SharingNotes:
    """Collects the reports of one step."""

    def __init__(self, fitter: Fitter) -> None:
        self._fitter = fitter
        self._rows: list[Mapping[str, Any]] = []

    def note(self, before: Mapping[JobId, Beside], jobs: Jobs, *, since: float, now: float) -> None:
        """Note the jobs that are beside the same partner as `before`, at `since`."""
        after = beside(jobs) if before else {}
        for job_id, was in before.items():
            present = after.get(job_id)
            partner = after.get(was.partner)
            if present is None or partner is None or was.partner not in before:
                continue
            stayed = (present.partner, present.held, present.plan) == (
                was.partner,
                was.held,
                was.plan,
            )
            if stayed and partner.held == before[was.partner].held:
                steps = (present.processed_samples - was.processed_samples) / (
                    was.plan.total_batch_size
                )
                if steps >= 1:
                    self._add(jobs[job_id], present, jobs[was.partner], steps, since, now)

    def take_writes(self) -> list[Write]:
        """Return what was collected, and forget it here."""
        rows, self._rows = self._rows, []
        return [Write(statement, rows) for statement in ADD_SAMPLE]

    def _add(
        self,
        job: SimulatedJob,
        present: Beside,
        partner: SimulatedJob,
        steps: float,
        since: float,
        now: float,
    ) -> None:
        together = (now - since) / steps
        alone = job.agent.step_seconds(job.replicas(), present.plan, fitter=self._fitter)
        pair = MeasuredPair(
            job.spec.id,
            _on_one_gpu(job),
            Partner(partner.spec.id, _on_one_gpu(partner)),
            present.held.gpu_type,
            present.held.gpu_count,
        )
        weight = weight_of_mean(int(steps), together, 0.0)
        self._rows.append(sample_row(pair, together / alone, weight, now))


def beside(jobs: Jobs) -> Mapping[JobId, Beside]:
    """Return the jobs that train while exactly one other holds any of their GPUs."""
    on_gpu: dict[int, list[JobId]] = {}
    for job_id, job in jobs.items():
        for gpu in job.allocation.gpus if job.allocation is not None else ():
            on_gpu.setdefault(gpu, []).append(job_id)
    found = {}
    for job_id, job in jobs.items():
        held, plan = job.allocation, job.plan
        if held is None or plan is None or job.ledger.restart_left > 0:
            continue
        others = Counter(other for gpu in held.gpus for other in on_gpu[gpu] if other != job_id)
        if len(others) == 1:
            (partner,) = others
            found[job_id] = Beside(partner, held, plan, job.ledger.processed_samples)
    return found


def _on_one_gpu(job: SimulatedJob) -> int:
    """Return the samples of a step on one GPU, in all passes."""
    if job.plan is None or job.allocation is None:
        return 1
    return math.ceil(job.plan.total_batch_size / job.allocation.gpu_count)
