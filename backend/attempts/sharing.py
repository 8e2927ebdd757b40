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
from sqlmodel import Session, col, select

from backend.accounts.identity import Principal
from backend.attempts.models import AttemptRow, JobFit, SharingSample, StepSample
from backend.attempts.reported import Reported
from backend.attempts.steps import mean_alone
from backend.jobs.models import Job
from maat.api.attempts import PassBody
from maat.scheduling.fitting import weight_of_mean
from maat.scheduling.interference import SharingJob, Slowdowns, nearest
from maat.scheduling.throughput import step_seconds
from maat.vocabulary import MAX_SLOWDOWN, AttemptKind


@dataclass(frozen=True)
class MeasuredPair:
    """Who was slowed by whom, on which GPUs; batches as they ran."""

    victim: SharingJob
    partner: SharingJob
    gpu_type: str
    gpu_count: int


LEAST_REPORTS = 3
"""Of a pair, before decisions go by them: one may be of a step that a disk held up."""

_MOST_WEIGHT = 100.0  # of reports that a mean remembers: older ones count less and less
_LEAST_RATIO = 0.5  # faster beside another than alone is noise: so much faster, a fault
_MOST_FIT_ERROR = 0.1  # of a model that stands for steps alone that were never made


_SAMPLES: sa.Table = SharingSample.__table__  # type: ignore[attr-defined]
_KEY = tuple(column.name for column in _SAMPLES.primary_key)


def _add_sample() -> tuple[sa.Executable, sa.Executable]:
    """Return the statements that add one report's ratio to the mean of a pair.

    Both take the same row (`sample_row`): the first inserts an empty mean for a new pair. A
    ratio counts by its weight, and what is beyond _MOST_WEIGHT of those before is forgotten.
    """
    key = [_SAMPLES.c[name] == sa.bindparam(f"of_{name}") for name in _KEY]
    empty = {name: sa.literal(0.0) for name in ("weight", "ratio_m2", "updated_seconds")}
    first = {"count": sa.literal(0), "ratio": sa.literal(1.0), **empty}
    keys = [sa.cast(sa.bindparam(f"of_{name}"), _SAMPLES.c[name].type).label(name) for name in _KEY]
    values = sa.select(*keys, *first.values()).where(~sa.exists().where(*key))
    make = sa.insert(_SAMPLES).from_select([*_KEY, *first], values)
    known, ratio = _SAMPLES.c, sa.bindparam("new_ratio", type_=sa.Float)
    weight, most = sa.bindparam("new_weight", type_=sa.Float), _MOST_WEIGHT
    before = sa.case((known.weight + weight > most, most - weight), else_=known.weight)
    kept = sa.case((known.weight > 0, before / sa.func.nullif(known.weight, 0.0)), else_=0.0)
    mean = known.ratio + (ratio - known.ratio) * weight / (before + weight)
    merge = sa.update(_SAMPLES).where(*key)
    return make, merge.values(
        count=known.count + 1,
        weight=before + weight,
        ratio=mean,
        ratio_m2=known.ratio_m2 * kept + weight * (ratio - known.ratio) * (ratio - mean),
        updated_seconds=sa.bindparam("at_seconds", type_=sa.Float),
    )


def sample_row(
    cluster_id: str, pair: MeasuredPair, ratio: float, weight: float, now: float
) -> Mapping[str, Any]:
    """Return the parameters of ADD_SAMPLE: one report of a pair.

    `ratio`: a step beside the partner over one alone.
    """
    key = {
        "cluster_id": cluster_id,
        "victim": pair.victim.model,
        "victim_batch": pair.victim.per_gpu_batch_size,
        "partner": pair.partner.model,
        "partner_batch": pair.partner.per_gpu_batch_size,
        "gpu_type": pair.gpu_type,
        "gpu_count": pair.gpu_count,
    }
    return {
        **{f"of_{name}": value for name, value in key.items()},
        "new_ratio": min(max(ratio, _LEAST_RATIO), MAX_SLOWDOWN),
        "new_weight": weight,
        "at_seconds": now,
    }


@dataclass(frozen=True)
class Company:
    """Who was on an attempt's GPUs since its last report.

    `partner`: the job that trained there all the time. `changed`: somebody came or went.
    """

    partner: SharingJob | None = None
    changed: bool = False

    @property
    def is_alone(self) -> bool:
        return self.partner is None and not self.changed


ALONE = Company()
ADD_SAMPLE = _add_sample()
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
    _, model, gpu_count, plan, running, is_staying = others[0]
    if not is_staying or running is None or running > since or plan is None:
        return Company(changed=True)
    return Company(SharingJob(model, math.ceil(plan["total_batch_size"] / gpu_count)))


