"""Steps of jobs that share a GPU: beside whom they were made, and what that costs. Commits nothing.

A report's steps are of the time since the last report. They count as alone only if nobody else was
on the GPUs in that time, and beside a partner only if that one trained there all the time: what was
measured while somebody came or went is neither, and is left out. So the throughput of a job alone
is never fitted to steps that others slowed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlmodel import Session, col

from backend.attempts.models import AttemptRow, JobFit, SharingSample, StepSample
from backend.attempts.reported import Reported
from backend.attempts.steps import mean_alone
from backend.jobs.models import Job
from maat.api.attempts import PassBody
from maat.scheduling.evidence import FORGOTTEN_SECONDS
from maat.scheduling.fitting import weight_of_mean
from maat.scheduling.throughput import step_seconds
from maat.vocabulary import MAX_SLOWDOWN, AttemptKind


@dataclass(frozen=True, slots=True)
class Partner:
    """A job on the same GPUs, and its batch on one of them."""

    job_id: str
    per_gpu_batch_size: int


@dataclass(frozen=True, slots=True)
class MeasuredPair:
    """Which job was slowed by which, on which GPUs; batches as they ran."""

    victim: str
    victim_batch: int
    partner: Partner
    gpu_type: str
    gpu_count: int


MOST_SAMPLES = 50
"""The latest of a tenant's model beside a model that are kept."""

_MOST_WEIGHT = 100.0  # of reports that a mean remembers: older ones count less and less
_LEAST_RATIO = 0.5  # faster beside another than alone is noise: so much faster, a fault
_MOST_FIT_ERROR = 0.1  # of a model that stands for steps alone that were never made

_SAMPLES: sa.Table = SharingSample.__table__  # type: ignore[attr-defined]
_OF_JOBS = {
    "cluster_id": ("of_job_id", "cluster_id"),
    "tenant_id": ("of_job_id", "tenant_id"),
    "victim": ("of_job_id", "model"),
    "partner_tenant_id": ("of_partner_id", "tenant_id"),
    "partner": ("of_partner_id", "model"),
}
"""Columns that are read from the jobs, never from a report: by whose id, and in which column."""


def _value(name: str) -> sa.ColumnElement[Any]:
    """Return what identifies a sample in a column."""
    column = _SAMPLES.c[name]
    if name not in _OF_JOBS:
        return sa.cast(sa.bindparam(f"of_{name}"), column.type)
    job, of_job = _OF_JOBS[name]
    its = Job.__table__.alias()  # type: ignore[attr-defined]
    found: sa.ColumnElement[Any] = (
        sa.select(its.c[of_job]).where(its.c.id == sa.bindparam(job)).scalar_subquery()
    )
    return found


_KEY = tuple(column.name for column in _SAMPLES.primary_key)
_MINE = tuple(_SAMPLES.c[name] == _value(name) for name in _KEY)
_OF_MODELS = tuple(_SAMPLES.c[name] == _value(name) for name in _OF_JOBS)


def _make() -> sa.Executable:
    """Return the statement that inserts an empty mean, unless the job has one of this kind."""
    empty = {name: sa.literal(0.0) for name in ("weight", "ratio_m2", "updated_seconds")}
    figures = {"count": sa.literal(0), "ratio": sa.literal(1.0), **empty}
    names = dict.fromkeys([*_KEY, *_OF_JOBS])
    values = sa.select(*(_value(name).label(name) for name in names), *figures.values())
    new = values.where(~sa.exists().where(*_MINE))
    return sa.insert(_SAMPLES).from_select([*names, *figures], new)


def _merge() -> sa.Executable:
    """Return the statement that adds a ratio to a mean.

    It counts by its weight, and what is beyond _MOST_WEIGHT of those before is forgotten.
    """
    known, ratio = _SAMPLES.c, sa.bindparam("new_ratio", type_=sa.Float)
    weight, most = sa.bindparam("new_weight", type_=sa.Float), _MOST_WEIGHT
    before = sa.case((known.weight + weight > most, most - weight), else_=known.weight)
    kept = sa.case((known.weight > 0, before / sa.func.nullif(known.weight, 0.0)), else_=0.0)
    mean = known.ratio + (ratio - known.ratio) * weight / (before + weight)
    return (
        sa.update(_SAMPLES)
        .where(*_MINE)
        .values(
            count=known.count + 1,
            weight=before + weight,
            ratio=mean,
            ratio_m2=known.ratio_m2 * kept + weight * (ratio - known.ratio) * (ratio - mean),
            updated_seconds=sa.bindparam("at_seconds", type_=sa.Float),
        )
    )


def _forget() -> sa.Executable:
    """Return the statement that deletes what is old of these two models, or beyond MOST_SAMPLES."""
    at = _SAMPLES.c.updated_seconds
    forgotten = sa.bindparam("forgotten_seconds", type_=sa.Float)
    newest = sa.select(at).where(*_OF_MODELS).order_by(at.desc())
    least_kept = newest.offset(MOST_SAMPLES - 1).limit(1).scalar_subquery()
    is_old = sa.or_(at < forgotten, at < sa.func.coalesce(least_kept, forgotten))
    return sa.delete(_SAMPLES).where(*_OF_MODELS, is_old)


def sample_row(pair: MeasuredPair, ratio: float, weight: float, now: float) -> Mapping[str, Any]:
    """Return the parameters of ADD_SAMPLE: one report of a pair.

    `ratio`: a step beside the partner over one alone.
    """
    return {
        "of_job_id": pair.victim,
        "of_victim_batch": pair.victim_batch,
        "of_partner_id": pair.partner.job_id,
        "of_partner_batch": pair.partner.per_gpu_batch_size,
        "of_gpu_type": pair.gpu_type,
        "of_gpu_count": pair.gpu_count,
        "new_ratio": min(max(ratio, _LEAST_RATIO), MAX_SLOWDOWN),
        "new_weight": weight,
        "at_seconds": now,
        "forgotten_seconds": now - FORGOTTEN_SECONDS,
    }


