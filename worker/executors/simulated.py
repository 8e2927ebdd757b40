"""The simulated executor of a live cluster: jobs live by their true step times.

Writes nothing, and acts on nothing outside itself: a copy of it may be asked about a later time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import lru_cache
from typing import Any

from backend.models import Job as JobRow
from maat.scheduling.errors import InputError
from maat.scheduling.events import Event, EventKind
from maat.scheduling.interference import DeclaredSlowdowns, SlowdownsByName, named_for_sharing
from maat.scheduling.job import JobId
from maat.scheduling.matrix import NO_LOSS
from maat.scheduling.rounds import Changes
from maat.simulation.executor import SimulatedExecutor
from maat.simulation.fidelity import FIDELITIES
from maat.simulation.simulated_job import SimulatedJob
from maat.simulation.slowdowns import SharedGpus, Slowdown
from maat.simulation.world_models import Model, catalog_models
from maat.vocabulary import JobState
from worker.executors.numbering import renumbered
from worker.executors.protocol import (
    Applied,
    EndedBatch,
    JobStatus,
    News,
    Observation,
    Restoration,
    StateChanges,
)
from worker.executors.simulated_beliefs import BeliefNotes, parts_of
from worker.executors.simulated_sharing import SharingNotes, beside
from worker.executors.simulated_state import KeptJobs, fit_once
from worker.jobs.spec import job_spec
from worker.writes import Write

LIVE_FIDELITY = FIDELITIES["paper"]


@lru_cache(maxsize=1)
def live_models() -> Mapping[str, Model]:
    """Return the catalog, read once per process."""
    return catalog_models()


class SimulatedLive:
    """The simulator, fed from the jobs table.

    Requests since the last round take effect when it is observed.
    """

    def __init__(self, restoration: Restoration) -> None:
        self._clock, state = restoration.clock, restoration.state
        self._simulated = SimulatedExecutor(
            restoration.cluster,
            self._clock,
            LIVE_FIDELITY,
            fitter=fit_once,
            slowdowns=_slowdowns(restoration.interference),
        )
        self._unseen: list[Event] = []
        self._begun: list[Event] = []
        self._cancelled: list[JobId] = []
        self._paused: Set[JobId] = frozenset()
        self._notes = BeliefNotes()
        self._sharing = SharingNotes(fit_once)
        self._kept = KeptJobs({} if state is None else state.jobs)
        self._admit(restoration.news)
        if state is not None:
            known = {
                job_id: (kept.standing, kept.by_type) for job_id, kept in self._kept.jobs.items()
            }
            self._simulated.resume(float(state.head["now"]), known)
            if restoration.numbers is not None:
                self._unseen += self._renumber(restoration.numbers)

    @property
    def known(self) -> Set[JobId]:
        return self._simulated.unfinished

    def go_on(self, news: News) -> None:
        self._simulated.forget_finished()
        self._admit(news)

    def observe(self) -> Observation:
        requested = [*self._unseen, *self._cancel(), *self._begun]
        self._unseen, self._begun = [], []
        before, since = parts_of(self._simulated.jobs), self._simulated.now
        shares = self._simulated.cluster.jobs_per_gpu > 1
        shared = beside(self._simulated.jobs) if shares else {}
        observed = self._simulated.observe()
        self._simulated.withdraw(self._paused)
        state = replace(observed, events=(*requested, *observed.events))
        jobs = (*self._simulated.jobs.values(), *self._simulated.finished.values())
        self._sharing.note(shared, self._simulated.jobs, since=since, now=observed.now)
        self._notes.note_gradients(jobs, before, at=observed.now)
        self._notes.note_ended(self._simulated.finished.values())
        return Observation(
            state, [_status(job)._replace(ended_batches=_ended_batches(job)) for job in jobs]
        )

    def apply(self, changes: Changes) -> Applied:
        events, jobs = self._simulated.apply(changes), self._simulated.jobs
        touched = [change.job_id for change in changes.items if change.job_id in jobs]
        return Applied(events, [_status(jobs[job_id]) for job_id in touched])

    def head(self) -> Mapping[str, Any]:
        return {"now": self._simulated.now}

    def take_changes(self, *, of: Iterable[JobId] | None = None) -> StateChanges:
        return self._kept.take_changes(self._simulated.jobs, of=of)

    def take_writes(self) -> Sequence[Write]:
        return [*self._notes.take_writes(), *self._sharing.take_writes()]

    def _admit(self, news: News) -> None:
        cancelled, self._paused = set(news.cancelled), news.paused.keys()
        for row in news.jobs:
            refused = self._submit(row, news.tenants[row.tenant_id])
            if refused is not None:
                self._unseen.append(refused)
                cancelled.discard(row.id)
            elif row.id not in cancelled and row.state == JobState.SUBMITTED:
                self._begun.append(
                    Event(row.submitted_seconds, row.id, EventKind.STATE, JobState.PROFILING)
                )
        self._cancelled += [job_id for job_id in news.cancelled if job_id in cancelled]

    def _submit(self, row: JobRow, tenant: str) -> Event | None:
        """Submit a job to the simulator.

        Returns an event if the job fails because it can never run.
        """
        try:
            model = _model(row)
            spec = job_spec(row, tenant=tenant)
        except InputError as error:
            problem = {"field": error.field, "problem": error.problem, "remedy": error.remedy}
            return Event(self._clock.now(), row.id, EventKind.STATE, JobState.FAILED, problem)
        if self._simulated.cluster.jobs_per_gpu > 1:
            spec = named_for_sharing(spec, tenant=row.tenant_id)
        self._simulated.submit(
            spec, model.truth, restart_seconds=model.restart_seconds, work_scale=row.work_scale
        )
        return None

    def _cancel(self) -> list[Event]:
        cancelled, self._cancelled = self._cancelled, []
        for job_id in cancelled:
            self._simulated.cancel(job_id)
        return [
            Event(self._clock.now(), job_id, EventKind.STATE, JobState.CANCELLED)
            for job_id in cancelled
        ]

    def _renumber(self, numbers: Mapping[int, int]) -> Iterator[Event]:
        """Give jobs the new numbers of their GPUs.

        A job whose node is gone loses its GPUs.
        """
        now = self._clock.now()
        for job in self._simulated.jobs.values():
            if job.allocation is None:
                continue
            moved = renumbered(job.allocation, numbers)
            if moved is not None:
                job.hold(moved, job.shape, job.fixed_plan, restarts=False, now=now)
                continue
            job.hold(None, (), None, restarts=False, now=now)
            cause = {"cause": EventKind.NODE_FAILED.value}
            yield Event(now, job.spec.id, EventKind.STATE, JobState.PREEMPTED, cause)


def _slowdowns(declared: DeclaredSlowdowns | None) -> tuple[Slowdown, ...]:
    """Return what slows jobs that share a GPU, as it truly is.

    A round that puts two jobs on one GPU that do not fit there, or of which nothing is declared,
    must not stop the cluster: they run at the worst slowdown of the table.
    """
    if declared is None:
        return ()
    return (SharedGpus(SlowdownsByName(declared.bounded(), otherwise=declared.worst)),)


def _status(job: SimulatedJob) -> JobStatus:
    ledger, total = job.ledger, job.total_work
    done, has_ended, goodput = ledger.done_work, ledger.finished_at is not None, job.goodput
    held = None if has_ended else job.allocation
    return JobStatus(
        job.spec.id,
        min(done / total, 1.0) if total > 0 else 1.0,
        max(total - done, 0.0),
        sum(ledger.gpu_seconds.values()),
        ledger.restarts,
        ledger.started_at,
        held,
        goodput if held is not None and goodput > 0 and job.has_run_here else None,
        job.plan,
        JobState.SUCCEEDED if has_ended else None,
        processed_samples=ledger.processed_samples,
        gained_samples=done + ledger.lost_work,
        lost_gpu_seconds=ledger.lost_gpu_seconds,
        noise_scale=_noise_scale(job),
    )


def _ended_batches(job: SimulatedJob) -> Sequence[EndedBatch]:
    return [
        EndedBatch(one.at, one.total_batch_size, one.processed_samples) for one in job.batch_ends
    ]


def _noise_scale(job: SimulatedJob) -> float | None:
    if not job.spec.learns:
        return NO_LOSS
    if job.agent.belief.gradient is None:
        return None
    return job.agent.belief.noise_scale(job.spec.initial_batch_size)


def _model(row: JobRow) -> Model:
    models = live_models()
    if row.model not in models:
        raise InputError(
            "is no longer a model of the catalog",
            field="model",
            value=row.model,
            remedy=f"Use one of: {', '.join(models)}.",
        )
    return models[row.model]
