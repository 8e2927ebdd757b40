"""Why a job stands as it does, as its row keeps it: set by rounds, and between them by events.

What a round says of a job with GPUs stays while it keeps them, and so does why it waited before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from backend.jobs.kept_reasons import KeptReason, evidence_of, kept, waited_of
from maat.scheduling.explain import ReasonCode, Reasons
from worker.jobs.standing import JobStanding
from worker.rounds.rows import finite_values

HAS_GPUS = frozenset({ReasonCode.GRANTED.value, ReasonCode.PINNED.value})
"""Reasons of jobs that hold GPUs."""
_NOBODY_DECIDED = frozenset(
    {ReasonCode.NOT_YET_CONSIDERED.value, ReasonCode.PROFILE_INCOMPLETE.value}
)
_DECIDED_BY = "decided_by_round"


def explain(
    job: JobStanding, code: ReasonCode, evidence: Mapping[str, Any], also: tuple[Reasons, ...] = ()
) -> None:
    """Set a job's reason, and keep why it last waited."""
    waited = waited_of(job.reason_evidence)
    if code in HAS_GPUS and job.reason_code not in HAS_GPUS | _NOBODY_DECIDED:
        waited = KeptReason(
            code=job.reason_code, evidence=evidence_of(job.reason_evidence), round=job.as_of_round
        )
    others = [
        KeptReason(code=other.primary.value, evidence=finite_values(other.evidence), round=None)
        for other in also
    ]
    job.reason_code = code.value
    job.reason_evidence = kept(evidence, also=others, waited=waited)


def explain_by_round(job: JobStanding, why: Reasons) -> None:
    """Set the reason that a round gave; call it before the round's number is set.

    A job that is pinned keeps what was decided for the GPUs that it holds, with the round.
    """
    evidence = finite_values(why.evidence)
    if why.primary is ReasonCode.PINNED:
        evidence = {**_decided(job), **evidence}
    explain(job, why.primary, evidence, why.also)


def _decided(job: JobStanding) -> dict[str, Any]:
    before = evidence_of(job.reason_evidence)
    held = (job.gpu_type, None if job.gpus is None else len(job.gpus))
    if job.reason_code not in HAS_GPUS or held != (
        before.get("gpu_type"),
        before.get("gpu_count"),
    ):
        return {}
    before.pop("remaining_seconds", None)  # as of then
    return {_DECIDED_BY: job.as_of_round, **before}


def explain_end(job: JobStanding, data: Mapping[str, Any]) -> None:
    """Say that its attempt ended, until a round has considered the job again."""
    if job.reason_code in HAS_GPUS:
        known = {name: data[name] for name in ("attempt", "outcome", "reason") if name in data}
        explain(job, ReasonCode.NOT_YET_CONSIDERED, known)


def explain_profile(job: JobStanding, gpu_type: str | None) -> None:
    evidence = {} if gpu_type is None else {"gpu_type": gpu_type}
    explain(job, ReasonCode.PROFILE_INCOMPLETE, evidence)
