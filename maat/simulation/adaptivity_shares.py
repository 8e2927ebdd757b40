"""Draws which jobs are rigid or strong-scaling (Sia section 5.7, figure 11).

All other jobs are adaptive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from maat.scheduling.errors import ParameterError
from maat.simulation.world_models import Model
from maat.vocabulary import Adaptivity, WorkloadKind
from maat.workloads.workloads import TraceJob

_STREAM = 11  # keeps these draws apart from others of the same seed


def draw_adaptivity(
    jobs: Sequence[TraceJob],
    models: Mapping[str, Model],
    *,
    rigid_share: float,
    strong_scaling_share: float,
    seed: int,
) -> Mapping[str, Adaptivity]:
    """Return the adaptivity of each job by name: its trace's, else drawn by the seed.

    Shares in 0-1 are of the training jobs whose adaptivity the trace leaves open and that can be
    bound to a count and a batch size. With one seed, a larger rigid share only adds rigid jobs.
    Jobs of hybrid-parallel models stay adaptive: the count in a trace is in GPUs, and may be no
    whole number of replicas. Raises ParameterError if a share, or both together, is outside 0-1.
    """
    check_shares(rigid_share, strong_scaling_share)
    drawn = {
        job.name: Adaptivity.ADAPTIVE if job.adaptivity is None else job.adaptivity for job in jobs
    }
    bindable = [job.name for job in jobs if _is_open(job, models[job.model])]
    order = np.random.default_rng((seed, _STREAM)).permutation(len(bindable))
    rigid = round(rigid_share * len(bindable))
    either = round((rigid_share + strong_scaling_share) * len(bindable))
    drawn |= {bindable[i]: Adaptivity.RIGID for i in order[:rigid]}
    drawn |= {bindable[i]: Adaptivity.STRONG_SCALING for i in order[rigid:either]}
    return drawn


def _is_open(job: TraceJob, model: Model) -> bool:
    whole = all(size == 1 for size in model.gpus_per_replica.values())
    return whole and job.adaptivity is None and job.workload_kind is WorkloadKind.TRAINING


def check_shares(rigid_share: float, strong_scaling_share: float) -> None:
    """Raise ParameterError if a share, or both together, is outside 0-1."""
    for name, share in (
        ("rigid_share", rigid_share),
        ("strong_scaling_share", strong_scaling_share),
    ):
        if not 0 <= share <= 1:
            raise ParameterError(
                "is not between 0 and 1",
                field=name,
                value=share,
                remedy="Give a share of the jobs, such as 0.5.",
            )
    if rigid_share + strong_scaling_share > 1:
        raise ParameterError(
            "and rigid_share together are more than all jobs",
            field="strong_scaling_share",
            value=strong_scaling_share,
            remedy=f"Give at most {1 - rigid_share:g}.",
        )
