"""What has become of a job and its attempts, as events, each told once. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from backend.models import AttemptRow
from backend.models import Job as JobRow
from maat.scheduling.events import Event, EventKind
from maat.scheduling.job import JobId
from maat.vocabulary import AttemptKind, JobState, Outcome
from worker.training.attempts import CANNOT_SAVE, NO_AGENT
from worker.training.retries import Standing
from worker.training.tables import did_all_work, not_over, trained

_SEEN, _AWAY = "seen", "engine away"
_CAUSES = {
    Outcome.FAILED: "crash",
    Outcome.LOST: "engine-lost",
    Outcome.CANCELLED: "cancelled-there",
    Outcome.REFUSED: "refused",
}


def told_of(
    attempts: Sequence[AttemptRow], told: Collection[str], *, engine_fault: str | None
) -> set[str]:
    """Return what is told once `events_of` is: names of facts of the newest attempts.

    `told`: what was told before.
    """
    away = engine_fault is not None and (_AWAY in told or _runs(attempts))
    facts = {name for attempt in attempts[-2:] for name in _facts(attempt)}
    return {_SEEN} | facts | ({_AWAY} if away else set())


def events_of(
    row: JobRow,
    attempts: Sequence[AttemptRow],
    told: Collection[str],
    *,
    ended: JobState | None,
    gave_up: str | None,
    standing: Standing,
    engine_fault: str | None,
    now: float,
) -> Iterator[Event]:
    """Tell what `told` does not name yet.

    `attempts`: of the job, oldest first. `ended`: how the job ended. `gave_up`: why it is profiled
    no further. `engine_fault`: why the engine does not answer.
    """
    if not told and row.state == JobState.SUBMITTED:
        yield state_event(row.submitted_seconds, row.id, JobState.PENDING)
    for attempt in attempts[-2:]:
        runs, ends = _names(attempt)
        news = _facts(attempt) - set(told)
        if runs in news:
            yield _beginning_of(attempt)
        if attempt.trouble and _trouble(attempt) in news:
            yield _about_checkpoints(attempt, attempt.trouble, now)
        if ends in news and attempt.ended_seconds is not None and could_not_save(attempt):
            yield _about_checkpoints(attempt, attempt.reason, attempt.ended_seconds)
        if ends in news and attempt is attempts[-1]:
            yield from _end_of(attempt, ended, gave_up, standing)
    yield from _about_engine(row.id, attempts, told, engine_fault, now)
    is_told = any(did_all_work(one) for one in attempts)
    if ended is not None and not is_told and (not trained(attempts) or ended is JobState.CANCELLED):
        yield state_event(now, row.id, ended)


def state_event(
    time: float, job_id: JobId, state: JobState, data: Mapping[str, object] | None = None
) -> Event:
    return Event(time, job_id, EventKind.STATE, state, data or {})


def _facts(attempt: AttemptRow) -> set[str]:
    """Return what there is to tell of an attempt: of a profile, from its order on."""
    runs, ends = _names(attempt)
    is_there = attempt.kind == AttemptKind.PROFILE or attempt.running_seconds is not None
    has_ended, trouble = attempt.ended_seconds is not None, attempt.trouble is not None
    facts = ((is_there, runs), (has_ended, ends), (trouble, _trouble(attempt)))
    return {name for holds, name in facts if holds}


def _names(attempt: AttemptRow) -> tuple[str, str]:
    return f"{attempt.number} runs", f"{attempt.number} ended"


def _trouble(attempt: AttemptRow) -> str:
    return f"{attempt.number} trouble: {attempt.trouble}"


def _runs(attempts: Sequence[AttemptRow]) -> bool:
    """Return whether the engine was told of an attempt that has not ended."""
    return any(one.launched and not_over(one) for one in attempts[-2:])


def could_not_save(attempt: AttemptRow) -> bool:
    """Return whether it was asked to end and had no room for its checkpoint."""
    is_asked = attempt.outcome == Outcome.STOPPED
    return is_asked and CANNOT_SAVE in (attempt.exits or {}).values()


def _about_checkpoints(attempt: AttemptRow, words: str, at: float) -> Event:
    data: dict[str, object] = {"attempt": attempt.number, "reason": words}
    if attempt.last_lines:
        data["last_lines"] = list(attempt.last_lines)
    return Event(at, attempt.job_id, EventKind.CHECKPOINT, None, data)


def _about_engine(
    job_id: JobId,
    attempts: Sequence[AttemptRow],
    told: Collection[str],
    fault: str | None,
    now: float,
) -> Iterator[Event]:
    """Tell once that the engine does not answer, and once that it does again."""
    if fault is not None and _AWAY not in told and _runs(attempts):
        data = {"answers": "no more", "reason": fault}
        yield Event(now, job_id, EventKind.ENGINE, None, data)
    elif fault is None and _AWAY in told:
        yield Event(now, job_id, EventKind.ENGINE, None, {"answers": "again"})


def _beginning_of(attempt: AttemptRow) -> Event:
    if attempt.kind == AttemptKind.PROFILE or attempt.running_seconds is None:
        data = {"gpu_type": attempt.gpu_type, "gpu_count": attempt.gpu_count}
        return state_event(attempt.ordered_seconds, attempt.job_id, JobState.PROFILING, data)
    unheard = attempt.reports and attempt.reported_seconds is None
    data = {"reason": f"Nothing is measured: {NO_AGENT}"} if unheard else {}
    return state_event(attempt.running_seconds, attempt.job_id, JobState.RUNNING, data)


def _end_of(
    attempt: AttemptRow, ended: JobState | None, gave_up: str | None, standing: Standing
) -> Iterator[Event]:
    """Tell the end of a job's newest attempt, where it changed what the job is."""
    if attempt.ended_seconds is None:
        return
    data: dict[str, object] = {
        **_cause(attempt, standing),
        "attempt": attempt.number,
        "outcome": attempt.outcome,
        "reason": attempt.reason,
    }
    if attempt.exits:
        data["exit_codes"] = dict(attempt.exits)
    if attempt.last_lines:
        data["last_lines"] = list(attempt.last_lines)
    if attempt.kind == AttemptKind.PROFILE:
        if ended is None:
            data |= {} if gave_up is None else {"gave_up": gave_up}
            yield state_event(attempt.ended_seconds, attempt.job_id, JobState.PENDING, data)
        elif ended is JobState.SUCCEEDED:
            yield state_event(attempt.ended_seconds, attempt.job_id, ended, data)
    elif ended in (JobState.SUCCEEDED, JobState.FAILED):
        yield state_event(attempt.ended_seconds, attempt.job_id, ended, data)
    elif ended is None and attempt.outcome in _CAUSES:
        yield state_event(attempt.ended_seconds, attempt.job_id, JobState.PREEMPTED, data)


def _cause(attempt: AttemptRow, standing: Standing) -> Mapping[str, object]:
    """Return what ended an attempt badly: a crash loop is told from a lost node."""
    cause = None if attempt.outcome is None else _CAUSES.get(Outcome(attempt.outcome))
    if cause == "crash" and standing.crashes:
        return {"cause": "crash-loop", "failures": standing.failures}
    return {} if cause is None else {"cause": cause}
