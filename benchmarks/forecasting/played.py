"""A played cluster, the forecasts made of it, and what they promised."""

from __future__ import annotations

import hashlib
import math
import pickle
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import maat
from benchmarks.forecasting.backfill import Guess, backfill_guesses, longest_runs, mean_runs
from benchmarks.forecasting.past import Past
from maat.forecasting.draws import Unknown
from maat.forecasting.forecast import JobForecast, forecast
from maat.forecasting.history import PastArrival
from maat.forecasting.play import present_jobs
from maat.forecasting.present import Present, WaitingJob
from maat.scheduling.belief import MemoisingFitter
from maat.scheduling.cluster import Cluster
from maat.scheduling.job import JobId
from maat.scheduling.loop import RoundLoop
from maat.simulation.engine import JumpingClock
from maat.simulation.executor import SimulatedExecutor
from maat.simulation.record import Recorder
from maat.simulation.scenario import Scenario
from maat.simulation.world import World
from maat.simulation.world_models import catalog_models
from maat.workloads.generators import generate

SHAPE, HOUR, DAY = "t4=6x4,rtx=3x8,a100=2x8", 3600.0, 86_400.0


@dataclass(frozen=True)
class Settings:
    """What is played. `every_hours`: how far forecasts are apart."""

    policy: str
    days: float = 7.0
    jobs_per_hour: float = 14.0
    every_hours: float = 2.0
    seed: int = 1


@dataclass
class Promise:
    """Cluster seconds; infinite: later than the draws go. `held`: it held GPUs already."""

    job_id: JobId
    first: bool
    held: bool
    made: float
    start: tuple[float, float]
    end: tuple[float, float]


LIMITS = {"mean run": mean_runs, "longest run": longest_runs}
"""Where the time limits of the guesses of a backfilling scheduler come from."""


