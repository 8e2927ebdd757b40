"""The individuals that Pollux keeps between rounds, as JSON data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from maat.scheduling.job import Job, JobId
from maat.scheduling.policies.pollux.problem import CountArray
from maat.scheduling.policies.pollux.virtual_nodes import VirtualNodes
from maat.scheduling.rounds import PolicyState

MOST_STATE_NUMBERS = 100_000  # of at most nine characters each: a state stays below 1 MB


def state_data(
    population: CountArray, jobs: Sequence[Job], nodes: VirtualNodes
) -> Mapping[str, object]:
    """Return the best individuals as JSON data."""
    numbers = 2 * np.count_nonzero(population, axis=(1, 2)) + len(jobs)
    kept = population[np.cumsum(numbers) <= MOST_STATE_NUMBERS]
    rows: dict[str, list[list[int]]] = {job.id: [[] for _ in range(len(kept))] for job in jobs}
    names = [job.id for job in jobs]
    individual, job, node = (axis.tolist() for axis in np.nonzero(kept))
    for i, j, n, count in zip(individual, job, node, kept[kept > 0].tolist(), strict=True):
        rows[names[j]][i] += (n, count)
    return {"nodes": list(nodes.names), "individuals": len(kept), "rows": rows}


def recalled(state: PolicyState, jobs: Sequence[Job], nodes: VirtualNodes) -> CountArray:
    """Restore the individuals of the last round, shape (P, J, N)."""
    data = state.data
    individuals = int(data.get("individuals", 0))  # type: ignore[call-overload]  # as state_data wrote it, here and below
    population = np.zeros((individuals, len(jobs), len(nodes.size)), dtype=np.int32)
    where = {name: n for n, name in enumerate(nodes.names)}
    column = [where.get(name, -1) for name in data.get("nodes", ())]  # type: ignore[attr-defined]
    rows: Mapping[JobId, Sequence[Sequence[int]]] = data.get("rows", {})  # type: ignore[assignment]
    for j, job in enumerate(jobs):
        for i, row in enumerate(rows.get(job.id, ())):
            for n, count in zip(row[::2], row[1::2], strict=True):
                if column[n] >= 0:
                    population[i, j, column[n]] = count
    return population
