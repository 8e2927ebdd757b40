"""Which GPU counts nodes can hold at once: rigid jobs' as well as Sia's. Counts alone: knows neither jobs nor single GPUs.

A part is a number of GPUs that is to be on one node. An allocation that fits a node is one part (Sia section 3.1, rule a); a larger one takes
whole nodes (rule b), and what is over is one more part, which may share its node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

_MOST_STEPS = 3_000  # parts that the exact search puts somewhere before it is given up


@dataclass(frozen=True)
class NodeRoom:
    """Nodes of one type: usable GPUs of each, and how many of them are to be had. `intact`: GPUs of the largest node with all of them in service;
    an allocation up to that size is one part, whatever is drained."""

    whole: tuple[int, ...]
    free: tuple[int, ...]
    intact: int = 0

    @property
    def virtual_size(self) -> int:
        """GPUs of the largest virtual node (section 3.3), of several of which Sia's larger configurations are made."""
        return 1 << (max(self.whole, default=0).bit_length() - 1) if any(self.whole) else 0

    def parts_of(self, gpu_count: int, node_count: int | None) -> tuple[int, ...]:
        """The parts of an allocation, largest first. Where nodes differ, idle ones are counted on first, the largest of them before the others."""
        size = self.virtual_size
        if (
            node_count is not None
            and 1 < node_count <= sum(whole >= size for whole in self.whole)
            and node_count * size == gpu_count
        ):
            return (size,) * node_count
        if gpu_count <= max(self.intact, *self.whole, 0):
            return (gpu_count,)
        parts, left = list[int](), gpu_count
        for free in self._sizes():
            if left > 0:
                parts.append(min(free, left))
                left -= parts[-1]
        return tuple(parts) if left <= 0 else (gpu_count,)

    def _sizes(self) -> list[int]:
        """Free GPUs of the nodes that have any: of idle nodes first, the most first."""
        idle = [
            free
            for free, whole in zip(self.free, self.whole, strict=True)
            if free == whole and free > 0
        ]
        begun = [
            free for free, whole in zip(self.free, self.whole, strict=True) if 0 < free < whole
        ]
        return sorted(idle, reverse=True) + sorted(begun, reverse=True)


def pack(free: Sequence[int], parts: Sequence[int], *, search: bool = True) -> list[int] | None:
    """The node of every part, in a way that leaves no node with less than nothing; None if there is none, or none was found in time.

    The largest part first, each on the tightest node that holds it; where that leads nowhere, every way is tried with `search`, up to a limit.
    """
    order = sorted(range(len(parts)), key=lambda i: -parts[i])
    sizes = [parts[i] for i in order]
    found = _tightest_first(free, sizes)
    if found is None and search and sum(parts) <= sum(free):
        found = _Search(sizes).run(free)
    if found is None:
        return None
    nodes = [0] * len(parts)
    for i, node in zip(order, found, strict=True):
        nodes[i] = node
    return nodes


def _tightest_first(free: Sequence[int], sizes: Sequence[int]) -> list[int] | None:
    """Nodes by free GPUs, so that finding the tightest looks at sizes and not at nodes; of nodes alike, the first."""
    by_room: dict[int, list[int]] = {}
    for node in reversed(range(len(free))):
        by_room.setdefault(free[node], []).append(node)
    nodes = []
    for size in sizes:
        room = min((r for r, there in by_room.items() if r >= size and there), default=None)
        if room is None:
            return None
        node = by_room[room].pop()
        by_room.setdefault(room - size, []).append(node)
        nodes.append(node)
    return nodes


@dataclass
class _Search:
    """Depth first over the parts, largest first; what was found to lead nowhere is not tried again."""

    sizes: Sequence[int]
    steps: int = 0
    dead: set[tuple[int, tuple[int, ...]]] = field(default_factory=set)

    def run(self, free: Sequence[int]) -> list[int] | None:
        nodes: list[int] = []
        return nodes if self._place(list(free), nodes) else None

    def _place(self, free: list[int], nodes: list[int]) -> bool:
        at = len(nodes)
        if at == len(self.sizes):
            return True
        state = (at, tuple(sorted(free)))
        self.steps += 1
        if state in self.dead or self.steps > _MOST_STEPS:
            return False
        size = self.sizes[at]
        for room in sorted({room for room in free if room >= size}):
            node = free.index(room)
            free[node] -= size
            nodes.append(node)
            if self._place(free, nodes):
                return True
            nodes.pop()
            free[node] += size
        self.dead.add(state)
        return False
