"""Jobs' rows as the scheduler knows them, of clusters of any executor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sqlmodel import Session, col, select

from backend.commands.spec import command_spec
from backend.jobs.declarations import declaration_of
from backend.models import Cluster as ClusterRow
from backend.models import Job as JobRow
from backend.models import JobCommand
from backend.models import Node as NodeRow
from backend.reservations.repository import tenant_names
from maat.scheduling.errors import InputError
from maat.scheduling.interference import named_for_sharing
from maat.scheduling.job import JobId, JobSpec
from worker.jobs.spec import job_spec

_AT_ONCE = 5000  # ids: databases limit the parameters of a statement


@dataclass(frozen=True)
class Specs:
    """`work`: of commands, the effective samples that were said, by job.

    `shares`: whether jobs may share GPUs, and so are named as tables of slowdowns name them.
    """

    runs_commands: bool
    gpu_types: Sequence[str]
    shares: bool = False
    tenants: dict[str, str] = field(default_factory=dict)
    work: dict[JobId, float | None] = field(default_factory=dict)

    @classmethod
    def of(
        cls, session: Session, cluster: ClusterRow, nodes: Sequence[NodeRow], jobs: Iterable[JobRow]
    ) -> Specs:
        types = list(dict.fromkeys(node.gpu_type for node in nodes))
        specs = cls(cluster.runs_commands, types, cluster.jobs_per_gpu > 1)
        specs.know(session, list(jobs))
        return specs

    def know(self, session: Session, jobs: Sequence[JobRow]) -> None:
        """Read what is needed of more jobs."""
        self.name_tenants(session, (job.tenant_id for job in jobs))
        ids = [job.id for job in jobs if job.id not in self.work] if self.runs_commands else []
        for first in range(0, len(ids), _AT_ONCE):
            some = ids[first : first + _AT_ONCE]
            rows = select(JobCommand.job_id, JobCommand.total_samples).where(
                col(JobCommand.job_id).in_(some)
            )
            self.work.update(dict(session.exec(rows).all()))

    def name_tenants(self, session: Session, ids: Iterable[str]) -> None:
        missing = sorted({tenant_id for tenant_id in ids if tenant_id not in self.tenants})
        self.tenants.update(tenant_names(session, missing))

    def spec(self, row: JobRow) -> JobSpec | None:
        """Return the spec of a known job; None if it can never run."""
        try:
            spec = self._spec(row)
        except (InputError, KeyError):  # of a catalog that has changed since
            return None
        return named_for_sharing(spec, tenant=row.tenant_id) if self.shares else spec

    def _spec(self, row: JobRow) -> JobSpec:
        if not self.runs_commands:
            return job_spec(row, tenant=self.tenants[row.tenant_id])
        return command_spec(
            declaration_of(row),
            id=row.id,
            submitted_at=row.submitted_seconds,
            gpu_types=self.gpu_types,
            work=self.work.get(row.id),
            owner=row.owner_id,
            tenant=self.tenants[row.tenant_id],
        )
