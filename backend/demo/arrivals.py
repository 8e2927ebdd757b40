"""Which demo jobs arrive when. Draws jobs; stores nothing.

A function of cluster time and of the weekday on which it begins: two workers that ask submit the
same jobs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache

import numpy as np

from maat.api.jobs import JobBody
from maat.workloads.generators import generate
from maat.workloads.workloads import TraceJob

HOUR_SECONDS = 3600.0
HOURS_PER_DAY, HOURS_PER_WEEK = 24, 168
# Jobs in each hour of a weekday, UTC: people submit by day, long searches go on by night.
WEEKDAY_RATES = (
    *(4.0, 3.5, 3.0, 3.0, 3.0, 3.5, 4.5, 6.0, 9.0, 12.0, 13.0, 13.0),
    *(11.0, 12.0, 13.0, 13.0, 12.5, 11.0, 9.5, 8.5, 8.0, 7.0, 6.0, 5.0),
)
WEEKEND_SHARE, FIRST_OF_WEEKEND = 0.5, 5
# Median, and standard deviation of the logarithm: shares of a model's standard training.
WORK_SCALE, WORK_SPREAD = 1.2, 0.8
ADAPTIVITIES, ADAPTIVITY_SHARES = ("adaptive", "strong-scaling", "rigid"), (0.68, 0.14, 0.18)
NOT_PREEMPTIBLE_SHARE = 0.04
# Jobs of these models train for hours. Their owners want them moved once an hour at most.
LONG_MODELS, MOST_MOVES_OF_LONG_JOBS = frozenset({"imagenet", "yolov3"}), 1

_FAMILY = "philly"
_SEED = 20_260
_PURPOSES = (
    "baseline",
    "ablation",
    "finetune",
    "warmup",
    "distil",
    "augment",
    "pruned",
    "long-run",
)


@dataclass(frozen=True)
class Team:
    """A tenant of the demo cluster, its members, and its share of the jobs."""

    name: str
    members: tuple[str, ...]
    share: float


TEAMS = (
    Team("vision", ("ada", "bruno"), 0.4),
    Team("language", ("chen", "dalia"), 0.3),
    Team("speech", ("emre",), 0.2),
    Team("ranking", ("fatou",), 0.1),
)


@dataclass(frozen=True)
class Arrival:
    """One job: its arrival in cluster seconds, who submits it, and the request.

    Its external id is unique and never changes.
    """

    seconds: float
    team: Team
    member: str
    body: JobBody


def arrivals(
    cluster_id: str, *, after: float, until: float, begins_at: int = 0
) -> Iterator[Arrival]:
    """Yield the jobs that arrive in (after, until], in order.

    `begins_at`: the hour of the week of cluster second 0 (`hour_of_week`).
    """
    first, last = max(int(after // HOUR_SECONDS), 0), int(until // HOUR_SECONDS)
    for hour in range(first, last + 1):
        yield from (
            arrival
            for arrival in _of_hour(cluster_id, hour, begins_at)
            if after < arrival.seconds <= until
        )


def hour_of_week(moment: datetime) -> int:
    """Return the hours since Monday, 00:00 UTC."""
    utc = moment.astimezone(UTC)
    return utc.weekday() * HOURS_PER_DAY + utc.hour


def rate(hour: int) -> float:
    """Return the expected jobs in this hour of the week."""
    day, hour_of_day = divmod(hour % HOURS_PER_WEEK, HOURS_PER_DAY)
    share = WEEKEND_SHARE if day >= FIRST_OF_WEEKEND else 1.0
    return share * WEEKDAY_RATES[hour_of_day]


@lru_cache(maxsize=4)
def _of_hour(cluster_id: str, hour: int, begins_at: int) -> tuple[Arrival, ...]:
    """Return the jobs of one hour; cached, since every beat of that hour asks for it."""
    return tuple(_drawn(cluster_id, hour, begins_at))


def _drawn(cluster_id: str, hour: int, begins_at: int) -> Iterator[Arrival]:
    rng = np.random.default_rng((_SEED, hour))
    count = int(rng.poisson(rate(hour + begins_at)))
    if count == 0:
        return
    moments = np.sort(rng.uniform(0.0, HOUR_SECONDS, count)) + hour * HOUR_SECONDS
    drawn = generate(_FAMILY, jobs=count, seed=_SEED + hour).jobs
    for index, (job, seconds) in enumerate(zip(drawn, moments.tolist(), strict=True)):
        team = TEAMS[int(rng.choice(len(TEAMS), p=[team.share for team in TEAMS]))]
        member = str(rng.choice(team.members))
        yield Arrival(seconds, team, member, _body(cluster_id, job, f"{hour:04d}-{index:02d}", rng))


def _body(cluster_id: str, job: TraceJob, number: str, rng: np.random.Generator) -> JobBody:
    adaptivity = str(rng.choice(ADAPTIVITIES, p=ADAPTIVITY_SHARES))
    fixed = adaptivity != "adaptive"
    scale = float(np.clip(rng.lognormal(math.log(WORK_SCALE), WORK_SPREAD), 0.02, 4.0))
    return JobBody.model_validate(
        {
            "name": f"{job.model}-{rng.choice(_PURPOSES)}-{number}",
            "external_id": f"demo-{number}",
            "cluster_id": cluster_id,
            "model": job.model,
            "adaptivity": adaptivity,
            "gpu_count": job.gpu_count if adaptivity == "rigid" else None,
            "max_gpus": 16 if fixed and adaptivity != "rigid" else None,
            "batch_size": job.batch_size if fixed else None,
            "work_scale": round(scale, 3),
            "preemptible": bool(rng.random() >= NOT_PREEMPTIBLE_SHARE),
            "most_moves_per_hour": MOST_MOVES_OF_LONG_JOBS if job.model in LONG_MODELS else None,
        }
    )
