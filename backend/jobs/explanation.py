"""Explains why a job has its allocation, and what its owner could do about it.

The reason comes from the round that decided, the remedies from remedies.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlmodel import Session

from backend.accounts.identity import Principal
from backend.jobs.models import Job, JobEvent
from backend.jobs.remedies import SOLUBLE
from backend.jobs.resources import show_reason
from backend.rounds.repository import round_before
from backend.sight import Sight, jobs_named_in, sight_of
from maat.api.jobs import ExplanationOut, ReasonOut, Remedy
from maat.scheduling.explain import ReasonCode, sentence_of

_WAIT = Remedy(
    code="wait",
    sentence="Nothing needs to be done: every round considers the job again.",
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
    job: Job,
    sight: Sight,
    remedies: Sequence[Remedy],
    *,
    waited_for: ReasonOut | None = None,
    failure: JobEvent | None = None,
) -> ExplanationOut:
    """Explain a job's allocation.

    `remedies`: those found to work; without one, a job whose reason may pass is told to wait.
    `waited_for`: the reason why a finished job had waited. `failure`: the event of a command's
    failure, with its last attempt.
    """
    reason = show_reason(job, sight) if failure is None else _failed(job, failure)
    waits = (
        job.finished_seconds is None and not job.cancel_requested and job.reason_code in _PASSING
    )
    offered = list(remedies) or ([_WAIT] if waits else [])
    return ExplanationOut(
        primary=reason,
        reasons=[reason, *([waited_for] if waited_for else [])],
        remedies=offered,
        as_of_round=job.as_of_round,
        last_lines=[] if failure is None else failure.data.get("last_lines") or [],
    )


def _failed(job: Job, failure: JobEvent) -> ReasonOut:
    number, why = failure.data["attempt"], failure.data["reason"] or "its processes ended early."
    tries = "" if number == 1 else f" It was its attempt {number}."
    if failure.data.get("cause") == "crash-loop":
        tries = (
            f" It crashes in a loop: its last {failure.data['failures']} attempts failed, "
            "without progress in between."
        )
    return ReasonOut(
        code="FAILED",
        sentence=f"The job has failed: {why}{tries}",
        evidence={},
        as_of_round=job.as_of_round,
    )


def waited_for(session: Session, principal: Principal, job: Job) -> ReasonOut | None:
    """Return the reason why a finished job waited.

    It is in the last round before the job's start; None if it waited for no round, or if that round
    was pruned.
    """
    until = job.started_seconds if job.started_seconds is not None else job.finished_seconds
    if job.finished_seconds is None or until is None:
        return None
    found = round_before(session, job.cluster_id, until)
    stored = (found.record or {}).get("reasons", {}).get(job.id) if found is not None else None
    if found is None or stored is None:
        return None
    evidence = sight_of(session, principal, jobs_named_in(stored["evidence"])).evidence(
        stored["evidence"]
    )
    return ReasonOut(
        code=stored["code"],
        sentence=sentence_of(stored["code"], evidence),
        evidence=evidence,
        as_of_round=found.number,
    )
