"""How often jobs restart while they train, and what draws that decide less often make them pay."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from maat.forecasting.history import History
from maat.scheduling.evidence import ModelKey
from maat.scheduling.job import Job, JobId
from maat.simulation.simulated_job import SimulatedJob

PRIOR_RESTARTS = 4.0
"""Restarts of any model that the rate of one counts beside its own."""


class RestartRates:
    """Restarts per second of training, by model: those of all count where a model has few."""

    def __init__(self, history: History, jobs: Iterable[Job]) -> None:
        self._restarts, self._seconds = (
            defaultdict[ModelKey, float](float),
            defaultdict[ModelKey, float](float),
        )
        for one in history.ended:
            if one.tempo is not None:
                self._add(history.key_of(one), one.restarts, float(one.tempo.seconds.sum()))
        for job in jobs:
            trained = sum(one.seconds for one in history.stretches.get(job.id, ()))
            if trained > 0:
                self._add(history.key_of(job.spec), job.restarts, trained)
        seconds = sum(self._seconds.values())
        self._of_all = sum(self._restarts.values()) / seconds if seconds > 0 else 0.0

    def _add(self, model: ModelKey, restarts: int, seconds: float) -> None:
        self._restarts[model] += restarts
        self._seconds[model] += seconds

    def of(self, model: ModelKey) -> float:
        """Return the rate of a model, per second; zero if no job restarts."""
        if self._of_all == 0:
            return 0.0
        restarts, seconds = self._restarts.get(model, 0.0), self._seconds.get(model, 0.0)
        return (restarts + PRIOR_RESTARTS) / (seconds + PRIOR_RESTARTS / self._of_all)


@dataclass(frozen=True, slots=True)
class _Cost:
    """What a restart costs a job, and how often it comes per second of training.

    `most_per_second`: of training and restarts, as bounds on moves let it come at most.
    """

    restart_seconds: float
    per_second: float
    most_per_second: float

    def expected(self, seconds: float) -> float:
        """Return how many come, on average, in so many seconds of training and restarts."""
        freely = self.per_second / (1.0 + self.per_second * self.restart_seconds)
        return seconds * min(freely, self.most_per_second)


class _Chance:
    """Whole restarts that come by chance, so many on average: a Poisson variable.

    When the next one comes depends on the average alone, and not on how often it is asked for: two
    states that are compared have the same ones.
    """

    def __init__(self, seed: tuple[int, ...]) -> None:
        self._rng = np.random.default_rng(seed)
        self._expected, self._next = 0.0, self._rng.exponential()

    def come(self, expected: float) -> int:
        """Return how many come while so many are expected."""
        self._expected += expected
        count = 0
        while self._next <= self._expected:
            self._next += self._rng.exponential()
            count += 1
        return count


class UnpaidRestarts:
    """Restarts that rounds which are not played would have caused: jobs pay for them all the same.

    A policy that moves jobs in every round moves them less often where it decides less often.
    `late`: by how many seconds jobs would have ended later that ended before the next round.
    """

    def __init__(self, round_seconds: float) -> None:
        self._round_seconds = round_seconds
        self._costs: dict[JobId, _Cost] = {}
        self._chances: dict[JobId, _Chance] = {}
        self._last: float | None = None
        self._restarts_of_holders: dict[
            JobId, int
        ] = {}  # restarts until then of the jobs that held GPUs
        self._unpaid: dict[JobId, float] = {}
        self.late: dict[JobId, float] = {}

    def know(
        self,
        job_id: JobId,
        *,
        restart_seconds: float,
        per_second: float,
        most_per_second: float = math.inf,
        seed: tuple[int, ...] | None = None,
    ) -> None:
        """Take in a job. `per_second`: its restarts, where every round is played.

        `most_per_second`: as bounds on moves let them come at most.
        With a seed they come by chance, one or none; without, each pays for a share of one.
        """
        if per_second > 0:
            self._costs[job_id] = _Cost(restart_seconds, per_second, most_per_second)
            if seed is not None:
                self._chances[job_id] = _Chance(seed)

    def charge(
        self,
        now: float,
        jobs: Mapping[JobId, SimulatedJob],
        ended: Mapping[JobId, SimulatedJob],
    ) -> None:
        """Charge what is due since the last round, to the jobs that have held GPUs since then.

        Those that have ended meanwhile pay until their end.
        """
        last = now if self._last is None else self._last
        held: dict[JobId, int] = {}
        for job_id, job in jobs.items():
            if job_id not in self._costs or job.allocation is None:
                continue
            held[job_id] = job.ledger.restarts
            if job_id in self._restarts_of_holders:
                job.ledger.restart_left += self._due_seconds(job_id, now - last, held[job_id])
        for job_id in self._restarts_of_holders:
            gone = ended.get(job_id)
            if gone is not None and gone.finished_at is not None:
                passed = gone.finished_at - last
                self.late[job_id] = self._due_seconds(job_id, passed, gone.ledger.restarts)
        self._last, self._restarts_of_holders = now, held

    def _due_seconds(self, job_id: JobId, passed: float, restarts: int) -> float:
        """Return what a job that held GPUs pays for so many seconds without a round."""
        if passed <= self._round_seconds:
            return 0.0
        cost, chance = self._costs[job_id], self._chances.get(job_id)
        expected = cost.expected(passed)
        come = expected if chance is None else chance.come(expected)
        due = self._unpaid.get(job_id, 0.0) + come - restarts + self._restarts_of_holders[job_id]
        self._unpaid[job_id] = min(due, 0.0)
        return max(due, 0.0) * cost.restart_seconds
