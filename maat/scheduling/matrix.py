"""The goodput matrix: what every job would make of every configuration that it may have, sparse over the P feasible pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from maat.scheduling.arrays import BoolArray, FloatArray, IntArray
from maat.scheduling.bootstrap import Projection
from maat.scheduling.cluster import Cluster
from maat.scheduling.configuration import ConfigurationTable
from maat.scheduling.goodput import BatchLimits, BestPlans, best_plans
from maat.scheduling.job import Job


@dataclass(frozen=True)
class Pairs:
    """Feasible (job, configuration) pairs sorted by job. Shapes (P,). `known` is False where nothing was measured yet."""

    job: IntArray
    gpu_type: IntArray
    gpu_count: IntArray
    node_count: IntArray
    column: IntArray
    known: BoolArray
    plans: BestPlans

    @property
    def goodput(self) -> FloatArray:
        """Effective samples per second, shape (P,); zero where unknown or where no batch fits."""
        return self.plans.goodput

    def __len__(self) -> int:
        return len(self.job)

    def keep(self, mask: BoolArray) -> Pairs:
        """Only the pairs under `mask`, shape (P,)."""
        plans = BestPlans(*(array[mask] for array in vars(self.plans).values()))
        return Pairs(
            self.job[mask], self.gpu_type[mask], self.gpu_count[mask], self.node_count[mask], self.column[mask], self.known[mask], plans
        )


@dataclass(frozen=True)
class GoodputMatrix:
    """Pairs of jobs (rows, in the order of `job_ids`) and configurations (columns of `table`)."""

    job_ids: tuple[str, ...]
    table: ConfigurationTable
    pairs: Pairs

    def keep(self, mask: BoolArray) -> GoodputMatrix:
        """The matrix with only the pairs under `mask`, shape (P,)."""
        return GoodputMatrix(self.job_ids, self.table, self.pairs.keep(mask))

    def dense(self) -> FloatArray:
        """Shape (J, C); NaN where a job may not have a configuration. For pages and tests, not for the round."""
        full = np.full((len(self.job_ids), len(self.table)), np.nan)
        full[self.pairs.job, self.pairs.column] = self.pairs.goodput
        return full


def feasible_mask(jobs: Sequence[Job], table: ConfigurationTable, scale_up: IntArray) -> BoolArray:
    """Which configurations each job may have by its own declaration and its scale-up limit, shape (J, C).

    `scale_up`, shape (J,): the most replicas it may have this round; the smallest configuration of at least min_gpus is always allowed. A
    rigid job has exactly its count; a hybrid-parallel one whole replicas.
    """
    count = table.gpu_count[None, :]
    low, high, rigid = (np.array([_counts(job)[i] for job in jobs], dtype=np.int64)[:, None] for i in range(3))
    unit = np.array([[job.spec.replica_gpus(name) for name in table.type_names] for job in jobs], dtype=np.int64)[:, table.type_index]
    usable = np.array([[job.spec.may_use(name) for name in table.type_names] for job in jobs], dtype=bool)[:, table.type_index]
    elastic = (count >= low) & (count <= high) & (table.elastic | (unit > 1))
    fits = np.where(rigid > 0, count == rigid, elastic) & usable & (count % unit == 0)
    allowed: BoolArray = fits & ((count // unit <= scale_up[:, None]) | (count == _smallest(fits, table)))
    return allowed


def _counts(job: Job) -> tuple[int, int, int]:
    spec = job.spec
    high = spec.max_gpus if spec.max_gpus is not None else np.iinfo(np.int64).max
    return spec.min_gpus, high, spec.requested_gpus if spec.is_rigid else 0


def _smallest(fits: BoolArray, table: ConfigurationTable) -> IntArray:
    """The smallest count among a job's configurations of the same type, shape (J, C)."""
    count = np.where(fits, table.gpu_count, np.iinfo(np.int64).max)
    smallest = np.empty_like(count)
    for t in range(len(table.type_names)):
        columns = table.type_index == t
        smallest[:, columns] = count[:, columns].min(axis=1, keepdims=True, initial=np.iinfo(np.int64).max)
    return smallest


