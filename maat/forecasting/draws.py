"""Draws of what a forecast does not know: the pace of jobs, and the jobs to come.

Every draw has a number, and every job a sequence of its own in it: two states that are compared
draw the same for the jobs that both have.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass, replace
from itertools import count
from statistics import median
from typing import TypeVar
from zlib import crc32

import numpy as np

from maat.forecasting.arrivals import DAY_SECONDS, Coming
from maat.forecasting.history import History, Tempo
from maat.forecasting.paces import Course, tempos_of
from maat.forecasting.play import Arrival, Draw, Life
from maat.forecasting.present import Present
from maat.forecasting.rest import PRIOR_WEIGHT, Rest
from maat.forecasting.restarts import RestartRates
from maat.forecasting.truths import PARTS, BelievedTruth, unseen_job
from maat.scheduling.belief import Fitter
from maat.scheduling.evidence import ModelKey
from maat.scheduling.job import Job, JobId, JobSpec
from maat.vocabulary import ForecastBasis

CENTRAL = 0
"""The number of the draw in which all goes as believed, and the last day's jobs come again."""
PRIOR_PACE, PRIOR_SPREAD = 1.2, 0.3
"""Median of a pace of which nothing is known, and standard deviation of its logarithm.

Loading data, evaluation and checkpoints come on top of measured steps.
"""
UNKNOWN_SECONDS = 3600.0
UNKNOWN_SPREAD = 1.0
"""Median, and spread of the logarithm, of the seconds of a job of which nothing is known."""


@dataclass(frozen=True, slots=True)
class Grounds:
    """What a job's end rests on.

    `precedents`: how many ended jobs like it its pace, or its run, is drawn from.
    """

    basis: ForecastBasis
    precedents: int


@dataclass(frozen=True)
class Unknown:
    """What is not known of a cluster's future.

    `round_delays`: seconds by which rounds came after they were due; as good as none if empty.
    """

    history: History
    seed: int = 0
    round_delays: Sequence[float] = ()


