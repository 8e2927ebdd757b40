"""What a step of a cluster changes about its jobs.

Changes are collected in memory and prepared for the round's transaction. No other code changes
these columns while the lease is held. States change only as maat.scheduling.events allows; any
other change is logged and not written.

Events tell what happened, statuses how a job stands. Where they differ, the status counts: a job
that lost its GPUs without an event becomes preempted, with the cause `lost`, and waits for GPUs
like any other preempted job. One that holds GPUs becomes starting or restarting. One that ended
without an event ends now.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from backend.columns import JsonText, json_text
from backend.models import Job as JobRow
from backend.models import JobEvent, WaitReason
from maat.scheduling.cluster import Cluster
from maat.scheduling.events import TERMINAL, Event, EventKind, may_follow
from maat.scheduling.explain import ReasonCode, Reasons
from maat.scheduling.goodput import BatchPlan
from maat.scheduling.job import Allocation, JobId
from maat.vocabulary import JobState
from worker.executors.protocol import JobStatus, Pause
from worker.fairness.ended import queue_ended
from worker.jobs.causes import Cause, cause_without_gpus
from worker.jobs.deadlines import DeadlineWatch
from worker.jobs.pauses import PauseSpans, close_all_needs, state_without_gpus
from worker.jobs.reasons import (
    HAS_GPUS,
    explain,
    explain_by_round,
    explain_end,
    explain_profile,
)
from worker.jobs.standing import JobStanding, update_jobs
from worker.jobs.states import WITH_GPUS, steps_to
from worker.jobs.timeline import Timeline
from worker.rounds.changes_json import batch_to_json
from worker.rounds.event_memory import EventMemory, Told
from worker.writes import Write

log = logging.getLogger(__name__)

_JOBS: sa.Table = JobRow.__table__  # type: ignore[attr-defined]
_WITH_GPUS = frozenset(state.value for state in WITH_GPUS)
_ENDED = frozenset(state.value for state in TERMINAL)
_NO_LONGER_THERE = [-1]  # the GPUs of a job whose node was removed, until a step says what followed


@dataclass(frozen=True)
class Moment:
    """What is recorded: how things stood at this cluster time, by this round.

    Nothing is recorded as later than that.
    """

    at: float
    round_number: int
    cluster: Cluster


class JobJournal:
    """The unfinished jobs of one cluster.

    `told`: the events of the last steps, as stored. `paused`: the jobs that rounds leave out, and
    why; set at every step. After a step that is not committed, this
    journal must not be used again.
    """

    def __init__(
        self, rows: Iterable[JobRow], *, cluster_id: str, told: Iterable[Told] = ()
    ) -> None:
        self.jobs: dict[JobId, JobStanding] = {}
        self.paused: Mapping[JobId, Pause] = {}
        self._deadlines = DeadlineWatch()
        self._cluster_id = cluster_id
        self._stored: dict[JobId, dict[str, Any]] = {}
        self._events: list[dict[str, Any]] = []
        self._ended: list[dict[str, Any]] = []
        self._waits: list[dict[str, Any]] = []
        self._timeline = Timeline(cluster_id)
        self._pauses = PauseSpans(cluster_id)
        self._memory = EventMemory(told)
        self.admit(rows)

    def admit(self, rows: Iterable[JobRow]) -> None:
        """Add jobs as the database holds them."""
        for row in rows:
            job = self.jobs[row.id] = JobStanding.of(row)
            self._deadlines.add(row)
            self._stored[row.id] = job.compared()

    def forget_before(self, time: float) -> None:
        """Forget earlier events; such an event of a job seen before is too late to count."""
        self._memory.forget_before(time)

    def record(
        self, events: Iterable[Event], statuses: Collection[JobStatus], moment: Moment
    ) -> None:
        """Record what happened, and how these jobs stand now."""
        for status in statuses:
            self._record_figures(status, moment)
        for event in sorted(events, key=lambda event: event.time):
            self.record_event(event, moment)
        for status in statuses:
            self._agree(status, moment)
        for event in self._deadlines.missed(self.jobs, statuses, at=moment.at):
            self._write_event(event, moment)

    def record_lost(self, job_ids: Iterable[JobId], moment: Moment) -> None:
        """Record that jobs without a status hold no GPUs: not yet, or the executor lost them."""
        for job_id in job_ids:
            job = self.jobs[job_id]
            if job.state not in _ENDED:
                self._hold(job_id, job, None, moment)
                self._settle(job_id, job, moment)

    def record_event(self, event: Event, moment: Moment) -> None:
        """Record an event of the executor; the job changes to its state, if allowed.

        One that was told before, or too late to count, is not written again.
        """
        job = self.jobs.get(event.job_id)
        time = min(event.time, moment.at)
        if job is None or self._memory.is_old_news(event, time, is_new=job.as_of_round is None):
            return
        before, kind, after = JobState(job.state), event.kind, event.state
        if after is before:
            kind, after = EventKind.ALLOCATED, None
        if after is not None:
            if not may_follow(before, after):
                log.error(
                    "job %s is %s and cannot become %s: event ignored",
                    event.job_id,
                    before.value,
                    after.value,
                )
                return
            self._pass_to(event.job_id, job, after, time)
            if after is JobState.PREEMPTED and "cause" in event.data:
                explain_end(job, event.data)
        if job.state == JobState.PROFILING and "gpu_type" in event.data:
            explain_profile(job, str(event.data["gpu_type"]))
        self._write_event(Event(time, event.job_id, kind, after, event.data), moment)

    def _write_event(self, event: Event, moment: Moment) -> None:
        self._memory.remember(event)
        self._events.append(
            {
                "job_id": event.job_id,
                "cluster_id": self._cluster_id,
                "round_number": moment.round_number,
                "cluster_seconds": event.time,
                "kind": event.kind.value,
                "state": None if event.state is None else event.state.value,
                "data": _data_text(event),
            }
        )

    def _record_figures(self, status: JobStatus, moment: Moment) -> None:
        """Record everything but state and GPUs. A new batch plan belongs to the present span."""
        job = self.jobs.get(status.job_id)
        if job is None:
            return
        job.progress, job.remaining_work = status.progress, status.remaining_work
        job.gpu_seconds, job.restarts = status.gpu_seconds, status.restarts
        job.processed_samples, job.gained_samples = status.processed_samples, status.gained_samples
        job.lost_gpu_seconds = status.lost_gpu_seconds
        job.goodput = status.goodput
        if status.started_at is not None:
            job.started_seconds = status.started_at
        if status.profiling and status.allocation is None and job.state == JobState.PENDING:
            explain_profile(job, None)
        if status.held_back is not None:
            explain(job, ReasonCode.HELD_BACK, dict(status.held_back))
        if status.allocation is None or job.holds(status.allocation):
            self._end_batch(status, job, moment)
            self._run_plan(status.job_id, job, status.plan)

    def _agree(self, status: JobStatus, moment: Moment) -> None:
        """Let GPUs and state follow the job's status, where its events have not told them."""
        job_id, held = status.job_id, status.allocation
        job = self.jobs.get(job_id)
        if job is None or job.state in _ENDED:
            return
        if status.ended is not None:
            self._pass_by_steps(job_id, {status.ended}, Cause.ENDED, moment)
            return
        if not job.holds(held):
            self._hold(
                job_id,
                job,
                held,
                moment,
                for_profile=status.profiling,
                noise_scale=status.noise_scale,
            )
            self._run_plan(job_id, job, status.plan)
        if held is not None and job.state not in _WITH_GPUS and not status.profiling:
            self._pass_by_steps(job_id, WITH_GPUS, Cause.HOLDS_GPUS, moment)
        elif held is None and not (status.starting or status.ending or status.profiling):
            self._settle(job_id, job, moment)

    def _settle(self, job_id: JobId, job: JobStanding, moment: Moment) -> None:
        """Let a job without GPUs wait for them, or be paused."""
        state = state_without_gpus(JobState(job.state), is_paused=job_id in self.paused)
        if state is not None:
            pause = self.paused.get(job_id)
            why = job.reason_code if pause is None else pause.code
            cause = cause_without_gpus(state, follows=why == ReasonCode.WAITING_DEPENDENCY)
            self._pass_by_steps(job_id, {state}, cause, moment)

    def _pass_by_steps(
        self, job_id: JobId, wanted: Collection[JobState], cause: Cause, moment: Moment
    ) -> None:
        """Pass to a wanted state by the fewest allowed changes, each with its event.

        A state that the job has entered at this very time before must wait for the next step.
        """
        job = self.jobs[job_id]
        for state in steps_to(JobState(job.state), wanted):
            data = {"cause": cause.value}
            event = Event(moment.at, job_id, EventKind.STATE, state, data)
            if self._memory.has(event):
                return
            self._pass_to(job_id, job, state, moment.at)
            self._write_event(event, moment)

    def _hold(
        self,
        job_id: JobId,
        job: JobStanding,
        allocation: Allocation | None,
        moment: Moment,
        *,
        for_profile: bool = False,
        noise_scale: float | None = None,
    ) -> None:
        """Record the GPUs that a job holds from `moment.at` on.

        One span of its timeline ends and one begins.
        """
        self._release(job_id, job, moment.at)
        if allocation is None:
            return
        job.gpu_type, job.gpus = allocation.gpu_type, list(allocation.gpus)
        self._timeline.begin(
            job_id,
            allocation,
            moment.cluster,
            at=moment.at,
            round_number=moment.round_number,
            readings=job.readings,
            runs=job.state == JobState.RUNNING,
            for_profile=for_profile,
            noise_scale=noise_scale,
        )

    def read_counters(self, at: float) -> None:
        """Note the counters of all jobs that hold GPUs: a day has begun."""
        holding = {job_id: job.readings for job_id, job in self.jobs.items() if job.gpus}
        self._timeline.read(at, holding)

    def renumber(self, numbers: Mapping[int, int]) -> None:
        """Give every job's GPUs their new numbers, after nodes were added or removed.

        A job with a GPU that no longer exists keeps its span until a step says what followed.
        """
        for job in self.jobs.values():
            if job.gpus is not None:
                there = all(gpu in numbers for gpu in job.gpus)
                job.gpus = (
                    sorted(numbers[gpu] for gpu in job.gpus) if there else list(_NO_LONGER_THERE)
                )

    def record_reasons(
        self, reasons: Mapping[JobId, Reasons], *, round_number: int, at: float
    ) -> None:
        """Record why every job has its allocation, by the round at this cluster time.

        Jobs that are being profiled are unknown to the round, or pinned.
        """
        for job_id, job in self.jobs.items():
            why = reasons.get(job_id)
            if job.state == JobState.PROFILING:
                if job.reason_code != ReasonCode.PROFILE_INCOMPLETE:
                    explain_profile(job, job.gpu_type)
                job.as_of_round = round_number
            elif why is None and job_id in self.paused:
                pause = self.paused[job_id]
                explain(job, pause.code, pause.evidence)
                job.as_of_round = round_number
            elif why is not None:
                explain_by_round(job, why)
                job.as_of_round = round_number
            self._note_wait(job_id, job, at)

    def _note_wait(self, job_id: JobId, job: JobStanding, at: float) -> None:
        """Keep since when a job waits for this reason: rounds are pruned, and hold only their own.

        One row per change of the reason.
        """
        code = job.reason_code
        if code != self._stored[job_id]["reason_code"] and code not in HAS_GPUS:
            self._waits.append({"job_id": job_id, "at_seconds": at, "code": code})

    def take_writes(
        self, *, of: Iterable[JobId] | None = None, explained_by: int | None = None
    ) -> list[Write]:
        """Return everything collected as writes, and forget it here with the ended jobs.

        `of`: the jobs that may differ from their rows. `explained_by`: the round that explained
        every job; it is also recorded for jobs that did not change otherwise.
        """
        writes = [
            Write(update_jobs(), self._changed(list(self.jobs) if of is None else of)),
            *([] if explained_by is None else [Write(self._note_round(explained_by))]),
            *self._timeline.take_writes(),
            *self._pauses.take_writes(),
            Write(sa.insert(JobEvent), self._events),
            Write(sa.insert(WaitReason), self._waits),
            Write(queue_ended(), self._ended),
            Write(close_all_needs(), self._ended),
        ]
        self._events, self._waits, self._ended = [], [], []
        for job_id in [job_id for job_id, job in self.jobs.items() if job.state in _ENDED]:
            del self.jobs[job_id], self._stored[job_id]
            self._deadlines.forget(job_id)
        return writes

    def _changed(self, jobs: Iterable[JobId]) -> list[dict[str, Any]]:
        """Return the jobs that differ from their rows, and remember them as written."""
        rows = []
        for job_id, job in ((job_id, self.jobs[job_id]) for job_id in jobs if job_id in self.jobs):
            now = job.compared()
            if now != self._stored[job_id] and job.gpus != _NO_LONGER_THERE:
                self._stored[job_id] = now
                rows.append(job.parameters(job_id))
        return rows

    def _note_round(self, number: int) -> sa.Update:
        explained = (
            _JOBS.c.cluster_id == self._cluster_id,
            _JOBS.c.finished_seconds.is_(None),
            _JOBS.c.as_of_round < number,
        )
        return (
            sa.update(_JOBS)
            .where(*explained)
            .values(as_of_round=number, version=_JOBS.c.version + 1)
        )

    def _end_batch(self, status: JobStatus, job: JobStanding, moment: Moment) -> None:
        """Note that a batch size ended on GPUs that stay: what it processed is known apart."""
        if status.ended_batches and job.gpus is not None:
            for ended in status.ended_batches:
                self._timeline.end_batch(
                    status.job_id,
                    ended.total_batch_size,
                    at=min(ended.at, moment.at),
                    processed_samples=ended.processed_samples,
                )
            return
        before, then = job.batch, status.plan
        if before is None or then is None or job.gpus is None:
            return
        if before["total_batch_size"] != then.total_batch_size:
            self._timeline.end_batch(
                status.job_id,
                before["total_batch_size"],
                at=moment.at,
                processed_samples=job.processed_samples,
            )

    def _run_plan(self, job_id: JobId, job: JobStanding, plan: BatchPlan | None) -> None:
        """Record the batch of the present span.

        A span that began in this step is not stored yet: an update would change the one before it.
        """
        batch = None if plan is None else batch_to_json(plan)
        if batch is not None and batch != job.batch:
            self._timeline.plan(job_id, batch)
        job.batch = batch

    def _pass_to(self, job_id: JobId, job: JobStanding, state: JobState, at: float) -> None:
        if job.state == JobState.PROFILING:  # no longer
            explain(job, ReasonCode.NOT_YET_CONSIDERED, {})
        self._pauses.note(job_id, job, state, at)
        job.state = state.value
        if state is JobState.STARTING and job.started_seconds is None:
            job.started_seconds = at
        if state is JobState.RUNNING:
            self._timeline.run(job_id, at)
        if state in TERMINAL:
            job.finished_seconds, job.goodput = at, None
            self._ended.append({"of_job": job_id})
            self._release(job_id, job, at)

    def _release(self, job_id: JobId, job: JobStanding, at: float) -> None:
        if job.gpus is not None:
            self._timeline.end(job_id, at, job.readings)
        job.gpu_type, job.gpus, job.batch = None, None, None


def _data_text(event: Event) -> JsonText:
    """Return the event's data as JSON text; none of it if it cannot be JSON."""
    try:
        return json_text(dict(event.data))
    except (TypeError, ValueError):
        log.warning("job %s: the data of event %s are no JSON", event.job_id, event.kind.value)
        return json_text({})
