"""What policies that only order jobs share: walk the order, give each the GPUs it asked for on the fastest single type with room."""

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
from maat.scheduling.job import Job, JobId, JobSpec
from maat.scheduling.limits import Limit
from maat.scheduling.matrix import Pairs, evaluate_pairs
from maat.scheduling.rounds import Decision, Grant, PolicyState, RoundInput
from maat.scheduling.solving.report import SolveReport
from maat.vocabulary import Adaptivity


class HeadOfLine(StrEnum):
    """What happens behind a job that does not fit: everyone waits, or later ones that fit go ahead."""

    BLOCK = "block"
    BACKFILL = "backfill"


class ServiceUnit(StrEnum):
    """What counts as service: seconds for which GPUs were held, times their number, or alone."""

    GPU_SECONDS = "gpu-seconds"
    SECONDS = "seconds"


def attained_service(job: Job, unit: ServiceUnit) -> float:
    """Service so far on all GPU types; seconds alone are those on the GPUs that it asks for."""
    gpu_seconds = sum(job.attained_gpu_seconds.values())
    return gpu_seconds if unit is ServiceUnit.GPU_SECONDS else gpu_seconds / job.spec.requested_gpus


def asked_for(spec: JobSpec, _gpu_type: str, /) -> int:
    """The GPUs that a job asks for, of whatever type."""
    return spec.requested_gpus


@dataclass(frozen=True, eq=False)
class Requests:
    """What each of J jobs would make of the GPUs that it asked for, on every type T. Evaluated when first read: most orders need none of it.

    `gpus_of`: how many GPUs of a type a job is to have, where that is not what it asked for.
    """

    round_input: RoundInput
    gpus_of: Callable[[JobSpec, str], int] = asked_for
    _declared: dict[tuple[int, int], BatchPlan | None] = field(default_factory=dict)
    _counts: dict[tuple[int, int], int] = field(default_factory=dict)

    def gpu_count(self, row: int, t: int) -> int:
        """GPUs that the job of a row is to have on a type."""
        count = self._counts.get((row, t))
        if count is None:
            count = self._counts[row, t] = self.gpus_of(
                self.round_input.jobs[row].spec, self.round_input.cluster.type_names[t]
            )
        return count

    @cached_property
    def jobs(self) -> tuple[Job, ...]:
        """The jobs, bound to their batch size where they declared one: these policies adapt nothing."""
        return tuple(replace(job, spec=_as_requested(job)) for job in self.round_input.jobs)

    @cached_property
    def usable(self) -> tuple[tuple[int, ...], ...]:
        """By job, the types whose GPUs suffice for it."""
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
        """Number of the pair of a job on a type, shape (J, T); -1 for none."""
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
        """Effective samples per second, shape (J, T): next to nothing where nobody knows, zero where it cannot run."""
        goodput = np.zeros(self.pair_of.shape)
        goodput[self.pairs.job, self.pairs.gpu_type] = np.where(
            self.pairs.known, self.pairs.goodput, 1e-9
        )
        return goodput

    @property
    def evaluated(self) -> bool:
        """Whether anybody has read a goodput."""
        return "goodput" in self.__dict__

    def remaining_seconds(self) -> FloatArray:
        """Time to the end on the fastest type, shape (J,); infinite where a job can run nowhere."""
        best = self.goodput.max(axis=1, initial=0.0)
        work = np.array([job.remaining_work for job in self.round_input.jobs])
        seconds: FloatArray = np.divide(work, best, out=np.full(len(work), np.inf), where=best > 0)
        return seconds

    def fastest_types(self, row: int) -> list[int]:
        """The types on which a job can run, fastest first. Where one is all there is and its batch fits there, no speed is looked at."""
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
        """How the job trains: its declared batch size, else the best one by what is known; None where that is nothing."""
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
    """The job's requested batch size on that many replicas with the fewest accumulation steps; None where memory has no room for it."""
    return declared_plans(spec, gpu_type)(replicas)


def declared_plans(spec: JobSpec, gpu_type: str) -> Callable[[int], BatchPlan | None]:
    """The declared plan by number of replicas, for who asks for many of them."""
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
    """Every job at its own request: its GPU count and, where it declared one, its batch size."""
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
    """Grant along `order` (row numbers) while there is room. With `keep_running`, what runs stays before anything else is looked at.

    `order_stands_until`: cluster time before which the order is the same whatever the jobs achieve. So is the decision then, unless somebody's
    goodput had a say in it.
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
    """Grants for the (row, GPU type) pairs that a policy chose itself, after the pinned ones; and why everybody else waits.

    The choice keeps the limits already.
    """
    walker = Walker(round_input, wanted)
    for row, gpu_type in chosen:
        walker.take(row, gpu_type)
    for row, job in enumerate(round_input.jobs):
        if job.id not in walker.grants:
            walker.refuse(row)
    return walker.grants, walker.reasons


class _Need(NamedTuple):
    """GPUs that a job is to have on a type, and the numbers of the limits that they count against."""

    gpus: int
    limits: tuple[int, ...]


class Walker:
    """Grants given so far in one round, and the places that are left: `free`, by limit."""

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
        """Grant the job its request on what it holds, else on the fastest type with room; False if there is none."""
        if self._input.jobs[row].id in self.grants:
            return True
        for t in self._types_in_order(row):
            need = self._need(row, t)
            if self._fits(need):
                self._grant(row, t, need)
                return True
        return False

    def offer_on(self, row: int, gpu_type: int) -> bool:
        """Grant the job its request on this type alone; False where it cannot run there or there is no room."""
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
        """Grant the job its request on this type."""
        self._grant(row, gpu_type, self._need(row, gpu_type))

    def refuse(self, row: int) -> None:
        """The reason is worked out when it is read, from the places that are free now."""
        if self._now is None:
            self._now = copy(self)
            self._now.free = list(self.free)
        self.reasons.defer(self._input.jobs[row].id, partial(self._now._refusal, row))

    def _refusal(self, row: int) -> Reasons:
        return self._waiting(row) if self.could_ever_run(row) else self._never(row)

    def could_ever_run(self, row: int) -> bool:
        """Whether the job would run if it were alone."""
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
        """The limits that the job's request breaks by itself on a type."""
        need = self._need(row, t)
        return [limit for r in need.limits if (limit := self._input.limits[r]).places < need.gpus]

    def _types_in_order(self, row: int) -> list[int]:
        """What the job holds, then the fastest."""
        if row not in self._types:
            fastest, held = self._wanted.fastest_types(row), self._input.jobs[row].allocation
            if held is not None and len(fastest) > 1:
                present = self._input.cluster.type_index[held.gpu_type]
                fastest.sort(key=lambda t: t != present)
            self._types[row] = fastest
        return self._types[row]

    def _need(self, row: int, t: int) -> _Need:
        """What a grant on a type takes, and of which limits."""
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
    """The job's declaration with its batch size fixed where it declared one: these policies adapt nothing."""
    if job.spec.batch_size is None:
        return job.spec
    return replace(job.spec, adaptivity=Adaptivity.RIGID, gpu_count=job.spec.requested_gpus)


def in_order(keys: Mapping[int, tuple[float, ...]]) -> list[int]:
    """Row numbers by key, ties by row."""
    return sorted(keys, key=lambda row: (*keys[row], row))