class Drawing:
    """Draws for one present state. Beliefs are fitted once, for all draws."""

    def __init__(self, present: Present, unknown: Unknown, fitter: Fitter) -> None:
        self._present, self._unknown, self._fitter = present, unknown, fitter
        known = {one.job.id: one.job for one in present.jobs}
        self._jobs = known | {one.spec.id: unseen_job(one.spec) for one in present.waiting}
        self._truths = {job_id: self._truth(job) for job_id, job in self._jobs.items()}
        self._coming: dict[int, BelievedTruth] = {}
        self._tempos = self._tempos_so_far()
        self._restarts = RestartRates(unknown.history, self._jobs.values())
        self._paces: dict[tuple[str, ModelKey], Sequence[Sequence[float]]] = {}
        self._rests: dict[tuple[str, ModelKey, int], Sequence[Rest]] = {}
        self._deviations = unknown.history.deviations()
        self._grounds: dict[JobId, Grounds] = {}

    def draw(self, number: int) -> Draw:
        """Return a draw by its number; CENTRAL is the one without chance."""
        lives = {job_id: self._life(job, number) for job_id, job in self._jobs.items()}
        return Draw(lives, self._arrivals(number), self._round_delay(number))

    def _round_delay(self, number: int) -> float:
        delays = self._unknown.round_delays
        if not delays:
            return 0.0
        if number == CENTRAL:
            return median(delays)
        return delays[int(self._sequence(number, "rounds").random() * len(delays))]

    def grounds(self, job_id: JobId) -> Grounds:
        """Return what the end of a job is drawn from: the same after every draw, so found once."""
        found = self._grounds.get(job_id)
        if found is None:
            found = self._grounds[job_id] = self._found_grounds(job_id)
        return found

    def _found_grounds(self, job_id: JobId) -> Grounds:
        job, truth = self._jobs[job_id], self._truths[job_id]
        if self._is_known(job.spec, truth):
            return Grounds(ForecastBasis.WORK, self._unknown.history.precedents_of(job.spec))
        longer = _seconds_left_of_longer(self._unknown.history.run_seconds_of(job.spec), job)
        return Grounds(ForecastBasis.RUNS if longer else ForecastBasis.GUESS, len(longer))

    def _truth(self, job: Job) -> BelievedTruth:
        past = self._unknown.history.life_of(job.spec)
        types = self._present.cluster.type_names
        return BelievedTruth(job, types, past=past, fitter=self._fitter)

    def _life(self, job: Job, number: int) -> Life:
        truth, rng = self._truths[job.id], self._sequence(number, job.id)
        return self._drawn_life(job, truth, number, None if number == CENTRAL else rng)

    def _drawn_life(
        self, job: Job, truth: BelievedTruth, number: int, rng: np.random.Generator | None
    ) -> Life:
        slower, spec = truth.at_pace(self._pace(job, truth, rng)), job.spec
        if rng is not None:
            slower = slower.along(int(rng.random() * truth.courses))
        return Life(
            slower,
            spec.restart_seconds,
            restarts_per_second=self._restarts.of(self._unknown.history.key_of(spec)),
            restart_seed=None if rng is None else self._seed(number, f"{spec.id}-restarts"),
        )

    def _pace(self, job: Job, truth: BelievedTruth, rng: np.random.Generator | None) -> float:
        spec = job.spec
        if not self._is_known(spec, truth):
            longer = _seconds_left_of_longer(self._unknown.history.run_seconds_of(spec), job)
            return _seconds_left(longer, rng) * _rate(truth, spec) / max(job.remaining_work, 1e-9)
        so_far, share = self._pace_so_far(job), 1.0 - job.remaining_work / spec.work
        if so_far is None or share < 0.5 / PARTS:
            return self._pace_of_another(spec, rng)
        part = min(max(round(share * PARTS), 1), PARTS - 1)
        return self._pace_of_rest(spec, so_far, part, rng)

    def _pace_of_another(self, spec: JobSpec, rng: np.random.Generator | None) -> float:
        """Return the pace of a job like it. Jobs of a model differ as those of any other do."""
        groups = self._paces_of(spec)
        if len(groups) == 1:
            prior = _prior(PRIOR_PACE, PRIOR_SPREAD)
            return _drawn(groups, rng, middle=PRIOR_PACE, prior=prior)
        middle, spread = median(groups[-1]), _prior(1.0, PRIOR_SPREAD)

        def about(rng: np.random.Generator) -> float:
            return middle * _drawn([self._deviations], rng, middle=1.0, prior=spread)

        return _drawn(groups, rng, middle=middle, prior=about)

    def _pace_of_rest(
        self, spec: JobSpec, so_far: float, part: int, rng: np.random.Generator | None
    ) -> float:
        """Return the pace after a part of a job's work.

        Where it is not known how others went on, it differs from its own as two of them do.
        """
        known = _chosen(self._rests_of(spec, part), rng)
        if rng is None:
            return so_far if known is None else known.middle(so_far)
        if known is not None:
            return known.drawn(so_far, rng)
        return so_far * self._pace_of_another(spec, rng) / self._pace_of_another(spec, rng)

    def _pace_so_far(self, job: Job) -> float | None:
        tempo = self._tempos.get(job.id)
        return None if tempo is None else tempo.pace_of_samples

    def _tempos_so_far(self) -> dict[JobId, Tempo]:
        """Return how the jobs of the present ran, by what is now believed of them."""
        history = self._unknown.history
        courses = [
            Course(job, history.life_of(job.spec), job.spec.work, stretches)
            for job_id, stretches in history.stretches.items()
            if (job := self._jobs.get(job_id)) is not None and job.spec.work_is_known
        ]
        tempos = tempos_of(courses, self._present.cluster, fitter=self._fitter)
        return {one.job.id: tempo for one, tempo in zip(courses, tempos, strict=True)}

    def _paces_of(self, spec: JobSpec) -> Sequence[Sequence[float]]:
        """Return what History says, which goes through all jobs that ended, once for each group."""
        group = (spec.owner, self._unknown.history.key_of(spec))
        found = self._paces.get(group)
        if found is None:
            found = self._paces[group] = self._unknown.history.paces_of(spec)
        return found

    def _rests_of(self, spec: JobSpec, part: int) -> Sequence[Rest]:
        group = (spec.owner, self._unknown.history.key_of(spec), part)
        found = self._rests.get(group)
        if found is None:
            halves = self._unknown.history.halves_of(spec, part)
            found = self._rests[group] = [Rest.of(some) for some in halves]
        return found

    def _is_known(self, spec: JobSpec, truth: BelievedTruth) -> bool:
        return truth.is_measured and spec.work_is_known

    def _arrivals(self, number: int) -> Iterator[Arrival]:
        """Yield the jobs to come, in order: those of the last day again, day by day.

        In the central draw at their time of the day, as often as each stands for, as evenly as
        whole jobs can. Else as in `Coming`.
        """
        history = self._unknown.history
        past = sorted(enumerate(history.arrivals), key=lambda one: -one[1].ago)
        ago, chance = np.array([one.ago for _, one in past]), number != CENTRAL
        even = np.diff(np.round(np.arange(len(past) + 1) * history.stand_for)).astype(int)
        coming = Coming(ago, history.stand_for, self._sequence(number, "arrivals"))
        for period in count() if past else ():
            begin = self._present.now + period * DAY_SECONDS
            rng = self._sequence(number, f"arrivals-{period + 1}")
            often = coming.often(rng) if chance else even
            rows = np.repeat(np.arange(len(past)), often)
            after = coming.after(rows, rng) if chance else DAY_SECONDS - ago[rows]
            for place in np.argsort(after, kind="stable").tolist():
                index, arrival = past[rows[place]]
                job_id = f"arrival-{period + 1}-{place}"
                at = begin + float(after[place])
                spec = replace(arrival.spec, id=job_id, submitted_at=at)
                by = rng if chance else None
                yield Arrival(spec, self._life_of_arrival(spec, index, number, by))

    def _life_of_arrival(
        self, spec: JobSpec, index: int, number: int, rng: np.random.Generator | None
    ) -> Life:
        job = unseen_job(spec)
        truth = self._coming.get(index)
        if truth is None:
            truth = self._coming[index] = self._truth(job)
        return self._drawn_life(job, truth, number, rng)

    def _sequence(self, number: int, name: str) -> np.random.Generator:
        return np.random.default_rng(self._seed(number, name))

    def _seed(self, number: int, name: str) -> tuple[int, ...]:
        return self._unknown.seed, number, crc32(name.encode())


