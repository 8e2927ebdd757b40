"""The guess of a backfilling scheduler such as Slurm: by time limits, in the order of submission.

Every job is taken to run as long as its limit says; the queue is planned job by job, each on the
GPUs that it asks for as early as no job before it is put off. No chance, no jobs to come.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import mean

from maat.forecasting.present import Present
from maat.scheduling.job import JobId, JobSpec
from maat.simulation.simulated_job import SimulatedJob

NOTHING_ENDED_SECONDS = 3600.0
"""The limit of a job before any has ended."""

Limit = Callable[[JobSpec], float]
"""Seconds for which a job is taken to run."""


@dataclass(frozen=True, slots=True)
class Guess:
    """When a job starts and ends, in cluster seconds."""

    start: float
    end: float


def mean_runs(ended: Iterable[SimulatedJob]) -> Limit:
    """Return the mean run of ended jobs of a job's model as its limit, else the mean of all."""
    return _by_model(ended, mean)


def longest_runs(ended: Iterable[SimulatedJob]) -> Limit:
    """Return the longest run of its model: what an owner declares who fears to be cut off."""
    return _by_model(ended, max)


def _by_model(ended: Iterable[SimulatedJob], of: Callable[[Sequence[float]], float]) -> Limit:
    runs: dict[str, list[float]] = {}
    for job in ended:
        began, end = job.ledger.started_at, job.ledger.finished_at
        if began is not None and end is not None:
            runs.setdefault(job.spec.model, []).append(end - began)
    by_model = {model: of(some) for model, some in runs.items()}
    anybody = of([one for some in runs.values() for one in some]) if runs else NOTHING_ENDED_SECONDS
    return lambda spec: by_model.get(spec.model, anybody)


class _Free:
    """The free GPUs of one type over time: from `times[i]` on there are `counts[i]`."""

    def __init__(self, now: float, count: int) -> None:
        self.times, self.counts = [now], [count]

    def take(self, begin: float, end: float, gpus: int) -> None:
        first, last = self._cut(begin), self._cut(end)
        for index in range(first, last):
            self.counts[index] -= gpus

    def earliest(self, gpus: int, seconds: float) -> float | None:
        """Return from when on so many stay free for so long; None if there are never so many."""
        for index, begin in enumerate(self.times):
            until = bisect_right(self.times, begin + seconds - 1e-9)
            if min(self.counts[index:until]) >= gpus:
                return begin
        return None

    def _cut(self, at: float) -> int:
        """Return the index of the piece that begins then, made if there is none."""
        index = bisect_right(self.times, at) - 1
        if self.times[index] == at:
            return index
        self.times.insert(index + 1, at)
        self.counts.insert(index + 1, self.counts[index])
        return index + 1


def backfill_guesses(present: Present, limit: Limit) -> dict[JobId, Guess]:
    """Return the guess for every job that has not ended and that can ever start."""
    free = {kind: _Free(present.now, _gpus(present, kind)) for kind in present.cluster.type_names}
    found: dict[JobId, Guess] = {}
    waiting = [one.spec for one in present.waiting]
    for one in present.jobs:
        held = one.job.allocation
        if held is None:
            waiting.append(one.job.spec)
            continue
        began = present.now if one.job.started_at is None else one.job.started_at
        end = max(began + limit(one.job.spec), present.now + present.round_seconds)
        free[held.gpu_type].take(present.now, end, held.gpu_count)
        found[one.job.id] = Guess(began, end)
    for spec in sorted(waiting, key=lambda one: (one.submitted_at, one.id)):
        guess = _planned(spec, limit(spec), free)
        if guess is not None:
            found[spec.id] = guess
    return found


def _gpus(present: Present, kind: str) -> int:
    return sum(node.gpu_count for node in present.cluster.nodes if node.gpu_type == kind)


def _planned(spec: JobSpec, seconds: float, free: dict[str, _Free]) -> Guess | None:
    """Plan a job on the type where it starts first, and take its GPUs."""
    starts = {
        kind: at
        for kind, pieces in free.items()
        if spec.may_use(kind) and (at := pieces.earliest(spec.requested_gpus, seconds)) is not None
    }
    if not starts:
        return None
    kind = min(starts, key=lambda one: starts[one])
    free[kind].take(starts[kind], starts[kind] + seconds, spec.requested_gpus)
    return Guess(starts[kind], starts[kind] + seconds)
