"""The goodput matrix: what every job would make of every configuration that it may have, sparse over the P feasible pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

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

    @cached_property
    def job_offsets(self) -> IntArray:
        """Where each job's pairs begin, with P at the end: see `offsets_for`."""
        return np.concatenate((np.flatnonzero(np.diff(self.job, prepend=-1)), [len(self.job)])).astype(np.int64)


@dataclass(frozen=True)
class GoodputMatrix:
    """Pairs of jobs (rows, in the order of `job_ids`) and configurations (columns of `table`)."""

    job_ids: tuple[str, ...]
    table: ConfigurationTable
    pairs: Pairs

    def dense(self) -> FloatArray:
        """Shape (J, C); NaN where a job may not have a configuration. For pages and tests, not for the round."""
        full = np.full((len(self.job_ids), len(self.table)), np.nan)
        full[self.pairs.job, self.pairs.column] = self.pairs.goodput
        return full


def feasible_mask(jobs: Sequence[Job], table: ConfigurationTable, scale_up: IntArray) -> BoolArray:
    """Which configurations each job may have by its own declaration and its scale-up limit, shape (J, C).

    `scale_up`, shape (J,): the most GPUs it may have this round. A rigid job has exactly its count; a hybrid-parallel one multiples of
    the GPUs that one replica spans; nobody less than min_gpus.
    """
    count = table.gpu_count[None, :]
    specs = [job.spec for job in jobs]
    low = np.array([s.min_gpus for s in specs], dtype=np.int64)[:, None]
    high = np.array([s.max_gpus if s.max_gpus is not None else np.iinfo(np.int64).max for s in specs], dtype=np.int64)[:, None]
    rigid = np.array([s.gpu_count if s.is_rigid and s.gpu_count is not None else 0 for s in specs], dtype=np.int64)[:, None]
    usable = np.array([[s.may_use(name) for name in table.type_names] for s in specs], dtype=bool).reshape(len(specs), -1)
    unit = np.array([[s.replica_gpus(name) for name in table.type_names] for s in specs], dtype=np.int64).reshape(len(specs), -1)
    mask = np.where(rigid > 0, count == rigid, (count >= low) & (count <= np.minimum(high, scale_up[:, None])))
    mask &= usable[:, table.type_index]
    mask &= count % unit[:, table.type_index] == 0
    return mask & ~_odd_counts(table)[None, :] | mask & (rigid > 0) | mask & (unit[:, table.type_index] > 1)


def _odd_counts(table: ConfigurationTable) -> BoolArray:
    """Columns that were added for rigid or hybrid-parallel jobs: on one node, no power of two; shape (C,)."""
    count = table.gpu_count
    per_node = np.array([_whole_node(table, t) for t in range(len(table.type_names))], dtype=np.int64)[table.type_index]
    power = (count & (count - 1)) == 0
    return ~np.where(count < per_node, power, count % np.maximum(per_node, 1) == 0)


def _whole_node(table: ConfigurationTable, gpu_type: int) -> int:
    """GPUs of a whole (virtual) node: the largest power of two that the table offers on one node."""
    counts = table.gpu_count[(table.type_index == gpu_type) & (table.node_count == 1)]
    powers = counts[(counts & (counts - 1)) == 0]
    return int(powers.max()) if len(powers) else 1


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
    rows, columns = np.nonzero(feasible_mask(jobs, table, scale_up)) if jobs else (np.zeros(0, dtype=np.int64),) * 2
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
