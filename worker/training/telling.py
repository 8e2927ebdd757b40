"""What has become of a job and its attempts, as events, each told once. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from backend.models import AttemptRow
from backend.models import Job as JobRow
from maat.scheduling.events import Event, EventKind
from maat.scheduling.job import JobId
from maat.vocabulary import AttemptKind, JobState, Outcome
from worker.training.tables import trained

_SEEN = "seen"


def told_of(attempts: Sequence[AttemptRow]) -> set[str]:
    """Return what is told once `events_of` is: names of facts of the newest attempts."""
    return {_SEEN} | {name for attempt in attempts[-2:] for name in _facts(attempt)}


def events_of(
    row: JobRow,
    attempts: Sequence[AttemptRow],
    told: Collection[str],
    *,
    ended: JobState | None,
    gave_up: str | None,
    now: float,
) -> Iterator[Event]:
    """Tell what `told` does not name yet.

    `attempts`: of the job, oldest first. `ended`: how the job ended. `gave_up`: why it is profiled
    no further.
    """
    if not told and row.state == JobState.SUBMITTED:
        yield state_event(row.submitted_seconds, row.id, JobState.PENDING)
    for attempt in attempts[-2:]:
        runs, ends = _names(attempt)
        news = _facts(attempt) - set(told)
        if runs in news:
            yield _beginning_of(attempt)
        if ends in news and attempt is attempts[-1]:
            yield from _end_of(attempt, ended, gave_up)
    if ended is not None and (not trained(attempts) or ended is JobState.CANCELLED):
        yield state_event(now, row.id, ended)


def state_event(
    time: float, job_id: JobId, state: JobState, data: Mapping[str, object] | None = None
) -> Event:
    return Event(time, job_id, EventKind.STATE, state, data or {})


def _facts(attempt: AttemptRow) -> set[str]:
    """Return what there is to tell of an attempt: of a profile, from its order on."""
    runs, ends = _names(attempt)
    is_there = attempt.kind == AttemptKind.PROFILE or attempt.running_seconds is not None
    return ({runs} if is_there else set()) | (
        {ends} if attempt.ended_seconds is not None else set()
    )


def _names(attempt: AttemptRow) -> tuple[str, str]:
    return f"{attempt.number} runs", f"{attempt.number} ended"


def _beginning_of(attempt: AttemptRow) -> Event:
    if attempt.kind == AttemptKind.PROFILE or attempt.running_seconds is None:
        data = {"gpu_type": attempt.gpu_type, "gpu_count": attempt.gpu_count}
        return state_event(attempt.ordered_seconds, attempt.job_id, JobState.PROFILING, data)
    return state_event(attempt.running_seconds, attempt.job_id, JobState.RUNNING)


def _end_of(attempt: AttemptRow, ended: JobState | None, gave_up: str | None) -> Iterator[Event]:
    """Tell the end of a job's newest attempt, where it changed what the job is."""
    if attempt.ended_seconds is None:
        return
    data: dict[str, object] = {
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
    elif ended in (JobState.SUCCEEDED, JobState.FAILED):
        yield state_event(attempt.ended_seconds, attempt.job_id, ended, data)
    elif ended is None and attempt.outcome in (Outcome.FAILED, Outcome.LOST, Outcome.REFUSED):
        yield state_event(attempt.ended_seconds, attempt.job_id, JobState.PREEMPTED, data)