@dataclass(frozen=True)
class Company:
    """Who was on an attempt's GPUs since its last report.

    `partner`: the job that trained there all the time. `changed`: somebody came or went.
    """

    partner: Partner | None = None
    changed: bool = False

    @property
    def is_alone(self) -> bool:
        return self.partner is None and not self.changed


ALONE = Company()
ADD_SAMPLE = (_make(), _merge(), _forget())
"""The statements by which a report is added, one after the other; each takes a `sample_row`."""


def company_of(session: Session, attempt: Reported) -> Company:
    """Return who was on the attempt's GPUs in the time of this report."""
    if attempt.jobs_per_gpu == 1:
        return ALONE
    begins = (attempt.reported_seconds, attempt.queued_seconds)
    since = next((seconds for seconds in begins if seconds is not None), 0.0)
    mine = _gpus(attempt.gpus_by_node)
    others = [one for one in _there_since(session, attempt, since) if mine & _gpus(one[0])]
    if not others:
        return ALONE
    if len(others) > 1:
        return Company(changed=True)
    _, job_id, gpu_count, plan, running, is_staying = others[0]
    if not is_staying or running is None or running > since or plan is None:
        return Company(changed=True)
    return Company(Partner(job_id, math.ceil(plan["total_batch_size"] / gpu_count)))


def add_slowdown(
    session: Session, attempt: Reported, found: PassBody, partner: Partner, now: float
) -> None:
    """Add steps that were made beside another job, if the time alone is known."""
    alone = _seconds_alone(session, attempt, found)
    if alone is None:
        return
    batch = found.per_gpu_batch_size * (found.accumulation_steps + 1)
    pair = MeasuredPair(attempt.job_id, batch, partner, attempt.gpu_type, attempt.gpu_count)
    mean, steps = found.step_seconds.mean, found.steps
    deviation = math.sqrt(found.step_seconds.m2 / (steps - 1)) if steps > 1 else 0.0
    row = sample_row(pair, mean / alone, weight_of_mean(steps, mean, deviation), now)
    for statement in ADD_SAMPLE:
        session.connection().execute(statement, row)


def _seconds_alone(session: Session, attempt: Reported, found: PassBody) -> float | None:
    """Return the time of such steps alone: this job's, its tenant's same model's, or modelled."""
    own = mean_alone(session, attempt, found)
    if own is not None:
        return own
    same = _mean_of_model(session, attempt, found)
    return _modelled(session, attempt, found) if same is None else same


def _mean_of_model(session: Session, attempt: Reported, found: PassBody) -> float | None:
    """Return the mean step time of other jobs of the tenant with this model."""
    total = sa.func.sum(col(StepSample.step_mean) * col(StepSample.count))
    statement = (
        sa.select(total / sa.func.sum(col(StepSample.count)))
        .join(Job, col(Job.id) == col(StepSample.job_id))
        .where(
            col(Job.cluster_id) == attempt.cluster_id,
            col(Job.tenant_id) == attempt.tenant_id,
            col(Job.model) == attempt.model,
            col(StepSample.gpu_type) == attempt.gpu_type,
            col(StepSample.node_count) == found.node_count,
            col(StepSample.replica_count) == found.replica_count,
            col(StepSample.per_gpu_batch_size) == found.per_gpu_batch_size,
            col(StepSample.accumulation_steps) == found.accumulation_steps,
        )
    )
    mean = session.connection().execute(statement).scalar()
    return None if mean is None else float(mean)


def _modelled(session: Session, attempt: Reported, found: PassBody) -> float | None:
    """Return what the job's own throughput model says, if it meets its samples."""
    fit = session.get(JobFit, (attempt.job_id, attempt.gpu_type))
    if fit is None or fit.error > _MOST_FIT_ERROR:
        return None
    seconds = step_seconds(
        np.array(fit.parameters),
        np.array(float(found.per_gpu_batch_size)),
        node_count=np.array(found.node_count),
        replica_count=np.array(found.replica_count),
        accumulation_steps=np.array(float(found.accumulation_steps)),
    )
    return float(seconds)


_Other = tuple[Mapping[str, list[int]], str, int, Mapping[str, int] | None, float | None, bool]


def _there_since(session: Session, attempt: Reported, since: float) -> Iterable[_Other]:
    """Yield the attempts that have held GPUs of the cluster since then, this one left out."""
    ended, held = col(AttemptRow.ended_seconds), col(AttemptRow.queued_seconds)
    statement = sa.select(
        col(AttemptRow.gpus_by_node),
        col(AttemptRow.job_id),
        col(AttemptRow.gpu_count),
        col(AttemptRow.plan),
        col(AttemptRow.running_seconds),
        sa.and_(
            ended.is_(None),
            col(AttemptRow.stop_reason).is_(None),
            col(AttemptRow.kind) == AttemptKind.TRAIN.value,
        ),
    ).where(
        col(AttemptRow.cluster_id) == attempt.cluster_id,
        col(AttemptRow.id) != attempt.id,
        held.is_not(None),
        sa.or_(ended.is_(None), ended > since),
    )
    for gpus, job_id, count, plan, running, stays in session.connection().execute(statement):
        yield gpus, job_id, count, plan, running, bool(stays)


def _gpus(by_node: Mapping[str, Sequence[int]]) -> set[tuple[str, int]]:
    return {(node, gpu) for node, gpus in by_node.items() for gpu in gpus}
