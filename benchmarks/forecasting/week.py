"""A week in a played cluster: how often what was promised came in time.

A forecast knows fitted step times, gradients, how jobs of the model went, what the catalog
publishes of a model of which no job has ended, and the arrivals of the last day. It knows neither
the jobs to come nor by how much training is slower than its steps.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.forecasting.played import DAY, HOUR, SHAPE, Promise, Settings, Week, played
from benchmarks.table import Cell, Figures
from maat.scheduling.job import JobId

MINUTE = 60.0
JOBS_PER_HOUR = {"sia": 14.0}
RIGID_JOBS_PER_HOUR = 8.0
"""Of policies that give jobs what they ask for: with 14 their queue grows without end."""
COLUMNS = {
    "policy": "policy",
    "seed": "seed",
    "days": "days",
    "rate": "jobs an hour",
    "every": "hours between forecasts",
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
    "Each forecast is of all jobs, by the live policy, 9 draws; promises of the first day are not "
    "counted. A promise counts once its time has come, whether the job has ended.",
    "days: that were played; fewer than asked for if --week-cpu-seconds ended the run.",
    "to a minute: as the pages write times, so a P90 that is missed by less counts as held.",
    "submission: the first forecast of a job. later: all others. error: of the P50 of the "
    "time left, relative. A forecast knows neither the jobs to come nor by how much",
    "training is slower than its steps; step times of a model are as published until a job of it "
    "has ended.",
]


@dataclass(frozen=True)
class Weeks:
    """Which weeks are played: each policy with each seed.

    `kept_in`: where a week is kept after every forecast, so that it goes on another time.
    `most_cpu_seconds`: of each week in this run.
    """

    policies: Sequence[str] = ("sia", "fifo")
    seeds: Sequence[int] = (1,)
    days: float = 7.0
    every_hours: float = 2.0
    kept_in: Path | None = None
    most_cpu_seconds: float = math.inf

    def settings(self) -> Iterator[Settings]:
        for policy in self.policies:
            rate = JOBS_PER_HOUR.get(policy, RIGID_JOBS_PER_HOUR)
            for seed in self.seeds:
                yield Settings(policy, self.days, rate, self.every_hours, seed)


def measure(weeks: Weeks) -> Iterator[Figures]:
    """Yield a table of each week."""
    for settings in weeks.settings():
        week = played(
            settings,
            kept_in=weeks.kept_in,
            most_cpu_seconds=weeks.most_cpu_seconds,
            progress=_tell,
        )
        yield Figures(
            "forecast_week",
            f"Forecasts of a simulated week, {SHAPE}",
            COLUMNS,
            rows_of(week),
            list(NOTES),
        )


def _tell(week: Week) -> None:
    """Say on standard error how far a week is: it takes many minutes."""
    cpu = f", {week.cpu[-1]:.1f} CPU s for the last forecast" if week.cpu else ""
    settings, hours = week.settings, week.seconds / HOUR
    of = settings.days * 24
    print(
        f"{settings.policy}, seed {settings.seed}: hour {hours:.0f} of {of:.0f}{cpu}",
        file=sys.stderr,
        flush=True,
    )


def rows_of(week: Week) -> list[dict[str, Cell]]:
    return [
        _row(week, first=first, quantity=quantity)
        for first in (True, False)
        for quantity in ("start", "end")
    ]


def _row(week: Week, *, first: bool, quantity: str) -> dict[str, Cell]:
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
        "policy": week.settings.policy,
        "seed": week.settings.seed,
        "days": week.seconds / DAY,
        "rate": week.settings.jobs_per_hour,
        "every": week.settings.every_hours,
        "jobs": len(week.executor.finished),
        "kind": "submission" if first else "later",
        "quantity": quantity,
        "promises": len(came[0.9]),
        "p50": float(np.mean(came[0.5])) if came[0.5] else None,
        "p90": float(np.mean(came[0.9])) if came[0.9] else None,
        "p90_to_a_minute": float(np.mean(nearly)) if nearly else None,
        "late": float(np.median(errors)) if errors else None,
        "cpu": float(np.mean(week.cpu)) if week.cpu else None,
    }


def _concerns(week: Week, one: Promise, quantity: str) -> bool:
    if quantity == "end":
        return True
    return not one.held and _actual(week, one.job_id, "start") > one.made


def _actual(week: Week, job_id: JobId, quantity: str) -> float:
    executor = week.executor
    job = executor.finished.get(job_id) or executor.jobs.get(job_id)
    if job is None:
        return math.inf
    at = job.ledger.started_at if quantity == "start" else job.ledger.finished_at
    return math.inf if at is None else at