def evaluate_pairs(
    jobs: Sequence[Job],
    cluster: Cluster,
    *,
    job: IntArray,
    gpu_type: IntArray,
    gpu_count: IntArray,
    node_count: IntArray,
    column: IntArray,
    projection: Projection,
) -> Pairs:
    """Goodput and best batch plan of P pairs, each from the job's own model of the type or from another's by `projection`."""
    view = _Beliefs(jobs, cluster, projection)
    source = view.source[job, gpu_type]
    known = source >= 0
    at, where = job[known], source[known]
    per_node = np.maximum(cluster.gpus_per_node[where], 1)
    nodes = np.where(where == gpu_type[known], node_count[known], -(-gpu_count[known] // per_node))
    found = best_plans(
        view.parameters[at, where],
        noise_scale=view.noise_scale[at],
        initial_batch_size=view.initial_batch[at],
        limits=BatchLimits(view.smallest_total[at], view.largest_total[at], view.smallest_local[at, where], view.largest_local[at, where]),
        node_count=nodes,
        replica_count=(gpu_count[known] // view.replica_gpus[at, gpu_type[known]]).astype(np.float64),
    )
    goodput = np.zeros(len(job))
    goodput[known] = found.goodput * view.scale[at, gpu_type[known]]
    total, per_gpu, accumulation = (np.zeros(len(job), dtype=np.int64) for _ in range(3))
    total[known], per_gpu[known], accumulation[known] = found.total_batch_size, found.per_gpu_batch_size, found.accumulation_steps
    plans = BestPlans(goodput, total, per_gpu, accumulation)
    return Pairs(job, gpu_type, gpu_count, node_count, column, known, plans)


def goodput_matrix(
    jobs: Sequence[Job], cluster: Cluster, table: ConfigurationTable, *, scale_up: IntArray, projection: Projection
) -> GoodputMatrix:
    """Goodput of every job in every configuration that it may have this round, in one broadcast."""
    none = np.zeros(0, dtype=np.int64)
    rows, columns = np.nonzero(feasible_mask(jobs, table, scale_up)) if jobs else (none, none)
    pairs = evaluate_pairs(
        jobs,
        cluster,
        job=rows.astype(np.int64),
        gpu_type=table.type_index[columns],
        gpu_count=table.gpu_count[columns],
        node_count=table.node_count[columns],
        column=columns.astype(np.int64),
        projection=projection,
    )
    return GoodputMatrix(tuple(job.id for job in jobs), table, pairs)


class _Beliefs:
    """The beliefs of J jobs on T types as arrays. `source` (J, T): the type whose model is used, -1 for none; `scale` its factor."""

    def __init__(self, jobs: Sequence[Job], cluster: Cluster, projection: Projection) -> None:
        names = cluster.type_names
        shape = (len(jobs), len(names))
        self.parameters = np.ones((*shape, 7))
        self.source = np.full(shape, -1, dtype=np.int64)
        self.scale = np.ones(shape)
        self.smallest_local, self.largest_local = np.ones(shape), np.ones(shape)
        self.replica_gpus = np.ones(shape, dtype=np.int64)
        self.noise_scale, self.initial_batch, self.smallest_total, self.largest_total = (np.zeros(len(jobs)) for _ in range(4))
        for j, job in enumerate(jobs):
            spec = job.spec
            self.noise_scale[j] = job.belief.noise_scale(spec.initial_batch_size)
            self.initial_batch[j] = spec.initial_batch_size
            fixed = spec.batch_size if spec.has_fixed_batch else None
            self.smallest_total[j] = spec.initial_batch_size if fixed is None else fixed
            self.largest_total[j] = spec.max_batch_size if fixed is None else fixed
            for t, name in enumerate(names):
                memory = spec.memory.get(name)
                if memory is None:
                    continue
                self.smallest_local[j, t], self.largest_local[j, t] = memory.smallest_per_gpu, memory.largest_per_gpu
                self.replica_gpus[j, t] = spec.replica_gpus(name)
                own = job.belief.by_type.get(name)
                if own is not None:
                    self.parameters[j, t] = own.parameters
                stand_in = projection(job, name, names)
                if stand_in is not None:
                    self.source[j, t], self.scale[j, t] = cluster.type_index[stand_in[0]], stand_in[1]
