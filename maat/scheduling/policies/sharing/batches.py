"""How jobs that may share GPUs run their batches: every way of each job, and the one that a running job was told. Grants nothing."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from maat.scheduling.batch_split import Split, job_halved, splits
from maat.scheduling.goodput import BatchPlan
from maat.scheduling.job import JobId
from maat.scheduling.policies.ordering import Requests
from maat.scheduling.rounds import PolicyState

HALVINGS = "halvings"


class Batches:
    """By row of a round: GPU types, ways to run the batch on each, how often that of a running job was halved."""

    def __init__(self, wanted: Requests, memory: PolicyState) -> None:
        self._input, self._wanted = wanted.round_input, wanted
        told: Mapping[JobId, object] = memory.data.get(HALVINGS, {})  # type: ignore[assignment]  # as this class told it, here and below
        self._halvings: dict[JobId, int] = {
            job_id: int(halvings) for job_id, halvings in told.items()
        }  # type: ignore[call-overload]
        self._ways: dict[tuple[int, int], tuple[Split, ...]] = {}
        self._types: dict[int, list[int]] = {}

    def types(self, row: int) -> list[int]:
        """The types on which a job can run: what it holds, then the fastest."""
        if row not in self._types:
            held = self._input.jobs[row].allocation
            present = None if held is None else self._input.cluster.type_index[held.gpu_type]
            self._types[row] = sorted(self._wanted.fastest_types(row), key=lambda t: t != present)
        return self._types[row]

    def ways(self, row: int, t: int) -> tuple[Split, ...]:
        """The ways to run a job's batch on a type; none where no batch is known for it."""
        if (row, t) not in self._ways:
            plan = self._wanted.plan(row, t) if t in self._wanted.usable[row] else None
            name = self._input.cluster.type_names[t]
            self._ways[row, t] = (
                ()
                if plan is None
                else splits(self._input.jobs[row], plan, gpu_type=name, round_input=self._input)
            )
        return self._ways[row, t]

    def rank(self, row: int) -> tuple[float, float]:
        """Remaining time on the fastest type, then order of submission."""
        best = min(
            (ways[0].solo_seconds for t in self.types(row) if (ways := self.ways(row, t))),
            default=math.inf,
        )
        return best, self._input.jobs[row].spec.submitted_at

    def whole_plan(self, row: int, t: int) -> BatchPlan | None:
        """How a job runs its batch where it is alone."""
        ways = self.ways(row, t)
        return ways[0].plan if ways else self._wanted.plan(row, t)

    def running_plan(self, row: int, t: int) -> BatchPlan | None:
        """How a job that stays runs its batch: as it was told when it started."""
        job, plan = self._input.jobs[row], self._wanted.plan(row, t)
        told = self._halvings.get(job.id, 0)
        if plan is None or not told:
            return plan
        plans = job_halved(job, plan, self._input.cluster.type_names[t])
        return plans[min(told, len(plans) - 1)]

    def running_way(self, row: int, t: int) -> Split | None:
        """The same with what it takes in time and memory; None where no batch is known for it."""
        ways = self.ways(row, t)
        return (
            ways[min(self._halvings.get(self._input.jobs[row].id, 0), len(ways) - 1)]
            if ways
            else None
        )

    def tell(self, job_id: JobId, halvings: int) -> None:
        """A job starts with its per-GPU batch halved so often."""
        self._halvings[job_id] = halvings

    def remembered(self, holding: Collection[JobId]) -> dict[str, object]:
        """How often the per-GPU batch of each job that holds GPUs was halved, where it was."""
        return {
            HALVINGS: {
                job_id: halvings
                for job_id, halvings in self._halvings.items()
                if halvings and job_id in holding
            }
        }
