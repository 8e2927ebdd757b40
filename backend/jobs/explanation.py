"""Why a job has what it has, and what its owner could do about it. The reason comes from the round that decided, the ways out from remedies.py."""

from __future__ import annotations

from collections.abc import Sequence

from sqlmodel import Session

from backend.accounts.identity import Principal
from backend.jobs.models import Job
from backend.jobs.remedies import SOLUBLE
from backend.jobs.resources import show_reason
from backend.rounds.repository import round_before
from backend.sight import Sight, jobs_named_in, sight_of
from maat.api.jobs import ExplanationOut, ReasonOut, Remedy
from maat.scheduling.explain import ReasonCode, sentence_of

_WAIT = Remedy(
    code="wait",
    sentence="Nothing needs to be done: every round considers it again.",
    field=None,
    changes={},
    starts_with=None,
)
_PASSING = SOLUBLE - {
    ReasonCode.NO_COMPATIBLE_GPU_TYPE,
    ReasonCode.EXCEEDS_CLUSTER,
    ReasonCode.NO_CONFIGURATION,
} | {
    ReasonCode.SOLVER_FALLBACK,
    ReasonCode.NOT_YET_CONSIDERED,
    ReasonCode.PROFILE_INCOMPLETE,
}


def explain(
    job: Job, sight: Sight, remedies: Sequence[Remedy], *, waited_for: ReasonOut | None = None
) -> ExplanationOut:
    """`remedies`: those that were found to work. Without one, a job whose reason may pass is told to wait. `waited_for`: of one that ended."""
    reason = show_reason(job, sight)
    waits = (
        job.finished_seconds is None and not job.cancel_requested and job.reason_code in _PASSING
    )
    offered = list(remedies) or ([_WAIT] if waits else [])
    return ExplanationOut(
        primary=reason,
        reasons=[reason, *([waited_for] if waited_for else [])],
        remedies=offered,
        as_of_round=job.as_of_round,
    )


def waited_for(session: Session, principal: Principal, job: Job) -> ReasonOut | None:
    """What a job that is over waited for, as the last round before its start said; None where it waited for no round, or that was pruned."""
    until = job.started_seconds if job.started_seconds is not None else job.finished_seconds
    if job.finished_seconds is None or until is None:
        return None
    found = round_before(session, job.cluster_id, until)
    said = (found.record or {}).get("reasons", {}).get(job.id) if found is not None else None
    if found is None or said is None:
        return None
    evidence = sight_of(session, principal, jobs_named_in(said["evidence"])).evidence(
        said["evidence"]
    )
    return ReasonOut(
        code=said["code"],
        sentence=sentence_of(said["code"], evidence),
        evidence=evidence,
        as_of_round=found.number,
    )
