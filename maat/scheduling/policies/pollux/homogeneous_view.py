"""The cluster as Pollux sees it: one kind of GPU on nodes of one size, and jobs that know no types. Searches nothing.

On a cluster of one type that is the cluster itself. On a mixed one, nodes are split into virtual nodes as large as the smallest type's, and a
job has one model of all its samples, whatever type they are of (Sia section 4.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from maat.scheduling.arrays import BoolArray, FloatArray, IntArray
from maat.scheduling.belief import Belief, TypeBelief
from maat.scheduling.cluster import Cluster
from maat.scheduling.fitting import Sample, fit_throughput
from maat.scheduling.free_capacity import free_places
from maat.scheduling.job import Job, JobSpec, MemoryLimits
from maat.scheduling.limits import LimitKind
from maat.scheduling.matrix import Pairs, evaluate_pairs
from maat.scheduling.policies.pollux.problem import CountArray, Quota
from maat.scheduling.rounds import RoundInput
from maat.vocabulary import MAX_GPUS

SPREAD_LOSS = (
    1e-3  # of a promise kept over several nodes: where one node would do, it is to be preferred
)


@dataclass(frozen=True)
class VirtualNodes:
    """N virtual nodes of a cluster. `node` (N,): the node that each is part of; `of_gpu` (G,): where each GPU is, -1 out of service."""

    cluster: Cluster
    node: IntArray
    of_gpu: IntArray
    names: tuple[str, ...]

    @cached_property
    def size(self) -> IntArray:
        """Usable GPUs, shape (N,)."""
        return np.bincount(self.of_gpu[self.of_gpu >= 0], minlength=len(self.node)).astype(np.int64)

    @cached_property
    def gpu_type(self) -> IntArray:
        return self.cluster.node_type[self.node]

    def row(self, gpus: Sequence[int]) -> CountArray:
        """GPUs on each virtual node, shape (N,)."""
        at = self.of_gpu[list(gpus)]
        return np.bincount(at[at >= 0], minlength=len(self.node)).astype(np.int32)


@lru_cache(maxsize=16)
def virtual_nodes(cluster: Cluster) -> VirtualNodes:
    """The nodes of a cluster of one type, or those of a mixed one in parts as large as the smallest type's largest node."""
    in_service = cluster.gpus_per_node[cluster.gpus_per_node > 0]
    size = int(in_service.min()) if len(in_service) > 1 else MAX_GPUS
    node: list[int] = []
    names: list[str] = []
    of_gpu = np.full(cluster.gpu_count, -1, dtype=np.int64)
    for number, physical in enumerate(cluster.nodes):
        first = int(cluster.node_offsets[number])
        gpus = first + np.flatnonzero(cluster.gpu_available[first : first + physical.gpu_count])
        for start in range(0, len(gpus), size):
            of_gpu[gpus[start : start + size]] = len(node)
            names.append(physical.id if start == 0 else f"{physical.id}/{start // size}")
            node.append(number)
    return VirtualNodes(cluster, np.array(node, dtype=np.int64), of_gpu, tuple(names))


@dataclass(frozen=True)
class Options:
    """What jobs with the same GPUs on one node, or on several, would make of them: goodput (J, C + 1, 2), zero where they cannot run.

    `allowed` (J, C + 1): counts that a job may have this round, zero among them. `fair` (J,): goodput of an equal share of the cluster.
    `linear` (J,): of which jobs nothing is known, so that goodput is their GPU count.
    """

    goodput: FloatArray
    allowed: BoolArray
    fair: FloatArray
    linear: BoolArray

    def speedup(self) -> FloatArray:
        """SPEEDUP (Pollux eq. 15): goodput over that of the fair share, zero where not allowed; shape (J, C + 1, 2)."""
        return np.where(self.allowed[:, :, None], self.goodput / self.fair[:, None, None], 0.0)


