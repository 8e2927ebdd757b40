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
from maat.api.job_answers import ExplanationOut, ReasonOut, Remedy
from maat.scheduling.explain import ReasonCode, sentence_of
from maat.vocabulary import JobState

_WAIT = Remedy(
    code="wait",
    sentence="Nothing needs to be done: every round considers the job again.",
    field=None,
    changes={},
    starts_with=None,
)
_MOST_NEEDS_TOLD = 5
_RESUME = Remedy(
    code="resume",
    sentence="Resume it: it goes back into the queue, as of its submission.",
    field=None,
    changes={},
    starts_with=None,
)
_RELEASE = Remedy(
    code="release",
    sentence="Release it to run it all the same, or cancel it.",
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
    setback: JobEvent | None = None,
    needs: Sequence[Job] = (),
) -> ExplanationOut:
    """Explain a job's allocation.

    `remedies`: those found to work; without one, a job whose reason may pass is told to wait.
    `waited_for`: the reason why a finished job had waited. `failure`: the event of a command's
    failure, with its last attempt; `setback`: of an attempt's, after which the job is tried again.
    `needs`: the jobs that it waits for.
    """
    reason = show_reason(job, sight) if failure is None else _failed(job, failure)
    waits = (
        job.finished_seconds is None and not job.cancel_requested and job.reason_code in _PASSING
    )
    told = failure or setback
    offered = list(remedies) or ([_WAIT] if waits else [])
    if job.pause_requested and job.finished_seconds is None:
        offered = [_RESUME]
    elif reason["code"] == ReasonCode.DEPENDENCY_FAILED:
        offered = [_RELEASE]
    if needs and reason["code"] == ReasonCode.WAITING_DEPENDENCY:
        reason = ReasonOut({**reason, "sentence": _waits_for(needs)})
    return ExplanationOut(
        primary=reason,
        reasons=[reason, *([waited_for] if waited_for else [])],
        remedies=offered,
        as_of_round=job.as_of_round,
        last_lines=[] if told is None else told.data.get("last_lines") or [],
    )


def is_held_back(job: Job) -> bool:
    """Return whether the job pauses after an attempt that ended badly."""
    return job.finished_seconds is None and job.reason_code == ReasonCode.HELD_BACK


def _waits_for(needs: Sequence[Job]) -> str:
    """`It waits for job train (running, 40 %) and job prepare (pending).`"""
    left = [need for need in needs if need.state != JobState.SUCCEEDED]
    told = [
        f"job {need.name} ({need.state}, {need.progress:.0%})"
        if need.progress > 0
        else f"job {need.name} ({need.state})"
        for need in left[:_MOST_NEEDS_TOLD]
    ]
    if len(left) > len(told):
        told.append(f"{len(left) - len(told)} others")
    return f"It waits for {' and '.join(told)}." if told else "The next round considers it."


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
