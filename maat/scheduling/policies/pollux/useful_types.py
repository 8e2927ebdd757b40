"""The GPU types that are useful to a job of a policy that ignores types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from maat.scheduling.arrays import IntArray
from maat.scheduling.cluster import Cluster
from maat.scheduling.job import Job, JobSpec
from maat.scheduling.matrix import Pairs, evaluate_pairs
from maat.scheduling.rounds import RoundInput


def restrict_to_useful_types(jobs: Sequence[Job], round_input: RoundInput) -> tuple[Job, ...]:
    """Restrict each job to GPU types on which it makes progress.

    A type is kept if some allowed GPU count may have goodput above 0 there; a job without such a
    type is unchanged. This concerns jobs with a fixed count, a fixed batch or a promised latency: a
    job's one model treats all types alike. A job that keeps its latency where it runs stays on that
    type.
    """
    at = [
        j
        for j, job in enumerate(jobs)
        if job.spec.is_rigid or job.spec.has_fixed_batch or job.spec.promised_seconds is not None
    ]
    if not at or len(types_in_service(round_input.cluster)) <= 1:
        return tuple(jobs)
    kept = list(jobs)
    for j, fewest in zip(at, _fewest_useful_gpus([jobs[j] for j in at], round_input), strict=True):
        kept[j] = _restricted(jobs[j], fewest)
    return tuple(kept)


def _restricted(job: Job, fewest: dict[str, int]) -> Job:
    held = job.allocation
    stays = (
        held is not None
        and job.spec.promised_seconds is not None
        and 0 < fewest.get(held.gpu_type, 0) <= len(held.gpus)
    )
    names = (held.gpu_type,) if held is not None and stays else tuple(fewest)
    return replace(job, spec=replace(job.spec, gpu_types=names)) if names else job


def _fewest_useful_gpus(jobs: Sequence[Job], round_input: RoundInput) -> list[dict[str, int]]:
    """Return, by job and type, the fewest GPUs with possible goodput above 0."""
    cluster = round_input.cluster
    parts = [
        (j, t, c)
        for j, job in enumerate(jobs)
        for t, name in enumerate(cluster.type_names)
        for c in _allowed_counts(job.spec, int(cluster.usable_gpus[t]))
        if is_legal(job.spec, name, c)
    ]
    found: list[dict[str, int]] = [{} for _ in jobs]
    if not parts:
        return found
    job_of, kind, count = (np.array(axis, dtype=np.int64) for axis in zip(*parts, strict=True))
    nodes = -(-count // np.maximum(cluster.gpus_per_node[kind], 1))
    pairs = evaluate(jobs, round_input, kind, job=job_of, count=count, nodes=nodes)
    for (j, t, c), of_use in zip(parts, (~pairs.known | (pairs.goodput > 0)).tolist(), strict=True):
        if of_use:
            found[j].setdefault(cluster.type_names[t], c)
    return found


def _allowed_counts(spec: JobSpec, most: int) -> Sequence[int]:
    return (
        [spec.requested_gpus]
        if spec.is_rigid and spec.requested_gpus <= most
        else range(1, 0 if spec.is_rigid else most + 1)
    )


def is_legal(spec: JobSpec, name: str, count: int) -> bool:
    """Return whether the job's declaration allows this count of this type."""
    fits = (
        spec.requested_gpus == count
        if spec.is_rigid
        else spec.min_gpus <= count <= (spec.max_gpus or count)
    )
    return fits and spec.may_use(name) and count % spec.replica_gpus(name) == 0


def model_types_of(jobs: Sequence[Job], round_input: RoundInput) -> IntArray:
    """Return the type of each job's one model, shape (J,); -1 if none.

    For a job that promises a latency it is the type that needs most GPUs to keep it, -1 if none
    can.
    """
    cluster = round_input.cluster
    model_types = np.full(len(jobs), reference_type(cluster), dtype=np.int64)
    at = [j for j, job in enumerate(jobs) if job.spec.promised_seconds is not None]
    if len(types_in_service(cluster)) <= 1:
        return model_types
    for j, fewest in zip(at, _fewest_useful_gpus([jobs[j] for j in at], round_input), strict=True):
        model_types[j] = (
            cluster.type_index[max(fewest, key=lambda name: fewest[name])] if fewest else -1
        )
    return model_types


def bound_to_model_types(
    jobs: Sequence[Job], model_types: IntArray, cluster: Cluster
) -> tuple[Job, ...]:
    """Restrict jobs that promise a latency to the type of their model."""
    names = [cluster.type_names[t] for t in model_types.tolist()]
    return tuple(
        replace(job, spec=replace(job.spec, gpu_types=(name,)))
        if job.spec.promised_seconds is not None and job.spec.may_use(name)
        else job
        for job, name in zip(jobs, names, strict=True)
    )


def evaluate(
    homogeneous: Sequence[Job],
    round_input: RoundInput,
    kind: IntArray,
    *,
    job: IntArray,
    count: IntArray,
    nodes: IntArray,
) -> Pairs:
    """Evaluate P pairs: type, job, GPU count and node count, shapes (P,)."""
    return evaluate_pairs(
        homogeneous,
        round_input.cluster,
        job=job,
        gpu_type=kind,
        gpu_count=count,
        node_count=nodes,
        column=np.zeros_like(job),
        projection=round_input.projection,
    )


def reference_type(cluster: Cluster) -> int:
    """Return the type that stands for all GPUs: the first with usable ones."""
    return int(np.argmax(cluster.gpus_per_node > 0))


@lru_cache(maxsize=16)
def types_in_service(cluster: Cluster) -> tuple[str, ...]:
    """Return the types with usable GPUs."""
    return tuple(
        name
        for name, most in zip(cluster.type_names, cluster.gpus_per_node.tolist(), strict=True)
        if most > 0
    )
