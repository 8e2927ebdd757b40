"""What policies that only order jobs share: walk the order, give each the GPUs it asked for on the fastest single type with room."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from maat.scheduling.arrays import FloatArray, IntArray
from maat.scheduling.assignment import exceeds, free_places, never_fits, waiting_for
from maat.scheduling.explain import ReasonCode, Reasons
from maat.scheduling.job import Adaptivity, Job, JobId, JobSpec
from maat.scheduling.limits import Limit
from maat.scheduling.matrix import Pairs, evaluate_pairs
from maat.scheduling.rounds import Decision, Grant, PolicyState, RoundInput
from maat.scheduling.solver import SolveReport


class HeadOfLine(StrEnum):
    """What happens behind a job that does not fit: everyone waits, or later ones that fit go ahead."""

    BLOCK = "block"
    BACKFILL = "backfill"


@dataclass(frozen=True)
class Requests:
    """What each of J jobs would make of the GPUs that it asked for, on every type T: goodput (J, T), zero where it cannot run."""

    jobs: tuple[Job, ...]
    pairs: Pairs
    pair_of: IntArray
    goodput: FloatArray

    def remaining_seconds(self) -> FloatArray:
        """Time to the end on the fastest type, shape (J,); infinite where a job can run nowhere."""
        best = self.goodput.max(axis=1, initial=0.0)
        work = np.array([job.remaining_work for job in self.jobs])
        seconds: FloatArray = np.divide(work, best, out=np.full(len(work), np.inf), where=best > 0)
        return seconds


def requests(round_input: RoundInput) -> Requests:
    """Evaluate every job at its own request: its GPU count and, where it declared one, its batch size."""
    cluster = round_input.cluster
    jobs = tuple(replace(job, spec=_as_requested(job)) for job in round_input.jobs)
    can = np.array([[_can_run(job, t, round_input) for t in range(len(cluster.type_names))] for job in jobs], dtype=bool)
    can = can.reshape(len(jobs), len(cluster.type_names))
    rows, kinds = (axis.astype(np.int64) for axis in np.nonzero(can))
    count = np.array([job.spec.requested_gpus for job in jobs], dtype=np.int64)[rows] if jobs else rows
    nodes = -(-count // np.maximum(cluster.gpus_per_node[kinds], 1))
    pairs = evaluate_pairs(
        jobs,
        cluster,
        job=rows,
        gpu_type=kinds,
        gpu_count=count,
        node_count=nodes,
        column=np.zeros_like(rows),
        projection=round_input.projection,
    )
    pair_of = np.full(can.shape, -1, dtype=np.int64)
    pair_of[rows, kinds] = np.arange(len(rows))
    goodput = np.zeros(can.shape)
    goodput[rows, kinds] = np.where(pairs.known, pairs.goodput, 1e-9)
    return Requests(jobs, pairs, pair_of, goodput)


def walk(
    round_input: RoundInput, wanted: Requests, order: Sequence[int], *, head_of_line: HeadOfLine, keep_running: bool, state: PolicyState
) -> Decision:
    """Grant along `order` (row numbers) while there is room. With `keep_running`, what runs stays before anything else is looked at."""
    walker = _Walker(round_input, wanted)
    if keep_running:
        for row in order:
            if wanted.jobs[row].allocation is not None:
                walker.offer(row)
    blocked = False
    for row in order:
        if wanted.jobs[row].id in walker.grants:
            continue
        if blocked or not walker.offer(row):
            walker.refuse(row)
            blocked = blocked or (head_of_line is HeadOfLine.BLOCK and walker.could_ever_run(row))
    return Decision(walker.grants, SolveReport(), walker.reasons, state=state)


def grant_chosen(
    round_input: RoundInput, wanted: Requests, chosen: Sequence[tuple[int, int]]
) -> tuple[dict[JobId, Grant], dict[JobId, Reasons]]:
    """Grants for the (row, GPU type) pairs that a policy chose itself, after the pinned ones; and why everybody else waits.

    The choice keeps the limits already.
    """
    walker = _Walker(round_input, wanted)
    for row, gpu_type in chosen:
        walker.take(row, gpu_type)
    for row, job in enumerate(wanted.jobs):
        if job.id not in walker.grants:
            walker.refuse(row)
    return walker.grants, walker.reasons


class _Walker:
    """Grants given so far in one round, and the places that are left."""

    def __init__(self, round_input: RoundInput, wanted: Requests) -> None:
        self._input, self._wanted = round_input, wanted
        self._free = free_places(round_input)
        self.grants: dict[JobId, Grant] = dict(round_input.pinned)
        self.reasons: dict[JobId, Reasons] = {
            job_id: Reasons(ReasonCode.PINNED, {"restarting": int(round_input.job_by_id[job_id].restarting)}) for job_id in self.grants
        }

    def offer(self, row: int) -> bool:
        """Grant the job its request on what it holds, else on the fastest type with room; False where there is none."""
        job = self._wanted.jobs[row]
        if job.id in self.grants:
            return True
        for t in self._types_in_order(row):
            if self._fits(job, t):
                self._grant(row, t)
                return True
        return False

    def take(self, row: int, gpu_type: int) -> None:
        """Grant the job its request on this type."""
        self._grant(row, gpu_type)

    def refuse(self, row: int) -> None:
        job = self._input.jobs[row]
        self.reasons[job.id] = self._waiting(row, job) if self.could_ever_run(row) else self._never(row, job)

    def could_ever_run(self, row: int) -> bool:
        """Whether the job would run if it were alone."""
        return any(not self._too_small(self._wanted.jobs[row], t) for t in self._types_in_order(row))

    def _waiting(self, row: int, job: Job) -> Reasons:
        needed, types = job.spec.requested_gpus, self._types_in_order(row)
        if any(self._fits(job, t) for t in types):
            return Reasons(ReasonCode.BEHIND_IN_ORDER, {"needed_gpus": needed, "free_gpus": self._most_free(row)})
        possible = next(t for t in types if not self._too_small(job, t))
        lacking = next(self._input.limits[r] for r in self._rows(job, possible) if self._free[r] < needed)
        return Reasons(waiting_for(lacking), {"needed_gpus": needed, "free_gpus": self._most_free(row), "binding_limit": lacking.name})

    def _never(self, row: int, job: Job) -> Reasons:
        types = self._types_in_order(row)
        if not types:
            return never_fits(self._wanted.jobs[row], self._input, needed=job.spec.requested_gpus)
        return exceeds(self._too_small(job, types[0]))

    def _too_small(self, job: Job, t: int) -> list[Limit]:
        """The limits that the job's request breaks by itself on a type."""
        return [limit for r in self._rows(job, t) if (limit := self._input.limits[r]).places < job.spec.requested_gpus]

    def _types_in_order(self, row: int) -> list[int]:
        goodput = self._wanted.goodput[row]
        fastest = [int(t) for t in np.argsort(-goodput, kind="stable") if goodput[t] > 0]
        held = self._wanted.jobs[row].allocation
        if held is None:
            return fastest
        present = self._input.cluster.type_index[held.gpu_type]
        return [present, *(t for t in fastest if t != present)] if goodput[present] > 0 else fastest

    def _rows(self, job: Job, t: int) -> list[int]:
        name, count = self._input.cluster.type_names[t], job.spec.requested_gpus
        return [r for r, limit in enumerate(self._input.limits) if limit.counts(job.spec, name, count)]

    def _fits(self, job: Job, t: int) -> bool:
        return all(self._free[r] >= job.spec.requested_gpus for r in self._rows(job, t))

    def _grant(self, row: int, t: int) -> None:
        job, pair = self._wanted.jobs[row], int(self._wanted.pair_of[row, t])
        self._free[self._rows(job, t)] -= job.spec.requested_gpus
        pairs = self._wanted.pairs
        plan = pairs.plans.plan(pair) if pairs.known[pair] else None
        name = self._input.cluster.type_names[t]
        self.grants[job.id] = Grant(name, job.spec.requested_gpus, batch=plan)
        evidence: dict[str, float | int | str | None] = {
            "gpu_type": name,
            "gpu_count": job.spec.requested_gpus,
            "goodput_samples_per_second": float(pairs.goodput[pair]),
        }
        self.reasons[job.id] = Reasons(ReasonCode.GRANTED, evidence)

    def _most_free(self, row: int) -> int:
        job = self._wanted.jobs[row]
        free = [min((int(self._free[r]) for r in self._rows(job, t)), default=0) for t in self._types_in_order(row)]
        return max(free, default=0)


def _as_requested(job: Job) -> JobSpec:
    """The job's declaration with its batch size fixed where it declared one: these policies adapt nothing."""
    if job.spec.batch_size is None:
        return job.spec
    return replace(job.spec, adaptivity=Adaptivity.RIGID, gpu_count=job.spec.requested_gpus)


def _can_run(job: Job, t: int, round_input: RoundInput) -> bool:
    cluster = round_input.cluster
    name, count = cluster.type_names[t], job.spec.requested_gpus
    return job.spec.may_use(name) and count <= cluster.usable_gpus[t] and count % job.spec.replica_gpus(name) == 0


def in_order(keys: Mapping[int, tuple[float, ...]]) -> list[int]:
    """Row numbers by key, ties by row."""
    return sorted(keys, key=lambda row: (*keys[row], row))
