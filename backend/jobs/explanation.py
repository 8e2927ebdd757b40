"""Explains why a job has its allocation, and what could be done about it.

The reasons come from the round that decided, and stay when the job has ended; the remedies come
from remedies/, the words on what it has from choices.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlmodel import Session

from backend.accounts.identity import Principal
from backend.answers import answer_of
from backend.attempts.locality import LocalityPenalty
from backend.jobs.blockers import Blockers
from backend.jobs.choices import choice_out
from backend.jobs.dependencies import NEVER_SUCCEEDS, follows_others
from backend.jobs.kept_reasons import also_of, evidence_of, waited_of
from backend.jobs.models import Job, JobEvent
from backend.jobs.remedies.finding import SOLUBLE
from backend.jobs.remedies.words import plain_remedy, remedy_of_forerunner
from backend.jobs.resources import reason_out, show_reason
from backend.rounds.repository import round_before
from backend.sight import Sight, jobs_named_in, sight_of
from maat.api.beliefs import PenaltyOut
from maat.api.job_answers import ExplanationOut, QueueOut, ReasonOut, Remedy
from maat.api.job_words import FOLLOWS
from maat.scheduling.choice import Measured
from maat.scheduling.explain import ReasonCode, sentence_of
from maat.vocabulary import JobState

_WAIT = plain_remedy(
    "wait", "wait", "Nothing needs to be done: every round considers the job again."
)
_ASK_FOR_LESS = plain_remedy(
    "wait",
    "wait",
    "As things go it does not start within 14 days, and no single change starts it now. Let it use "
    "fewer GPUs and more types at once, or wait: every round considers it again.",
)
_MEASURE = plain_remedy(
    "measure",
    "wait",
    "Measure what the two lose on one GPU (maat measure pairs) and have an administrator declare "
    "it for the cluster (maat upload, then maat change-cluster --interference); or "
    "wait for idle GPUs.",
)
_MOST_NEEDS_TOLD = 5
_RESUME = plain_remedy(
    "resume", "resume", "Resume it: it goes back into the queue, as of its submission."
)
_PAUSED = plain_remedy(
    "cluster_paused",
    "wait",
    "The cluster is paused: no round considers any job until an operator resumes the cluster.",
)
_RELEASE = plain_remedy("release", "release", "Release it to run it all the same, or cancel it.")
_HAS_GPUS = frozenset({ReasonCode.GRANTED, ReasonCode.PINNED})
_PASSING = SOLUBLE - {
    ReasonCode.NO_COMPATIBLE_GPU_TYPE,
    ReasonCode.EXCEEDS_CLUSTER,
    ReasonCode.NO_CONFIGURATION,
} | {
    ReasonCode.SOLVER_FALLBACK,
    ReasonCode.POLICY_FAILED,
    ReasonCode.NOT_CHOSEN,
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
    held: Sequence[Job] = (),
    paused: bool = False,
    starts_late: bool = False,
    queue: QueueOut | None = None,
    measured: Measured | None = None,
    blockers: Blockers | None = None,
    locality: LocalityPenalty | None = None,
) -> ExplanationOut:
    """Explain a job's allocation.

    `remedies`: those found to work; without one, a job whose reason may pass is told to wait.
    `waited_for`: the reason why a finished job had waited, if its row has none. `failure`: the
    event of a command's failure, with its last attempt; `setback`: of an attempt's, after which the
    job is tried again. `needs`: the jobs that it waits for; `held`: those that keep it waiting,
    also through others, until a person acts. `paused`: whether its cluster makes no rounds.
    `starts_late`: whether its forecast has no start within the horizon. `queue`: its place among
    the jobs that wait. `measured`: what it has shown, beside what rounds believed of it.
    `blockers`: who holds the GPUs that it waits for. `locality`: what a step across nodes costs it,
    if its placer weighs that.
    """
    reason = show_reason(job, sight) if failure is None else _failed(job, failure)
    if reason["code"] == ReasonCode.NOT_YET_CONSIDERED and _open(needs):
        reason = _follows(needs, as_of_round=None)
    stored, has_ended = job.reason_evidence, job.finished_seconds is not None
    waits = not has_ended and not job.cancel_requested and job.reason_code in _PASSING
    told = failure or setback
    wait = _ASK_FOR_LESS if starts_late else _WAIT
    offered = list(remedies) or ([wait] if waits else [])
    if waits and job.reason_code == ReasonCode.SHARING_UNKNOWN:
        offered = [_MEASURE, *remedies]
    if job.pause_requested and not has_ended:
        offered = [_RESUME]
    elif reason["code"] == ReasonCode.DEPENDENCY_FAILED:
        offered = [_RELEASE]
    elif reason["code"] == ReasonCode.WAITING_DEPENDENCY:
        offered = [remedy_of_forerunner(one) for one in held]
    if paused and not has_ended and job.reason_code not in _HAS_GPUS:
        offered = [_PAUSED, *(one for one in offered if one is not wait)]
    if needs and reason["code"] == ReasonCode.WAITING_DEPENDENCY:
        reason = ReasonOut({**reason, "sentence": _waits_for(needs)})
    if blockers is not None and reason["code"] == job.reason_code:
        reason = blockers.said_with(reason)
    last = reason_out(job.reason_code, evidence_of(stored), sight, as_of_round=job.as_of_round)
    has_gpus = job.reason_code in _HAS_GPUS
    return ExplanationOut(
        primary=reason,
        reasons=[reason, *([] if has_ended else _also(job, sight, reason, needs))],
        waited=last if has_ended and not has_gpus else _kept_wait(job, sight) or waited_for,
        ran=last if has_ended and has_gpus else None,
        choice=choice_out(last["evidence"], measured) if has_gpus else None,
        locality=None if locality is None else answer_of(PenaltyOut, locality),
        queue=queue,
        blockers=[] if blockers is None else list(blockers.each),
        remedies=offered,
        as_of_round=job.as_of_round,
        last_lines=[] if told is None else told.data.get("last_lines") or [],
    )


def _also(job: Job, sight: Sight, reason: ReasonOut, needs: Sequence[Job]) -> list[ReasonOut]:
    """Return what holds besides the primary reason: by the round, and by the jobs it waits for."""
    by_round = reason["code"] == job.reason_code
    found = [
        reason_out(one["code"], one["evidence"], sight, as_of_round=job.as_of_round)
        for one in (also_of(job.reason_evidence) if by_round else ())
    ]
    if reason["code"] == ReasonCode.HELD_BY_USER and _open(needs):
        found.append(_follows(needs, as_of_round=job.as_of_round))
    return found


def _kept_wait(job: Job, sight: Sight) -> ReasonOut | None:
    waited = waited_of(job.reason_evidence)
    if waited is None:
        return None
    return reason_out(waited["code"], waited["evidence"], sight, as_of_round=waited["round"])


def is_held_back(job: Job) -> bool:
    """Return whether the job pauses after an attempt that ended badly."""
    return job.finished_seconds is None and job.reason_code == ReasonCode.HELD_BACK


def _follows(needs: Sequence[Job], *, as_of_round: int | None) -> ReasonOut:
    """Return that a job waits for others, or that one of them will never succeed."""
    failed = [need for need in needs if need.state in NEVER_SUCCEEDS]
    code, sentence = ReasonCode.WAITING_DEPENDENCY, _waits_for(needs)
    if failed:
        code = ReasonCode.DEPENDENCY_FAILED
        sentence = sentence_of(code, {"job": failed[0].id, "state": failed[0].state})
    return ReasonOut(code=code, sentence=sentence, evidence={}, as_of_round=as_of_round)


def _waits_for(needs: Sequence[Job]) -> str:
    """`It waits for job train (running, 40 %) and job prepare (pending).`"""
    left = _open(needs)
    told = [
        f"job {need.name} ({_stands(need)}, {need.progress:.0%})"
        if need.progress > 0
        else f"job {need.name} ({_stands(need)})"
        for need in left[:_MOST_NEEDS_TOLD]
    ]
    if len(left) > len(told):
        told.append(f"{len(left) - len(told)} others")
    return f"It waits for {' and '.join(told)}." if told else "The next round considers it."


def _stands(need: Job) -> str:
    return FOLLOWS if follows_others(need) else need.state


def _open(needs: Sequence[Job]) -> list[Job]:
    return [need for need in needs if need.state != JobState.SUCCEEDED]


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

    For jobs whose row does not keep it: those of earlier versions. It is in the last round before
    the job's start; None if it waited for no round, or if that round was pruned.
    """
    until = job.started_seconds if job.started_seconds is not None else job.finished_seconds
    if job.finished_seconds is None or until is None:
        return None
    found = round_before(session, job.cluster_id, until)
    stored = (found.record or {}).get("reasons", {}).get(job.id) if found is not None else None
    if found is None or stored is None or stored["code"] in _HAS_GPUS:
        return None  # the round that gave it GPUs is no wait
    sight = sight_of(session, principal, jobs_named_in(stored["evidence"]))
    return reason_out(stored["code"], stored["evidence"], sight, as_of_round=found.number)
