"""Grant jobs the GPUs that they request, along an order."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property, lru_cache, partial
from typing import NamedTuple

import numpy as np

from maat.scheduling.arrays import FloatArray, IntArray
from maat.scheduling.explain import DeferredReasons, ReasonCode, Reasons
from maat.scheduling.free_capacity import exceeds, free_places, never_fits, waiting_for
from maat.scheduling.goodput import BatchPlan, plan_for_batch
from maat.scheduling.job import Adaptivity, Job, JobId, JobSpec
from maat.scheduling.limits import Limit
from maat.scheduling.matrix import Pairs, evaluate_pairs
from maat.scheduling.rounds import Decision, Grant, PolicyState, RoundInput
from maat.scheduling.solving.report import SolveReport


class HeadOfLine(StrEnum):
    """What happens behind a job that does not fit.

    BLOCK: all later jobs wait. BACKFILL: later jobs that fit start.
    """

    BLOCK = "block"
    BACKFILL = "backfill"


class ServiceUnit(StrEnum):
    """What counts as service.

    GPU_SECONDS: seconds with GPUs times their number. SECONDS: seconds with GPUs alone.
    """

    GPU_SECONDS = "gpu-seconds"
    SECONDS = "seconds"


def attained_service(job: Job, unit: ServiceUnit) -> float:
    """Return the service so far, on all GPU types.

    In SECONDS these are the GPU-seconds divided by the requested GPUs.
    """
    gpu_seconds = sum(job.attained_gpu_seconds.values())
    return gpu_seconds if unit is ServiceUnit.GPU_SECONDS else gpu_seconds / job.spec.requested_gpus


def requested_gpus_of(spec: JobSpec, _gpu_type: str, /) -> int:
    """Return the GPUs that a job requests, of any type."""
    return spec.requested_gpus


@dataclass(frozen=True, eq=False)
class Requests:
    """What J jobs would make of the GPUs that they request, on T types.

    Goodput is computed when it is first read: most orders do not need it. `gpus_of`: how many GPUs
    of a type a job is to have, if not what it requests.
    """

    round_input: RoundInput
    gpus_of: Callable[[JobSpec, str], int] = requested_gpus_of
    _declared: dict[tuple[int, int], BatchPlan | None] = field(default_factory=dict)
    _counts: dict[tuple[int, int], int] = field(default_factory=dict)

    def gpu_count(self, row: int, t: int) -> int:
        """Return the GPUs that a job is to have on a type."""
        count = self._counts.get((row, t))
        if count is None:
            count = self._counts[row, t] = self.gpus_of(
                self.round_input.jobs[row].spec, self.round_input.cluster.type_names[t]
            )
        return count

    @cached_property
    def jobs(self) -> tuple[Job, ...]:
        """The jobs, bound to their batch size if they declared one."""
        return tuple(replace(job, spec=_as_requested(job)) for job in self.round_input.jobs)

    @cached_property
    def usable(self) -> tuple[tuple[int, ...], ...]:
        """The types on which each job can run."""
        many = range(len(self.round_input.cluster.type_names))
        return tuple(
            tuple(t for t in many if self._can_run(row, t))
            for row in range(len(self.round_input.jobs))
        )

    def _can_run(self, row: int, t: int) -> bool:
        cluster, spec = self.round_input.cluster, self.round_input.jobs[row].spec
        name = cluster.type_names[t]
        if not spec.may_use(name):
            return False
        count = self.gpu_count(row, t)
        allowed = spec.max_gpus is None or count <= spec.max_gpus
        return allowed and count <= cluster.usable_gpus[t] and count % spec.replica_gpus(name) == 0

    @cached_property
    def pair_of(self) -> IntArray:
        """The number of each job's pair on a type, shape (J, T); -1 for none."""
        pair_of = np.full(
            (len(self.usable), len(self.round_input.cluster.type_names)), -1, dtype=np.int64
        )
        for pair, (row, t) in enumerate(
            (row, t) for row, types in enumerate(self.usable) for t in types
        ):
            pair_of[row, t] = pair
        return pair_of

    @cached_property
    def pairs(self) -> Pairs:
        cluster = self.round_input.cluster
        rows, kinds = (axis.astype(np.int64) for axis in np.nonzero(self.pair_of >= 0))
        count = np.array(
            [self.gpu_count(row, t) for row, t in zip(rows.tolist(), kinds.tolist(), strict=True)],
            dtype=np.int64,
        )
        nodes = -(-count // np.maximum(cluster.gpus_per_node[kinds], 1))
        return evaluate_pairs(
            self.jobs,
            cluster,
            job=rows,
            gpu_type=kinds,
            gpu_count=count,
            node_count=nodes,
            column=np.zeros_like(rows),
            projection=self.round_input.projection,
        )

    @cached_property
    def goodput(self) -> FloatArray:
        """Effective samples per second, shape (J, T).

        1e-9 if nothing is known, zero if the job cannot run on the type.
        """
        goodput = np.zeros(self.pair_of.shape)
        goodput[self.pairs.job, self.pairs.gpu_type] = np.where(
            self.pairs.known, self.pairs.goodput, 1e-9
        )
        return goodput

    @property
    def evaluated(self) -> bool:
        """Whether goodput has been computed."""
        return "goodput" in self.__dict__

    def remaining_seconds(self) -> FloatArray:
        """Return the seconds to the end on the fastest type, shape (J,).

        Infinite if a job can run on no type.
        """
        best = self.goodput.max(axis=1, initial=0.0)
        work = np.array([job.remaining_work for job in self.round_input.jobs])
        seconds: FloatArray = np.divide(work, best, out=np.full(len(work), np.inf), where=best > 0)
        return seconds

    def fastest_types(self, row: int) -> list[int]:
        """Return the types on which a job can run, fastest first.

        Does not compute goodput if the job has one type and its declared batch fits there.
        """
        only = self.usable[row]
        if not self.evaluated and (
            not only or (len(only) == 1 and self._surely_runs(row, only[0]))
        ):
            return list(only)
        goodput = self.goodput[row]
        return [int(t) for t in np.argsort(-goodput, kind="stable") if goodput[t] > 0]

    def _surely_runs(self, row: int, t: int) -> bool:
        return (
            self.round_input.jobs[row].spec.promised_seconds is None
            and self._declared_plan(row, t) is not None
        )

    def plan(self, row: int, t: int) -> BatchPlan | None:
        """Return the declared batch, else the best one known; None if unknown."""
        declared = self._declared_plan(row, t)
        if declared is not None:
            return declared
        pair = int(self.pair_of[row, t])
        return self.pairs.plans.plan(pair) if self.pairs.known[pair] else None

    def _declared_plan(self, row: int, t: int) -> BatchPlan | None:
        if (row, t) not in self._declared:
            self._declared[row, t] = self._work_out_declared(row, t)
        return self._declared[row, t]

    def _work_out_declared(self, row: int, t: int) -> BatchPlan | None:
        spec, name = self.round_input.jobs[row].spec, self.round_input.cluster.type_names[t]
        if spec.batch_size is None:
            return None
        return declared_plan(spec, name, replicas=self.gpu_count(row, t) // spec.replica_gpus(name))


def declared_plan(spec: JobSpec, gpu_type: str, *, replicas: int) -> BatchPlan | None:
    """Return the requested batch with the fewest accumulation steps, or None.

    None if no per-GPU batch size within the job's limits gives that total.
    """
    return declared_plans(spec, gpu_type)(replicas)


def declared_plans(spec: JobSpec, gpu_type: str) -> Callable[[int], BatchPlan | None]:
    """Return a function from replica count to the declared plan."""
    total, memory = spec.requested_batch_size, spec.memory[gpu_type]
    most, above = max(spec.max_batch_size, total), spec.initial_batch_size if spec.learns else total
    return partial(
        _plan_within, total, memory.smallest_per_gpu, memory.largest_per_gpu, most, above
    )


@lru_cache(maxsize=1 << 16)
def _plan_within(
    total: int,
    smallest_per_gpu: int,
    largest_per_gpu: int,
    largest_total: int,
    accumulate_above: int,
    replicas: int,
    /,
) -> BatchPlan | None:
    if total < replicas * smallest_per_gpu:
        return None
    plan = plan_for_batch(
        total,
        replicas=replicas,
        largest_per_gpu=largest_per_gpu,
        largest_total=largest_total,
        accumulate_above=accumulate_above,
    )
    return plan if plan.per_gpu_batch_size >= smallest_per_gpu else None


def requests(round_input: RoundInput) -> Requests:
    """Return every job with its own request: GPU count and declared batch size."""
    return Requests(round_input)


def walk(
    round_input: RoundInput,
    wanted: Requests,
    order: Sequence[int],
    *,
    head_of_line: HeadOfLine,
    keep_running: bool,
    state: PolicyState,
    order_stands_until: float = -math.inf,
) -> Decision:
    """Grant along `order` (row numbers) while there is room.

    Args:
        keep_running: If True, running jobs keep their GPUs before others are considered.
        order_stands_until: Cluster time until which the order does not depend on the jobs'
            progress. The decision stands until then, unless it depends on a goodput.
    """
    walker = Walker(round_input, wanted)
    jobs = round_input.jobs
    if keep_running:
        for row in order:
            if jobs[row].allocation is not None:
                walker.offer(row)
    blocked = False
    for row in order:
        if jobs[row].id in walker.grants:
            continue
        if blocked or not walker.offer(row):
            walker.refuse(row)
            blocked = blocked or (head_of_line is HeadOfLine.BLOCK and walker.could_ever_run(row))
    stands_until = -math.inf if wanted.evaluated else order_stands_until
    return Decision(
        walker.grants, SolveReport(), walker.reasons, state=state, stands_until=stands_until
    )


def grant_chosen(
    round_input: RoundInput, wanted: Requests, chosen: Sequence[tuple[int, int]]
) -> tuple[dict[JobId, Grant], DeferredReasons]:
    """Return grants of the chosen (row, GPU type) pairs, and all reasons.

    Pinned grants come first. The choice must keep the limits already.
    """
    walker = Walker(round_input, wanted)
    for row, gpu_type in chosen:
        walker.take(row, gpu_type)
    for row, job in enumerate(round_input.jobs):
        if job.id not in walker.grants:
            walker.refuse(row)
    return walker.grants, walker.reasons


class _Need(NamedTuple):
    """The GPUs of a request, and the numbers of the limits that count it."""

    gpus: int
    limits: tuple[int, ...]


class Walker:
    """The grants given so far in a round, and the places left by limit."""

    def __init__(self, round_input: RoundInput, wanted: Requests) -> None:
        self._input, self._wanted = round_input, wanted
        self.free: list[int] = free_places(round_input).tolist()
        self._types: dict[int, list[int]] = {}
        self._needs: dict[tuple[int, int], _Need] = {}
        self.grants: dict[JobId, Grant] = dict(round_input.pinned)
        self.reasons = DeferredReasons(
            {
                job_id: Reasons(
                    ReasonCode.PINNED, {"restarting": int(round_input.job_by_id[job_id].restarting)}
                )
                for job_id in self.grants
            }
        )
        self._now: Walker | None = None

    def offer(self, row: int) -> bool:
        """Grant the request on the held type, else on the fastest with room.

        Returns False if no type has room.
        """
        if self._input.jobs[row].id in self.grants:
            return True
        for t in self._types_in_order(row):
            need = self._need(row, t)
            if self._fits(need):
                self._grant(row, t, need)
                return True
        return False

    def offer_on(self, row: int, gpu_type: int) -> bool:
        """Grant the request on this type; return False if it does not fit."""
        if self._input.jobs[row].id in self.grants:
            return True
        need = self._need(row, gpu_type)
        if gpu_type not in self._types_in_order(row) or not self._fits(need):
            return False
        self._grant(row, gpu_type, need)
        return True

    def refuse_unless_granted(self, row: int) -> None:
        if self._input.jobs[row].id not in self.grants:
            self.refuse(row)

    def take(self, row: int, gpu_type: int) -> None:
        """Grant the request on this type without a check."""
        self._grant(row, gpu_type, self._need(row, gpu_type))

    def refuse(self, row: int) -> None:
        """Note that a job gets nothing; its reason is computed when it is read."""
        if self._now is None:
            self._now = copy(self)
            self._now.free = list(self.free)
        self.reasons.defer(self._input.jobs[row].id, partial(self._now._refusal, row))

    def _refusal(self, row: int) -> Reasons:
        return self._waiting(row) if self.could_ever_run(row) else self._never(row)

    def could_ever_run(self, row: int) -> bool:
        """Return whether the job would run if it were alone."""
        return any(not self._too_small(row, t) for t in self._types_in_order(row))

    def _waiting(self, row: int) -> Reasons:
        types = self._types_in_order(row)
        if any(self._fits(self._need(row, t)) for t in types):
            needed = self._need(row, types[0]).gpus
            return Reasons(
                ReasonCode.BEHIND_IN_ORDER,
                {"needed_gpus": needed, "free_gpus": self._most_free(row)},
            )
        need = self._need(row, next(t for t in types if not self._too_small(row, t)))
        lacking = next(self._input.limits[r] for r in need.limits if self.free[r] < need.gpus)
        return Reasons(
            waiting_for(lacking),
            {
                "needed_gpus": need.gpus,
                "free_gpus": self._most_free(row),
                "binding_limit": lacking.name,
            },
        )

    def _never(self, row: int) -> Reasons:
        types, job = self._types_in_order(row), self._wanted.jobs[row]
        if not types:
            counts = [
                self._wanted.gpus_of(job.spec, name)
                for name in self._input.cluster.type_names
                if job.spec.may_use(name)
            ]
            return never_fits(job, self._input, needed=min(counts, default=job.spec.requested_gpus))
        return exceeds(self._too_small(row, types[0]))

    def _too_small(self, row: int, t: int) -> list[Limit]:
        """Return the limits that are too small for the request, even if alone."""
        need = self._need(row, t)
        return [limit for r in need.limits if (limit := self._input.limits[r]).places < need.gpus]

    def _types_in_order(self, row: int) -> list[int]:
        """Return the type that the job holds, then the others, fastest first."""
        if row not in self._types:
            fastest, held = self._wanted.fastest_types(row), self._input.jobs[row].allocation
            if held is not None and len(fastest) > 1:
                present = self._input.cluster.type_index[held.gpu_type]
                fastest.sort(key=lambda t: t != present)
            self._types[row] = fastest
        return self._types[row]

    def _need(self, row: int, t: int) -> _Need:
        """Return what the request takes on a type, and from which limits."""
        need = self._needs.get((row, t))
        if need is None:
            spec, name = self._input.jobs[row].spec, self._input.cluster.type_names[t]
            count = self._wanted.gpu_count(row, t)
            limits = tuple(
                r for r, limit in enumerate(self._input.limits) if limit.counts(spec, name, count)
            )
            need = self._needs[row, t] = _Need(count, limits)
        return need

    def _fits(self, need: _Need) -> bool:
        return all(self.free[r] >= need.gpus for r in need.limits)

    def _grant(self, row: int, t: int, need: _Need) -> None:
        job, name, count = self._input.jobs[row], self._input.cluster.type_names[t], need.gpus
        self._now = None
        for r in need.limits:
            self.free[r] -= count
        self.grants[job.id] = Grant(name, count, batch=self._wanted.plan(row, t))
        evidence: dict[str, float | int | str | None] = {"gpu_type": name, "gpu_count": count}
        if self._wanted.evaluated:
            evidence["goodput_samples_per_second"] = float(
                self._wanted.pairs.goodput[self._wanted.pair_of[row, t]]
            )
        self.reasons[job.id] = Reasons(ReasonCode.GRANTED, evidence)

    def _most_free(self, row: int) -> int:
        free = [
            min((self.free[r] for r in self._need(row, t).limits), default=0)
            for t in self._types_in_order(row)
        ]
        return max(free, default=0)


def _as_requested(job: Job) -> JobSpec:
    """Return the spec with its batch size fixed, if it declared one."""
    if job.spec.batch_size is None:
        return job.spec
    return replace(job.spec, adaptivity=Adaptivity.RIGID, gpu_count=job.spec.requested_gpus)


def by_remaining_time(wanted: Requests) -> list[int]:
    """Return row numbers, the shortest remaining time first, ties by submission."""
    seconds = wanted.remaining_seconds().tolist()
    jobs = wanted.round_input.jobs
    return in_order({row: (seconds[row], job.spec.submitted_at) for row, job in enumerate(jobs)})


def in_order(keys: Mapping[int, tuple[float, ...]]) -> list[int]:
    """Return row numbers sorted by key, ties by row."""
    return sorted(keys, key=lambda row: (*keys[row], row))
