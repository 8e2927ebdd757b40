"""Which GPU counts nodes can hold together, of rigid jobs and of Sia's.

Knows counts, neither jobs nor single GPUs. A part is a number of GPUs that must be on one node. An
allocation that fits a node is one part (Sia section 3.1, rule a). A larger one takes whole nodes
(rule b); the rest is one more part, which may share its node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

_MOST_STEPS = 3_000  # parts that the exact search places before it gives up


@dataclass(frozen=True)
class NodeRoom:
    """Nodes of one type: usable GPUs of each, and how many of them are free.

    `intact`: GPUs of the largest node when all of them are in service. An allocation up to that
    size is one part, whatever is drained.
    """

    whole: tuple[int, ...]
    free: tuple[int, ...]
    intact: int = 0

    @property
    def virtual_size(self) -> int:
        """Return the GPUs of the largest virtual node (section 3.3).

        Sia's larger configurations consist of several of these.
        """
        return 1 << (max(self.whole, default=0).bit_length() - 1) if any(self.whole) else 0

    def parts_of(self, gpu_count: int, node_count: int | None) -> tuple[int, ...]:
        """Return the parts of an allocation, largest first.

        If nodes differ, idle nodes count first, the largest before the others.
        """
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
        """Return the free GPUs of nodes that have any: idle nodes first, then most free."""
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
    """Return the node of every part, so that no node holds more than it has free.

    None if there is no such packing, or none was found in time. The largest part comes first, on
    the tightest node that holds it. If that fails and `search` is set, every way is tried, up to a
    limit.
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
    """Place each part on the tightest node that holds it; of equal nodes, the first.

    Nodes are grouped by free GPUs, so that the search looks at sizes, not at nodes.
    """
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
    """Depth-first search over the parts, largest first.

    A state that led nowhere is not tried again.
    """

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