class Week:
    """A played cluster, and the forecasts made of it.

    `cpu`: seconds of each forecast. `guesses`: what a backfilling scheduler would say at the same
    moments, by where its limits come from; of P90 nothing.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        hours = settings.days * 24
        workload = generate(
            "philly",
            jobs=round(hours * settings.jobs_per_hour),
            hours=hours,
            seed=settings.seed,
        )
        policy = settings.policy
        placer = "whole-node" if policy == "sia" else "packed-sticky"
        self.world = World.of(
            Scenario(workload, catalog_models(), Cluster.parse(SHAPE), policy=policy, placer=placer)
        )
        self._clock = JumpingClock()
        self.executor = SimulatedExecutor(self.world.cluster, self._clock, self.world.fidelity)
        for job in self.world.submissions:
            self.executor.submit(
                job.spec, job.truth, restart_seconds=job.restart_seconds, work_scale=job.work_scale
            )
        self._store = Recorder(self.world.scenario_with_scores, self.executor, None)
        self._loop = RoundLoop(
            policy=self.world.policy,
            placer=self.world.placer,
            executor=self.executor,
            store=self._store,
            clock=self._clock,
        )
        self._fitter = MemoisingFitter()
        self._past = Past(self.world.cluster, self._fitter)
        self._rounds = 0
        self.promises: list[Promise] = []
        self.guesses: dict[str, list[Promise]] = {name: [] for name in LIMITS}
        self._promised: set[JobId] = set()
        self.cpu: list[float] = []

    @property
    def seconds(self) -> float:
        """Cluster seconds that are played."""
        return self._rounds * self._loop.round_seconds

    @property
    def has_ended(self) -> bool:
        return self.seconds >= self.settings.days * DAY

    def play(self) -> Iterator[None]:
        """Play on to the end; yields after every forecast."""
        interval = self._loop.round_seconds
        every = round(self.settings.every_hours * HOUR / interval)
        while not self.has_ended:
            self._clock.sleep_until(self.seconds)
            self._loop.step()
            self._past.note(self._clock.now(), self.executor)
            self._rounds += 1
            if self._rounds > 1 and (self._rounds - 1) % every == 0:
                self._forecast()
                yield

    def _forecast(self) -> None:
        present = self._present()
        if not present.job_ids:
            return
        begun = time.process_time()
        arrivals = [
            PastArrival(job.spec, present.now - job.spec.submitted_at)
            for job in self.world.submissions
            if present.now - DAY < job.spec.submitted_at <= present.now
        ]
        history = self._past.history(self.executor, arrivals)
        found = forecast(present, Unknown(history), fitter=self._fitter)
        self.cpu.append(time.process_time() - begun)
        firsts = found.jobs.keys() - self._promised
        self._promised |= firsts
        self.promises += [_promise(one, found.now, firsts) for one in found.jobs.values()]
        for name, limits in LIMITS.items():
            guesses = backfill_guesses(present, limits(self.executor.finished.values()))
            self.guesses[name] += [
                _guess(job_id, one, found.now, firsts) for job_id, one in guesses.items()
            ]

    def _present(self) -> Present:
        """Return the state as a scheduler knows it, after the changes of the last round."""
        now, jobs = self._clock.now(), tuple(present_jobs(self.executor.jobs))
        seen = {one.job.id for one in jobs} | self.executor.finished.keys()
        waiting = tuple(
            WaitingJob(job.spec)
            for job in self.world.submissions
            if job.spec.id not in seen and job.spec.submitted_at <= now
        )
        return Present(
            now=now,
            next_round_at=now + self._loop.round_seconds,
            round_seconds=self._loop.round_seconds,
            cluster=self.world.cluster,
            policy=self.world.policy,
            placer=self.world.placer,
            jobs=jobs,
            waiting=waiting,
            state=self._store.load(),
        )


def _promise(one: JobForecast, now: float, firsts: Collection[JobId]) -> Promise:
    start = (math.inf, math.inf)
    if one.start is not None:
        start = (_at(one.start.p50, now), _at(one.start.p90, now))
    end = (_at(one.end.p50, now), _at(one.end.p90, now))
    return Promise(one.job_id, one.job_id in firsts, one.start is None, now, start, end)


def _guess(job_id: JobId, one: Guess, now: float, firsts: Collection[JobId]) -> Promise:
    held = one.start < now
    return Promise(job_id, job_id in firsts, held, now, (one.start, math.inf), (one.end, math.inf))


def _at(seconds: float | None, now: float) -> float:
    return math.inf if seconds is None else now + seconds


def played(
    settings: Settings,
    *,
    kept_in: Path | None = None,
    most_cpu_seconds: float = math.inf,
    progress: Callable[[Week], object] = lambda _: None,
) -> Week:
    """Play a week to its end, or until this process has spent so many CPU seconds on it.

    With `kept_in`, the week is kept there after every forecast, and one that was kept of the same
    settings by the same code goes on. It is a pickle: name a folder that only you write to.
    `progress` is called after every forecast.
    """
    begun, file = time.process_time(), None
    week = None
    if kept_in is not None:
        kept_in.mkdir(parents=True, exist_ok=True)
        file = kept_in / f"{_digest(settings)}.week"
        with suppress(FileNotFoundError):
            week = pickle.loads(file.read_bytes())  # noqa: S301, written by this function
    week = Week(settings) if week is None else week
    for _ in week.play():
        if file is not None:
            _write(file, week)
        progress(week)
        if time.process_time() - begun >= most_cpu_seconds:
            break
    if file is not None:
        _write(file, week)
    return week


def _write(file: Path, week: Week) -> None:
    partial = file.with_suffix(".partial")
    partial.write_bytes(pickle.dumps(week))
    partial.replace(file)


def _digest(settings: Settings) -> str:
    """Identify the settings and the code that plays them: all of Maat, and this folder."""
    found = hashlib.sha256(repr(settings).encode())
    for folder in (Path(maat.__file__).parent, Path(__file__).parent):
        for source in sorted(folder.rglob("*.py")):
            found.update(source.read_bytes())
    return found.hexdigest()[:20]
