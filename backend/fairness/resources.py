"""rho of jobs as the API answers it: cluster time becomes dates, ids names. Commits nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlmodel import Session, col, select

from backend.clocktime import shown_at
from backend.clusters.models import Cluster
from backend.fairness.causes import cause_of, cause_sentence, held_gpus, share_gpus
from backend.fairness.models import JobFairness
from backend.fairness.repository import tenant_names
from backend.fairness.words import reason_sentence, rho_sentence, why_sentence
from backend.jobs.models import Job
from backend.operations.models import OperationState
from maat.api.fairness import (
    JobFairnessOut,
    WaitReasonOut,
    WhyOut,
)
from maat.api.fields import rfc3339
from maat.vocabulary import FairnessRule, FairnessState, WithoutRho

_STATES: Mapping[str, FairnessState] = {
    OperationState.QUEUED: FairnessState.WAITING,
    OperationState.RUNNING: FairnessState.WORKING,
    OperationState.FAILED: FairnessState.FAILED,
    OperationState.CANCELLED: FairnessState.SKIPPED,
}


def state_of(state: str, reason: str | None) -> FairnessState:
    """Return how far rho is, by the state of its row and the reason for there being none."""
    if state == OperationState.SUCCEEDED:
        return FairnessState.DONE if reason is None else FairnessState.LEFT_OUT
    return _STATES[state]


def show_fairness(
    session: Session, cluster: Cluster, rows: Sequence[JobFairness]
) -> list[JobFairnessOut]:
    ids = [row.job_id for row in rows]
    jobs = {job.id: job for job in session.exec(select(Job).where(col(Job.id).in_(ids)))}
    tenants = tenant_names(session, [row.tenant_id for row in rows])
    return [_show(row, jobs[row.job_id], cluster, tenants[row.tenant_id]) for row in rows]


def _show(row: JobFairness, job: Job, cluster: Cluster, tenant: str) -> JobFairnessOut:
    state = state_of(row.state, row.reason)
    reason = None if row.reason is None else WithoutRho(row.reason)
    return JobFairnessOut(
        job_id=row.job_id,
        job_name=job.name,
        model=job.model,
        tenant=tenant,
        state=state,
        reason=reason,
        sentence=rho_sentence(state, reason, row.rho),
        detail=row.detail,
        rho=row.rho,
        rule=None if row.rule is None else FairnessRule(row.rule),
        formula_version=row.formula_version,
        finished_at=shown_at(cluster, row.finished_seconds),
        jct_seconds=row.jct_seconds,
        baseline_seconds=row.jct_seconds / row.rho if row.jct_seconds and row.rho else None,
        isolated_seconds=row.isolated_seconds,
        contention=row.contention,
        why=None if row.why is None else _why(row.why, row, job),
        worked_out_at=None if row.finished_at is None else rfc3339(row.finished_at),
    )


def _why(why: Mapping[str, Any], row: JobFairness, job: Job) -> WhyOut:
    reasons = [
        WaitReasonOut(
            code=one["code"], sentence=reason_sentence(one["code"]), seconds=one["seconds"]
        )
        for one in why["reasons"]
    ]
    cause = cause_of(why, row)
    return WhyOut(
        waiting_seconds=why["waiting_seconds"],
        profiling_seconds=why["profiling_seconds"],
        starting_seconds=why["starting_seconds"],
        running_seconds=why["running_seconds"],
        paused_seconds=why["paused_seconds"],
        preemptions=why["preemptions"],
        starts=why["starts"],
        reasons=reasons,
        held_gpus=held_gpus(why),
        share_gpus=share_gpus(row),
        cause=cause,
        cause_sentence=None if cause is None else cause_sentence(cause, why, row, job),
        sentence=why_sentence(why, row.jct_seconds or 0.0),
    )
