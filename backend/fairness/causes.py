"""What made a job later than it would have been alone on an equal share. Pure.

    late = JCT - JCT / rho = waited + started + (ran - JCT / rho)

The largest of the three parts is the cause. If it is the last one, the job ran longer than it would
have run alone: on fewer GPUs than its equal share, or on GPUs that took it further slowly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from backend.fairness.models import JobFairness
from backend.jobs.kept_reasons import evidence_of
from backend.jobs.models import Job
from maat.scheduling.choice import choice_of
from maat.scheduling.explain import ReasonCode
from maat.vocabulary import Adaptivity, WorseOff

FEWER = 0.9
"""Of the equal share: who held less than this part of it held too few GPUs."""
_OF_GPUS = frozenset({WorseOff.FEW_GPUS, WorseOff.SLOW_GPUS})


def cause_of(why: Mapping[str, Any], row: JobFairness) -> WorseOff | None:
    """Return what took most of the time by which the job was late; None if it was not late."""
    if row.rho is None or row.jct_seconds is None or row.rho <= 1:
        return None
    parts = {
        WorseOff.WAITED: why["waiting_seconds"] + why["profiling_seconds"],
        WorseOff.STARTED: why["starting_seconds"],
        WorseOff.SLOW_GPUS: why["running_seconds"] - row.jct_seconds / row.rho,
    }
    cause = max(parts, key=lambda one: parts[one])
    held, share = held_gpus(why), share_gpus(row)
    if cause is WorseOff.SLOW_GPUS and held is not None and share is not None:
        return WorseOff.FEW_GPUS if held < FEWER * share else cause
    return cause


def cause_sentence(cause: WorseOff, why: Mapping[str, Any], row: JobFairness, job: Job) -> str:
    """Say the cause with its numbers, and what kept the job on the GPUs that it held."""
    said = _cause(cause, why, row)
    return " ".join([said, *_bounds(cause, row, job)]) if cause in _OF_GPUS else said


def _cause(cause: WorseOff, why: Mapping[str, Any], row: JobFairness) -> str:
    if cause is WorseOff.WAITED:
        return "Mostly because it waited."
    if cause is WorseOff.STARTED:
        return "Mostly because it started and restarted."
    held, share = held_gpus(why), share_gpus(row)
    counts = "" if held is None or share is None else f": {held:.3g} on average, of {share:.3g}"
    if cause is WorseOff.FEW_GPUS:
        return f"Mostly because it held fewer GPUs than its equal share{counts}."
    if counts:
        types = ", ".join(sorted(why["held_gpu_hours"]))
        return (
            f"Mostly because its GPUs ({types}) took it further more slowly than its share would."
        )
    return "Mostly because it ran more slowly than alone."


def _bounds(cause: WorseOff, row: JobFairness, job: Job) -> Iterator[str]:
    """Say what its owner, its tenant's quota or a least stay bound it to; not what is no bound."""
    if cause is WorseOff.FEW_GPUS:
        yield from _most_gpus(row, job)
    if not job.preemptible:
        yield "Its owner forbids preemption: it keeps the GPUs with which it begins."
    elif job.restarts == 0 and _stays_at_its_end(job):
        yield "A bound on moves kept it on its first GPUs to its end."
    yield from _types(row, job)
    if cause is WorseOff.FEW_GPUS:
        yield from _quota(job)


def _most_gpus(row: JobFairness, job: Job) -> Iterator[str]:
    share = share_gpus(row)
    if job.adaptivity == Adaptivity.RIGID:
        yield f"Its owner asks for {_gpus(job.gpu_count or 1)}, no more and no fewer."
    elif job.max_gpus is not None and share is not None and job.max_gpus < share:
        yield f"Its owner lets it have {_gpus(job.max_gpus)} at most."


def _gpus(count: int) -> str:
    return f"{count} GPU{'' if count == 1 else 's'}"


def _stays_at_its_end(job: Job) -> bool:
    """Whether its last round left it where it was by a bound on moves, not as a pause of a move."""
    is_pinned = job.reason_code == ReasonCode.PINNED
    return is_pinned and "stays_for_seconds" in job.reason_evidence


def _types(row: JobFairness, job: Job) -> Iterator[str]:
    """Say which part of the cluster its GPU types are, if they are not all."""
    if not job.gpu_types or row.shape is None:
        return
    counts = [(str(kind), int(count) * int(nodes)) for kind, count, nodes in row.shape]
    usable = sum(count for kind, count in counts if kind in job.gpu_types)
    every = sum(count for _, count in counts)
    if usable < every:
        types = " or ".join(job.gpu_types)
        yield f"Its owner lets it use {types} only: {usable} of the cluster's {every} GPUs."


def _quota(job: Job) -> Iterator[str]:
    """Say that a quota or a reservation kept it from more GPUs, by the last round that decided."""
    choice = choice_of(evidence_of(job.reason_evidence))
    more = None if choice is None else choice.alone
    if choice is None or more is None or more.gpu_count <= choice.chosen.gpu_count:
        return
    kind = (more.limit or "").partition(":")[0]
    if kind in ("quota", "ceiling"):
        yield f"By its last round, its tenant's quota kept it from {more.name}."
    elif kind == "reservation":
        yield f"By its last round, a reservation of others kept it from {more.name}."


def held_gpus(why: Mapping[str, Any]) -> float | None:
    """Return how many GPUs the job held on average, while it held any."""
    hours = why.get("held_hours", 0.0)
    return sum(why["held_gpu_hours"].values()) / hours if hours > 0 else None


def share_gpus(row: JobFairness) -> float | None:
    """Return the equal share of the job: GPUs of the cluster / mean number of active jobs."""
    if row.shape is None or not row.contention:
        return None
    gpus = sum(int(count) * int(nodes) for _, count, nodes in row.shape)
    return gpus / row.contention
