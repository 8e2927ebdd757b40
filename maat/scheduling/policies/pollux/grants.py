"""Turn an individual of the search into grants of one GPU type per job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from maat.scheduling.arrays import IntArray
from maat.scheduling.free_capacity import free_places
from maat.scheduling.job import Job, JobId
from maat.scheduling.matrix import evaluate_pairs
from maat.scheduling.policies.pollux.problem import CountArray
from maat.scheduling.policies.pollux.useful_types import (
    is_legal,
)
from maat.scheduling.policies.pollux.virtual_nodes import VirtualNodes
from maat.scheduling.rounds import Grant, RoundInput


def grants_of(
    round_input: RoundInput, jobs: Sequence[Job], nodes: VirtualNodes, individual: CountArray
) -> tuple[dict[JobId, Grant], Mapping[JobId, float | None]]:
    """Return the grants of one individual, and the goodput of each.

    A job keeps its GPUs of one type: the type that it has most of, at a tie the one with the
    highest estimated goodput (Sia section 4.3). Of these it gets as many as it may have and every
    limit has places for. Grants are in order of priority.
    """
    cluster = round_input.cluster
    by_node = individual.astype(np.int64) @ (
        nodes.node[:, None] == np.arange(len(cluster.nodes))
    ).astype(np.int64)
    rows = _Rows(round_input, jobs, by_node)
    grants: dict[JobId, Grant] = dict(round_input.pinned)
    goodput: dict[JobId, float | None] = {}
    free = free_places(round_input)
    for j, job in enumerate(jobs):
        t = rows.chosen_type(j)
        under = [
            r
            for r, limit in enumerate(round_input.limits)
            if limit.counts(job.spec, cluster.type_names[t], 1)
        ]
        within = min((int(free[r]) for r in under), default=cluster.gpu_count)
        count = rows.most_usable(j, t, within)
        if count == 0:
            continue
        free[under] -= count
        gpus_by_node = rows.kept(j, t, count)
        grants[job.id] = Grant(
            cluster.type_names[t], count, node_count=len(gpus_by_node), gpus_by_node=gpus_by_node
        )
        goodput[job.id] = rows.goodput(j, t, count)
    return grants, goodput


class _Rows:
    """The rows of an individual over real nodes, with goodput by part."""

    def __init__(self, round_input: RoundInput, jobs: Sequence[Job], by_node: IntArray) -> None:
        self._cluster, self._jobs = round_input.cluster, jobs
        types = self._cluster.node_type
        self._sorted = [self._by_size(row, types) for row in by_node]
        parts = [
            (j, t, c)
            for j, of_type in enumerate(self._sorted)
            for t, at in of_type.items()
            for c in range(1, sum(n for _, n in at) + 1)
        ]
        job, kind, count = (
            (np.array(axis, dtype=np.int64) for axis in zip(*parts, strict=True))
            if parts
            else (np.zeros(0, np.int64),) * 3
        )
        legal = np.array(
            [is_legal(jobs[j].spec, self._cluster.type_names[t], c) for j, t, c in parts],
            dtype=bool,
        )
        spans = np.array([len(self.kept(j, t, c)) for j, t, c in parts], dtype=np.int64)
        job, kind, count, spans = job[legal], kind[legal], count[legal], spans[legal]
        pairs = evaluate_pairs(
            jobs,
            self._cluster,
            job=job,
            gpu_type=kind,
            gpu_count=count,
            node_count=spans,
            column=np.zeros_like(job),
            projection=round_input.projection,
        )
        keys = zip(job.tolist(), kind.tolist(), count.tolist(), strict=True)
        self._goodput = {
            key: value if known else None
            for key, value, known in zip(
                keys, pairs.goodput.tolist(), pairs.known.tolist(), strict=True
            )
        }

    @staticmethod
    def _by_size(row: IntArray, types: IntArray) -> dict[int, list[tuple[int, int]]]:
        """Return (node, GPUs) by type, largest first."""
        found: dict[int, list[tuple[int, int]]] = {}
        for node in np.flatnonzero(row).tolist():
            found.setdefault(int(types[node]), []).append((node, int(row[node])))
        return {t: sorted(at, key=lambda one: (-one[1], one[0])) for t, at in found.items()}

    def chosen_type(self, j: int) -> int:
        """Return the type of most GPUs of the row, among useful ones."""
        of_type = self._sorted[j]
        sums = {t: sum(n for _, n in at) for t, at in of_type.items()}
        return max(
            sums,
            key=lambda t: (
                self.most_usable(j, t, sums[t]) > 0,
                sums[t],
                self._goodput.get((j, t, sums[t])) or 0.0,
                -t,
            ),
            default=0,
        )

    def most_usable(self, j: int, t: int, within: int) -> int:
        """Return the largest useful count of at most `within` GPUs, or 0.

        A count is useful unless it is known to give no goodput. For a job that promises a latency
        it is the smallest useful count: more GPUs would not keep the promise better.
        """
        total = sum(n for _, n in self._sorted[j].get(t, ()))
        counts = [
            c
            for c in range(1, min(total, within) + 1)
            if (j, t, c) in self._goodput and self._goodput[j, t, c] != 0
        ]
        choose = max if self._jobs[j].spec.promised_seconds is None else min
        return choose(counts, default=0)

    def kept(self, j: int, t: int, count: int) -> dict[str, int]:
        """Return `count` GPUs of the row by node, largest nodes first."""
        found: dict[str, int] = {}
        for node, many in self._sorted[j].get(t, ()):
            if count > 0:
                found[self._cluster.nodes[node].id] = min(many, count)
                count -= many
        return found

    def goodput(self, j: int, t: int, count: int) -> float | None:
        return self._goodput[j, t, count]
