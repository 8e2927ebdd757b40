"""Grant jobs the GPUs that they request, along an order."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import copy
from enum import StrEnum
from functools import partial
from typing import NamedTuple

from maat.scheduling.explain import DeferredReasons, ReasonCode, Reasons
from maat.scheduling.free_capacity import exceeds, free_places, never_fits, waiting_for
from maat.scheduling.job import Job, JobId
from maat.scheduling.limits import Limit, LimitKind
from maat.scheduling.moving import with_moves
from maat.scheduling.pins import why_pinned
from maat.scheduling.policies.requests import Requests
from maat.scheduling.rounds import Decision, Grant, Order, PolicyState, RoundInput
from maat.scheduling.solving.report import SolveReport

AHEAD = "jobs before it in the policy's order"


class HeadOfLine(StrEnum):
    """What happens behind a job that does not fit.

    BLOCK: all later jobs wait; only those of its tenant, if it waits for its quota. BACKFILL: later
    jobs that fit start.
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


def walk(
    round_input: RoundInput,
    wanted: Requests,
    order: Order,
    *,
    state: PolicyState,
    order_stands_until: float = -math.inf,
    held_by: str = AHEAD,
) -> Decision:
    """Grant along `order` while there is room.

    Args:
        order_stands_until: Cluster time until which the order does not depend on the jobs'
            progress. The decision stands until then, unless it depends on a goodput.
        held_by: Which jobs hold the GPUs that another waits for, in the policy's own words.
    """
    walker = Walker(round_input, wanted, held_by)
    jobs = round_input.jobs
    if order.keep_running:
        for row in order.rows:
            if jobs[row].allocation is not None:
                walker.offer(row)
    head, waiting_tenants = None, dict[str, int]()
    for row in order.rows:
        if jobs[row].id in walker.grants:
            continue
        tenant = jobs[row].spec.tenant
        ahead = waiting_tenants.get(tenant) if head is None else head
        if ahead is not None or not walker.offer(row):
            walker.refuse(row, ahead)
            if order.blocks and walker.could_ever_run(row):
                if walker.waits_for_quota(row):
                    waiting_tenants.setdefault(tenant, row)
                elif head is None:
                    head = row
    stands_until = -math.inf if wanted.evaluated else order_stands_until
    return Decision(
        walker.grants, SolveReport(), walker.reasons, state=state, stands_until=stands_until
    )


def order_of(
    wanted: Requests, rows: Sequence[int], head_of_line: HeadOfLine, *, keep_running: bool = False
) -> Order:
    """Return the order in which `rows` are granted what they request."""
    return Order(rows, wanted.types_in_order, keep_running, head_of_line is HeadOfLine.BLOCK)


