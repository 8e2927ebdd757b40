"""What a policy that ignores GPU types sees: jobs and goodput on one type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from maat.scheduling.arrays import BoolArray, FloatArray, IntArray
from maat.scheduling.belief import Belief, TypeBelief
from maat.scheduling.cluster import Cluster
from maat.scheduling.fitting import Sample, fit_throughput
from maat.scheduling.job import Job, JobSpec, MemoryLimits
from maat.scheduling.policies.pollux.useful_types import (
    bound_to_model_types,
    evaluate,
    model_types_of,
    reference_type,
    types_in_service,
)
from maat.scheduling.rounds import RoundInput
from maat.vocabulary import MAX_GPUS

SPREAD_LOSS = 1e-3  # what a latency kept on several nodes is worth less than on one node


@dataclass(frozen=True)
class AllocationOptions:
    """The goodput of J jobs by GPU count, on one node and on several.

    `goodput` (J, C + 1, 2): zero if the job cannot run so. `allowed` (J, C + 1): counts that a job
    may have this round; zero is always allowed. `fair` (J,): goodput of an equal share of the
    cluster. `linear` (J,): jobs without any model; their goodput is their GPU count.
    """

    goodput: FloatArray
    allowed: BoolArray
    fair: FloatArray
    linear: BoolArray

    def speedup(self) -> FloatArray:
        """Return SPEEDUP (Pollux eq. 15): goodput over that of the fair share.

        Shape (J, C + 1, 2), zero for counts that are not allowed.
        """
        return np.where(self.allowed[:, :, None], self.goodput / self.fair[:, None, None], 0.0)


def allocation_options(
    jobs: Sequence[Job], round_input: RoundInput, *, room: IntArray, scale_up: float, share: int
) -> AllocationOptions:
    """Return the GPU counts that jobs may have, and their goodput.

    Args:
        room: GPUs to be allocated on each virtual node, shape (N,).
        scale_up: A job gets at most this many times the most GPUs that it ever had.
        share: GPUs of an equal share; it is evaluated on one node, as in the published simulator.
    """
    model_types = model_types_of(jobs, round_input)
    hopeless, model_types = model_types < 0, np.maximum(model_types, 0)
    jobs = bound_to_model_types(jobs, model_types, round_input.cluster)
    homogeneous = tuple(as_homogeneous(job, round_input.cluster) for job in jobs)
    legal = (
        _legal_counts(jobs, round_input.cluster, most=int(room.sum()), scale_up=scale_up)
        & ~hopeless[:, None]
    )
    rows, counts, spread = _pairs_to_evaluate(legal, largest=int(room.max(initial=0)))
    at = np.arange(len(jobs))
    job_of = np.concatenate((rows, at))
    names = round_input.cluster.type_names
    unit = np.array(
        [
            job.spec.replica_gpus(names[kind])
            for job, kind in zip(homogeneous, model_types.tolist(), strict=True)
        ],
        dtype=np.int64,
    )
    found = evaluate(
        homogeneous,
        round_input,
        model_types[job_of],
        job=job_of,
        count=np.concatenate((counts, np.maximum(np.maximum(share, unit), _smallest(legal)))),
        nodes=np.concatenate((spread + 1, np.ones_like(at))),
    )
    value = np.where(found.known, found.goodput, found.gpu_count.astype(np.float64))
    goodput = np.zeros((*legal.shape, 2))
    goodput[rows, counts, spread] = value[: len(rows)]
    promised = np.array([job.spec.promised_seconds is not None for job in jobs], dtype=bool)
    goodput[promised] = _only_fewest(goodput[promised])
    goodput[hopeless] = 0.0
    allowed = legal & (goodput > 0).any(axis=2)
    allowed[:, 0] = True
    fair = value[len(rows) :]
    best = goodput.max(axis=(1, 2), initial=0.0)
    fair = np.where(fair > 0, fair, np.where(best > 0, best, 1.0))
    return AllocationOptions(goodput, allowed, fair, ~found.known[len(rows) :])


def _only_fewest(goodput: FloatArray) -> FloatArray:
    """Keep only the smallest GPU count that keeps a promised latency.

    `goodput` is 1 or 0, shape (J, C + 1, 2). One node is worth slightly more than several.
    """
    first = np.cumsum(goodput > 0, axis=1) == 1
    return np.where(first & (goodput > 0), (1.0, 1.0 - SPREAD_LOSS), 0.0)


def _replica_sizes(spec: JobSpec, cluster: Cluster) -> list[int]:
    """Return the replica sizes on the usable types, fewest GPUs first.

    If the job may use no type, the largest replica size of any type.
    """
    units = {spec.replica_gpus(name) for name in types_in_service(cluster) if spec.may_use(name)}
    return sorted(units) or [max(spec.gpus_per_replica.values(), default=1)]


def _legal_counts(
    jobs: Sequence[Job], cluster: Cluster, *, most: int, scale_up: float
) -> BoolArray:
    """Return the GPU counts that each job may have, shape (J, C + 1).

    They keep the declaration and `scale_up` times the most GPUs that the job ever had. The smallest
    count that it may ever have is always among them (Pollux section 4.1; one replica for a job that
    never ran).
    """
    bounds = [_count_range(job, cluster, scale_up) for job in jobs]
    width = min(max((high for _, high in bounds), default=0), most)
    count = np.arange(width + 1)
    legal = np.zeros((len(jobs), width + 1), dtype=bool)
    for row, (job, (low, high)) in enumerate(zip(jobs, bounds, strict=True)):
        whole = np.logical_or.reduce(
            [count % unit == 0 for unit in _replica_sizes(job.spec, cluster)]
        )
        legal[row] = (count > 0) & (count >= low) & (count <= high) & whole
    return legal


def _count_range(job: Job, cluster: Cluster, scale_up: float) -> tuple[int, int]:
    """Return the fewest and most GPUs of a job this round."""
    spec = job.spec
    if spec.is_rigid:
        return spec.requested_gpus, spec.requested_gpus
    units = _replica_sizes(spec, cluster)
    low = min(-(-spec.min_gpus // unit) * unit for unit in units)
    reach = (
        MAX_GPUS
        if spec.promised_seconds is not None
        else int(scale_up * job.belief.peak_replica_count) * units[0]
    )
    high = max(reach, low)
    return low, high if spec.max_gpus is None else min(high, spec.max_gpus)


def _smallest(legal: BoolArray) -> IntArray:
    """Return the smallest GPU count of each job, 1 if it may have none."""
    return (
        np.where(legal.any(axis=1), np.argmax(legal, axis=1), 1)
        if legal.shape[1]
        else np.ones(len(legal), dtype=np.int64)
    )


def _pairs_to_evaluate(legal: BoolArray, *, largest: int) -> tuple[IntArray, IntArray, IntArray]:
    """Return job, count, and 0 (one node) or 1 (several) of pairs to evaluate."""
    rows, counts = np.nonzero(legal)
    single, several = counts <= largest, counts > 1
    row = np.concatenate((rows[single], rows[several]))
    count = np.concatenate((counts[single], counts[several]))
    spread = np.repeat((0, 1), (int(single.sum()), int(several.sum())))
    return row, count, spread


def as_homogeneous(job: Job, cluster: Cluster) -> Job:
    """Return the job as it would be on a cluster of one GPU type.

    The job itself on a cluster of one type, and if it promises a latency: no mixture of types can
    tell whether it is kept.
    """
    if len(types_in_service(cluster)) <= 1 or job.spec.promised_seconds is not None:
        return job
    name = cluster.type_names[reference_type(cluster)]
    fits = [job.spec.memory[t] for t in types_in_service(cluster) if job.spec.may_use(t)]
    if not fits:
        return job
    memory = MemoryLimits(
        max(m.smallest_per_gpu for m in fits), min(m.largest_per_gpu for m in fits)
    )
    memory = (
        memory
        if memory.smallest_per_gpu <= memory.largest_per_gpu
        else min(fits, key=lambda m: m.largest_per_gpu)
    )
    spec = replace(
        job.spec,
        memory={name: memory},
        gpu_types=None,
        gpus_per_replica={name: _replica_sizes(job.spec, cluster)[0]},
    )
    return replace(job, spec=spec, belief=_merged_belief(job.belief, name, cluster))


def _merged_belief(belief: Belief, name: str, cluster: Cluster) -> Belief:
    """Return one model for the samples of all types.

    Of samples of the same shape the first is kept. The fitter is that of the single types.
    """
    known = [belief.by_type[t] for t in belief.by_type if t in cluster.type_index]
    if len(known) > 1:
        first = {sample[:3]: sample for one in reversed(known) for sample in reversed(one.samples)}
        samples = tuple(first[key] for key in sorted(first))
        fitter = next(
            (one.model for one in known if not isinstance(one.model, np.ndarray)), _fitted
        )
        known = [TypeBelief(samples, fitter)]
    return replace(belief, by_type={name: known[0]} if known else {})


@lru_cache(maxsize=4096)
def _fitted(samples: tuple[Sample, ...]) -> FloatArray:
    fitted = fit_throughput(samples)
    fitted.setflags(write=False)
    return fitted
