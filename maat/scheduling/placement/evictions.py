"""Find which jobs to move so that all parts fit on the nodes of one GPU type.

Seeks the fewest moves, and of these the cheapest restarts. Works on counts by node; `whole_node.py`
chooses the GPUs.
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

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
    search = _Search(residents)
    search.go(_State(list(free), _sorted(wanted)))
    return search.best


Cost = tuple[int, float]
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


@dataclass
class _Search:
    residents: Mapping[JobId, Resident]
    best: Moves | None = None
    best_cost: Cost = (1 << 62, 0.0)
    steps: int = 0

    def go(self, state: _State) -> None:
        """Complete this state in every way that may be cheaper than the best so far."""
        stuck = state.settle()
        if stuck is None:
            self.best, self.best_cost = Moves(state.evicted, tuple(state.put)), state.cost
            return
        for cost, _, evicted in self._ways(state, stuck[0]):
            if _sum(state.cost, cost) < self.best_cost and self.steps < _MOST_STEPS:
                self.steps += 1
                self.go(self._without(state, evicted, cost))

    def _ways(self, state: _State, size: int) -> list[tuple[Cost, int, tuple[JobId, ...]]]:
        """Return the sets of residents of one node that can make room, cheapest first."""
        ways = []
        for node, free in enumerate(state.free):
            there = [
                (r.by_node[node], job_id)
                for job_id, r in self.residents.items()
                if node in r.by_node and job_id not in state.evicted
            ]
            there = sorted(there, key=lambda item: -item[0])[:_MOST_ON_A_NODE]
            for chosen in _just_enough(there, size - free):
                ways.append((self._cost(chosen), node, chosen))
        return sorted(ways, key=lambda way: way[:2])[:_MOST_WAYS]

    def _cost(self, jobs: Sequence[JobId]) -> Cost:
        return len(jobs), sum(self.residents[job_id].restart_gpu_seconds for job_id in jobs)

    def _without(self, state: _State, jobs: Sequence[JobId], cost: Cost) -> _State:
        free, queue = list(state.free), list(state.queue)
        for job_id in jobs:
            for node, count in self.residents[job_id].by_node.items():
                free[node] += count
            for part in self.residents[job_id].parts:
                bisect.insort(queue, (part, job_id))
        return _State(
            free, queue, state.evicted | set(jobs), _sum(state.cost, cost), list(state.put)
        )


def _sorted(parts: Sequence[Part]) -> list[Part]:
    return sorted(parts)


def _sum(one: Cost, other: Cost) -> Cost:
    return one[0] + other[0], one[1] + other[1]


def _just_enough(there: Sequence[tuple[int, JobId]], lacking: int) -> list[tuple[JobId, ...]]:
    """Return every minimal set of jobs that frees `lacking` GPUs."""
    found = []
    for many in range(1, len(there) + 1):
        for chosen in combinations(there, many):
            given = sum(count for count, _ in chosen)
            if given >= lacking and all(given - count < lacking for count, _ in chosen):
                found.append(tuple(job_id for _, job_id in chosen))
    return found
