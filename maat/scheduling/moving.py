"""What moving a job to another configuration would cost, and when it would pay.

A job that moves stands still for one restart, then goes on at the other pace. It has caught up once

    t x pace = (t - restart_seconds) x other pace

Decides nothing: policies weigh moves in their own ways. Words are in choice.py.
"""

from __future__ import annotations

from collections.abc import Mapping

from maat.scheduling.job import Job
from maat.scheduling.matrix import NO_LOSS

_EQUAL = 1e-3
Evidence = Mapping[str, float | int | str | None]

OTHERS = ("runner_up_", "alone_")
"""Prefixes of the evidence on configurations that a job does not have: the next best, and the best
of those that it could have if it were alone."""


def with_moves(job: Job, evidence: Evidence) -> dict[str, float | int | str | None]:
    """Return the evidence of a grant, with what moves to its other configurations cost and bring.

    Adds what measured samples are priced by, phi and M0 of Pollux eq. 6, both in samples (a job
    with a promised latency has no goodput of samples). Adds the restart's seconds and, where paces
    are known, the seconds left at the present pace, and for each other configuration the seconds
    after which the move has paid: None if never. A pace is the goodput, or steps per second at one
    batch size. Leaves out the limit of a configuration that is the one that it has.
    """
    found = {
        name: value for name, value in evidence.items() if name not in _of_what_it_has(evidence)
    }
    if job.spec.promised_seconds is None:
        found |= {
            "noise_scale": _noise_scale(job),
            "initial_batch_size": job.spec.initial_batch_size,
        }
    if not any(f"{other}gpu_type" in evidence for other in OTHERS):
        return found
    found["restart_seconds"] = job.spec.restart_seconds
    goodput, pace = _number(evidence, "goodput_samples_per_second"), _pace(evidence, "")
    steps, step = _number(evidence, "remaining_steps"), _number(evidence, "step_seconds")
    is_known = job.spec.work_is_known
    if is_known and goodput:
        found["remaining_seconds"] = job.remaining_work / goodput
    elif is_known and steps is not None and step is not None:
        found["remaining_seconds"] = steps * step
    for other in OTHERS:
        then = _pace(evidence, other)
        if pace and then is not None:
            found[f"{other}pays_after_seconds"] = pays_after(pace, then, job.spec.restart_seconds)
    return found


def _of_what_it_has(evidence: Evidence) -> set[str]:
    """Return the limits of other configurations that are what the job has: none kept it from it."""
    mine = evidence.get("gpu_type"), evidence.get("gpu_count")
    return {
        f"{other}limit"
        for other in OTHERS
        if mine == (evidence.get(f"{other}gpu_type"), evidence.get(f"{other}gpu_count"))
    }


def _noise_scale(job: Job) -> float:
    return job.belief.noise_scale(job.spec.initial_batch_size) if job.spec.learns else NO_LOSS


def pays_after(pace: float, other: float, restart_seconds: float) -> float | None:
    """Return the seconds from its begin after which a move has paid; None if it never does.

    Paces that differ by less than a thousandth are equal: no measurement tells them apart.
    """
    is_faster = other > pace * (1 + _EQUAL)
    return restart_seconds * other / (other - pace) if is_faster else None


def _pace(evidence: Evidence, prefix: str) -> float | None:
    goodput = _number(evidence, f"{prefix}goodput_samples_per_second")
    if goodput is not None:
        return goodput
    step = _number(evidence, f"{prefix}step_seconds")
    return 1.0 / step if step else None


def _number(evidence: Evidence, name: str) -> float | None:
    value = evidence.get(name)
    return float(value) if isinstance(value, int | float) else None
