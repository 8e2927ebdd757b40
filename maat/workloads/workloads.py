"""Workloads: the jobs of a trace by submission time."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from maat.scheduling.job import JobDeclaration
from maat.scheduling.regimes import Regime


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceJob(JobDeclaration):
    """A declaration with the time of its submission.

    GPU count and batch size are what the owner asked for; an adaptive job is not bound to them.

    Attributes:
        name: Identifies the job within its trace.
        adaptivity: None if the trace leaves it open, for a study to draw.
        max_gpus: None for the most that the fidelity gives any job.
        regimes: The batch sizes that the job sets itself; such a job is rigid.
    """

    submit_seconds: float
    gpu_count: int
    tenant: str = "default"
    regimes: tuple[Regime, ...] = ()

    def is_bound_elsewhere(self, gpu_types: Collection[str]) -> bool:
        """Return whether it may only use types other than these."""
        return bool(self.gpu_types) and not set(gpu_types) & set(self.gpu_types or ())


@dataclass(frozen=True, slots=True)
class Workload:
    """Jobs in order of submission.

    `format`: the name of the trace format, or of the generator's family. `notes`: sentences on how
    it was read: which records were left out, and why.
    """

    name: str
    jobs: tuple[TraceJob, ...]
    format: str
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.jobs)

    @property
    def models(self) -> frozenset[str]:
        return frozenset(job.model for job in self.jobs)

    @property
    def gpu_types(self) -> frozenset[str]:
        """The GPU types that its jobs name, whether anything is known of them or not."""
        return frozenset(name for job in self.jobs for name in job.gpu_types or ())