def options(
    jobs: Sequence[Job], round_input: RoundInput, *, room: IntArray, scale_up: float, share: int
) -> Options:
    """What `jobs` may have of `room` (N,). `share`: GPUs of an equal share, counted as on one node as the published simulator does."""
    kinds = _kinds(jobs, round_input)
    hopeless, kinds = kinds < 0, np.maximum(kinds, 0)
    jobs = _as_of(jobs, kinds, round_input.cluster)
    blind = tuple(_blind(job, round_input.cluster) for job in jobs)
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
            for job, kind in zip(blind, kinds.tolist(), strict=True)
        ],
        dtype=np.int64,
    )
    found = _evaluate(
        blind,
        round_input,
        kinds[job_of],
        job=job_of,
        count=np.concatenate((counts, np.maximum(np.maximum(share, unit), _smallest(legal)))),
        nodes=np.concatenate((spread + 1, np.ones_like(at))),
    )
    value = np.where(found.known, found.goodput, found.gpu_count.astype(np.float64))
    goodput = np.zeros((*legal.shape, 2))
    goodput[rows, counts, spread] = value[: len(rows)]
    promised = np.array([job.spec.promised_seconds is not None for job in jobs], dtype=bool)
    goodput[promised] = _fewest(goodput[promised])
    goodput[hopeless] = 0.0
    allowed = legal & (goodput > 0).any(axis=2)
    allowed[:, 0] = True
    fair = value[len(rows) :]
    best = goodput.max(axis=(1, 2), initial=0.0)
    fair = np.where(fair > 0, fair, np.where(best > 0, best, 1.0))
    return Options(goodput, allowed, fair, ~found.known[len(rows) :])


def keeping(jobs: Sequence[Job], round_input: RoundInput) -> tuple[Job, ...]:
    """The jobs, bound to the types on which some count that they may have is of use to them; if there is none, as they were.

    Not every type is to a job whose count or batch is fixed or that promises a latency, but in a job's one model all types are alike. One that
    keeps its promise where it is, stays on that type.
    """
    at = [
        j
        for j, job in enumerate(jobs)
        if job.spec.is_rigid or job.spec.has_fixed_batch or job.spec.promised_seconds is not None
    ]
    if not at or len(_in_service(round_input.cluster)) <= 1:
        return tuple(jobs)
    kept = list(jobs)
    for j, fewest in zip(at, _fewest_of_use([jobs[j] for j in at], round_input), strict=True):
        kept[j] = _bound(jobs[j], fewest)
    return tuple(kept)


def _bound(job: Job, fewest: dict[str, int]) -> Job:
    held = job.allocation
    stays = (
        held is not None
        and job.spec.promised_seconds is not None
        and 0 < fewest.get(held.gpu_type, 0) <= len(held.gpus)
    )
    names = (held.gpu_type,) if held is not None and stays else tuple(fewest)
    return replace(job, spec=replace(job.spec, gpu_types=names)) if names else job


