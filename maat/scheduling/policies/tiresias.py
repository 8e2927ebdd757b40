"""Tiresias: least attained service first, in queues by service thresholds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from maat.scheduling.errors import ParameterError
from maat.scheduling.job import Job, JobId
from maat.scheduling.parameters import knob, parameter_hash
from maat.scheduling.policies.ordering import (
    HeadOfLine,
    ServiceUnit,
    attained_service,
    order_of,
    walk,
)
from maat.scheduling.policies.requests import requests
from maat.scheduling.rounds import Decision, Order, PolicyState, RoundInput

# Service is a sum of floats: a decision ends this many seconds early, and a threshold counts as met
# when this much service is missing.
_EARLY_SECONDS = 1e-3
_SLACK = 1e-6


@dataclass(frozen=True)
class Tiresias:
    """Run jobs by queue; jobs with little attained service are in the first.

    A job whose service / weight reaches a threshold moves to the end of the next queue; one whose
    weight was raised moves back. Within a queue the order is first come, first served. Thresholds
    in use: 57600 GPU-seconds (Pollux's simulator, the default), 18000 (Lucid), 3250,7200,18000
    (SymbioticLab/Tiresias), 700 (SJF-BSBF). The cost of a preemption is the jobs' restart seconds,
    not a parameter of the policy.
    """

    thresholds: str = knob(
        "57600",
        "Attained service at which a job moves to the next queue: ascending numbers, separated by "
        "commas, one for each queue but the last.",
        unit="GPU-seconds, or seconds",
        source="published Pollux simulator",
    )
    service: ServiceUnit = knob(
        ServiceUnit.GPU_SECONDS, "What the thresholds count.", source="Tiresias: dlas-gpu, dlas"
    )
    promote_after: float = knob(
        0.0,
        "A job that has waited this many times its time on GPUs returns to the first queue; "
        "0: never.",
        source="Tiresias, PromoteKnob; off in Pollux's and Lucid's simulators",
        minimum=0.0,
        maximum=1000.0,
    )
    head_of_line: HeadOfLine = knob(
        HeadOfLine.BACKFILL,
        "Whether later jobs may pass one that does not fit.",
        source="published Pollux simulator",
    )
    default_round_seconds: ClassVar[float] = 60.0
    weighs_jobs: ClassVar[bool] = True
    name: str = "tiresias"

    def __post_init__(self) -> None:
        self.levels()

    def levels(self) -> tuple[float, ...]:
        """Return the thresholds as numbers. Raises ParameterError."""
        try:
            levels = tuple(float(text) for text in self.thresholds.split(","))
        except ValueError:
            levels = ()
        rising = all(low < high for low, high in zip((0.0, *levels), levels, strict=False))
        if not levels or not rising or levels[-1] == float("inf"):
            raise ParameterError(
                "are not ascending numbers above zero",
                field="thresholds",
                value=self.thresholds,
                remedy="Write ascending numbers, such as 3250,7200,18000.",
            )
        return levels

    def order(self, round_input: RoundInput) -> Order:
        """Return the order in which jobs are granted what they request."""
        return self._order(round_input, self._queues(round_input))

    def _order(self, round_input: RoundInput, queues: _Queues) -> Order:
        row_of = {job.id: row for row, job in enumerate(round_input.jobs)}
        rows = [row_of[job_id] for queue in queues.queues for job_id in queue]
        return order_of(requests(round_input), rows, self.head_of_line)

    def _queues(self, round_input: RoundInput) -> _Queues:
        """Return the queues as they are in this round."""
        memory = round_input.state.for_owner(self.name, parameter_hash(self))
        levels = self.levels()
        queues = _Queues.recall(memory.data, round_input.jobs, many=len(levels) + 1)
        for job in round_input.jobs:
            self._requeue(job, queues, levels)
            if self.promote_after > 0:
                self._promote(job, queues, now=round_input.now)
        return queues

    def allocate(self, round_input: RoundInput) -> Decision:
        memory = round_input.state.for_owner(self.name, parameter_hash(self))
        queues = self._queues(round_input)
        state = PolicyState(memory.owner, memory.parameter_hash, queues.remembered())
        return walk(
            round_input,
            requests(round_input),
            self._order(round_input, queues),
            state=state,
            order_stands_until=self._stands_until(round_input, queues, self.levels()),
            held_by="jobs of higher queues, which have had less service,",
        )

    def _stands_until(
        self, round_input: RoundInput, queues: _Queues, levels: Sequence[float]
    ) -> float:
        """Return when the first job with GPUs will reach its queue's threshold.

        Minus infinity if waiting moves jobs between queues too.
        """
        if self.promote_after > 0:
            return -math.inf
        reached = []
        for job in round_input.jobs:
            level = queues.level[job.id]
            if job.allocation is not None and level < len(levels):
                served_per_second = (
                    job.allocation.gpu_count
                    / job.spec.requested_gpus
                    * self._served_per_second(job)
                )
                reached.append(
                    (levels[level] * job.spec.weight - attained_service(job, self.service))
                    / served_per_second
                )
        return round_input.now + min(reached, default=math.inf) - _EARLY_SECONDS

    def _requeue(self, job: Job, queues: _Queues, levels: Sequence[float]) -> None:
        """Move a job to the queue of its service over its weight, which may have been raised."""
        served = attained_service(job, self.service) - queues.forgiven.get(job.id, 0.0) + _SLACK
        level = sum(served / job.spec.weight >= threshold for threshold in levels)
        if level != queues.level[job.id]:
            queues.move(job.id, level)

    def _promote(self, job: Job, queues: _Queues, *, now: float) -> None:
        if job.allocation is not None or job.started_at is None:
            queues.waiting.pop(job.id, None)
            return
        since = queues.waiting.setdefault(job.id, now)
        executed = (
            attained_service(job, self.service) - queues.forgiven.get(job.id, 0.0)
        ) / self._served_per_second(job)
        if (
            queues.level[job.id] > 0
            and executed > 0
            and now - since >= self.promote_after * executed
        ):
            queues.forgiven[job.id] = attained_service(job, self.service)
            queues.waiting[job.id] = now
            queues.move(job.id, 0)

    def _served_per_second(self, job: Job) -> int:
        return job.spec.requested_gpus if self.service is ServiceUnit.GPU_SECONDS else 1


@dataclass
class _Queues:
    """Jobs by queue, in order of entry.

    `level`: the queue of each job; `forgiven`: service before a promotion, which no longer counts;
    `waiting`: since when each preempted job waits.
    """

    queues: list[list[JobId]]
    level: dict[JobId, int]
    forgiven: dict[JobId, float] = field(default_factory=dict)
    waiting: dict[JobId, float] = field(default_factory=dict)

    @classmethod
    def recall(cls, data: Mapping[str, Any], jobs: Sequence[Job], *, many: int) -> _Queues:
        """Restore the queues without ended jobs, new jobs at the end of the first."""
        there = {job.id for job in jobs}
        queues = [
            [job_id for job_id in queue if job_id in there]
            for queue in data.get("queues", [[] for _ in range(many)])
        ]
        known = {job_id for queue in queues for job_id in queue}
        queues[0] += [job.id for job in jobs if job.id not in known]
        level = {job_id: number for number, queue in enumerate(queues) for job_id in queue}
        kept = (
            {job_id: value for job_id, value in data.get(name, {}).items() if job_id in there}
            for name in ("forgiven", "waiting")
        )
        return cls(queues, level, *kept)

    def move(self, job_id: JobId, level: int) -> None:
        """Move a job to the end of another queue."""
        self.queues[self.level[job_id]].remove(job_id)
        self.queues[level].append(job_id)
        self.level[job_id] = level

    def remembered(self) -> dict[str, object]:
        return {"queues": self.queues, "forgiven": self.forgiven, "waiting": self.waiting}
