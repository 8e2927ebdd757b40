"""A week in a played cluster: how often what was promised came in time.

A forecast knows fitted step times, gradients, how jobs of the model went, what the catalog
publishes of a model of which no job has ended, and the arrivals of the last day. It knows neither
the jobs to come nor by how much training is slower than its steps.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from benchmarks.table import Cell, Figures
from maat.forecasting.draws import Unknown
from maat.forecasting.forecast import Forecast, forecast
from maat.forecasting.history import Ended, History, PastArrival, PastLife
from maat.forecasting.play import present_jobs
from maat.forecasting.present import Present, WaitingJob
from maat.forecasting.published import published_life
from maat.scheduling.belief import GradientStatistics, MemoisingFitter
from maat.scheduling.cluster import Cluster
from maat.scheduling.job import JobId
from maat.scheduling.loop import RoundLoop
from maat.simulation.engine import JumpingClock
from maat.simulation.executor import SimulatedExecutor
from maat.simulation.record import Recorder
from maat.simulation.scenario import Scenario
from maat.simulation.simulated_job import SimulatedJob
from maat.simulation.world import World
from maat.simulation.world_models import catalog_models
from maat.workloads.generators import generate

SHAPE, HOUR, DAY = "t4=6x4,rtx=3x8,a100=2x8", 3600.0, 86_400.0
MOST_ENDED = 300
COLUMNS = {
    "policy": "policy",
    "jobs": "jobs",
    "kind": "promise",
    "quantity": "of",
    "promises": "come due",
    "p50": "P50 held",
    "p90": "P90 held",
    "late": "median |error| of P50",
    "cpu": "CPU s per forecast",
}
NOTES = [
    "One forecast of all jobs every two hours, by the live policy, 9 draws; promises of the first "
    "day are not counted. A promise counts once its time has come, whether the job has ended.",
    "submission: the first forecast of a job. later: all others. error: of the P50 of the "
    "time left, relative. A forecast knows neither the jobs to come nor by how much",
    "training is slower than its steps; step times of a model are as published until a job of it "
    "has ended.",
]


@dataclass
class _Promise:
    """Cluster seconds; infinite: later than the draws go. `held`: it held GPUs already."""

    job_id: JobId
    first: bool
    held: bool
    made: float
    start: tuple[float, float]
    end: tuple[float, float]


@dataclass
class _Past:
    """What a service would have kept of the week so far."""

    promised: dict[JobId, tuple[float, float, float]] = field(default_factory=dict)
    gradients: dict[JobId, list[tuple[float, GradientStatistics]]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def note(self, jobs: Mapping[JobId, SimulatedJob]) -> None:
        for job_id, job in jobs.items():
            gradient = job.agent.belief.gradient
            if gradient is not None:
                share = job.ledger.done_work / job.total_work
                self.gradients[job_id].append((share, gradient))

    def history(self, executor: SimulatedExecutor, arrivals: Sequence[PastArrival]) -> History:
        ended = sorted(executor.finished.values(), key=lambda job: -(job.finished_at or 0.0))
        lives: dict[tuple[str | None, str], PastLife] = {}
        for job in ended[:MOST_ENDED]:
            samples = {kind: one.samples for kind, one in job.agent.belief.by_type.items()}
            known = tuple(self.gradients[job.spec.id])
            if known:
                lives.setdefault((None, job.spec.model), PastLife(samples, known))
        for model in catalog_models():
            published = published_life(model)
            if published is not None:
                lives.setdefault((None, model), published)
        went = [self._went(job) for job in ended[:MOST_ENDED]]
        return History(lives, went, arrivals, DAY)

    def _went(self, job: SimulatedJob) -> Ended:
        ledger, pace = job.ledger, None
        begun, end = ledger.started_at or 0.0, ledger.finished_at or 0.0
        promise = self.promised.get(job.spec.id)
        if promise is not None:
            made, ran, at_pace = promise
            pace = at_pace * (end - max(begun, made)) / ran
        return Ended(job.spec.owner, job.spec.model, end - begun, pace)


class _Week:
    """A played cluster, and the forecasts made of it."""

    def __init__(self, policy: str, *, days: float, jobs_per_hour: float, seed: int) -> None:
        hours = days * 24
        workload = generate("philly", jobs=round(hours * jobs_per_hour), hours=hours, seed=seed)
        placer = "whole-node" if policy == "sia" else "packed-sticky"
        self.world = World.of(
            Scenario(workload, catalog_models(), Cluster.parse(SHAPE), policy=policy, placer=placer)
        )
        self.seconds, self._clock = days * DAY, JumpingClock()
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
        self._fitter, self._past = MemoisingFitter(), _Past()
        self.promises: list[_Promise] = []
        self.cpu: list[float] = []

    def play(self, *, every_hours: float) -> None:
        interval = self._loop.round_seconds
        every = round(every_hours * HOUR / interval)
        for number in range(round(self.seconds / interval)):
            self._clock.sleep_until(number * interval)
            self._loop.step()
            if number and number % every == 0:
                self._past.note(self.executor.jobs)
                self._forecast()

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
        window = min(max(present.now, HOUR), DAY)
        unknown = Unknown(replace(history, window_seconds=window))
        self._keep(forecast(present, unknown, fitter=self._fitter), present)
        self.cpu.append(time.process_time() - begun)

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

    def _keep(self, found: Forecast, present: Present) -> None:
        for job_id, one in found.jobs.items():
            first = job_id not in self._past.promised
            if first and one.run_seconds and one.pace is not None:
                self._past.promised[job_id] = (found.now, one.run_seconds, one.pace)
            start = (math.inf, math.inf)
            if one.start is not None:
                start = (_at(one.start.p50, found.now), _at(one.start.p90, found.now))
            end = (_at(one.end.p50, found.now), _at(one.end.p90, found.now))
            held = one.start is None
            self.promises.append(_Promise(job_id, first, held, found.now, start, end))


def measure(
    policies: Sequence[str] = ("sia", "fifo"),
    *,
    days: float = 7.0,
    jobs_per_hour: float = 14.0,
    every_hours: float = 2.0,
    seed: int = 1,
) -> Figures:
    rows: list[dict[str, Cell]] = []
    for policy in policies:
        week = _Week(policy, days=days, jobs_per_hour=jobs_per_hour, seed=seed)
        week.play(every_hours=every_hours)
        rows += [
            _row(week, policy, first=first, quantity=quantity)
            for first in (True, False)
            for quantity in ("start", "end")
        ]
    title = f"Forecasts of a simulated week, {SHAPE}, {jobs_per_hour:g} jobs an hour"
    return Figures("forecast_week", title, COLUMNS, rows, list(NOTES))


def _row(week: _Week, policy: str, *, first: bool, quantity: str) -> dict[str, Cell]:
    came: dict[float, list[bool]] = {0.5: [], 0.9: []}
    errors: list[float] = []
    for one in week.promises:
        if one.first != first or one.made < DAY or not _concerns(week, one, quantity):
            continue
        actual = _actual(week, one.job_id, quantity)
        promised = one.start if quantity == "start" else one.end
        for share, at in zip(came, promised, strict=True):
            if at <= week.seconds:
                came[share].append(actual <= at)
        if actual < math.inf and promised[0] < math.inf and quantity == "end":
            errors.append(abs(promised[0] - actual) / max(actual - one.made, 60.0))
    return {
        "policy": policy,
        "jobs": len(week.executor.finished),
        "kind": "submission" if first else "later",
        "quantity": quantity,
        "promises": len(came[0.9]),
        "p50": float(np.mean(came[0.5])) if came[0.5] else None,
        "p90": float(np.mean(came[0.9])) if came[0.9] else None,
        "late": float(np.median(errors)) if errors else None,
        "cpu": float(np.mean(week.cpu)),
    }


def _concerns(week: _Week, one: _Promise, quantity: str) -> bool:
    if quantity == "end":
        return True
    return not one.held and _actual(week, one.job_id, "start") > one.made


def _actual(week: _Week, job_id: JobId, quantity: str) -> float:
    executor = week.executor
    job = executor.finished.get(job_id) or executor.jobs.get(job_id)
    if job is None:
        return math.inf
    at = job.ledger.started_at if quantity == "start" else job.ledger.finished_at
    return math.inf if at is None else at


def _at(seconds: float | None, now: float) -> float:
    return math.inf if seconds is None else now + seconds
