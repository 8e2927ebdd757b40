"""Workloads that react to completions.

An executor asks a source for more jobs whenever some have ended. Knows no kind of source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from maat.scheduling.events import Event, EventKind
from maat.scheduling.job import JobId
from maat.scheduling.rounds import Changes, ClusterState
from maat.simulation.executor import SimulatedExecutor
from maat.simulation.submission import Submission
from maat.vocabulary import JobState


class JobSource(Protocol):
    """Submits jobs as others end."""

    @property
    def exhausted(self) -> bool:
        """Whether the source will submit no more jobs."""
        ...

    def submissions(self, now: float, ended: Sequence[JobId]) -> Sequence[Submission]:
        """Return the jobs to submit at `now`.

        `ended`: jobs that ended since the last call; empty at the first.
        """
        ...


class ReactiveExecutor:
    """A simulated executor whose jobs come from a source, asked at each observation."""

    def __init__(self, inner: SimulatedExecutor, source: JobSource) -> None:
        self._inner, self._source = inner, source

    def observe(self) -> ClusterState:
        state = self._inner.observe()
        ended = [
            event.job_id
            for event in state.events
            if event.kind is EventKind.STATE and event.state is JobState.SUCCEEDED
        ]
        fresh = self._source.submissions(state.now, ended)
        for one in fresh:
            self._inner.submit(
                one.spec,
                one.truth,
                restart_seconds=one.restart_seconds,
                work_scale=one.work_scale,
                regimes=one.regimes,
            )
        if fresh:
            again = self._inner.observe()
            state = replace(again, events=(*state.events, *again.events))
        return replace(state, jobs_to_come=state.jobs_to_come or not self._source.exhausted)

    def apply(self, changes: Changes) -> Sequence[Event]:
        return self._inner.apply(changes)
