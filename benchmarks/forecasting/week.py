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
    "source": "by",
    "kind": "promise",
    "quantity": "of",
    "promises": "come due",
    "p50": "P50 held",
    "p90": "P90 held",
    "p90_to_a_minute": "to a minute",
    "width": "median P90 - P50, min",
    "within_1": "within 1 min",
    "within_10": "within 10 min",
    "off": "median |error|, min",
    "late": "median |error| of P50",
    "cpu": "CPU s per forecast",
}
NOTES = [
    "Each forecast is of all jobs, by the live policy, 9 draws; promises of the first day are not "
    "counted. A promise counts once its time has come, whether the job has ended.",
    "days: that were played; fewer than asked for if --week-cpu-seconds ended the run.",
    "to a minute: as the pages write times, so a P90 that is missed by less counts as held.",
    "within 1 min, 10 min: of all whose time or whose P50 has come, how many came so near to their "
    "P50, before or after. Later than the draws go is none of them.",
    "backfill: what a backfilling scheduler says at the same moments by time limits: the mean, or "
    "the longest, run of ended jobs of the model (benchmarks/forecasting/backfill.py).",
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
        _row(week, source, promises, first=first, quantity=quantity)
        for source, promises in _promises_of(week).items()
        for first in (True, False)
        for quantity in ("start", "end")
    ]


def _promises_of(week: Week) -> dict[str, list[Promise]]:
    return {"maat": week.promises} | {
        f"backfill, {name}": found for name, found in week.guesses.items()
    }


def _row(
    week: Week, source: str, promises: Sequence[Promise], *, first: bool, quantity: str
) -> dict[str, Cell]:
    mine = [
        (one, one.start if quantity == "start" else one.end, _actual(week, one.job_id, quantity))
        for one in promises
        if one.first == first and one.made >= DAY and _concerns(week, one, quantity)
    ]
    now = week.seconds
    came = {
        share: [actual <= promised[share] for _, promised, actual in mine if promised[share] <= now]
        for share in (0, 1)
    }
    nearly = [actual <= at[1] + MINUTE for _, at, actual in mine if at[1] <= now]
    widths = [at[1] - at[0] for _, at, _ in mine if at[1] < math.inf]
    errors = [
        (abs(at[0] - actual), max(actual - one.made, 60.0))
        for one, at, actual in mine
        if max(at[0], actual) < math.inf
    ]
    return {
        "policy": week.settings.policy,
        "seed": week.settings.seed,
        "days": now / DAY,
        "rate": week.settings.jobs_per_hour,
        "every": week.settings.every_hours,
        "jobs": len(week.executor.finished),
        "source": source,
        "kind": "submission" if first else "later",
        "quantity": quantity,
        "promises": len(came[1]) if source == "maat" else len(came[0]),
        "p50": _mean(came[0]),
        "p90": _mean(came[1]),
        "p90_to_a_minute": _mean(nearly),
        "width": _median([one / MINUTE for one in widths]),
        "within_1": _mean(list(_near(mine, MINUTE, now))),
        "within_10": _mean(list(_near(mine, 10 * MINUTE, now))),
        "off": _median([error / MINUTE for error, _ in errors]),
        "late": _median([error / left for error, left in errors]) if quantity == "end" else None,
        "cpu": _mean(week.cpu) if source == "maat" else None,
    }


def _near(
    mine: Sequence[tuple[Promise, tuple[float, float], float]], seconds: float, now: float
) -> Iterator[bool]:
    """Yield of every promise of which it is known by now whether its P50 was so near."""
    for _, promised, actual in mine:
        if actual < math.inf or promised[0] + seconds <= now:
            yield abs(promised[0] - actual) <= seconds if actual < math.inf else False


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _median(values: Sequence[float]) -> float | None:
    return float(np.median(values)) if values else None


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
