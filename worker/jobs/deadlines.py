"""Watches the deadlines of jobs, which are wishes: no round reads them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from backend.models import Job as JobRow
from maat.scheduling.events import Event, EventKind
from maat.scheduling.job import JobId
from worker.executors.protocol import JobStatus
from worker.jobs.standing import JobStanding


class DeadlineWatch:
    """The deadlines of unfinished jobs, cluster seconds. Tells once of each that it is missed."""

    def __init__(self) -> None:
        self._deadlines: dict[JobId, float] = {}

    def add(self, row: JobRow) -> None:
        if row.deadline_seconds is not None:
            self._deadlines[row.id] = row.deadline_seconds

    def forget(self, job_id: JobId) -> None:
        self._deadlines.pop(job_id, None)

    def missed(
        self, jobs: Mapping[JobId, JobStanding], statuses: Iterable[JobStatus], *, at: float
    ) -> Iterator[Event]:
        """Yield an event of each job that is first seen to miss its deadline, and note that.

        It is forecast by the present goodput; a job without one misses it once it has passed.
        """
        if not self._deadlines:
            return
        for status in statuses:
            deadline, job = self._deadlines.get(status.job_id), jobs.get(status.job_id)
            if deadline is None or job is None or job.finished_seconds is not None:
                continue
            left = job.remaining_work / job.goodput if job.goodput else 0.0
            if job.deadline_told_seconds != deadline and at + left > deadline:
                job.deadline_told_seconds = deadline
                data = {"seconds_late": at + left - deadline}
                yield Event(at, status.job_id, EventKind.DEADLINE, None, data)
