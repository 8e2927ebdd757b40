"""Reads what the past of a cluster says of jobs to come: lives, paces, arrivals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import sqlalchemy as sa
from sqlmodel import Session, col, select

from backend.attempts.shared_models import shared_models
from backend.evidence.of_models import forgotten_until
from backend.models import Cluster as ClusterRow
from backend.models import EndedBelief, GradientSample, JobAllocation, Round, StepSample
from backend.models import Job as JobRow
from maat.forecasting.draws import Unknown
from maat.forecasting.history import (
    MOST_CURVES,
    Curve,
    Ended,
    History,
    LifeKey,
    PastArrival,
    PastLife,
    Stretch,
    of_tenants,
    together,
)
from maat.forecasting.paces import Course, tempos_of
from maat.forecasting.published import published_life
from maat.forecasting.truths import unseen_job
from maat.scheduling.belief import GradientStatistics
from maat.scheduling.cluster import Cluster
from maat.scheduling.evidence import ModelKey, SharedModels
from maat.scheduling.fitting import Sample
from maat.scheduling.job import JobId
from maat.vocabulary import JobState
from worker.executors.simulated_state import fit_once
from worker.forecasts.shared_time import SharedTime, shared_time
from worker.forecasts.specs import Specs
from worker.live.snapshot import due_after
from worker.training.beliefs import believed_samples

DAY_SECONDS = 86_400.0
MOST_ARRIVALS = 1000
MOST_ENDED = 300
MOST_LOOKED_AT = 2000
"""Ended jobs among which the latest of each owner and model is looked for."""
MOST_LIVES = 300
MOST_DELAYS = 100
_AT_ONCE = 500  # ids: databases limit the parameters of a statement
_SPAN = (
    JobAllocation.job_id,
    JobAllocation.gpu_type,
    JobAllocation.gpu_count,
    JobAllocation.gpus,
    JobAllocation.node_count,
    JobAllocation.running_seconds,
    JobAllocation.to_seconds,
    JobAllocation.gained_before,
    JobAllocation.gained_after,
    JobAllocation.processed_before,
    JobAllocation.processed_after,
    JobAllocation.total_batch_size,
)

_LATEST = (
    JobRow.id,
    JobRow.tenant_id,
    JobRow.owner_id,
    JobRow.model,
    JobRow.gained_samples,
    JobRow.finished_seconds,
)

Samples = Mapping[str, tuple[Sample, ...]]


def unknown_of(
    session: Session,
    cluster: ClusterRow,
    now: float,
    specs: Specs,
    jobs: Sequence[JobRow],
    *,
    shape: Cluster,
    last_at: float,
    asked: str | None = None,
    slowdowns: Mapping[tuple[str, str, int], float] | None = None,
) -> Unknown:
    """Read the past. `jobs`: the unfinished ones; `specs` learns of the recent ones too.

    `shape`: the nodes. `last_at`: when the counters of running jobs were read. `asked`: a model
    that counts beside theirs. `slowdowns`: of jobs on one GPU; None if none share.
    """
    recent, stand_for = _recent(session, cluster.id, now)
    ended = _ended(session, cluster.id)
    specs.know(session, [*recent, *ended])
    arrivals = [
        PastArrival(spec, now - row.submitted_seconds)
        for row in recent
        if (spec := specs.spec(row)) is not None
    ]
    models = {row.model for row in (*jobs, *recent)} | ({asked} if asked is not None else set())
    beside = None
    if slowdowns is not None:
        begins = [row.started_seconds for row in (*jobs, *ended) if row.started_seconds is not None]
        since = min(begins, default=now)
        beside = shared_time(session, cluster.id, specs, slowdowns, since=since)
    running = stretches_of(session, jobs, last_at=last_at, shared=beside)
    shared = shared_models(session, cluster)
    lives, curves = _lives(session, cluster, models, specs, shared)
    history = History(lives, (), arrivals, stand_for, running, shared)
    stretches = stretches_of(session, ended, shared=beside)
    went = _went(ended, stretches, history, curves=curves, specs=specs, shape=shape)
    return Unknown(
        replace(history, ended=went), seed=0, round_delays=_round_delays(session, cluster)
    )


def _round_delays(session: Session, cluster: ClusterRow) -> list[float]:
    """Return by how many seconds each of the last rounds came after it was due.

    Without those that came more than an interval late: the service was away, or stood still.
    """
    mine = select(Round.at_seconds).where(Round.cluster_id == cluster.id)
    latest = session.exec(mine.order_by(col(Round.number).desc()).limit(MOST_DELAYS + 1)).all()
    interval = cluster.round_seconds
    delays = [at - due_after(last, interval) for at, last in pairwise(latest)]
    return [delay for delay in delays if 0.0 <= delay <= interval]


def _recent(session: Session, cluster_id: str, now: float) -> tuple[list[JobRow], float]:
    """Return jobs that came in the last day, and for how many each stands.

    It is a day for a younger cluster too: jobs that came at once, when it began, are no rate. Of
    very many, every k-th in the order in which they came.
    """
    came = (
        JobRow.cluster_id == cluster_id,
        col(JobRow.submitted_seconds) > now - DAY_SECONDS,
    )
    total = session.exec(select(sa.func.count()).select_from(JobRow).where(*came)).one()
    wanted = select(JobRow).where(*came)
    if total > MOST_ARRIVALS:
        order_by = (col(JobRow.submitted_seconds), col(JobRow.id))
        in_order = sa.func.row_number().over(order_by=order_by)
        numbered = select(JobRow.id, in_order.label("number")).where(*came).subquery()
        some = numbered.c.number % -(-total // MOST_ARRIVALS) == 0
        wanted = select(JobRow).where(col(JobRow.id).in_(sa.select(numbered.c.id).where(some)))
    order = (col(JobRow.submitted_seconds).desc(), col(JobRow.id))
    rows = list(session.exec(wanted.order_by(*order)))
    return rows, total / max(len(rows), 1)


def _ended(session: Session, cluster_id: str) -> list[JobRow]:
    """Return the jobs that succeeded last."""
    rows = session.exec(
        select(JobRow)
        .where(
            JobRow.cluster_id == cluster_id,
            col(JobRow.finished_seconds).is_not(None),
            JobRow.state == JobState.SUCCEEDED.value,
        )
        .order_by(col(JobRow.finished_seconds).desc())
        .limit(MOST_ENDED)
    )
    forgotten = forgotten_until(session, cluster_id)
    return [
        row for row in rows if row.started_seconds is not None and not _is_forgotten(row, forgotten)
    ]


def _is_forgotten(row: Any, forgotten: Mapping[tuple[str, str], float]) -> bool:
    """Return whether an administrator has let forecasts forget how a job ended."""
    return bool(row.finished_seconds <= forgotten.get((row.tenant_id, row.model), -1.0))


def _went(
    rows: Sequence[JobRow],
    stretches: Mapping[JobId, Sequence[Stretch]],
    history: History,
    *,
    curves: Mapping[JobId, Curve],
    specs: Specs,
    shape: Cluster,
) -> list[Ended]:
    """Return how these jobs went, by what is now believed of jobs like them.

    `curves`: the gradients of those of which they were read.
    """
    courses = [
        Course(
            unseen_job(spec),
            history.life_of(spec),
            row.gained_samples,
            stretches[row.id],
            curves.get(row.id, ()),
        )
        for row in rows
        if row.id in stretches and (spec := specs.spec(row)) is not None
    ]
    tempos = tempos_of(courses, shape, fitter=fit_once)
    by_id = {one.job.id: tempo for one, tempo in zip(courses, tempos, strict=True)}
    return [
        Ended(
            row.owner_id,
            row.model,
            (row.finished_seconds or 0.0) - (row.started_seconds or 0.0),
            by_id.get(row.id),
            row.restarts,
            specs.tenants[row.tenant_id],
        )
        for row in rows
    ]


def stretches_of(
    session: Session,
    jobs: Iterable[JobRow],
    *,
    last_at: float = 0.0,
    shared: SharedTime | None = None,
) -> dict[JobId, list[Stretch]]:
    """Return how these jobs ran, span by span, without starts and profiles.

    The counters of a span that lasts are those of its job, as they were `last_at`. Of the time in
    which it shared GPUs (`shared`) counts what it would have taken alone.
    """
    by_id, found = {row.id: row for row in jobs}, dict[JobId, list[Stretch]]()
    ids = list(by_id)
    for first in range(0, len(ids), _AT_ONCE):
        spans = session.execute(
            select(*_SPAN)  # type: ignore[call-overload]
            .where(col(JobAllocation.job_id).in_(ids[first : first + _AT_ONCE]))
            .where(col(JobAllocation.running_seconds).is_not(None))
            .where(~col(JobAllocation.for_profile))
            .order_by(col(JobAllocation.id))
        )
        for span in spans:
            stretch = _stretch(span, by_id[span.job_id], last_at, shared)
            if stretch is not None:
                found.setdefault(span.job_id, []).append(stretch)
    return found


def _stretch(span: Any, job: JobRow, last_at: float, shared: SharedTime | None) -> Stretch | None:
    lasts = span.to_seconds is None
    gained = job.gained_samples if lasts else span.gained_after
    processed = job.processed_samples if lasts else span.processed_after
    if None in (gained, processed, span.gained_before, span.processed_before):
        return None
    begin, end = span.running_seconds, last_at if lasts else span.to_seconds
    if end <= begin:
        return None
    seconds: float = end - begin
    if shared is not None:
        seconds = shared.seconds_alone(job.id, span.gpus, begin=begin, end=end)
    return Stretch(
        span.gpu_type,
        span.gpu_count,
        span.node_count,
        seconds,
        span.gained_before,
        gained,
        processed - span.processed_before,
        span.total_batch_size,
    )


def _lives(
    session: Session,
    cluster: ClusterRow,
    models: Collection[str],
    specs: Specs,
    shared: SharedModels,
) -> tuple[dict[LifeKey, PastLife], dict[JobId, Curve]]:
    """Return what jobs of every model measured, by owner too; else what is published of it.

    And the gradients of the latest jobs of each owner and model. Of a model that tenants share
    counts what all of them measured.
    """
    curves: dict[JobId, Curve] = {}
    groups: dict[LifeKey, list[PastLife]] = defaultdict(list)
    by_tenant: dict[ModelKey, dict[str, list[PastLife]]] = defaultdict(lambda: defaultdict(list))
    latest = _latest(session, cluster.id, models)
    specs.name_tenants(session, (row.tenant_id for row in latest))
    ids = [row.id for row in latest]
    samples = _trained(session, ids) if cluster.runs_commands else _played(session, ids)
    for row in latest:
        if row.id in samples:
            model = shared.key(specs.tenants[row.tenant_id], row.model)
            mine = groups[row.owner_id, model]
            if len(mine) < MOST_CURVES:
                curves[row.id] = _curve(session, cluster, row)
            life = PastLife(samples[row.id], (curves[row.id],) if row.id in curves else ())
            mine.append(life)
            by_tenant[model]["" if shared.are_all else row.tenant_id].append(life)
    found = {key: merged for key, lives in groups.items() if (merged := together(lives))}
    for model, tenants in by_tenant.items():
        merged = of_tenants([one for lives in tenants.values() if (one := together(lives))])
        if merged is not None:
            found[None, model] = merged
    for name in () if cluster.runs_commands else models:
        published = published_life(name)
        if published is not None:
            found.setdefault((None, shared.key("", name)), published)
    return found, curves


def _latest(session: Session, cluster_id: str, models: Collection[str]) -> list[Any]:
    """Return the jobs that succeeded last, the newest first: of every owner and model at least one.

    With their ids, tenants, owners, models, and work.
    """
    rows = session.execute(
        select(*_LATEST)  # type: ignore[call-overload]
        .where(
            JobRow.cluster_id == cluster_id,
            col(JobRow.finished_seconds).is_not(None),
            JobRow.state == JobState.SUCCEEDED.value,
        )
        .order_by(col(JobRow.finished_seconds).desc())
        .limit(MOST_LOOKED_AT)
    )
    groups: set[tuple[str, str]] = set()
    found, forgotten = [], forgotten_until(session, cluster_id)
    known = (row for row in rows if row.model in models and not _is_forgotten(row, forgotten))
    for number, row in enumerate(known):
        group = (row.owner_id, row.model)
        if number < MOST_LIVES or (group not in groups and len(groups) < MOST_LIVES):
            found.append(row)
        groups.add(group)
    return found


def _played(session: Session, ids: Sequence[str]) -> Mapping[JobId, Samples]:
    found: dict[JobId, Samples] = {}
    for first in range(0, len(ids), _AT_ONCE):
        some = col(EndedBelief.job_id).in_(ids[first : first + _AT_ONCE])
        for job_id, kept in session.exec(
            select(EndedBelief.job_id, EndedBelief.samples).where(some)
        ):
            found[job_id] = {
                kind: tuple(Sample(int(n), int(r), int(b), t, s) for n, r, b, t, s in rows)
                for kind, rows in kept.items()
            }
    return {job_id: samples for job_id, samples in found.items() if samples}


def _trained(session: Session, ids: Sequence[str]) -> Mapping[JobId, Samples]:
    rows: dict[JobId, list[StepSample]] = defaultdict(list)
    for first in range(0, len(ids), _AT_ONCE):
        some = col(StepSample.job_id).in_(ids[first : first + _AT_ONCE])
        for row in session.exec(select(StepSample).where(some)):
            rows[row.job_id].append(row)
    return {job_id: believed_samples(some) for job_id, some in rows.items()}


def _curve(session: Session, cluster: ClusterRow, row: Any) -> Curve:
    """Return the gradients of a job by its share of work."""
    kept = None if cluster.runs_commands else session.get(EndedBelief, row.id)
    if kept is not None and kept.gradients is not None:
        return _by_share(kept.gradients, row.gained_samples)
    gradients = _gradients(session, row.id)
    most = max([one[0] for one in gradients], default=0.0)
    return _by_share(gradients, max(row.gained_samples, most))


def _gradients(session: Session, job_id: str) -> list[list[float]]:
    columns = (GradientSample.progress, GradientSample.square, GradientSample.variance)
    rows = session.exec(
        select(*columns)
        .where(GradientSample.job_id == job_id)
        .order_by(col(GradientSample.progress), col(GradientSample.id))
    ).all()
    every = max(len(rows) // 32, 1)
    return [list(row) for row in rows[::every]]


def _by_share(gradients: Iterable[Sequence[float]], work: float) -> Curve:
    if work <= 0:
        return ()
    return tuple(
        (min(done / work, 1.0), GradientStatistics(square, variance))
        for done, square, variance in gradients
    )
