"""Events of a job as data, its states, and which state may follow which."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from maat.scheduling.job import JobId
from maat.vocabulary import JobState

_S = JobState
TERMINAL = frozenset({_S.SUCCEEDED, _S.FAILED, _S.CANCELLED})
_ENDS = TERMINAL

# A job that ran before its pause is pending again, and then restarts.
TRANSITIONS: Mapping[JobState, frozenset[JobState]] = {
    _S.SUBMITTED: frozenset({_S.PROFILING, _S.PENDING, _S.FAILED, _S.CANCELLED}),
    _S.PROFILING: frozenset({_S.PENDING, *_ENDS}),
    _S.PENDING: frozenset(
        {_S.PROFILING, _S.STARTING, _S.RESTARTING, _S.PAUSED, _S.FAILED, _S.CANCELLED}
    ),
    _S.STARTING: frozenset({_S.RUNNING, _S.RESTARTING, _S.PREEMPTED, _S.PAUSED, *_ENDS}),
    _S.RUNNING: frozenset({_S.RESTARTING, _S.PREEMPTED, _S.PAUSED, *_ENDS}),
    _S.RESTARTING: frozenset({_S.RUNNING, _S.PREEMPTED, _S.PAUSED, *_ENDS}),
    _S.PAUSED: frozenset({_S.PENDING, _S.RESTARTING, _S.FAILED, _S.CANCELLED}),
    _S.PREEMPTED: frozenset({_S.RESTARTING, _S.PAUSED, _S.FAILED, _S.CANCELLED}),
    _S.SUCCEEDED: frozenset(),
    _S.FAILED: frozenset(),
    _S.CANCELLED: frozenset(),
}


def may_follow(before: JobState, after: JobState) -> bool:
    """Return whether a job in state `before` may pass to `after`."""
    return after in TRANSITIONS[before]


class EventKind(StrEnum):
    """What an event is about.

    NODE_FAILED, CHECKPOINT, ENGINE, REPORT: of commands, whose state may stay as it is. ASKED: what
    a person asked of the job; its data say what, and who. DEADLINE: it will be missed, for the
    first time. FLAG: what its agent says is unlikely.
    """

    STATE = "state"
    ALLOCATED = "allocated"
    NODE_FAILED = "node-failed"
    CHECKPOINT = "checkpoint"
    ENGINE = "engine"
    REPORT = "report"
    ASKED = "asked"
    DEADLINE = "deadline"
    FLAG = "flag"


@dataclass(frozen=True, slots=True)
class Event:
    """What happened to a job at cluster time `time`. `data` has the details."""

    time: float
    job_id: JobId
    kind: EventKind
    state: JobState | None = None
    data: Mapping[str, object] = field(default_factory=dict)
