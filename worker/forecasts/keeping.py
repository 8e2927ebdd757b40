"""What is kept of a forecast: the latest of every job, and promises at fixed moments."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any

import sqlalchemy as sa
from sqlmodel import Session, col

from backend.models import ForecastPromise, JobForecastRow
from backend.models import Job as JobRow
from maat.forecasting.forecast import LEAST_DRAWS, Forecast, JobForecast, Quantiles
from maat.forecasting.play import Span
from maat.scheduling.job import JobId
from maat.vocabulary import PromiseKind

HOUR_SECONDS = 3600.0
MOST_SPANS = 20
_AT_ONCE = 500  # rows: databases limit the parameters of a statement


def keep(session: Session, cluster_id: str, found: Forecast, *, round_number: int) -> None:
    """Replace the forecasts of a cluster's jobs, and keep the promises that are due.

    Of fewer than LEAST_DRAWS nothing is promised: they have no P90. What was found meanwhile of
    jobs that came later stays.
    """
    _forget(session, cluster_id, until=found.now)
    still = _unfinished(session, cluster_id)
    jobs = [one for one in found.jobs.values() if one.job_id in still]
    _insert_latest(session, cluster_id, found, jobs, round_number)
    if len(found.draws) < LEAST_DRAWS:
        return
    promises = [
        {
            "cluster_id": cluster_id,
            "made_seconds": found.now,
            **columns_of(one, found.now),
            "kind": kind.value,
        }
        for one, kind in _due(session, jobs, found.now)
    ]
    _insert(session, ForecastPromise, promises)


def keep_first(
    session: Session,
    cluster_id: str,
    found: Forecast,
    jobs: Set[JobId],
    *,
    round_number: int,
) -> None:
    """Keep a first forecast of these jobs, in place of what they have; promise nothing."""
    still = _unfinished(session, cluster_id) & jobs
    made = [one for one in found.jobs.values() if one.job_id in still]
    ids = [one.job_id for one in made]
    for first in range(0, len(ids), _AT_ONCE):
        some = col(JobForecastRow.job_id).in_(ids[first : first + _AT_ONCE])
        session.execute(sa.delete(JobForecastRow).where(some))
    _insert_latest(session, cluster_id, found, made, round_number)


def jobs_without(session: Session, cluster_id: str) -> set[JobId]:
    """Return the jobs that have not ended and have no forecast."""
    mine = col(JobForecastRow.cluster_id) == cluster_id
    known = set(session.execute(sa.select(col(JobForecastRow.job_id)).where(mine)).scalars())
    return _unfinished(session, cluster_id) - known


def jobs_without_recent(session: Session, cluster_id: str, now: float) -> set[JobId]:
    """Return the jobs that have not ended, and no forecast of the last hour of cluster time."""
    recent = (
        col(JobForecastRow.cluster_id) == cluster_id,
        col(JobForecastRow.made_seconds) >= now - HOUR_SECONDS,
    )
    known = set(session.execute(sa.select(col(JobForecastRow.job_id)).where(*recent)).scalars())
    return _unfinished(session, cluster_id) - known


def jobs_of_few_draws(session: Session, cluster_id: str) -> set[JobId]:
    """Return the jobs whose forecast is of too few draws for a P90."""
    few = (
        col(JobForecastRow.cluster_id) == cluster_id,
        col(JobForecastRow.draws) < LEAST_DRAWS,
    )
    return set(session.execute(sa.select(col(JobForecastRow.job_id)).where(*few)).scalars())


def _insert_latest(
    session: Session,
    cluster_id: str,
    found: Forecast,
    jobs: Iterable[JobForecast],
    round_number: int,
) -> None:
    common = {
        "cluster_id": cluster_id,
        "made_seconds": found.now,
        "round_number": round_number,
        "draws": len(found.draws),
    }
    rows = [{**common, **latest_of(one, found.now)} for one in jobs]
    _insert(session, JobForecastRow, rows)


def columns_of(one: JobForecast, now: float) -> dict[str, Any]:
    """Return the quantiles of a job as columns: cluster seconds."""
    start = Quantiles(None, None) if one.start is None else one.start
    return {
        "job_id": one.job_id,
        "holds_gpus": one.start is None,
        "start_p50": _at(start.p50, now),
        "start_p90": _at(start.p90, now),
        "end_p50": _at(one.end.p50, now),
        "end_p90": _at(one.end.p90, now),
    }


def latest_of(one: JobForecast, now: float) -> dict[str, Any]:
    """Return the quantiles of a job, what it holds over time (the first spans), and its grounds."""
    return {
        **columns_of(one, now),
        "spans": [_span(span) for span in one.spans[:MOST_SPANS]],
        "basis": one.grounds.basis.value,
        "precedents": one.grounds.precedents,
    }


def _span(span: Span) -> list[Any]:
    return [span.at, span.gpu_type, span.gpu_count]


def _due(
    session: Session, jobs: Iterable[JobForecast], now: float
) -> Iterator[tuple[JobForecast, PromiseKind]]:
    """Yield the jobs of which a promise is due: their first one, or the first of an hour."""
    latest = _latest_promises(session, [one.job_id for one in jobs])
    for one in jobs:
        at = latest.get(one.job_id)
        if at is None:
            yield one, PromiseKind.SUBMISSION
        elif math.floor(at / HOUR_SECONDS) < math.floor(now / HOUR_SECONDS):
            yield one, PromiseKind.HOURLY


def _latest_promises(session: Session, job_ids: list[JobId]) -> Mapping[JobId, float]:
    found: dict[JobId, float] = {}
    table = col(ForecastPromise.job_id)
    for first in range(0, len(job_ids), _AT_ONCE):
        some = job_ids[first : first + _AT_ONCE]
        latest = sa.func.max(col(ForecastPromise.made_seconds))
        rows = session.execute(sa.select(table, latest).where(table.in_(some)).group_by(table))
        found.update({row[0]: row[1] for row in rows})
    return found


def _unfinished(session: Session, cluster_id: str) -> set[JobId]:
    """Return the jobs that have not ended: some may have while the forecast was made."""
    rows = sa.select(col(JobRow.id)).where(
        col(JobRow.cluster_id) == cluster_id, col(JobRow.finished_seconds).is_(None)
    )
    return set(session.execute(rows).scalars())


def _forget(session: Session, cluster_id: str, *, until: float) -> None:
    mine = (
        col(JobForecastRow.cluster_id) == cluster_id,
        col(JobForecastRow.made_seconds) <= until,
    )
    session.execute(sa.delete(JobForecastRow).where(*mine))


def _insert(session: Session, table: Any, rows: list[dict[str, Any]]) -> None:
    for first in range(0, len(rows), _AT_ONCE):
        session.execute(sa.insert(table), rows[first : first + _AT_ONCE])


def _at(seconds: float | None, now: float) -> float | None:
    return None if seconds is None else now + seconds
