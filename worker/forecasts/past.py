"""Reads what the past of a cluster says of jobs to come: lives, paces, arrivals."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from sqlmodel import Session, col, select

from backend.models import Cluster as ClusterRow
from backend.models import EndedBelief, ForecastPromise, GradientSample, StepSample
from backend.models import Job as JobRow
from maat.forecasting.draws import Unknown
from maat.forecasting.history import Ended, History, PastArrival, PastLife
from maat.forecasting.published import published_life
from maat.scheduling.belief import GradientStatistics
from maat.scheduling.fitting import Sample
from maat.vocabulary import JobState, PromiseKind
from worker.forecasts.specs import Specs
from worker.training.beliefs import believed_samples

DAY_SECONDS = 86_400.0
LEAST_WINDOW_SECONDS = 3600.0
MOST_ARRIVALS = 1000
MOST_ENDED = 300
MOST_LOOKED_AT = 2000
"""Ended jobs among which the latest of each owner and model is looked for."""
MOST_LIVES = 200

LifeKey = tuple[str | None, str]


def unknown_of(
    session: Session,
    cluster: ClusterRow,
    now: float,
    specs: Specs,
    jobs: Sequence[JobRow],
    *,
    asked: str | None = None,
) -> Unknown:
    """Read the past. `jobs`: the unfinished ones; `specs` learns of those that came lately.

    `asked`: a model that counts beside theirs.
    """
    recent, window = _recent(session, cluster.id, now)
    specs.know(session, recent)
    arrivals = [
        PastArrival(spec, now - row.submitted_seconds)
        for row in recent
        if (spec := specs.spec(row)) is not None
    ]
    models = {row.model for row in (*jobs, *recent)} | ({asked} if asked is not None else set())
    lives = _lives(session, cluster, models)
    history = History(lives, _ended(session, cluster.id), arrivals, window)
    return Unknown(history, seed=0)


def _recent(session: Session, cluster_id: str, now: float) -> tuple[list[JobRow], float]:
    """Return the jobs that came in the last day, and the seconds for which they stand.

    That is a day, for a younger cluster too: jobs that came at once, when it began, are no rate. Of
    very many, the newest stand for the time since the first of them.
    """
    rows = list(
        session.exec(
            select(JobRow)
            .where(
                JobRow.cluster_id == cluster_id, col(JobRow.submitted_seconds) > now - DAY_SECONDS
            )
            .order_by(col(JobRow.submitted_seconds).desc(), col(JobRow.id))
            .limit(MOST_ARRIVALS)
        )
    )
    if len(rows) < MOST_ARRIVALS:
        return rows, DAY_SECONDS
    since = now - rows[-1].submitted_seconds
    return rows, min(max(since, LEAST_WINDOW_SECONDS), DAY_SECONDS)


def _ended(session: Session, cluster_id: str) -> list[Ended]:
    """Return the jobs that succeeded last, with what was foretold of them when they came."""
    rows = session.exec(
        select(JobRow, ForecastPromise)
        .outerjoin(
            ForecastPromise,
            (col(ForecastPromise.job_id) == col(JobRow.id))
            & (col(ForecastPromise.kind) == PromiseKind.SUBMISSION.value),
        )
        .where(JobRow.cluster_id == cluster_id, col(JobRow.finished_seconds).is_not(None))
        .order_by(col(JobRow.finished_seconds).desc())
        .limit(MOST_ENDED)
    )
    return [found for row, promise in rows if (found := _how_it_went(row, promise)) is not None]


def _how_it_went(row: JobRow, promise: ForecastPromise | None) -> Ended | None:
    if row.state != JobState.SUCCEEDED or row.started_seconds is None or not row.finished_seconds:
        return None
    ran, pace = row.finished_seconds - row.started_seconds, None
    if promise is not None and promise.run_seconds and promise.pace is not None and ran > 0:
        since = max(row.started_seconds, promise.made_seconds if promise.holds_gpus else 0.0)
        pace = promise.pace * (row.finished_seconds - since) / promise.run_seconds
    return Ended(row.owner_id, row.model, ran, pace)


def _lives(
    session: Session, cluster: ClusterRow, models: Collection[str]
) -> dict[LifeKey, PastLife]:
    """Return the latest life of every model, and of every owner of it; else what is published."""
    found: dict[LifeKey, PastLife] = {}
    for row in _latest(session, cluster.id, models):
        life = _trained(session, row) if cluster.runs_commands else _played(session, row)
        if life is not None:
            found[row.owner_id, row.model] = life
            found.setdefault((None, row.model), life)
    for model in () if cluster.runs_commands else models:
        published = published_life(model)
        if published is not None:
            found.setdefault((None, model), published)
    return found


def _latest(session: Session, cluster_id: str, models: Collection[str]) -> list[JobRow]:
    """Return the job of every owner and model that succeeded last, the newest first."""
    rows = session.execute(
        select(JobRow.id, JobRow.owner_id, JobRow.model)
        .where(
            JobRow.cluster_id == cluster_id,
            col(JobRow.finished_seconds).is_not(None),
            JobRow.state == JobState.SUCCEEDED.value,
        )
        .order_by(col(JobRow.finished_seconds).desc())
        .limit(MOST_LOOKED_AT)
    )
    newest: dict[tuple[str, str], str] = {}
    for job_id, owner, model in rows:
        if model in models:
            newest.setdefault((owner, model), job_id)
    return [session.get_one(JobRow, job_id) for job_id in list(newest.values())[:MOST_LIVES]]


def _played(session: Session, row: JobRow) -> PastLife | None:
    kept = session.get(EndedBelief, row.id)
    work = row.gained_samples
    if kept is None or not kept.samples or work <= 0:
        return None
    samples = {
        kind: tuple(Sample(int(n), int(r), int(b), t, s) for n, r, b, t, s in rows)
        for kind, rows in kept.samples.items()
    }
    gradients = _gradients(session, row.id) if kept.gradients is None else kept.gradients
    return PastLife(samples, _by_share(gradients, work))


def _trained(session: Session, row: JobRow) -> PastLife | None:
    rows = session.exec(select(StepSample).where(StepSample.job_id == row.id)).all()
    if not rows:
        return None
    gradients = _gradients(session, row.id)
    work = max([one[0] for one in gradients], default=0.0)
    return PastLife(believed_samples(rows), _by_share(gradients, max(row.gained_samples, work)))


def _gradients(session: Session, job_id: str) -> list[list[float]]:
    columns = (GradientSample.progress, GradientSample.square, GradientSample.variance)
    rows = session.exec(
        select(*columns)
        .where(GradientSample.job_id == job_id)
        .order_by(col(GradientSample.progress), col(GradientSample.id))
    ).all()
    every = max(len(rows) // 32, 1)
    return [list(row) for row in rows[::every]]


def _by_share(
    gradients: Iterable[Sequence[float]], work: float
) -> tuple[tuple[float, GradientStatistics], ...]:
    if work <= 0:
        return ()
    return tuple(
        (min(done / work, 1.0), GradientStatistics(square, variance))
        for done, square, variance in gradients
    )
