"""The goodput matrix of jobs and configurations, sparse over P feasible pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from maat.scheduling.arrays import BoolArray, FloatArray, IntArray
from maat.scheduling.bootstrap import Projection
from maat.scheduling.cluster import Cluster
from maat.scheduling.configuration import ConfigurationTable
from maat.scheduling.goodput import BatchLimits, BestPlans, best_plans
from maat.scheduling.job import Job, JobSpec

# phi of work that learns nothing: in double precision a sample has the same value in any batch
NO_LOSS = 1e18
NO_LIMIT = int(np.iinfo(np.int64).max)


@dataclass(frozen=True)
class Pairs:
    """Feasible (job, configuration) pairs sorted by job. Shapes (P,).

    `known` is False if nothing was measured yet.
    """

    job: IntArray
    gpu_type: IntArray
    gpu_count: IntArray
    node_count: IntArray
    column: IntArray
    known: BoolArray
    plans: BestPlans

    @property
    def goodput(self) -> FloatArray:
        """Return effective samples per second, shape (P,).

        Zero if unknown or if no batch fits.
        """
        return self.plans.goodput

    def __len__(self) -> int:
        return len(self.job)

    def keep(self, mask: BoolArray) -> Pairs:
        """Return only the pairs under `mask`, shape (P,)."""
        plans = BestPlans(*(array[mask] for array in vars(self.plans).values()))
        return Pairs(
            self.job[mask],
            self.gpu_type[mask],
            self.gpu_count[mask],
            self.node_count[mask],
            self.column[mask],
            self.known[mask],
            plans,
        )


@dataclass(frozen=True)
class GoodputMatrix:
    """Pairs of jobs (rows, as in `job_ids`) and configurations (columns of `table`)."""

    job_ids: tuple[str, ...]
    table: ConfigurationTable
    pairs: Pairs

    def keep(self, mask: BoolArray) -> GoodputMatrix:
        """Return the matrix with only the pairs under `mask`, shape (P,)."""
        return GoodputMatrix(self.job_ids, self.table, self.pairs.keep(mask))


def feasible_pairs(
    jobs: Sequence[Job], table: ConfigurationTable, scale_up: IntArray
) -> tuple[IntArray, IntArray]:
    """Return the pairs (job, column) that jobs may have, (P,), sorted by job.

    A job's declaration and its scale-up limit decide. A rigid job has exactly its count, a
    hybrid-parallel one whole replicas. The matrix is never dense: what a job may have is a range
    of the columns of a type.

    `scale_up`, shape (J,): the most replicas it may have this round. The smallest configuration of
    at least min_gpus is always allowed.
    """
    rows, columns = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    declared = [_Declared.of(job.spec) for job in jobs]
    low, high, rigid = (
        np.array([getattr(d, name) for d in declared], dtype=np.int64)
        for name in ("low", "high", "rigid")
    )
    for t, name in enumerate(table.type_names):
        unit = np.array(
            [job.spec.replica_gpus(name) if job.spec.may_use(name) else 0 for job in jobs],
            dtype=np.int64,
        )
        known = np.array(
            [job.spec.most_gpus_by_type.get(name, NO_LIMIT) for job in jobs], dtype=np.int64
        )
        highest = np.where(known >= low, np.minimum(high, known), high)
        for size in np.unique(unit[unit > 0]).tolist():
            for fixed in (False, True):
                group = np.flatnonzero((unit == size) & ((rigid > 0) == fixed))
                offered = np.flatnonzero(
                    (table.type_index == t)
                    & (table.gpu_count % size == 0)
                    & (table.elastic | fixed | (size > 1))
                )
                if not len(group) or not len(offered):
                    continue
                count = table.gpu_count[offered]
                least, most = (
                    (rigid[group], rigid[group]) if fixed else (low[group], highest[group])
                )
                reach = most if fixed else np.minimum(most, scale_up[group] * size)
                first = np.searchsorted(count, least, side="left")
                end = np.searchsorted(count, reach, side="right")
                smallest = count[np.minimum(first, len(count) - 1)]
                end = np.where(
                    (first < len(count)) & (smallest <= most), np.maximum(end, first + 1), first
                )
                many = np.maximum(end - first, 0)
                rows.append(np.repeat(group, many))
                columns.append(offered[_ranges(first, many)])
    row, column = np.concatenate(rows), np.concatenate(columns)
    order = np.lexsort((column, row))
    return row[order], column[order]


class _Declared(NamedTuple):
    """GPUs that a job declares: at least, at most, and exactly if rigid (else 0)."""

    low: int
    high: int
    rigid: int

    @classmethod
    def of(cls, spec: JobSpec) -> _Declared:
        return cls(
            spec.min_gpus,
            NO_LIMIT if spec.max_gpus is None else spec.max_gpus,
            spec.requested_gpus if spec.is_rigid else 0,
        )


def _ranges(first: IntArray, many: IntArray) -> IntArray:
    """Return first[i], first[i] + 1, ..., many[i] numbers, for one i after the other."""
    begin = np.cumsum(many) - many
    return np.arange(int(many.sum())) - np.repeat(begin, many) + np.repeat(first, many)


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
    beyond_largest_batch: bool = False,
) -> Pairs:
    """Return goodput and best batch plan of P pairs.

    Each uses the job's own model of the type or, by `projection`, that of another type. If the
    smallest batches of the GPUs together exceed what the job may train with, the goodput is zero;
    with `beyond_largest_batch`, it is that of those batches. The goodput of batch inference is its
    throughput; that of latency-bound inference is 1 if the promise is kept, else 0.
    """
    view = _Beliefs(jobs, cluster, projection)
    source = view.source[job, gpu_type]
    known = source >= 0
    at, where = job[known], source[known]
    per_node = np.maximum(cluster.gpus_per_node[where], 1)
    nodes = np.where(where == gpu_type[known], node_count[known], -(-gpu_count[known] // per_node))
    replicas = (gpu_count[known] // view.replica_gpus[at, gpu_type[known]]).astype(np.float64)
    least, most = view.smallest_local[at, where], view.largest_total[at]
    never_above = np.maximum(view.most_total[at], most)
    if beyond_largest_batch:
        most = np.maximum(most, least * replicas)
        never_above = np.maximum(never_above, most)
    found = best_plans(
        view.parameters[at, where],
        noise_scale=view.noise_scale[at],
        initial_batch_size=view.initial_batch[at],
        limits=BatchLimits(
            view.smallest_total[at], most, least, view.largest_local[at, where], never_above
        ),
        node_count=nodes,
        replica_count=replicas,
    )
    goodput = np.zeros(len(job))
    goodput[known] = found.goodput * view.scale[at, gpu_type[known]]
    total, per_gpu, accumulation = (np.zeros(len(job), dtype=np.int64) for _ in range(3))
    total[known], per_gpu[known], accumulation[known] = (
        found.total_batch_size,
        found.per_gpu_batch_size,
        found.accumulation_steps,
    )
    plans = BestPlans(
        _kept_promises(goodput, total, view.promised_seconds[job]), total, per_gpu, accumulation
    )
    return Pairs(job, gpu_type, gpu_count, node_count, column, known, plans)


def _kept_promises(
    goodput: FloatArray, total: IntArray, promised_seconds: FloatArray
) -> FloatArray:
    """Return 1 or 0 for pairs with a promised latency, else the goodput; shapes (P,).

    1 if a batch of `total` samples takes no more than the promised seconds, which are infinite for
    no promise.
    """
    bound = np.isfinite(promised_seconds)
    kept = bound & (goodput > 0) & (total <= np.where(bound, promised_seconds, 0.0) * goodput)
    return np.where(bound, kept.astype(np.float64), goodput)


def goodput_matrix(
    jobs: Sequence[Job],
    cluster: Cluster,
    table: ConfigurationTable,
    *,
    scale_up: IntArray,
    projection: Projection,
    beyond_largest_batch: bool = False,
) -> GoodputMatrix:
    """Return the goodput of every job in every configuration that it may have now.

    One broadcast; see evaluate_pairs.
    """
    rows, columns = feasible_pairs(jobs, table, scale_up)
    pairs = evaluate_pairs(
        jobs,
        cluster,
        job=rows,
        gpu_type=table.type_index[columns],
        gpu_count=table.gpu_count[columns],
        node_count=table.node_count[columns],
        column=columns,
        projection=projection,
        beyond_largest_batch=beyond_largest_batch,
    )
    return GoodputMatrix(tuple(job.id for job in jobs), table, pairs)


class _Beliefs:
    """The beliefs of J jobs on T types as arrays.

    `source`, (J, T): the type whose model is used, -1 for none; `scale`, (J, T): its factor.
    """

    def __init__(self, jobs: Sequence[Job], cluster: Cluster, projection: Projection) -> None:
        names = cluster.type_names
        shape = (len(jobs), len(names))
        self.parameters = np.ones((*shape, 7))
        self.source = np.full(shape, -1, dtype=np.int64)
        self.scale = np.ones(shape)
        self.smallest_local, self.largest_local = np.ones(shape), np.ones(shape)
        self.replica_gpus = np.ones(shape, dtype=np.int64)
        self.noise_scale, self.initial_batch = np.zeros(len(jobs)), np.zeros(len(jobs))
        self.smallest_total, self.largest_total, self.most_total = (
            np.zeros(len(jobs)) for _ in range(3)
        )
        self.promised_seconds = np.full(len(jobs), np.inf)
        for j, job in enumerate(jobs):
            spec = job.spec
            fixed = spec.batch_size if spec.has_fixed_batch else None
            self.noise_scale[j] = (
                job.belief.noise_scale(spec.initial_batch_size) if spec.learns else NO_LOSS
            )
            # Inference needs no second gradient: one GPU may fill its memory without accumulation.
            most = spec.max_batch_size if fixed is None else max(spec.max_batch_size, fixed)
            self.initial_batch[j] = spec.initial_batch_size if spec.learns else most
            if spec.promised_seconds is not None:
                self.promised_seconds[j] = spec.promised_seconds
            self.smallest_total[j] = spec.initial_batch_size if fixed is None else fixed
            self.largest_total[j] = spec.max_batch_size if fixed is None else fixed
            self.most_total[j] = (
                np.inf
                if spec.rounds_batch_up
                else most
                if fixed is None
                else spec.most_samples(fixed)
            )
            for t, name in enumerate(names):
                memory = spec.memory.get(name)
                if memory is None:
                    continue
                self.smallest_local[j, t], self.largest_local[j, t] = (
                    memory.smallest_per_gpu,
                    memory.largest_per_gpu,
                )
                self.replica_gpus[j, t] = spec.replica_gpus(name)
                own = job.belief.by_type.get(name)
                if own is not None:
                    self.parameters[j, t] = own.parameters
                stand_in = projection(job, name, names)
                if stand_in is not None:
                    self.source[j, t], self.scale[j, t] = (
                        cluster.type_index[stand_in[0]],
                        stand_in[1],
                    )
