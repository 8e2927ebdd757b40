"""Warnings of a job that was accepted and that, as its cluster stands, no round would start.

Each is the job's reason, said of the field that could be changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlmodel import Session

from backend.accounts.identity import Principal
from backend.clusters.models import Cluster
from backend.jobs.candidates import Candidate
from backend.jobs.models import Job
from backend.jobs.remedies import RemedyFinder
from backend.jobs.service import row_of
from maat.api.fields import FieldWarning
from maat.api.job_answers import ReasonOut
from maat.scheduling.explain import NEVER_RUNS, ReasonCode
from maat.vocabulary import Adaptivity


def with_warnings(
    session: Session, principal: Principal, candidates: list[Candidate], finder: RemedyFinder
) -> list[Candidate]:
    """Note of each candidate that can be stored why no round would start it, if so."""
    by_cluster: dict[str, list[tuple[Candidate, Job]]] = {}
    for candidate in candidates:
        body = candidate.body
        if candidate.usable and body is not None and body.cluster_id is not None:
            cluster = session.get_one(Cluster, body.cluster_id)
            row = row_of(body, principal, cluster, submitted_seconds=0.0)
            by_cluster.setdefault(cluster.id, []).append((candidate, row))
    for cluster_id, tried in by_cluster.items():
        cluster = session.get_one(Cluster, cluster_id)
        found = finder.never_started(session, cluster, [row for _, row in tried])
        for candidate, row in tried:
            candidate.never = found.get(row.id)
    return candidates


def warnings_of(job: Job, reason: ReasonOut) -> list[FieldWarning]:
    """Return the warnings of a job with this reason: at most one, and none once it runs."""
    code = reason["code"]
    if code not in NEVER_RUNS or job.gpus is not None:
        return []
    field, remedy = _place(job, ReasonCode(code), reason["evidence"])
    value = getattr(job, field)
    return [
        FieldWarning(
            pointer=f"/{field}",
            field=field,
            code=code.lower(),
            message=reason["sentence"],
            remedy=remedy,
            value=value,
        )
    ]


def _place(job: Job, code: ReasonCode, evidence: Mapping[str, Any]) -> tuple[str, str]:
    """Return the field that could be changed, and how."""
    is_rigid = job.adaptivity == Adaptivity.RIGID
    count = "gpu_count" if is_rigid or job.gpu_count is not None else "min_gpus"
    match code:
        case ReasonCode.NO_COMPATIBLE_GPU_TYPE:
            return _of_type(job, evidence)
        case ReasonCode.EXCEEDS_CLUSTER:
            most = evidence.get("largest_type_gpus", evidence.get("places"))
            returned = "bring GPUs of the cluster back into service"
            return count, _at_most(most, returned)
        case ReasonCode.EXCEEDS_QUOTA_LIMIT:
            most = evidence.get("quota_gpus", evidence.get("places"))
            return count, _at_most(most, "ask a cluster admin for a higher ceiling")
    if "offered_gpus" in evidence:
        bound = "max_gpus" if job.max_gpus is not None else "min_gpus"
        return bound, (
            "Let min_gpus to max_gpus hold one of these numbers; or make it rigid, with gpu_count."
        )
    if "places" in evidence:
        return count, _at_most(evidence["places"], "add nodes with more GPUs")
    least = evidence.get("smallest_per_gpu_batch_size")
    held = "" if least is None else f": each GPU takes at least {least} samples"
    return "batch_size", f"Give another batch size, or other GPU counts{held}."


def _of_type(job: Job, evidence: Mapping[str, Any]) -> tuple[str, str]:
    if "promised_seconds" in evidence:
        return "promised_seconds", (
            "Promise more seconds, or a smaller batch; or let it use more GPUs, or faster ones."
        )
    there = evidence.get("cluster_gpu_types")
    if job.gpu_types:
        return "gpu_types", f"Allow some of {there}, or leave gpu_types out."
    return "model", f"Choose a model that runs on {there}, or another cluster."


def _at_most(most: Any, otherwise: str) -> str:
    return f"Give at most {most}, or {otherwise}." if most else f"{otherwise.capitalize()}."
