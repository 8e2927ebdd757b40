"""Records what simulated jobs hold: on which GPUs, and what that place costs them."""

from __future__ import annotations

from maat.scheduling.cluster import Cluster
from maat.simulation.job_changes import JobChanges
from maat.simulation.simulated_job import SimulatedJob
from maat.simulation.slowdowns import UnequalGpus


class JobRecorder:
    """Gives every job its changes, and enters in them the GPUs that it holds.

    What a job achieves on them it enters itself, since that changes while time passes.
    `unequal_gpus`: how much a place slows a job; None: not at all.
    """

    def __init__(self, cluster: Cluster, unequal_gpus: UnequalGpus | None) -> None:
        self._types = cluster.type_index
        self._keeps_gpus = cluster.jobs_per_gpu > 1
        self._unequal = unequal_gpus

    def begin(self, job: SimulatedJob) -> None:
        """Record this job from its submission on."""
        job.changes = JobChanges(job.spec.submitted_at, self._types, keeps_gpus=self._keeps_gpus)

    def enter_holding(self, job: SimulatedJob, now: float) -> None:
        """Enter the GPUs that the job holds from now on, or that it waits."""
        if job.changes is None:
            return
        if job.allocation is None:
            job.changes.waits(now)
            return
        job.changes.holds(
            now,
            job.allocation.gpu_type,
            job.allocation.gpus,
            node_count=len(job.shape),
            locality=1.0 if self._unequal is None else self._unequal.locality(job),
            variability=1.0 if self._unequal is None else self._unequal.variability(job),
        )
