"""A week in a played cluster: how often what was promised came in time.

A forecast knows fitted step times, gradients, how jobs of the model went, what the catalog
publishes of a model of which no job has ended, and the arrivals of the last day. It knows neither
the jobs to come nor by how much training is slower than its steps.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.table import Cell, Figures
from maat.forecasting.draws import Unknown
from maat.forecasting.forecast import Forecast, forecast
from maat.forecasting.history import Ended, History, PastArrival, PastLife, Stretch, together
from maat.forecasting.paces import Course, tempos_of
from maat.forecasting.play import present_jobs
from maat.forecasting.present import Present, WaitingJob
from maat.forecasting.published import published_life
from maat.forecasting.truths import unseen_job
from maat.scheduling.belief import Fitter, GradientStatistics, MemoisingFitter
from maat.scheduling.cluster import Cluster
from maat.scheduling.job import Allocation, JobId
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
MINUTE = 60.0
MOST_ENDED = 300
COLUMNS = {
    "policy": "policy",
    "jobs": "jobs",
    "kind": "promise",
    "quantity": "of",
    "promises": "come due",
    "p50": "P50 held",
    "p90": "P90 held",
    "p90_to_a_minute": "to a minute",
    "late": "median |error| of P50",
    "cpu": "CPU s per forecast",
}
NOTES = [
    "One forecast of all jobs every two hours, by the live policy, 9 draws; promises of the first "
    "day are not counted. A promise counts once its time has come, whether the job has ended.",
    "to a minute: as the pages write times, so a P90 that is missed by less counts as held.",
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


@dataclass(frozen=True, slots=True)
class _Held:
    """What a job held after a round, what it still had to pay for its start, and its work."""

    since: float
    allocation: Allocation
    nodes: int
    restart_left: float
    done: float
    samples: float


class _Past:
    """What a service would have kept of the week so far: spans, and gradients, as they changed."""

    def __init__(self, cluster: Cluster, fitter: Fitter) -> None:
        self._cluster, self._fitter = cluster, fitter
        self._gradients: dict[JobId, list[tuple[float, GradientStatistics]]] = defaultdict(list)
        self._stretches: dict[JobId, list[Stretch]] = defaultdict(list)
        self._held: dict[JobId, _Held] = {}

    def note(self, now: float, executor: SimulatedExecutor) -> None:
        """Note what the jobs did since the last round, and what they hold from now on."""
        for job_id, held in self._held.items():
            job = executor.finished.get(job_id) or executor.jobs[job_id]
            end = now if job.finished_at is None else job.finished_at
            seconds = end - held.since - held.restart_left
            if seconds > 0:
                self._add(job_id, held, seconds, job)
        self._held = {
            job_id: _Held(
                now,
                job.allocation,
                len(job.shape),
                job.ledger.restart_left,
                job.ledger.done_work,
                job.ledger.processed_samples,
            )
            for job_id, job in executor.jobs.items()
            if job.allocation is not None
        }

    def _add(self, job_id: JobId, held: _Held, seconds: float, job: SimulatedJob) -> None:
        """Lengthen the job's last stretch, or begin one if it held other GPUs then."""
        kind, count, ledger = held.allocation.gpu_type, held.allocation.gpu_count, job.ledger
        stretches, samples = self._stretches[job_id], ledger.processed_samples - held.samples
        done, batch = ledger.done_work, None if job.plan is None else job.plan.total_batch_size
        one = Stretch(kind, count, held.nodes, seconds, held.done, done, samples, batch)
        last = stretches[-1] if stretches else None
        if last is not None and _same_gpus(last, one):
            stretches[-1] = replace(
                one,
                seconds=last.seconds + seconds,
                begin=last.begin,
                samples=last.samples + samples,
                batch_size=last.batch_size if batch is None else batch,
            )
        else:
            stretches.append(one)
        gradient, known = job.agent.belief.gradient, self._gradients[job_id]
        if gradient is not None and (not known or known[-1][1] != gradient):
            known.append((done / job.total_work, gradient))

    def history(self, executor: SimulatedExecutor, arrivals: Sequence[PastArrival]) -> History:
        ended = sorted(executor.finished.values(), key=lambda job: -(job.finished_at or 0.0))
        lives: dict[tuple[str | None, str], PastLife] = {}
        for model in catalog_models():
            life = self._life(model, ended[:MOST_ENDED])
            if life is not None:
                lives[None, model] = life
        running = {job_id: tuple(self._stretches[job_id]) for job_id in executor.jobs}
        history = History(lives, (), arrivals, stretches=running)
        return replace(history, ended=self._ended(ended[:MOST_ENDED], history))

    def _life(self, model: str, ended: Sequence[SimulatedJob]) -> PastLife | None:
        """Return what jobs of a model measured, the latest first; else what is published of it."""
        lives = [
            PastLife(
                {kind: one.samples for kind, one in job.agent.belief.by_type.items()},
                tuple(self._gradients[job.spec.id]),
            )
            for job in ended
            if job.spec.model == model
        ]
        return together(lives) or published_life(model)

    def _ended(self, jobs: Sequence[SimulatedJob], history: History) -> Sequence[Ended]:
        courses = [
            Course(
                unseen_job(job.spec),
                history.life_of(job.spec),
                job.total_work,
                self._stretches[job.spec.id],
            )
            for job in jobs
        ]
        tempos = tempos_of(courses, self._cluster, fitter=self._fitter)
        return [
            Ended(job.spec.owner, job.spec.model, _run_seconds(job), tempo, job.ledger.restarts)
            for job, tempo in zip(jobs, tempos, strict=True)
        ]


def _same_gpus(one: Stretch, other: Stretch) -> bool:
    kinds = {(each.gpu_type, each.gpu_count, each.node_count) for each in (one, other)}
    return len(kinds) == 1 and one.end == other.begin


def _run_seconds(job: SimulatedJob) -> float:
    return (job.ledger.finished_at or 0.0) - (job.ledger.started_at or 0.0)


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
        self._fitter = MemoisingFitter()
        self._past = _Past(self.world.cluster, self._fitter)
        self.promises: list[_Promise] = []
        self._promised: set[JobId] = set()
        self.cpu: list[float] = []

    def play(self, *, every_hours: float) -> None:
        interval = self._loop.round_seconds
        every = round(every_hours * HOUR / interval)
        for number in range(round(self.seconds / interval)):
            self._clock.sleep_until(number * interval)
            self._loop.step()
            self._past.note(self._clock.now(), self.executor)
            if number and number % every == 0:
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
        self._keep(forecast(present, Unknown(history), fitter=self._fitter), present)
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
            first = job_id not in self._promised
            self._promised.add(job_id)
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
    nearly: list[bool] = []
    errors: list[float] = []
    for one in week.promises:
        if one.first != first or one.made < DAY or not _concerns(week, one, quantity):
            continue
        actual = _actual(week, one.job_id, quantity)
        promised = one.start if quantity == "start" else one.end
        for share, at in zip(came, promised, strict=True):
            if at <= week.seconds:
                came[share].append(actual <= at)
        if promised[1] <= week.seconds:
            nearly.append(actual <= promised[1] + MINUTE)
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
        "p90_to_a_minute": float(np.mean(nearly)) if nearly else None,
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
