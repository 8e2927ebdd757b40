"""A job's batch in smaller parts: what each way of splitting it takes in time and in memory. Decides nothing.

Memory rule: of a GPU whose memory holds at most `largest_per_gpu` samples of a job, a per-GPU batch of m samples takes the share m / largest.
Two jobs fit together on a GPU where their shares sum to at most 1. The declared limits say nothing of what a model takes without any samples,
so nothing is computed for it. Limits that nobody derived from memory say nothing of samples either: such a job takes no share, and the table of
what sharing costs alone says beside whom it fits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from maat.scheduling.arrays import BoolArray, FloatArray
from maat.scheduling.cluster import Cluster
from maat.scheduling.efficiency import efficiency
from maat.scheduling.goodput import BatchPlan
from maat.scheduling.job import Job, MemoryLimits
from maat.scheduling.rounds import RoundInput
from maat.scheduling.throughput import step_seconds

_EPSILON = 1e-9


@dataclass(frozen=True, slots=True)
class Split:
    """One way to run a batch: per-GPU batch halved so many times, accumulation making up for it.

    `solo_seconds`: to the job's end, alone, on as few nodes as hold it; `apart_seconds`: on more than one.
    """

    halvings: int
    plan: BatchPlan
    memory_share: float
    solo_seconds: float
    apart_seconds: float

    def apart(self) -> Split:
        """The same on GPUs of several nodes."""
        return replace(self, solo_seconds=self.apart_seconds)


def memory_share(per_gpu_batch_size: int, limits: MemoryLimits) -> float:
    """The share of a GPU's memory that a per-GPU batch takes, of at most 1 for one that fits; 0 where the limits do not tell."""
    return per_gpu_batch_size / limits.largest_per_gpu if limits.fills_gpu else 0.0


def both_fit(share: FloatArray, other: FloatArray) -> BoolArray:
    """Whether two jobs that take these shares of a GPU's memory fit on it together. Shapes broadcast."""
    room: BoolArray = share + other <= 1.0 + _EPSILON
    return room


def halved(plan: BatchPlan, *, replicas: int, smallest_per_gpu: int) -> list[BatchPlan]:
    """The plan, and the same total in 2, 4, 8, ... times as many passes while a GPU has at least `smallest_per_gpu` samples in each.

    A pass holds whole samples, so a total that does not divide is rounded up.
    """
    local, plans = plan.total_batch_size / replicas, [plan]
    while True:
        passes = 2 * (plans[-1].accumulation_steps + 1)
        per_gpu = math.ceil(local / passes - _EPSILON)
        if per_gpu < max(smallest_per_gpu, 1) or per_gpu == plans[-1].per_gpu_batch_size:
            return plans
        plans.append(BatchPlan(replicas * per_gpu * passes, per_gpu, passes - 1))


def job_halved(job: Job, plan: BatchPlan, gpu_type: str) -> list[BatchPlan]:
    """`halved` within what the job declares of a type, on the GPUs that it asks for."""
    replicas = job.spec.requested_gpus // job.spec.replica_gpus(gpu_type)
    return halved(
        plan, replicas=replicas, smallest_per_gpu=job.spec.memory[gpu_type].smallest_per_gpu
    )


def splits(
    job: Job, plan: BatchPlan, *, gpu_type: str, round_input: RoundInput
) -> tuple[Split, ...]:
    """The ways to run a job's plan on its requested GPUs of a type, by number of halvings; infinitely slow where nobody knows its speed."""
    limits, replicas = (
        job.spec.memory[gpu_type],
        job.spec.requested_gpus // job.spec.replica_gpus(gpu_type),
    )
    plans = job_halved(job, plan, gpu_type)
    together, apart = _solo_seconds(job, plans, gpu_type, replicas, round_input)
    shares = [memory_share(p.per_gpu_batch_size, limits) for p in plans]
    return tuple(
        Split(*row) for row in zip(range(len(plans)), plans, shares, together, apart, strict=True)
    )


def _solo_seconds(
    job: Job, plans: Sequence[BatchPlan], gpu_type: str, replicas: int, round_input: RoundInput
) -> list[list[float]]:
    """Remaining steps x seconds of a step (the paper's L = t_iter I); steps from the remaining work where nobody counts them.

    On as few nodes as hold the job, and on at least two; shape (2, H).
    """
    cluster = round_input.cluster
    lent = round_input.projection(job, gpu_type, cluster.type_names)
    if lent is None:
        return [[math.inf] * len(plans)] * 2
    lender, factor = lent
    parameters = job.belief.by_type[lender].parameters
    local, accumulation = (
        np.array([getattr(p, name) for p in plans], dtype=np.float64)
        for name in ("per_gpu_batch_size", "accumulation_steps")
    )
    fewest = _nodes(job.spec.requested_gpus, lender, cluster)
    nodes = np.array([[fewest], [max(fewest, 2)]])
    step = step_seconds(
        parameters,
        local,
        node_count=nodes,
        replica_count=np.asarray(replicas),
        accumulation_steps=accumulation,
    )
    left: FloatArray = (
        _steps_left(job, np.array([p.total_batch_size for p in plans], dtype=np.float64))
        * step
        / factor
    )
    left *= np.where(nodes > 1, job.spec.locality_penalty, 1.0)
    return left.tolist()  # type: ignore[no-any-return]


def _nodes(gpu_count: int, gpu_type: str, cluster: Cluster) -> int:
    return -(-gpu_count // max(int(cluster.gpus_per_node[cluster.type_index[gpu_type]]), 1))


def _steps_left(job: Job, total: FloatArray) -> FloatArray:
    if job.remaining_steps is not None:
        return np.full(len(total), job.remaining_steps)
    spec = job.spec
    if not spec.learns:
        return job.remaining_work / total
    phi, initial = (
        np.asarray(job.belief.noise_scale(spec.initial_batch_size)),
        np.asarray(float(spec.initial_batch_size)),
    )
    worth: FloatArray = job.remaining_work / (total * efficiency(phi, initial, total))
    return worth