Prior = Callable[[np.random.Generator], float]
Group = TypeVar("Group", bound=Sized)


def _prior(middle: float, spread: float) -> Prior:
    return lambda rng: middle * math.exp(spread * rng.standard_normal())


def _drawn(
    groups: Sequence[Sequence[float]],
    rng: np.random.Generator | None,
    *,
    middle: float,
    prior: Prior,
) -> float:
    """Draw from the chosen group, else from the prior.

    Without chance: the median of the group, else `middle`.
    """
    group = _chosen(groups, rng)
    if rng is None:
        return middle if group is None else median(group)
    return prior(rng) if group is None else group[int(rng.random() * len(group))]


def _chosen(groups: Iterable[Group], rng: np.random.Generator | None) -> Group | None:
    """Choose the narrowest group, else the next wider one, at last none: the prior.

    One of n values with probability n / (n + PRIOR_WEIGHT). Without chance: the narrowest group of
    PRIOR_WEIGHT values or more.
    """
    for group in groups:
        if rng is None:
            if len(group) >= PRIOR_WEIGHT:
                return group
        elif rng.random() * (len(group) + PRIOR_WEIGHT) < len(group):
            return group
    return None


def _seconds_left_of_longer(ran: list[float], job: Job) -> list[float]:
    """Return for how long those of these runs went on that had lasted as long as this job's."""
    elapsed = sum(job.attained_gpu_seconds.values()) / max(job.spec.requested_gpus, 1)
    return sorted(seconds - elapsed for seconds in ran if seconds > elapsed)


def _seconds_left(longer: list[float], rng: np.random.Generator | None) -> float:
    """Return the seconds left of a job whose work nobody knows. `longer`: as above."""
    if rng is None:
        return longer[len(longer) // 2] if longer else UNKNOWN_SECONDS
    prior = _prior(UNKNOWN_SECONDS, UNKNOWN_SPREAD)
    return max(_drawn([longer], rng, middle=UNKNOWN_SECONDS, prior=prior), 1.0)


def _rate(truth: BelievedTruth, spec: JobSpec) -> float:
    """Return effective samples per second on what the job asks for, on its fastest type."""
    total, asked = spec.requested_batch_size, spec.requested_gpus
    rates = []
    for kind in spec.memory:
        if spec.may_use(kind):
            replicas = max(asked // spec.replica_gpus(kind), 1)
            rates.append(total / truth.step(kind, (asked,), -(-total // replicas)).step_seconds)
    return max(rates, default=1.0)
