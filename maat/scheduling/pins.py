"""Jobs whose GPUs no policy may change in a round, and why."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from maat.scheduling.cluster import Cluster
from maat.scheduling.explain import ReasonCode, Reasons
from maat.scheduling.job import Job, JobId
from maat.scheduling.rounds import Grant


def pinned_grants(
    jobs: Sequence[Job], cluster: Cluster, stays: Collection[JobId] = ()
) -> Mapping[JobId, Grant]:
    """Return the grants that no policy may change.

    These belong to jobs in checkpoint-restore, to running jobs that may not be preempted, and to
    those that must stay for a time (`stays`, stability.py).
    """
    pins = {}
    for job in jobs:
        held = job.allocation
        stays_put = job.restarting or not job.spec.preemptible or job.id in stays
        if held is not None and stays_put:
            nodes = np.unique(cluster.gpu_node[list(held.gpus)])
            pins[job.id] = Grant(held.gpu_type, held.gpu_count, node_count=len(nodes))
    return pins


def why_pinned(job: Job) -> Reasons:
    """Return the reason of a pinned job, with what pins it."""
    begins = job.restarting and job.restarts == 0
    return Reasons(
        ReasonCode.PINNED,
        {
            "starting": int(begins),
            "restarting": int(job.restarting and not begins),
            "preemptible": int(job.spec.preemptible),
        },
    )