def add_slowdown(
    session: Session, attempt: Reported, found: PassBody, partner: SharingJob, now: float
) -> None:
    """Add steps that were made beside another job, if the time alone is known."""
    alone = _seconds_alone(session, attempt, found)
    if alone is None:
        return
    batch = found.per_gpu_batch_size * (found.accumulation_steps + 1)
    pair = MeasuredPair(
        SharingJob(attempt.model, batch), partner, attempt.gpu_type, attempt.gpu_count
    )
    mean, steps = found.step_seconds.mean, found.steps
    deviation = math.sqrt(found.step_seconds.m2 / (steps - 1)) if steps > 1 else 0.0
    row = sample_row(
        attempt.cluster_id, pair, mean / alone, weight_of_mean(steps, mean, deviation), now
    )
    for statement in ADD_SAMPLE:
        session.connection().execute(statement, row)


@dataclass(frozen=True)
class MeasuredSlowdowns:
    """What sharing was measured to cost on a cluster, over all of its GPU types."""

    samples: Sequence[SharingSample]

    declared: Slowdowns | None = None

    def of_jobs(self, victim: SharingJob, partner: SharingJob, gpu_count: int) -> float | None:
        """Return the mean of the nearest batches and GPU count that were measured often enough.

        Batches and counts that were not measured have the figure of the next smaller, else of the
        smallest, times the quotient of what is `declared` of both, if it is. None if the two models
        were not measured together.
        """
        found = self._nearest(victim, partner, gpu_count)
        if not found:
            return None
        total = sum(one.weight for one in found)
        ratio = sum(one.ratio * one.weight for one in found) / total
        return max(ratio * self._quotient(found[0], victim, partner, gpu_count), 1.0)

    def _nearest(
        self, victim: SharingJob, partner: SharingJob, gpu_count: int
    ) -> Sequence[SharingSample]:
        """Return the samples of the nearest batches and GPU count, of every GPU type."""
        found = [
            one
            for one in self.samples
            if (one.victim, one.partner) == (victim.model, partner.model) and is_believed(one)
        ]
        wanted = {
            "victim_batch": victim.per_gpu_batch_size,
            "partner_batch": partner.per_gpu_batch_size,
            "gpu_count": gpu_count,
        }
        for name, value in wanted.items():
            if found:
                best = nearest(value, [getattr(one, name) for one in found])
                found = [one for one in found if getattr(one, name) == best]
        return found

    def _quotient(
        self, sample: SharingSample, victim: SharingJob, partner: SharingJob, gpu_count: int
    ) -> float:
        """Return what is declared of these jobs over what is declared of those measured."""
        if self.declared is None:
            return 1.0
        measured = (
            SharingJob(sample.victim, sample.victim_batch),
            SharingJob(sample.partner, sample.partner_batch),
        )
        there = self.declared.of_jobs(*measured, sample.gpu_count)
        here = self.declared.of_jobs(victim, partner, gpu_count)
        if there is None or here is None or math.isinf(there):
            return 1.0
        return here / there


def measured_slowdowns(
    session: Session, cluster_id: str, declared: Slowdowns | None = None
) -> MeasuredSlowdowns:
    return MeasuredSlowdowns(sharing_samples(session, cluster_id), declared)


def sharing_samples(session: Session, cluster_id: str) -> Sequence[SharingSample]:
    """Return the measured pairs of a cluster, in order of their names."""
    order = (SharingSample.victim, SharingSample.partner, SharingSample.gpu_count)
    statement = select(SharingSample).where(SharingSample.cluster_id == cluster_id)
    return session.exec(statement.order_by(*(col(name) for name in order))).all()


def known_models(session: Session, principal: Principal, cluster_id: str) -> set[str] | None:
    """Return the models that the principal's tenant has jobs of; None if it may know all."""
    if principal.sees_all_tenants:
        return None
    own = (Job.cluster_id == cluster_id, Job.tenant_id == principal.tenant_id)
    return set(session.exec(select(Job.model).where(*own).distinct()))


def is_believed(sample: SharingSample) -> bool:
    """Return whether decisions go by a pair: never by a single report."""
    return sample.count >= LEAST_REPORTS


def spread_of(sample: SharingSample) -> float:
    """Return the standard deviation of the reports' slowdowns.

    Of equal ones the sum of squares may be below zero by rounding.
    """
    return math.sqrt(max(sample.ratio_m2, 0.0) / sample.weight) if sample.weight else 0.0


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
    statement = (
        sa.select(
            col(AttemptRow.gpus_by_node),
            col(Job.model),
            col(AttemptRow.gpu_count),
            col(AttemptRow.plan),
            col(AttemptRow.running_seconds),
            sa.and_(
                ended.is_(None),
                col(AttemptRow.stop_reason).is_(None),
                col(AttemptRow.kind) == AttemptKind.TRAIN.value,
            ),
        )
        .join(Job, col(Job.id) == col(AttemptRow.job_id))
        .where(
            col(AttemptRow.cluster_id) == attempt.cluster_id,
            col(AttemptRow.id) != attempt.id,
            held.is_not(None),
            sa.or_(ended.is_(None), ended > since),
        )
    )
    for gpus, model, count, plan, running, stays in session.connection().execute(statement):
        yield gpus, model, count, plan, running, bool(stays)


def _gpus(by_node: Mapping[str, Sequence[int]]) -> set[tuple[str, int]]:
    return {(node, gpu) for node, gpus in by_node.items() for gpu in gpus}
