"""Optimus: one GPU per job, then GPU by GPU to the job that gains most.

Ignores nodes.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from maat.scheduling.belief import TypeBelief
from maat.scheduling.efficiency import efficiency
from maat.scheduling.explain import ReasonCode, Reasons
from maat.scheduling.goodput import BatchPlan
from maat.scheduling.job import Job, JobId, JobSpec
from maat.scheduling.moving import with_moves
from maat.scheduling.policies.ordering import Walker, in_order
from maat.scheduling.policies.requests import Requests, declared_plans
from maat.scheduling.rounds import Decision, Grant, RoundInput
from maat.scheduling.solving.report import SolveReport
from maat.scheduling.throughput import pass_seconds, step_seconds


@dataclass(frozen=True)
class Optimus:
    """Give GPUs one by one, by the time that each would save.

    The gain is (T(k) - T(k + 1)) x the optimiser steps left x the job's weight, at its own batch
    size, while any is positive. T(k): seconds of a step on k GPUs, nodes filled one by one: as
    measured, else by the fitted model. First GPUs are given by weight, then by submission. A job
    without a model keeps its first GPU until there is one. With several GPU types, a job starts on
    its fastest type with room and grows there.
    """

    default_round_seconds: ClassVar[float] = 60.0  # published Pollux simulator
    chooses_gpu_counts: ClassVar[bool] = True
    weighs_jobs: ClassVar[bool] = True
    name: str = "optimus"

    def allocate(self, round_input: RoundInput) -> Decision:
        walker = Walker(round_input, Requests(round_input, least_gpus))
        jobs = round_input.jobs
        for row in in_order({row: (-job.spec.weight,) for row, job in enumerate(jobs)}):
            if not walker.offer(row):
                walker.refuse(row)
        growth = _Growth(round_input, walker)
        growth.run()
        grants = dict(sorted(growth.grants().items(), key=lambda item: item[1].gpu_count))
        return Decision(
            grants, SolveReport(), {**walker.reasons, **growth.reasons()}, state=round_input.state
        )


def least_gpus(spec: JobSpec, gpu_type: str, /) -> int:
    """Return the GPUs that a job starts with.

    One replica, or enough replicas for `min_gpus`; for a job that cannot grow, what it requests.
    """
    if not _grows(spec):
        return spec.requested_gpus
    unit = spec.replica_gpus(gpu_type)
    return unit * max(math.ceil(spec.min_gpus / unit), 1)


def _grows(spec: JobSpec) -> bool:
    return not spec.is_rigid and spec.promised_seconds is None


class _Growth:
    """The GPU count of each job while GPUs are handed out."""

    def __init__(self, round_input: RoundInput, walker: Walker) -> None:
        self._walker = walker
        granted = [
            job
            for job in round_input.jobs
            if job.id in walker.grants and job.id not in round_input.pinned
        ]
        self._tasks = [_Task(job, walker.grants[job.id], round_input) for job in granted]

    def run(self) -> None:
        """Hand out free GPUs, largest gain first, ties to the earlier job."""
        waiting = [(-task.gain(), i) for i, task in enumerate(self._tasks) if _grows(task.job.spec)]
        heapq.heapify(waiting)
        while waiting and waiting[0][0] < 0:
            i = waiting[0][1]
            if self._grow(self._tasks[i]):
                heapq.heapreplace(waiting, (-self._tasks[i].gain(), i))
            else:
                heapq.heappop(waiting)

    def _grow(self, task: _Task) -> bool:
        """Add a replica; return False if it has no room, now or later."""
        places, free = task.more_places(), self._walker.free
        for r, more in places:
            if free[r] < more:
                return False
        for r, more in places:
            free[r] -= more
        task.grow()
        return True

    def grants(self) -> dict[JobId, Grant]:
        """Return all grants, in the order of the jobs."""
        grown = {
            task.job.id: replace(task.grant, gpu_count=task.count, batch=task.plan())
            for task in self._tasks
        }
        return {job_id: grown.get(job_id, grant) for job_id, grant in self._walker.grants.items()}

    def reasons(self) -> dict[JobId, Reasons]:
        return {task.job.id: task.reason() for task in self._tasks}


class _Task:
    """One job and its GPU count on its type."""

    def __init__(self, job: Job, grant: Grant, round_input: RoundInput) -> None:
        self.job, self.grant, self.gpu_type, self.count = (
            job,
            grant,
            grant.gpu_type,
            grant.gpu_count,
        )
        spec, cluster = job.spec, round_input.cluster
        t = cluster.type_index[self.gpu_type]
        self.unit = spec.replica_gpus(self.gpu_type)
        self._per_node = int(cluster.gpus_per_node[t])
        by_batch = (
            spec.requested_batch_size // spec.memory[self.gpu_type].smallest_per_gpu * self.unit
        )
        declared = by_batch if spec.max_gpus is None else min(by_batch, spec.max_gpus)
        self.most = min(declared, int(cluster.usable_gpus[t]))
        source = round_input.projection(job, self.gpu_type, cluster.type_names)
        self._source_belief: TypeBelief | None = (
            None if source is None else job.belief.by_type[source[0]]
        )
        self._factor = 1.0 if source is None else source[1]
        self._plans = declared_plans(spec, self.gpu_type)
        self._limits = [
            (r, limit.smallest_count)
            for r, limit in enumerate(round_input.limits)
            if limit.counts(spec, self.gpu_type, max(limit.smallest_count, self.count))
        ]
        self._steps = remaining_steps(job)
        self._now, self._next = self._seconds(self.count), self._seconds(self.count + self.unit)

    def gain(self) -> float:
        """Return the seconds that another replica would save, times the job's weight.

        0 if the gain is unknown, or if the job may not have another replica.
        """
        if self._now is None or self._next is None or self.count + self.unit > self.most:
            return 0.0
        return (self._now - self._next) * self._steps * self.job.spec.weight

    def more_places(self) -> list[tuple[int, int]]:
        """Return the places that one more replica takes, by limit.

        A limit that counts large grants only counts all GPUs of a grant that becomes large.
        """
        now, then = self.count, self.count + self.unit
        return [
            (r, self.unit if now >= smallest else then)
            for r, smallest in self._limits
            if then >= smallest
        ]

    def grow(self) -> None:
        self.count += self.unit
        self._now, self._next = self._next, self._seconds(self.count + self.unit)

    def plan(self) -> BatchPlan | None:
        if not _grows(self.job.spec):
            return self.grant.batch
        return self._plans(self.count // self.unit)

    def reason(self) -> Reasons:
        evidence: dict[str, float | int | str | None] = {
            "gpu_type": self.gpu_type,
            "gpu_count": self.count,
            "remaining_steps": self._steps,
        }
        if self._now is not None:
            evidence["step_seconds"] = self._now
        if self._next is not None and self.count + self.unit <= self.most:
            evidence |= {
                "runner_up_gpu_type": self.gpu_type,
                "runner_up_gpu_count": self.count + self.unit,
                "runner_up_step_seconds": self._next,
            }
        return Reasons(ReasonCode.GRANTED, with_moves(self.job, evidence))

    def _seconds(self, count: int) -> float | None:
        """Return the seconds of an optimiser step at the requested batch size.

        None if the job has no model, or if no such batch fits.
        """
        if self._source_belief is None or count > self.most:
            return None
        replicas = count // self.unit
        plan = self._plans(replicas)
        if plan is None:
            return None
        nodes = -(-count // self._per_node)
        return (
            step_time(self._source_belief, plan, node_count=nodes, replica_count=replicas)
            / self._factor
        )


def step_time(known: TypeBelief, plan: BatchPlan, *, node_count: int, replica_count: int) -> float:
    """Return the seconds of an optimiser step under a batch plan.

    Measured if possible, else by the fitted model (Pollux eq. 8-11).
    """
    measured = known.by_key.get((node_count, replica_count, plan.per_gpu_batch_size))
    if measured is not None:
        return measured.step_seconds + plan.accumulation_steps * (
            measured.step_seconds - measured.sync_seconds
        )
    batch, nodes, replicas = (
        np.asarray(float(x)) for x in (plan.per_gpu_batch_size, node_count, replica_count)
    )
    whole = float(step_seconds(known.parameters, batch, node_count=nodes, replica_count=replicas))
    return whole + plan.accumulation_steps * float(pass_seconds(known.parameters, batch))


def remaining_steps(job: Job) -> float:
    """Return the optimiser steps left at the requested batch size.

    As the job reports, else estimated from its present gradients.
    """
    if job.remaining_steps is not None:
        return job.remaining_steps
    initial, batch = (
        np.asarray(float(job.spec.initial_batch_size)),
        np.asarray(float(job.spec.requested_batch_size)),
    )
    worth = (
        float(
            efficiency(
                np.asarray(job.belief.noise_scale(job.spec.initial_batch_size)), initial, batch
            )
        )
        if job.spec.learns
        else 1.0
    )
    return job.remaining_work / (job.spec.requested_batch_size * worth)
