"""The ways to split a job's batch into smaller parts, with their time and memory.

Decides nothing. Memory rule: if a GPU holds at most `largest_per_gpu` samples of a job, a per-GPU
batch of m samples takes the share m / largest. Two jobs fit together on a GPU if their shares sum
to at most 1. The declared limits do not include the memory of a model without samples, so it is
not counted. Limits that do not come from memory (`fills_gpu` is False) say nothing of samples
either: such a job takes no share, and only the table of slowdowns decides with which jobs it may
share.
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
    """One way to run a batch: the per-GPU batch halved, with more accumulation.

    `solo_seconds`: to the job's end, alone, on as few nodes as hold it. `apart_seconds`: on more
    than one node.
    """

    halvings: int
    plan: BatchPlan
    memory_share: float
    solo_seconds: float
    apart_seconds: float

    def apart(self) -> Split:
        """Return the same split on GPUs of several nodes."""
        return replace(self, solo_seconds=self.apart_seconds)


def memory_share(per_gpu_batch_size: int, limits: MemoryLimits) -> float:
    """Return the share of a GPU's memory that a per-GPU batch takes.

    At most 1 for a batch that fits; 0 if the limits do not come from memory.
    """
    return per_gpu_batch_size / limits.largest_per_gpu if limits.fills_gpu else 0.0


def both_fit(share: FloatArray, other: FloatArray) -> BoolArray:
    """Return whether two jobs with these shares of memory fit on one GPU.

    Shapes broadcast.
    """
    room: BoolArray = share + other <= 1.0 + _EPSILON
    return room


def halved(
    plan: BatchPlan, *, replicas: int, smallest_per_gpu: int, most_total: float = math.inf
) -> list[BatchPlan]:
    """Return the plan, then the same total in 2, 4, 8, ... times as many passes.

    Stops when a GPU would have fewer than `smallest_per_gpu` samples in a pass. A pass holds whole
    samples, so a total that does not divide is rounded up, and down where it would exceed the most.
    """
    local, plans = plan.total_batch_size / replicas, [plan]
    while True:
        passes = 2 * (plans[-1].accumulation_steps + 1)
        per_gpu = int(min(math.ceil(local / passes - _EPSILON), most_total // (replicas * passes)))
        if per_gpu < max(smallest_per_gpu, 1) or per_gpu == plans[-1].per_gpu_batch_size:
            return plans
        plans.append(BatchPlan(replicas * per_gpu * passes, per_gpu, passes - 1))


def job_halved(job: Job, plan: BatchPlan, gpu_type: str) -> list[BatchPlan]:
    """Return `halved` within the job's limits on a type, on its requested GPUs."""
    replicas = job.spec.requested_gpus // job.spec.replica_gpus(gpu_type)
    return halved(
        plan,
        replicas=replicas,
        smallest_per_gpu=job.spec.memory[gpu_type].smallest_per_gpu,
        most_total=max(job.spec.most_samples(job.spec.requested_batch_size), plan.total_batch_size),
    )


def splits(
    job: Job, plan: BatchPlan, *, gpu_type: str, round_input: RoundInput
) -> tuple[Split, ...]:
    """Return the ways to run a job's plan on its requested GPUs of a type.

    They are ordered by number of halvings. A job of unknown speed or work takes infinitely long.
    """
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
    """Return remaining steps x seconds of a step, L = t_iter I in the paper, (2, H).

    The first row is on as few nodes as hold the job, the second on at least two. Steps follow from
    the remaining work if they are not counted.
    """
    cluster = round_input.cluster
    lent = round_input.projection(job, gpu_type, cluster.type_names)
    if lent is None or not (job.spec.work_is_known or job.remaining_steps is not None):
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
