"""Nodes of one size, into which Pollux divides the nodes of a mixed cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from maat.scheduling.arrays import BoolArray, IntArray
from maat.scheduling.cluster import Cluster
from maat.scheduling.free_capacity import free_places
from maat.scheduling.job import Job
from maat.scheduling.limits import LimitKind
from maat.scheduling.policies.pollux.problem import CountArray, Quota, WholeTypes
from maat.scheduling.rounds import RoundInput
from maat.vocabulary import MAX_GPUS


@dataclass(frozen=True)
class VirtualNodes:
    """The N virtual nodes of a cluster.

    `node` (N,): the physical node that each is part of. `of_gpu` (G,): the virtual node of each
    GPU, -1 if out of service.
    """

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
        """Return the GPUs on each virtual node, shape (N,)."""
        at = self.of_gpu[list(gpus)]
        return np.bincount(at[at >= 0], minlength=len(self.node)).astype(np.int32)


@lru_cache(maxsize=16)
def virtual_nodes(cluster: Cluster) -> VirtualNodes:
    """Return the nodes of a cluster, divided to one size if it has several types.

    On a mixed cluster a part is as large as the largest node of the type with the smallest nodes.
    """
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


def usable_nodes(jobs: Sequence[Job], nodes: VirtualNodes) -> BoolArray:
    """Return the nodes on which each job may run, shape (J, N)."""
    names = nodes.cluster.type_names
    by_type = np.array(
        [[job.spec.may_use(name) for name in names] for job in jobs], dtype=bool
    ).reshape(len(jobs), len(names))
    return by_type[:, nodes.gpu_type]


def quotas(jobs: Sequence[Job], round_input: RoundInput, nodes: VirtualNodes) -> tuple[Quota, ...]:
    """Return the limits other than capacity that may bind, by virtual node."""
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


def whole_types(jobs: Sequence[Job], allowed: BoolArray, nodes: VirtualNodes) -> WholeTypes | None:
    """Return the jobs that need several GPUs of one type, and the counts that they may have.

    `allowed` (J, C + 1): counts that each job may have this round. None if nodes have one type, or
    one GPU is enough for every job.
    """
    names = nodes.cluster.type_names
    in_service = np.unique(nodes.gpu_type)
    if len(in_service) <= 1 or not len(jobs):
        return None
    count = np.arange(allowed.shape[1])
    replicas = [max(job.spec.replica_gpus(names[t]) for t in in_service.tolist()) for job in jobs]
    one = allowed[:, 1:2].any(axis=1) & (np.array(replicas) == 1)
    several: BoolArray = allowed[:, 1:].any(axis=1) & ~one
    legal = np.zeros((len(jobs), len(in_service), len(count)), dtype=bool)
    for j in np.flatnonzero(several).tolist():
        for row, t in enumerate(in_service.tolist()):
            if jobs[j].spec.may_use(names[t]):
                legal[j, row] = allowed[j] & (count % jobs[j].spec.replica_gpus(names[t]) == 0)
    legal[:, :, 0] = False
    return (
        WholeTypes(several, nodes.gpu_type == in_service[:, None], legal) if several.any() else None
    )
