"""Find which jobs to move so that all parts fit on the nodes of one GPU type.

Seeks the fewest moves, and of these the cheapest restarts. Works on counts by node; `whole_node.py`
chooses the GPUs.
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from heapq import merge
from itertools import combinations, islice

from maat.scheduling.job import JobId

_MOST_STEPS = 400  # evictions tried in one search
_MOST_WAYS = 12  # ways to make room that are tried for one part, cheapest first
_MOST_ON_A_NODE = 10  # movable jobs of a node that are combined, the largest ones

Part = tuple[int, JobId]
"""A GPU count that goes to one node, and the job that it belongs to."""


@dataclass(frozen=True)
class Resident:
    """A running job that may be moved.

    `by_node`: its GPUs on each node; `parts`: its parts if it is placed elsewhere;
    `restart_gpu_seconds`: what its restart wastes.
    """

    by_node: Mapping[int, int]
    parts: tuple[int, ...]
    restart_gpu_seconds: float


@dataclass(frozen=True)
class Moves:
    """The jobs to evict, and the node of each part of theirs and of each wanted part."""

    evicted: frozenset[JobId]
    nodes: tuple[tuple[Part, int], ...]


def fewest_moves(
    free: Sequence[int], residents: Mapping[JobId, Resident], wanted: Sequence[Part]
) -> Moves | None:
    """Return the cheapest way found to place all `wanted` parts, or None.

    `free`: free GPUs on each node while all residents stay.
    """
    search = _Search(residents, len(free))
    search.go(_State(list(free), _sorted(wanted)))
    return search.best


Cost = tuple[int, float]
"""Jobs evicted, and the GPU-seconds that their restarts waste."""
Way = tuple[Cost, int, tuple[JobId, ...]]
"""A set of residents of one node that makes room: its cost, the node, the jobs."""
_NO_COST: Cost = (0, 0.0)


@dataclass
class _State:
    """A partial answer.

    `free`: free GPUs by node; `queue`: parts not yet placed, largest last; `evicted` and `cost`:
    the jobs evicted and what that costs; `put`: the parts placed, with their nodes.
    """

    free: list[int]
    queue: list[Part]
    evicted: frozenset[JobId] = frozenset()
    cost: Cost = _NO_COST
    put: list[tuple[Part, int]] = field(default_factory=list)

    def settle(self) -> Part | None:
        """Put parts, largest first, on the tightest nodes; return the first misfit."""
        while self.queue:
            size = self.queue[-1][0]
            room = min((free for free in self.free if free >= size), default=None)
            if room is None:
                return self.queue[-1]
            node = self.free.index(room)
            self.free[node] -= size
            self.put.append((self.queue.pop(), node))
        return None


class _Search:
    """Completes partial answers, depth first, in the order of their costs."""

    def __init__(self, residents: Mapping[JobId, Resident], node_count: int) -> None:
        self._residents = residents
        self._on_node = [_largest_first(residents, node) for node in range(node_count)]
        self._jobs_on_node = [frozenset(job for _, job in there) for there in self._on_node]
        self._ways_on_node: dict[tuple[int, int, frozenset[JobId]], list[Way]] = {}
        self._steps = 0
        self._best_cost: Cost = (1 << 62, 0.0)
        self.best: Moves | None = None

    def go(self, state: _State) -> None:
        """Complete this state in every way that may be cheaper than the best so far."""
        stuck = state.settle()
        if stuck is None:
            self.best, self._best_cost = Moves(state.evicted, tuple(state.put)), state.cost
            return
        for cost, _, evicted in self._ways(state, stuck[0]):
            if _sum(state.cost, cost) < self._best_cost and self._steps < _MOST_STEPS:
                self._steps += 1
                self.go(self._without(state, evicted, cost))

    def _ways(self, state: _State, size: int) -> list[Way]:
        """Return the sets of residents of one node that can make room, cheapest first."""
        by_node = (
            self._on(node, size - free, state.evicted & self._jobs_on_node[node])
            for node, free in enumerate(state.free)
        )
        return list(islice(merge(*by_node, key=_cost_and_node), _MOST_WAYS))

    def _on(self, node: int, lacking: int, evicted: frozenset[JobId]) -> list[Way]:
        """Return the ways to free `lacking` GPUs of this node, cheapest first.

        Steps of a search change few nodes, so that most of these were asked for before.
        """
        key = node, lacking, evicted
        if key not in self._ways_on_node:
            there = [item for item in self._on_node[node] if item[1] not in evicted]
            there = there[:_MOST_ON_A_NODE]
            sets = _just_enough(tuple(count for count, _ in there), lacking)
            jobs = (tuple(there[place][1] for place in chosen) for chosen in sets)
            ways = [(self._cost(chosen), node, chosen) for chosen in jobs]
            self._ways_on_node[key] = sorted(ways, key=_cost_and_node)[:_MOST_WAYS]
        return self._ways_on_node[key]

    def _cost(self, jobs: Sequence[JobId]) -> Cost:
        return len(jobs), sum(self._residents[job_id].restart_gpu_seconds for job_id in jobs)

    def _without(self, state: _State, jobs: Sequence[JobId], cost: Cost) -> _State:
        free, queue = list(state.free), list(state.queue)
        for job_id in jobs:
            for node, count in self._residents[job_id].by_node.items():
                free[node] += count
            for part in self._residents[job_id].parts:
                bisect.insort(queue, (part, job_id))
        return _State(
            free, queue, state.evicted | set(jobs), _sum(state.cost, cost), list(state.put)
        )


def _cost_and_node(way: Way) -> tuple[Cost, int]:
    return way[:2]


def _largest_first(residents: Mapping[JobId, Resident], node: int) -> list[tuple[int, JobId]]:
    there = [(r.by_node[node], job_id) for job_id, r in residents.items() if node in r.by_node]
    return sorted(there, key=lambda item: -item[0])


def _sorted(parts: Sequence[Part]) -> list[Part]:
    return sorted(parts)


def _sum(one: Cost, other: Cost) -> Cost:
    return one[0] + other[0], one[1] + other[1]


@lru_cache(maxsize=4096)
def _just_enough(counts: tuple[int, ...], lacking: int) -> list[tuple[int, ...]]:
    """Return every minimal set of these counts, by place, whose sum is at least `lacking`."""
    found = []
    for many in range(1, len(counts) + 1):
        for chosen in combinations(range(len(counts)), many):
            given = sum(counts[place] for place in chosen)
            if given >= lacking and all(given - counts[place] < lacking for place in chosen):
                found.append(chosen)
    return found
