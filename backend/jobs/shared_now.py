"""Who is on a job's GPUs beside it now, and what that costs. Commits nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

from sqlmodel import Session, col, select

from backend.accounts.identity import Principal
from backend.attempts.slowdowns import measured_slowdowns
from backend.clusters.interference import interference_of
from backend.clusters.models import Cluster
from backend.jobs.models import Job
from backend.sight import OTHER_JOB, Sight, sight_of
from maat.api.job_answers import ReasonOut, SharedWithOut
from maat.api.job_words import sharing_words
from maat.scheduling.interference import SharingJob, Slowdowns
from maat.vocabulary import SlowdownSource


class SharedNow:
    """The jobs that hold GPUs of a cluster, and what is known of slowdowns there.

    Reads them once, when a job that holds GPUs is asked about and the cluster lets jobs share.
    """

    def __init__(self, session: Session, cluster: Cluster) -> None:
        self._session, self._cluster = session, cluster

    def beside(self, job: Job, sight: Sight) -> list[SharedWithOut]:
        """Return the jobs that hold GPUs of this one now, in order of their submission."""
        mine = set(job.gpus or ())
        return [
            self._shown(job, other, len(mine & set(other.gpus or ())), sight)
            for other in self._others(job)
        ]

    def ids_beside(self, job: Job) -> list[str]:
        return [other.id for other in self._others(job)]

    def _others(self, job: Job) -> list[Job]:
        if not job.gpus or job.finished_seconds is not None or self._cluster.jobs_per_gpu == 1:
            return []
        mine = set(job.gpus)
        return [
            other for other in self._holders if other.id != job.id and mine & set(other.gpus or ())
        ]

    def _shown(self, job: Job, other: Job, shared: int, sight: Sight) -> SharedWithOut:
        slowdown, source = self._slowdown(job, other)
        return SharedWithOut(
            job_id=sight.job(other.id),
            job_name=other.name if sight.may_see(other.id) else OTHER_JOB,
            gpus=shared,
            slowdown=slowdown,
            slowdown_source=source,
        )

    def _slowdown(self, job: Job, other: Job) -> tuple[float | None, SlowdownSource | None]:
        """Return what the next decision goes by: what was measured, else what is declared."""
        pair = _as_sharing(job), _as_sharing(other)
        for source, slowdowns in self._sources:
            found = slowdowns.of_jobs(*pair, len(job.gpus or ()))
            if found is not None and math.isfinite(found):
                return found, source
        return None, None

    @cached_property
    def _holders(self) -> Sequence[Job]:
        held = (
            Job.cluster_id == self._cluster.id,
            col(Job.gpu_type).is_not(None),
            col(Job.finished_seconds).is_(None),
        )
        return self._session.exec(select(Job).where(*held).order_by(col(Job.id))).all()

    @cached_property
    def _sources(self) -> Sequence[tuple[SlowdownSource, Slowdowns]]:
        declared = interference_of(self._session, self._cluster)
        measured = measured_slowdowns(self._session, self._cluster, declared)
        found: list[tuple[SlowdownSource, Slowdowns]] = [(SlowdownSource.MEASURED, measured)]
        return found if declared is None else [*found, (SlowdownSource.DECLARED, declared)]


def with_sharing(
    session: Session, principal: Principal, job: Job, cluster: Cluster, reason: ReasonOut
) -> ReasonOut:
    """Return a reason with who is on the job's GPUs beside it now, and what that costs it."""
    sharing = SharedNow(session, cluster)
    sight = sight_of(session, principal, sharing.ids_beside(job))
    words = sharing_words(sharing.beside(job, sight))
    return ReasonOut({**reason, "sentence": " ".join([reason["sentence"], *words])})


def _as_sharing(job: Job) -> SharingJob:
    """Return the job as tables know it: its batch as it was submitted, on the GPUs it asks for."""
    gpus = max(job.gpu_count or job.min_gpus, 1)
    batch = job.batch_size
    if batch is None:  # an adaptive job, as it runs now
        batch = 1 if job.batch is None else int(job.batch["total_batch_size"])
    return SharingJob(job.model, max(-(-batch // gpus), 1), job.tenant_id)
