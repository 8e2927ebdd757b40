"""What made a job later than it would have been alone on an equal share. Pure.

    late = JCT - JCT / rho = waited + started + (ran - JCT / rho)

The largest of the three parts is the cause. If it is the last one, the job ran longer than it would
have run alone: on fewer GPUs than its equal share, or on GPUs that took it further slowly.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from backend.fairness.models import JobFairness
from maat.vocabulary import WorseOff

FEWER = 0.9
"""Of the equal share: who held less than this part of it held too few GPUs."""


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


def cause_sentence(cause: WorseOff, why: Mapping[str, Any], row: JobFairness) -> str:
    """Say the cause with its numbers."""
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
