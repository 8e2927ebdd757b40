"""What could be tried so that a waiting job starts: the smallest change first. Tries nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from backend.jobs.kept_reasons import also_of
from backend.jobs.models import Job
from backend.jobs.remedies.stage import DrainedNode, Room, Stage
from backend.jobs.requests import BEFORE_START
from maat.scheduling.explain import OF_TURN, ReasonCode
from maat.vocabulary import HEAVY_WEIGHT, MOST_WEIGHT, PRIORITIES, Adaptivity, WorkloadKind

_COUNTS_TRIED = 3
_WEIGHT_FACTOR = 2.0
_WEIGHTS = (HEAVY_WEIGHT, 10.0, 100.0)  # of a job: the first is one that any owner may give
CODES = (
    "return_nodes",
    "lower_gpu_count",
    "make_adaptive",
    "lower_min_gpus",
    "allow_more_types",
    "make_adaptive_on_more_types",
    "raise_job_weight",
    "raise_priority",
    "raise_weight",
)
"""All kinds of change that are tried."""


@dataclass(frozen=True)
class Wish:
    """A change to try. `code`: its kind; `changes`: of the job's fields, or its tenant's weight.

    `nodes`: those that are returned to service, which changes no field.
    """

    code: str
    field: str | None
    changes: Mapping[str, Any]
    nodes: tuple[DrainedNode, ...] = ()

    @property
    def of_tenant(self) -> bool:
        return self.code == "raise_weight"

    @property
    def of_job(self) -> bool:
        return not self.of_tenant and not self.nodes


def wishes(
    job: Job, units: Mapping[str, int], stage: Stage, *, may_become_adaptive: bool
) -> Iterator[Wish]:
    """Yield what to try; nothing that can no longer change of the job.

    `units`: the GPU types that it can run on, and how many GPUs a replica has there.
    `may_become_adaptive`: no script changes its GPU count that was not written to.
    """
    capacity = stage.capacity_by_type
    there = {name: unit for name, unit in units.items() if name in capacity}
    for wish in (
        *_returns(job, _allowed(job, there), capacity, stage.drained_nodes),
        *_requests(job, there, stage.room()),
        *_turns(job, stage),
    ):
        if job.started_seconds is not None and wish.changes.keys() & BEFORE_START:
            continue
        if may_become_adaptive or "adaptivity" not in wish.changes:
            yield wish


def _allowed(job: Job, types: Iterable[str]) -> list[str]:
    return [name for name in types if job.gpu_types is None or name in job.gpu_types]


def _returns(
    job: Job,
    types: Sequence[str],
    capacity: Mapping[str, int],
    drained: Sequence[DrainedNode],
) -> Iterator[Wish]:
    """Yield nodes of one type with which the cluster has enough GPUs: the fewest, then all."""
    if job.reason_code != ReasonCode.EXCEEDS_CLUSTER:
        return
    needed = job.min_gpus if job.gpu_count is None else job.gpu_count
    for name in types:
        nodes = sorted((one for one in drained if one.gpu_type == name), key=lambda one: -one.gpus)
        in_service = capacity[name] - sum(one.gpus for one in nodes)
        totals = accumulate((one.gpus for one in nodes), initial=in_service)
        fewest = next((count for count, total in enumerate(totals) if total >= needed), None)
        if nodes and fewest is not None:
            for count in sorted({max(fewest, 1), len(nodes)}):
                yield Wish("return_nodes", None, {}, tuple(nodes[:count]))


def _requests(job: Job, units: Mapping[str, int], room: Room) -> Iterator[Wish]:
    """Yield other requests."""
    allowed = {name: units[name] for name in _allowed(job, units)}
    rigid = job.adaptivity == Adaptivity.RIGID
    if rigid and job.gpu_count is not None:
        for count in counts_below(job.gpu_count, allowed, room):
            yield Wish("lower_gpu_count", "gpu_count", {"gpu_count": count})
    if job.adaptivity != Adaptivity.ADAPTIVE:
        yield Wish("make_adaptive", "adaptivity", _adaptive(job))
    if not rigid:
        for count in counts_below(job.min_gpus, allowed, room):
            yield Wish("lower_min_gpus", "min_gpus", {"min_gpus": count})
    more = sorted(
        (name for name in units if name not in allowed),
        key=lambda name: -room.free_by_type.get(name, 0),
    )
    for name in more:
        yield Wish("allow_more_types", "gpu_types", {"gpu_types": [*(job.gpu_types or ()), name]})
    if more and rigid:
        yield Wish(
            "make_adaptive_on_more_types", "adaptivity", {**_adaptive(job), "gpu_types": None}
        )


def _turns(job: Job, stage: Stage) -> Iterator[Wish]:
    """Yield what brings the job before others."""
    if job.reason_code not in OF_TURN:
        return
    for weight in _WEIGHTS if stage.weighs_jobs else ():
        if weight > job.weight:
            yield Wish("raise_job_weight", "weight", {"weight": weight})
    for priority in PRIORITIES.values():
        if priority > job.priority:
            yield Wish("raise_priority", "priority", {"priority": priority})
    weight = min(stage.tenant_weight * _WEIGHT_FACTOR, MOST_WEIGHT)
    held_by = {job.reason_code, *(other["code"] for other in also_of(job.reason_evidence))}
    if ReasonCode.WAITING_QUOTA in held_by and weight > stage.tenant_weight:
        yield Wish("raise_weight", "weight", {"weight": weight})


def counts_below(asked: int, units: Mapping[str, int], room: Room) -> list[int]:
    """Return free GPU counts below the requested count, the largest first.

    They are all free GPUs, those free on one node, and powers of two. `units`: GPUs of a replica by
    type.
    """
    found: set[int] = set()
    for name, unit in units.items():
        for free in (room.free_by_type.get(name, 0), room.most_on_one_node.get(name, 0)):
            replicas = min(free, asked - 1) // unit
            if replicas > 0:
                found |= {replicas * unit, 2 ** (replicas.bit_length() - 1) * unit}
    return sorted(found, reverse=True)[:_COUNTS_TRIED]


def _adaptive(job: Job) -> dict[str, Any]:
    """Return the fields that let the policy choose, up to the GPUs requested.

    Inference with a latency SLO keeps its batch.
    """
    bound = job.workload_kind == WorkloadKind.LATENCY_INFERENCE
    most = job.gpu_count if job.adaptivity == Adaptivity.RIGID else job.max_gpus
    batch = job.batch_size if bound else None
    return {
        "adaptivity": Adaptivity.ADAPTIVE.value,
        "gpu_count": None,
        "min_gpus": 1,
        "max_gpus": most,
        "batch_size": batch,
    }
