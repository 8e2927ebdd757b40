"""Why the journal changes a job's state without an event of the executor."""

from __future__ import annotations

from enum import StrEnum

from maat.vocabulary import JobState


class Cause(StrEnum):
    """Why the journal changed a state without an event of the executor."""

    LOST = "lost"
    PAUSED = "paused"
    RESUMED = "resumed"
    FOLLOWS = "follows-others"
    OTHERS_DONE = "others-succeeded"
    HOLDS_GPUS = "holds-gpus"
    ENDED = "ended"


_WITHOUT_GPUS = {
    JobState.PREEMPTED: Cause.LOST,
    JobState.PAUSED: Cause.PAUSED,
    JobState.PENDING: Cause.RESUMED,
}
_OF_FOLLOWERS = {JobState.PAUSED: Cause.FOLLOWS, JobState.PENDING: Cause.OTHERS_DONE}


def cause_without_gpus(state: JobState, *, follows: bool) -> Cause:
    """Return why a job that is found without GPUs passes to this state.

    `follows`: whether it waits for other jobs, or did until now.
    """
    return _OF_FOLLOWERS.get(state, _WITHOUT_GPUS[state]) if follows else _WITHOUT_GPUS[state]
