"""A cluster: GPU types, nodes, GPUs. Knows no allocation."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from maat.scheduling.arrays import BoolArray, IntArray
from maat.scheduling.errors import ClusterError
from maat.vocabulary import MAX_GPUS, MAX_GPUS_PER_NODE, MAX_JOBS_PER_GPU

NodeId = str


_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,47}")
_GROUP = re.compile(
    r"(?P<type>[a-z0-9][a-z0-9_.-]*)=(?P<nodes>\d{1,12})x(?P<gpus>\d{1,12})"
    r"(?:/(?P<rack>\d{1,12}))?"
)


def is_gpu_type(name: str) -> bool:
    """Return whether a GPU type may have this name."""
    return _NAME.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class GpuType:
    """A kind of device, with its own capacity row.

    `memory_gib` of one GPU; None if it does not matter.
    """

    name: str
    memory_gib: float | None = None

    def __post_init__(self) -> None:
        if not is_gpu_type(self.name):
            raise ClusterError(
                "is not a usable name",
                field="gpu_type",
                value=self.name,
                remedy="Use lower-case letters, digits, '-', '_' or '.'.",
            )


@dataclass(frozen=True, slots=True)
class Node:
    """A machine with GPUs of one type.

    `drained`: indices on this node of GPUs that may not be used: under repair, or the whole node
    out of service. `rack`: the rack that it stands in; None: that of all nodes that name none.
    """

    id: NodeId
    gpu_type: str
    gpu_count: int
    drained: frozenset[int] = frozenset()
    rack: str | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.gpu_count <= MAX_GPUS_PER_NODE:
            raise ClusterError(
                "is not between 1 and 64 GPUs",
                field=f"nodes[{self.id}].gpu_count",
                value=self.gpu_count,
                remedy="Give a node at least one GPU, or leave it out.",
            )
        if not all(0 <= index < self.gpu_count for index in self.drained):
            raise ClusterError(
                "names a GPU that the node does not have",
                field=f"nodes[{self.id}].drained",
                value=sorted(self.drained),
                remedy=f"Use indices 0 to {self.gpu_count - 1}.",
            )

    @property
    def available_count(self) -> int:
        return self.gpu_count - len(self.drained)


@dataclass(frozen=True, eq=False)
class Cluster:
    """Nodes in a fixed order.

    A cluster equals only itself, so that derived data can be cached per instance. GPUs are
    numbered 0..G-1 through the nodes in order.

    `scores`: per-GPU slowness factors by job class, shape (G,) each; 1.0 is the median GPU, larger
    is slower (PAL).
    """

    nodes: tuple[Node, ...]
    gpu_types: tuple[GpuType, ...]
    scores: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    jobs_per_gpu: int = 1

    def __post_init__(self) -> None:
        names = [t.name for t in self.gpu_types]
        if len(set(names)) != len(names):
            raise ClusterError(
                "lists a GPU type twice",
                field="gpu_types",
                value=names,
                remedy="Give each type one entry.",
            )
        if len({n.id for n in self.nodes}) != len(self.nodes):
            raise ClusterError(
                "has two nodes of the same name",
                field="nodes",
                remedy="Give each node a name of its own.",
            )
        for node in self.nodes:
            if node.gpu_type not in names:
                raise ClusterError(
                    "is not among the cluster's types",
                    field=f"nodes[{node.id}].gpu_type",
                    value=node.gpu_type,
                    remedy=f"Use one of {names}.",
                )
        if not 1 <= self.jobs_per_gpu <= MAX_JOBS_PER_GPU:
            raise ClusterError(
                f"is not between 1 and {MAX_JOBS_PER_GPU}",
                field="jobs_per_gpu",
                value=self.jobs_per_gpu,
                remedy="Give 2 to let two jobs share a GPU.",
            )
        if self.gpu_count == 0:
            raise ClusterError(
                "has no GPUs",
                field="nodes",
                value=0,
                remedy="Add at least one node, such as t4=1x4.",
            )
        if self.gpu_count > MAX_GPUS:
            raise ClusterError(
                "is larger than Maat accepts",
                field="nodes",
                value=self.gpu_count,
                remedy=f"Stay at or below {MAX_GPUS} GPUs.",
            )

    @classmethod
    def of(
        cls,
        nodes: Sequence[Node],
        *,
        memory_gib: Mapping[str, float] | None = None,
        jobs_per_gpu: int = 1,
    ) -> Cluster:
        """Return a cluster of these nodes, types in order of first appearance."""
        memory = memory_gib or {}
        names = dict.fromkeys(node.gpu_type for node in nodes)
        return cls(
            tuple(nodes),
            tuple(GpuType(name, memory.get(name)) for name in names),
            jobs_per_gpu=jobs_per_gpu,
        )

    @classmethod
    def parse(cls, text: str, *, max_gpus: int = MAX_GPUS, racks: bool = False) -> Cluster:
        """Read the short form `t4=6x4,rtx=3x8,a100=2x8`: type = nodes x GPUs per node.

        Args:
            text: The short form.
            max_gpus: The largest cluster.
            racks: Whether nodes may stand in racks: `t4=16x4/4` is four racks of four nodes.

        Raises:
            ClusterError: A group does not parse, or makes the cluster larger than `max_gpus`; the
                error names the group.
        """
        nodes: list[Node] = []
        gpus_so_far = 0
        for group in text.split(","):
            match = _GROUP.fullmatch(group.strip())
            if match is None:
                small = group.strip().lower()
                if _GROUP.fullmatch(small):
                    raise ClusterError(
                        "has capitals in its GPU type",
                        field="cluster",
                        value=group,
                        remedy=f"Write {small}.",
                    )
                raise ClusterError(
                    "does not read as type=NODESxGPUS",
                    field="cluster",
                    value=group,
                    remedy="Write for example t4=6x4,rtx=3x8,a100=2x8.",
                )
            name, node_count, gpus = match["type"], int(match["nodes"]), int(match["gpus"])
            if node_count * gpus == 0:
                raise ClusterError(
                    "has zero GPUs",
                    field="cluster",
                    value=group,
                    remedy="Give every type at least one node with one GPU.",
                )
            per_rack = _nodes_per_rack(match["rack"], group, known=racks)
            gpus_so_far += node_count * gpus
            if gpus_so_far > max_gpus:
                raise ClusterError(
                    "has more GPUs than Maat accepts",
                    field="cluster",
                    value=group,
                    remedy=f"Stay at or below {max_gpus} GPUs.",
                )
            first = sum(1 for node in nodes if node.gpu_type == name)
            nodes += [
                Node(
                    f"{name}-{first + i}",
                    name,
                    gpus,
                    rack=None if per_rack is None else f"{name}-rack-{(first + i) // per_rack}",
                )
                for i in range(node_count)
            ]
        return cls.of(nodes)

    @cached_property
    def type_names(self) -> tuple[str, ...]:
        return tuple(t.name for t in self.gpu_types)

    @cached_property
    def type_index(self) -> Mapping[str, int]:
        return {name: i for i, name in enumerate(self.type_names)}

    @cached_property
    def gpu_count(self) -> int:
        return sum(node.gpu_count for node in self.nodes)

    @cached_property
    def node_offsets(self) -> IntArray:
        """Return the number of each node's first GPU, and G at the end; shape (N + 1,)."""
        return np.concatenate(([0], np.cumsum([node.gpu_count for node in self.nodes]))).astype(
            np.int64
        )

    @cached_property
    def gpu_node(self) -> IntArray:
        """Return the node index of every GPU, shape (G,)."""
        return np.repeat(
            np.arange(len(self.nodes)), [node.gpu_count for node in self.nodes]
        ).astype(np.int64)

    @cached_property
    def gpu_rack(self) -> IntArray:
        """Return the index of the rack of every GPU, shape (G,)."""
        index = {rack: i for i, rack in enumerate(dict.fromkeys(n.rack for n in self.nodes))}
        return np.array([index[node.rack] for node in self.nodes], dtype=np.int64)[self.gpu_node]

    @cached_property
    def rack_count(self) -> int:
        return len({node.rack for node in self.nodes})

    @cached_property
    def gpu_type_of(self) -> IntArray:
        """Return the type index of every GPU, shape (G,)."""
        return self.node_type[self.gpu_node]

    @cached_property
    def node_type(self) -> IntArray:
        """Return the type index of every node, shape (N,)."""
        return np.array([self.type_index[node.gpu_type] for node in self.nodes], dtype=np.int64)

    @cached_property
    def gpu_available(self) -> BoolArray:
        """Return which GPUs may be used, shape (G,)."""
        available = np.ones(self.gpu_count, dtype=bool)
        for node, offset in zip(self.nodes, self.node_offsets, strict=False):
            for index in node.drained:
                available[offset + index] = False
        return available

    @cached_property
    def node_available(self) -> IntArray:
        """Return the usable GPUs of every node, shape (N,)."""
        return np.array([node.available_count for node in self.nodes], dtype=np.int64)

    @cached_property
    def usable_gpus(self) -> IntArray:
        """Return the usable GPUs by type, shape (T,): the most that one job could hold."""
        return np.bincount(
            self.node_type, weights=self.node_available, minlength=len(self.gpu_types)
        ).astype(np.int64)

    @cached_property
    def capacity(self) -> IntArray:
        """Return the usable places by type, shape (T,): GPUs x jobs allowed per GPU."""
        return self.usable_gpus * self.jobs_per_gpu

    @cached_property
    def gpus_per_node(self) -> IntArray:
        """Return the most usable GPUs on one node, by type, shape (T,)."""
        most = np.zeros(len(self.gpu_types), dtype=np.int64)
        np.maximum.at(most, self.node_type, self.node_available)
        return most

    def nodes_of(self, gpu_type: str) -> tuple[Node, ...]:
        return tuple(node for node in self.nodes if node.gpu_type == gpu_type)

    def describe(self) -> str:
        """Return the short form `t4=6x4,...`; drained GPUs are not in it."""
        groups: dict[tuple[str, int], list[Node]] = {}
        for node in self.nodes:
            groups.setdefault((node.gpu_type, node.gpu_count), []).append(node)
        return ",".join(
            f"{name}={len(nodes)}x{gpus}{_of_racks(nodes)}"
            for (name, gpus), nodes in groups.items()
        )


def _of_racks(nodes: Sequence[Node]) -> str:
    """Return `/4` for nodes in racks of four, the largest of them; empty if they name none."""
    most = max(Counter(node.rack for node in nodes if node.rack is not None).values(), default=0)
    return f"/{most}" if most else ""


def _nodes_per_rack(written: str | None, group: str, *, known: bool) -> int | None:
    """Return the nodes of a rack; None: not said. Raises ClusterError."""
    if written is None:
        return None
    if not known:
        raise ClusterError(
            "has racks, which only simulations know",
            field="cluster",
            value=group,
            remedy=f"Write {group.partition('/')[0].strip()}.",
        )
    if int(written) == 0:
        raise ClusterError(
            "has racks of no node",
            field="cluster",
            value=group,
            remedy="Write for example t4=16x4/4: racks of four nodes.",
        )
    return int(written)