def grant_chosen(
    round_input: RoundInput,
    wanted: Requests,
    chosen: Sequence[tuple[int, int]],
    *,
    held_by: str = AHEAD,
) -> tuple[dict[JobId, Grant], DeferredReasons]:
    """Return grants of the chosen (row, GPU type) pairs, and all reasons.

    Pinned grants come first. The choice must keep the limits already.
    """
    walker = Walker(round_input, wanted, held_by, takes_first_with_room=False)
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
    """The grants given so far in a round, and the places left by limit.

    `takes_first_with_room`: whether a job that is alone gets the first type in its order.
    """

    def __init__(
        self,
        round_input: RoundInput,
        wanted: Requests,
        held_by: str | None = None,
        *,
        takes_first_with_room: bool = True,
    ) -> None:
        self._input, self._wanted, self._held_by = round_input, wanted, held_by
        self._takes_first = takes_first_with_room
        self.free: list[int] = free_places(round_input).tolist()
        self._needs: dict[tuple[int, int], _Need] = {}
        self.grants: dict[JobId, Grant] = dict(round_input.pinned)
        self.reasons = DeferredReasons(
            {job_id: why_pinned(round_input.job_by_id[job_id]) for job_id in self.grants}
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

    def has_room(self, row: int, gpu_type: int) -> bool:
        """Return whether the request fits beside the grants so far."""
        return self._fits(self._need(row, gpu_type))

    def refuse_unless_granted(self, row: int) -> None:
        if self._input.jobs[row].id not in self.grants:
            self.refuse(row)

    def take(self, row: int, gpu_type: int) -> None:
        """Grant the request on this type without a check."""
        self._grant(row, gpu_type, self._need(row, gpu_type))

    def refuse(self, row: int, ahead: int | None = None) -> None:
        """Note that a job gets nothing; its reason is computed when it is read.

        `ahead`: the row of the job that waits and that it does not overtake.
        """
        if self._now is None:
            self._now = copy(self)
            self._now.free = list(self.free)
        self.reasons.defer(self._input.jobs[row].id, partial(self._now._refusal, row, ahead))

    def _refusal(self, row: int, ahead: int | None) -> Reasons:
        return self._waiting(row, ahead) if self.could_ever_run(row) else self._never(row)

    def could_ever_run(self, row: int) -> bool:
        """Return whether the job would run if it were alone."""
        return any(not self._too_small(row, t) for t in self._types_in_order(row))

    def waits_for_quota(self, row: int) -> bool:
        """Return whether, on every type that it could have, a quota is too full for the job.

        Others need not wait for it then: what it lacks is not theirs to leave.
        """
        return all(
            any(
                self.free[r] < need.gpus and self._input.limits[r].kind is LimitKind.QUOTA
                for r in need.limits
            )
            for need in (self._need(row, t) for t in self._types_in_order(row))
        )

    def _waiting(self, row: int, ahead: int | None) -> Reasons:
        types = self._types_in_order(row)
        if any(self._fits(self._need(row, t)) for t in types):
            needed = self._need(row, types[0]).gpus
            known = {} if ahead is None else {"ahead": self._input.jobs[ahead].id}
            return Reasons(
                ReasonCode.BEHIND_IN_ORDER,
                {"needed_gpus": needed, "free_gpus": self._most_free(row), **known},
            )
        need = self._need(row, next(t for t in types if not self._too_small(row, t)))
        lacking = next(self._input.limits[r] for r in need.limits if self.free[r] < need.gpus)
        evidence: dict[str, float | int | str | None] = {
            "needed_gpus": need.gpus,
            "free_gpus": self._most_free(row),
            "binding_limit": lacking.name,
        }
        code = waiting_for(lacking)
        if code is ReasonCode.WAITING_CAPACITY and self._held_by is not None:
            evidence["held_by"] = self._held_by
        return Reasons(code, evidence)

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
        return self._wanted.types_in_order(row)

    def _need(self, row: int, t: int) -> _Need:
        """Return what the request takes on a type, and from which limits."""
        need = self._needs.get((row, t))
        if need is None:
            spec, name = self._input.jobs[row].spec, self._input.cluster.type_names[t]
            count = self._wanted.gpu_count(row, t)
            limits = tuple(self._input.limit_index.of(spec, name, count))
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
        self.reasons.defer(job.id, partial(self._granted, row, t))

    def _granted(self, row: int, t: int) -> Reasons:
        """Return why a job has what it was granted, as the walk has left things in the end."""
        job, order = self._input.jobs[row], self._types_in_order(row)
        evidence: dict[str, float | int | str | None] = {
            **self._described(row, t, ""),
            "by_request": 1,
        }
        possible = [kind for kind in order if not self._too_small(row, kind)]
        before = possible.index(t) + 1 if self._takes_first and t in possible else 0
        after = [kind for kind in possible[before:] if kind != t]
        if after:
            evidence |= self._beside(row, after[0], "runner_up_")
        if possible and self._takes_first:
            evidence |= self._beside(row, possible[0], "alone_")
        return Reasons(ReasonCode.GRANTED, with_moves(job, evidence))

    def _described(self, row: int, t: int, prefix: str) -> dict[str, float | int | str | None]:
        evidence: dict[str, float | int | str | None] = {
            f"{prefix}gpu_type": self._input.cluster.type_names[t],
            f"{prefix}gpu_count": self._need(row, t).gpus,
        }
        if self._wanted.evaluated:
            evidence[f"{prefix}goodput_samples_per_second"] = float(
                self._wanted.pairs.goodput[self._wanted.pair_of[row, t]]
            )
        return evidence

    def _beside(self, row: int, t: int, prefix: str) -> dict[str, float | int | str | None]:
        """Describe a type that a job did not get: how much of it is free in the end."""
        need = self._need(row, t)
        free = min((self.free[r] for r in need.limits), default=0)
        lacking = next((r for r in need.limits if self.free[r] < need.gpus), None)
        described = {**self._described(row, t, prefix), f"{prefix}free_gpus": max(free, 0)}
        if lacking is not None:
            described[f"{prefix}limit"] = self._input.limits[lacking].name
        return described

    def _most_free(self, row: int) -> int:
        free = [
            min((self.free[r] for r in self._need(row, t).limits), default=0)
            for t in self._types_in_order(row)
        ]
        return max(free, default=0)


def by_remaining_time(wanted: Requests) -> list[int]:
    """Return row numbers by remaining time / weight (Smith's rule), ties by submission."""
    seconds = wanted.remaining_seconds().tolist()
    specs = [job.spec for job in wanted.round_input.jobs]
    return in_order(
        {row: (seconds[row] / spec.weight, spec.submitted_at) for row, spec in enumerate(specs)}
    )


def in_order(keys: Mapping[int, tuple[float, ...]]) -> list[int]:
    """Return row numbers sorted by key, ties by row."""
    return sorted(keys, key=lambda row: (*keys[row], row))