def _fewest_of_use(jobs: Sequence[Job], round_input: RoundInput) -> list[dict[str, int]]:
    """Of each job, by type: the fewest GPUs that it may have and is not known to make nothing of."""
    cluster = round_input.cluster
    parts = [
        (j, t, c)
        for j, job in enumerate(jobs)
        for t, name in enumerate(cluster.type_names)
        for c in _counts(job.spec, int(cluster.usable_gpus[t]))
        if is_legal(job.spec, name, c)
    ]
    found: list[dict[str, int]] = [{} for _ in jobs]
    if not parts:
        return found
    job_of, kind, count = (np.array(axis, dtype=np.int64) for axis in zip(*parts, strict=True))
    nodes = -(-count // np.maximum(cluster.gpus_per_node[kind], 1))
    pairs = _evaluate(jobs, round_input, kind, job=job_of, count=count, nodes=nodes)
    for (j, t, c), of_use in zip(parts, (~pairs.known | (pairs.goodput > 0)).tolist(), strict=True):
        if of_use:
            found[j].setdefault(cluster.type_names[t], c)
    return found


def _counts(spec: JobSpec, most: int) -> Sequence[int]:
    return (
        [spec.requested_gpus]
        if spec.is_rigid and spec.requested_gpus <= most
        else range(1, 0 if spec.is_rigid else most + 1)
    )


def is_legal(spec: JobSpec, name: str, count: int) -> bool:
    """Whether a job's declaration allows that count of that type."""
    fits = (
        spec.requested_gpus == count
        if spec.is_rigid
        else spec.min_gpus <= count <= (spec.max_gpus or count)
    )
    return fits and spec.may_use(name) and count % spec.replica_gpus(name) == 0


def _kinds(jobs: Sequence[Job], round_input: RoundInput) -> IntArray:
    """The type in whose name each job's one model goes, shape (J,): of a promise, that which needs most GPUs to keep it.

    Below zero where no type would.
    """
    cluster = round_input.cluster
    kinds = np.full(len(jobs), _reference(cluster), dtype=np.int64)
    at = [j for j, job in enumerate(jobs) if job.spec.promised_seconds is not None]
    if len(_in_service(cluster)) <= 1:
        return kinds
    for j, fewest in zip(at, _fewest_of_use([jobs[j] for j in at], round_input), strict=True):
        kinds[j] = cluster.type_index[max(fewest, key=lambda name: fewest[name])] if fewest else -1
    return kinds


def _as_of(jobs: Sequence[Job], kinds: IntArray, cluster: Cluster) -> tuple[Job, ...]:
    """Jobs with a promise as if bound to their type of `kinds` (J,), where others could give them GPUs too; the others as they are."""
    names = [cluster.type_names[t] for t in kinds.tolist()]
    return tuple(
        replace(job, spec=replace(job.spec, gpu_types=(name,)))
        if job.spec.promised_seconds is not None and job.spec.may_use(name)
        else job
        for job, name in zip(jobs, names, strict=True)
    )


def _fewest(goodput: FloatArray) -> FloatArray:
    """Of goodput that is 1 or 0, shape (J, C + 1, 2): only the fewest GPUs that have any, of which one node is to be preferred to several."""
    first = np.cumsum(goodput > 0, axis=1) == 1
    return np.where(first & (goodput > 0), (1.0, 1.0 - SPREAD_LOSS), 0.0)


def quotas(jobs: Sequence[Job], round_input: RoundInput, nodes: VirtualNodes) -> tuple[Quota, ...]:
    """Every limit besides capacity that could bind these jobs, over virtual nodes."""
    found = []
    free = free_places(round_input)
    for limit, places in zip(round_input.limits, free.tolist(), strict=True):
        if limit.kind is LimitKind.CAPACITY:
            continue
        types = [
            t
            for t, name in enumerate(round_input.cluster.type_names)
            if limit.gpu_type in (None, name)
        ]
        mine = np.array(
            [
                any(
                    limit.counts(job.spec, round_input.cluster.type_names[t], MAX_GPUS)
                    for t in types
                )
                for job in jobs
            ],
            dtype=bool,
        )
        where = np.isin(nodes.gpu_type, types)
        if mine.any() and places < nodes.size[where].sum():
            found.append(Quota(mine, where, places))
    return tuple(found)


def usable(jobs: Sequence[Job], nodes: VirtualNodes) -> BoolArray:
    """On which nodes each job may run at all, shape (J, N)."""
    names = nodes.cluster.type_names
    by_type = np.array(
        [[job.spec.may_use(name) for name in names] for job in jobs], dtype=bool
    ).reshape(len(jobs), len(names))
    return by_type[:, nodes.gpu_type]


def _units(spec: JobSpec, cluster: Cluster) -> list[int]:
    """GPUs of one replica on each type that the job may use, fewest first; where it may use none, the most of any type."""
    units = {spec.replica_gpus(name) for name in _in_service(cluster) if spec.may_use(name)}
    return sorted(units) or [max(spec.gpus_per_replica.values(), default=1)]


def _legal_counts(
    jobs: Sequence[Job], cluster: Cluster, *, most: int, scale_up: float
) -> BoolArray:
    """Counts that each job may have by its declaration and by `scale_up` times the most that it ever had, shape (J, C + 1).

    The smallest count that it may have at all is always among them (Pollux section 4.1; one replica for a job that never ran).
    """
    bounds = [_bounds(job, cluster, scale_up) for job in jobs]
    width = min(max((high for _, high in bounds), default=0), most)
    count = np.arange(width + 1)
    legal = np.zeros((len(jobs), width + 1), dtype=bool)
    for row, (job, (low, high)) in enumerate(zip(jobs, bounds, strict=True)):
        whole = np.logical_or.reduce([count % unit == 0 for unit in _units(job.spec, cluster)])
        legal[row] = (count > 0) & (count >= low) & (count <= high) & whole
    return legal


def _bounds(job: Job, cluster: Cluster, scale_up: float) -> tuple[int, int]:
    """Fewest and most GPUs of a job this round."""
    spec = job.spec
    if spec.is_rigid:
        return spec.requested_gpus, spec.requested_gpus
    units = _units(spec, cluster)
    low = min(-(-spec.min_gpus // unit) * unit for unit in units)
    reach = (
        MAX_GPUS
        if spec.promised_seconds is not None
        else int(scale_up * job.belief.peak_replica_count) * units[0]
    )
    high = max(reach, low)
    return low, high if spec.max_gpus is None else min(high, spec.max_gpus)


def _smallest(legal: BoolArray) -> IntArray:
    """The smallest count that each job may have, 1 if there is none."""
    return (
        np.where(legal.any(axis=1), np.argmax(legal, axis=1), 1)
        if legal.shape[1]
        else np.ones(len(legal), dtype=np.int64)
    )


def _pairs_to_evaluate(legal: BoolArray, *, largest: int) -> tuple[IntArray, IntArray, IntArray]:
    """(job, count, 0 on one node or 1 on several) of all that a job may have, sorted by job."""
    rows, counts = np.nonzero(legal)
    single, several = counts <= largest, counts > 1
    row = np.concatenate((rows[single], rows[several]))
    count = np.concatenate((counts[single], counts[several]))
    spread = np.repeat((0, 1), (int(single.sum()), int(several.sum())))
    return row, count, spread


def _evaluate(
    blind: Sequence[Job],
    round_input: RoundInput,
    kind: IntArray,
    *,
    job: IntArray,
    count: IntArray,
    nodes: IntArray,
) -> Pairs:
    """`kind` and the rest: the type, the job, and GPUs and nodes of each pair, shapes (P,)."""
    return evaluate_pairs(
        blind,
        round_input.cluster,
        job=job,
        gpu_type=kind,
        gpu_count=count,
        node_count=nodes,
        column=np.zeros_like(job),
        projection=round_input.projection,
    )


def _reference(cluster: Cluster) -> int:
    """The type under whose name the one kind of GPU goes."""
    return int(np.argmax(cluster.gpus_per_node > 0))


@lru_cache(maxsize=16)
def _in_service(cluster: Cluster) -> tuple[str, ...]:
    """Types of which there are usable GPUs."""
    return tuple(
        name
        for name, most in zip(cluster.type_names, cluster.gpus_per_node.tolist(), strict=True)
        if most > 0
    )


def _blind(job: Job, cluster: Cluster) -> Job:
    """The job as if all GPUs were of the reference type; itself on a cluster of one type, and with a promise, which no mixture can judge."""
    if len(_in_service(cluster)) <= 1 or job.spec.promised_seconds is not None:
        return job
    name = cluster.type_names[_reference(cluster)]
    fits = [job.spec.memory[t] for t in _in_service(cluster) if job.spec.may_use(t)]
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
        gpus_per_replica={name: _units(job.spec, cluster)[0]},
    )
    return replace(job, spec=spec, belief=_mixed(job.belief, name, cluster))


def _mixed(belief: Belief, name: str, cluster: Cluster) -> Belief:
    """One model of the samples of all types, the first of a kind kept, fitted by who fits those of one type."""
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
