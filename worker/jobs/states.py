"""Ways from one state of a job to another that keep to the allowed changes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache

from maat.scheduling.events import TERMINAL, TRANSITIONS
from maat.vocabulary import JobState

WITH_GPUS = frozenset({JobState.STARTING, JobState.RUNNING, JobState.RESTARTING})
"""The states of a job that holds GPUs or is about to."""


def steps_to(before: JobState, wanted: Collection[JobState]) -> Sequence[JobState]:
    """Return the fewest allowed changes to one of these states, last the state itself.

    Empty if the job is there already, or can never get there. Not through a profile: one that was
    told of nowhere was none.
    """
    return _steps_to(before, frozenset(wanted))


@lru_cache(maxsize=256)
def _steps_to(before: JobState, wanted: frozenset[JobState]) -> Sequence[JobState]:
    ways: list[tuple[JobState, ...]] = [()]
    seen = {before, JobState.PROFILING} - wanted
    if before in wanted:
        return ()
    while ways:
        longer = []
        for way in ways:
            last = way[-1] if way else before
            for state in (state for state in JobState if state in TRANSITIONS[last] - seen):
                if state in wanted:
                    return (*way, state)
                seen.add(state)
                if state not in TERMINAL:
                    longer.append((*way, state))
        ways = longer
    return ()
