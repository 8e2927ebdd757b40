"""Node failures in a simulation: when, for how long, which nodes are down.

The effect on jobs is up to the executor.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from maat.scheduling.cluster import Cluster, NodeId
from maat.scheduling.errors import ClusterError, ParameterError
from maat.vocabulary import LEAST_MTBF_HOURS

SECONDS_PER_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class NodeFailure:
    """A failure of a node at cluster time `time`; repaired `repair_seconds` later."""

    time: float
    node: NodeId
    repair_seconds: float

    def __post_init__(self) -> None:
        for name in ("time", "repair_seconds"):
            _check_not_negative(name, getattr(self, name))

    @property
    def repaired_at(self) -> float:
        return self.time + self.repair_seconds


@dataclass(frozen=True, slots=True)
class RandomFailures:
    """Independent failures of each node, with exponentially distributed up times."""

    mtbf_hours: float
    repair_seconds: float = 1800.0

    def __post_init__(self) -> None:
        if not LEAST_MTBF_HOURS <= self.mtbf_hours < float("inf"):
            raise ParameterError(
                f"is no time of {LEAST_MTBF_HOURS} hours or more",
                field="mtbf_hours",
                value=self.mtbf_hours,
                remedy="Give hours, such as 100.",
            )
        _check_not_negative("repair_seconds", self.repair_seconds)


Failures = RandomFailures | tuple[NodeFailure, ...]


class Outages:
    """The failures of a cluster in order of time, generated as far as needed.

    The order and number of queries do not change them.
    """

    def __init__(self, cluster: Cluster, failures: Failures, *, seed: int = 0) -> None:
        self._cluster = cluster
        self._failures: list[NodeFailure] = []
        self._next: list[tuple[float, int]] = []
        self._in_service: dict[frozenset[NodeId], Cluster] = {frozenset(): cluster}
        if isinstance(failures, RandomFailures):
            self._mean, self._repair = (
                failures.mtbf_hours * SECONDS_PER_HOUR,
                failures.repair_seconds,
            )
            self._rngs = [np.random.default_rng((seed, node)) for node in range(len(cluster.nodes))]
            self._next = [(self._up_time(node), node) for node in range(len(cluster.nodes))]
            heapq.heapify(self._next)
        else:
            _check_nodes(failures, cluster)
            self._failures = sorted(failures, key=lambda failure: failure.time)
            self._repair = max((failure.repair_seconds for failure in failures), default=0.0)

    def between(self, after: float, until: float) -> Sequence[NodeFailure]:
        """Return the failures with after < time <= until."""
        self._work_out(until)
        return self._failures[self._count(after) : self._count(until)]

    def down_at(self, time: float) -> frozenset[NodeId]:
        """Return the nodes that are down."""
        self._work_out(time)
        recent = self._failures[self._count(time - self._repair - 1.0) : self._count(time)]
        return frozenset(failure.node for failure in recent if time < failure.repaired_at)

    def cluster_at(self, time: float) -> Cluster:
        """Return the cluster with the GPUs of failed nodes drained.

        It is the same object as long as the same nodes are down.
        """
        down = self.down_at(time)
        if down not in self._in_service:
            nodes = (
                replace(n, drained=frozenset(range(n.gpu_count))) if n.id in down else n
                for n in self._cluster.nodes
            )
            self._in_service[down] = replace(self._cluster, nodes=tuple(nodes))
        return self._in_service[down]

    def next_change(self, after: float) -> float:
        """Return the time of the next failure or repair; infinite if there is none."""
        self._work_out(after)
        seen = self._count(after)
        recent = self._failures[self._count(after - self._repair - 1.0) : seen]
        repairs = [failure.repaired_at for failure in recent if failure.repaired_at > after]
        failures = [failure.time for failure in self._failures[seen : seen + 1]] + [
            time for time, _ in self._next[:1]
        ]
        return min([*repairs, *failures], default=float("inf"))

    def _work_out(self, until: float) -> None:
        while self._next and self._next[0][0] <= until:
            time, node = heapq.heappop(self._next)
            failure = NodeFailure(time, self._cluster.nodes[node].id, self._repair)
            self._failures.append(failure)
            heapq.heappush(self._next, (failure.repaired_at + self._up_time(node), node))

    def _up_time(self, node: int) -> float:
        return float(self._rngs[node].exponential(self._mean))

    def _count(self, until: float) -> int:
        return bisect_right(self._failures, until, key=lambda failure: failure.time)


def _check_not_negative(field: str, value: float) -> None:
    if not 0 <= value < float("inf"):
        raise ParameterError(
            "is no time from zero up", field=field, value=value, remedy="Give seconds, 0 or more."
        )


def _check_nodes(failures: Sequence[NodeFailure], cluster: Cluster) -> None:
    names = {node.id for node in cluster.nodes}
    for failure in failures:
        if failure.node not in names:
            shown = ", ".join(node.id for node in cluster.nodes[:8])
            raise ClusterError(
                "is no node of this cluster",
                field="failures",
                value=failure.node,
                remedy=f"Its nodes are {shown}.",
            )
