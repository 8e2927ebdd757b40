"""What stands between a report and a belief: what cannot be true, how far a figure goes. Pure.

A report is what a job's own agent says of itself. It is hostile input until it has passed here.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from maat.scheduling.fitting import LEAST_STEP_SECONDS

MOST_SLOWER = 3.0
"""A GPU is at most so much slower, or faster, than its fellows of one type.

The slowest GPU that was published takes 2.2 times as long as the median of its type (PAL's
Lonestar 6), the slowest single measurement 3.6 times (Longhorn).
"""
MOST_APART = 10.0
"""Ranks whose times differ more do not show GPUs of one type: something else was timed."""

_CLOCKS_DIFFER = 1.05  # the agent's clock and the service's, in speed
_LATE_SECONDS = 60.0  # between the start of an attempt and what the service knows of it


@dataclass(frozen=True, slots=True)
class Fault:
    """What cannot be true in a part of a report: JSON Pointer within the part, problem, remedy."""

    pointer: str
    problem: str
    remedy: str
    value: float


def faults_of_ranks(compute_seconds: Sequence[float]) -> Iterator[Fault]:
    """Yield what cannot be true of the ranks' own parts of a step, s."""
    fastest = min(compute_seconds)
    for rank, seconds in enumerate(compute_seconds):
        if not seconds >= LEAST_STEP_SECONDS or not math.isfinite(seconds):
            yield _no_time(f"/{rank}", seconds)
        elif seconds > MOST_APART * fastest:
            yield Fault(
                f"/{rank}",
                f"Rank {rank} takes {seconds / fastest:.3g} times as long as the fastest rank: "
                f"GPUs of one type differ by less than {MOST_APART:g} times.",
                "Time only what every rank does alone, the same on each, and leave out what one "
                "rank does besides.",
                seconds,
            )


def faults_of_steps(
    mean_seconds: float, steps: int, *, lived_seconds: float | None
) -> Iterator[Fault]:
    """Yield what cannot be true of the mean time of steps.

    `lived_seconds`: of the attempt that made them, until now; None if it is not known.
    """
    if not mean_seconds >= LEAST_STEP_SECONDS or not math.isfinite(mean_seconds):
        yield _no_time("/step_seconds/mean", mean_seconds)
    elif lived_seconds is not None:
        most = lived_seconds * _CLOCKS_DIFFER + _LATE_SECONDS
        if mean_seconds * steps > most:
            yield Fault(
                "/step_seconds/mean",
                f"{steps} such steps take {mean_seconds * steps:.4g} s, and the attempt has lived "
                f"for {lived_seconds:.4g} s.",
                "Report each step once, in seconds.",
                mean_seconds,
            )


def relative_times(compute_seconds: Sequence[float]) -> list[float]:
    """Return each rank's time over the median rank's, within MOST_SLOWER either way."""
    middle = statistics.median(compute_seconds)
    return [bounded_ratio(seconds / middle) for seconds in compute_seconds]


def bounded_ratio(ratio: float) -> float:
    """Return how slow a GPU is against others of its type, within what GPUs can be."""
    return min(max(ratio, 1.0 / MOST_SLOWER), MOST_SLOWER)


def _no_time(pointer: str, seconds: float) -> Fault:
    return Fault(
        pointer,
        f"No step takes so little: a kernel alone takes {LEAST_STEP_SECONDS:g} s to start.",
        "Report seconds, as a clock that never goes back measures them.",
        seconds,
    )
