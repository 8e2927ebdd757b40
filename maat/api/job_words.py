"""A job's state in words, where the state alone would not say what happened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maat.api.fields import FieldWarning
    from maat.api.job_answers import SharedWithOut

_BEFORE = {
    "failed": "failed, is tried again",
    "refused": "refused, is tried again",
    "cancelled": "cancelled in the engine, is tried again",
    "lost": "lost, is started again",
}
"""By the outcome of the last attempt of a job that lost its GPUs by it."""
FOLLOWS = "follows others"
WHILE_FLAGGED = (
    "Until a manager of its tenant dismisses this, Maat believes the job no faster than is usual, "
    "and no larger batch to be of use to it."
)
"""What a flag does, wherever one is shown."""


def follows_others(job: Mapping[str, Any]) -> bool:
    """Return whether a job that nobody paused waits until other jobs have succeeded."""
    waits = (job.get("reason") or {}).get("code") == "WAITING_DEPENDENCY"
    return job["state"] == "paused" and waits and not job.get("pause_requested")


def sharing_words(shared: Sequence[SharedWithOut]) -> list[str]:
    """Return a sentence for each job that is on a job's GPUs now: how many, and at what cost."""
    return [_shares(one) for one in shared]


def _shares(one: SharedWithOut) -> str:
    gpus = "a GPU" if one["gpus"] == 1 else f"{one['gpus']} GPUs"
    slowdown, source = one["slowdown"], one["slowdown_source"]
    cost = (
        "what that costs it is not known."
        if slowdown is None
        else f"its steps take {slowdown:.2f} times as long there, as {source}."
    )
    return f"It shares {gpus} with {one['job_name']} now: {cost}"


def warning_words(warning: FieldWarning) -> str:
    """Return a warning with its field, value and remedy."""
    value = warning["value"]
    given = ", ".join(map(str, value)) if isinstance(value, list) else value
    at = warning["field"] if value is None else f"{warning['field']} {given}"
    return f"Warning: {at}: {warning['message']} {warning['remedy']}"


def place_words(waiting: int, position: int, *, would: str = "it is") -> str:
    """Return what a place among the jobs that wait means. `would`: of a job that is not there."""
    jobs = "1 job waits" if waiting == 1 else f"{waiting:,} jobs wait".replace(",", " ")
    return (
        f"{jobs} on the cluster now. By priority, then by submission, {would} number {position}; "
        "the policy may go by other things."
    )


def state_in_words(job: Mapping[str, Any]) -> str:
    """Return a job's state, or what says more.

    Of a job that lost its GPUs by the end of its processes, that end; of one that is paused only
    since it follows others, that it does.
    """
    if follows_others(job):
        return FOLLOWS
    evidence = (job.get("reason") or {}).get("evidence") or {}
    if job["state"] != "preempted":
        return str(job["state"])
    return _BEFORE.get(str(evidence.get("outcome")), "preempted")
