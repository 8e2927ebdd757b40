"""How jobs that may share GPUs run their batches."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import cast

from maat.scheduling.batch_split import Split, job_halved, splits
from maat.scheduling.goodput import BatchPlan
from maat.scheduling.job import JobId
from maat.scheduling.policies.requests import Requests
from maat.scheduling.rounds import PolicyState

HALVINGS = "halvings"


class Batches:
    """GPU types, ways to run the batch and halvings, by row of a round."""

    def __init__(self, wanted: Requests, memory: PolicyState) -> None:
        self._input, self.wanted = wanted.round_input, wanted
        stored = cast("Mapping[JobId, int]", memory.data.get(HALVINGS, {}))
        self._halvings = {job_id: int(halvings) for job_id, halvings in stored.items()}
        self._ways: dict[tuple[int, int], tuple[Split, ...]] = {}
        self._types: dict[int, list[int]] = {}

    def types(self, row: int) -> list[int]:
        """Return the types on which a job can run: the one it holds, then the fastest."""
        if row not in self._types:
            held = self._input.jobs[row].allocation
            present = None if held is None else self._input.cluster.type_index[held.gpu_type]
            self._types[row] = sorted(self.wanted.fastest_types(row), key=lambda t: t != present)
        return self._types[row]

    def ways(self, row: int, t: int) -> tuple[Split, ...]:
        """Return the ways to run a job's batch on a type; none if its batch is unknown."""
        if (row, t) not in self._ways:
            plan = self.wanted.plan(row, t) if t in self.wanted.usable[row] else None
            name = self._input.cluster.type_names[t]
            self._ways[row, t] = (
                ()
                if plan is None
                else splits(self._input.jobs[row], plan, gpu_type=name, round_input=self._input)
            )
        return self._ways[row, t]

    def rank(self, row: int) -> tuple[float, float]:
        """Return the remaining seconds on the fastest type, and the submission time."""
        best = min(
            (ways[0].solo_seconds for t in self.types(row) if (ways := self.ways(row, t))),
            default=math.inf,
        )
        return best, self._input.jobs[row].spec.submitted_at

    def whole_plan(self, row: int, t: int) -> BatchPlan | None:
        """Return how a job runs its batch if it shares with none."""
        ways = self.ways(row, t)
        return ways[0].plan if ways else self.wanted.plan(row, t)

    def running_plan(self, row: int, t: int) -> BatchPlan | None:
        """Return how a job that stays runs its batch: split as when it started."""
        job, plan = self._input.jobs[row], self.wanted.plan(row, t)
        halvings = self._halvings.get(job.id, 0)
        if plan is None or not halvings:
            return plan
        plans = job_halved(job, plan, self._input.cluster.type_names[t])
        return plans[min(halvings, len(plans) - 1)]

    def running_way(self, row: int, t: int) -> Split | None:
        """Return the same with its time and memory; None if the batch is unknown."""
        ways = self.ways(row, t)
        halvings = self._halvings.get(self._input.jobs[row].id, 0)
        return ways[min(halvings, len(ways) - 1)] if ways else None

    def start(self, job_id: JobId, halvings: int) -> None:
        """Note how often the per-GPU batch of a job that starts was halved."""
        self._halvings[job_id] = halvings

    def remembered(self, holding: Collection[JobId]) -> dict[str, object]:
        """Return, as JSON data, the halvings of the jobs that hold GPUs, if above zero."""
        return {
            HALVINGS: {
                job_id: halvings
                for job_id, halvings in self._halvings.items()
                if halvings and job_id in holding
            }
        }
