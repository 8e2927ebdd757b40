"""What a submission would make, without making it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

from sqlmodel import Session

from backend.accounts.identity import Principal
from backend.clocktime import cluster_seconds
from backend.clusters.models import Cluster
from backend.clusters.repository import nodes_of
from backend.clusters.topology import capacity_by_type
from backend.commands.spec import command_spec
from backend.jobs.admission import declared_spec, least_count
from backend.jobs.declarations import declaration_of
from backend.jobs.models import Job
from backend.jobs.queue import place_of
from backend.jobs.remedies import RemedyFinder, Start, Trial
from backend.jobs.service import checked_job, row_of
from backend.jobs.warnings import warnings_of, with_warnings
from backend.moments import moment_of
from backend.occupancy.repository import held_by_tenant
from backend.quotas.repository import ceilings_of
from maat.api.job_answers import DryRunOut, ReasonOut, RunsOnOut, StartOut
from maat.api.jobs import JobBody
from maat.models.catalog import load_catalog
from maat.scheduling.explain import ReasonCode, Reasons, sentence_of
from maat.scheduling.job import JobSpec
from maat.scheduling.quotas.reasons import QUOTA_CODES


def try_submission(
    session: Session, principal: Principal, body: JobBody, finder: RemedyFinder
) -> DryRunOut:
    """Check a job as a submission does, and say what would be made. Raises what it raises."""
    (candidate,) = with_warnings(session, principal, checked_job(session, principal, body), finder)
    never = candidate.never
    now = moment_of(session)
    cluster = session.get_one(Cluster, body.cluster_id)
    job = row_of(body, principal, cluster, submitted_seconds=cluster_seconds(cluster, now))
    capacity = capacity_by_type(nodes_of(session, cluster.id), usable_only=False)
    trial = None if never is not None else finder.trial_of_new(session, job)
    start = None if trial is None else trial.start
    runs_on = _runs_on(_spec(body, job, capacity), capacity)
    return DryRunOut(
        dry_run=True,
        cluster_id=cluster.id,
        declared=_declared(body),
        runs_on=runs_on,
        forecast=_forecast(trial, never),
        starts_with=None if start is None else _shown(start),
        warnings=[] if never is None else warnings_of(job, _reason(never)),
        **place_of(session, job),
        sentence=_refusal(never)
        if never is not None
        else _untried(session, job, runs_on)
        if trial is None
        else _sentence(trial),
    )


def _forecast(
    trial: Trial | None, never: Reasons | None
) -> Literal["starts", "waits", "not-tried"]:
    if never is not None:
        return "waits"
    return "not-tried" if trial is None else "waits" if trial.start is None else "starts"


def _reason(why: Reasons) -> ReasonOut:
    evidence = dict(why.evidence)
    return ReasonOut(
        code=why.primary.value, sentence=why.sentence, evidence=evidence, as_of_round=None
    )


def _refusal(never: Reasons) -> str:
    return f"It could be submitted, but no round would start it as things stand. {never.sentence}"


def _spec(body: JobBody, job: Job, capacity: Mapping[str, int]) -> JobSpec:
    if body.run is None:
        return declared_spec(body, load_catalog()[body.model], job_id=job.id, submitted_seconds=0.0)
    return command_spec(
        declaration_of(body), id=job.id, submitted_at=0.0, gpu_types=capacity, work=None
    )


def _runs_on(spec: JobSpec, capacity: Mapping[str, int]) -> list[RunsOnOut]:
    found = (
        (name, count, least_count(spec, name, count))
        for name, count in capacity.items()
        if spec.may_use(name)
    )
    return [
        RunsOnOut(gpu_type=name, least_gpus=least, cluster_gpus=count)
        for name, count, least in found
        if least is not None
    ]


def _declared(body: JobBody) -> dict[str, object]:
    """Return all fields with their defaults; of secrets, only the names."""
    shown = body.model_dump(mode="json")
    if shown["run"] is not None:
        shown["run"]["secret_env"] = dict.fromkeys(shown["run"]["secret_env"])
    return shown


def _shown(start: Start) -> StartOut:
    return StartOut(gpu_type=start.gpu_type, gpu_count=start.gpu_count, node_count=start.node_count)


def _untried(session: Session, job: Job, runs_on: Sequence[RunsOnOut]) -> str:
    known = ("It could be submitted.", _full_quota(session, job, runs_on))
    return " ".join([*filter(None, known), "When it would start was not tried here."])


def _full_quota(session: Session, job: Job, runs_on: Sequence[RunsOnOut]) -> str | None:
    """Return what is said of a ceiling that leaves the job no room on any type now, if so."""
    ceilings = ceilings_of(session, job.cluster_id, job.tenant_id)
    if not runs_on or not ceilings:
        return None
    held = held_by_tenant(session, job.cluster_id)
    for one in runs_on:
        used = held.get((job.tenant_id, one["gpu_type"]), 0)
        if used + one["least_gpus"] <= ceilings.get(one["gpu_type"], math.inf):
            return None
    first = runs_on[0]["gpu_type"]
    evidence = {
        "quota_gpu_type": first,
        "quota_gpus": ceilings[first],
        "quota_used_gpus": held.get((job.tenant_id, first), 0),
    }
    return sentence_of(ReasonCode.WAITING_QUOTA, evidence)


def _sentence(trial: Trial) -> str:
    if trial.start is not None:
        gpus = f"{trial.start.gpu_count} × {trial.start.gpu_type}"
        return f"It could be submitted. At present, the next round would start it on {gpus}."
    if trial.why is not None and trial.why.primary in QUOTA_CODES:
        return f"It could be submitted, and would wait. {trial.why.sentence}"
    return "It could be submitted, and would wait: at present, the next round has no GPUs for it."
