"""Why the journal changes a job's state without an event of the executor."""

from __future__ import annotations

from enum import StrEnum

from maat.vocabulary import JobState


class Cause(StrEnum):
    """Why the journal changed a state without an event of the executor."""

    LOST = "lost"
    PAUSED = "paused"
    RESUMED = "resumed"
    HOLDS_GPUS = "holds-gpus"
    ENDED = "ended"


WITHOUT_GPUS = {
    JobState.PREEMPTED: Cause.LOST,
    JobState.PAUSED: Cause.PAUSED,
    JobState.PENDING: Cause.RESUMED,
}
"""Of a job that is found without GPUs, by the state that it passes to."""
