"""Whether a job whose attempt ended badly is started again, when, and why not yet. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from backend.models import AttemptRow
from maat.vocabulary import Outcome

CRASH_LOOP = 3
"""Failures in a row, all with the same exit codes, from which on a job is said to crash always."""

_FIRST_BACKOFF, _LONGEST_BACKOFF = 10.0, 600.0
_GOOD_SECONDS = 600.0  # that an attempt has trained for: failures before it are forgotten
_CANCELLED_AGAIN = 2  # times in a row: then somebody does not want it to run
_NOT_STARTED = frozenset({Outcome.NEVER_STARTED.value, Outcome.STOPPED.value})


@dataclass(frozen=True)
class Standing:
    """How often a job failed, and until when it must wait.

    `failures`: in a row, without progress in between; `alike`: the newest of them with the same
    exit codes. `not_before`: when it may start again.
    """

    failures: int
    alike: int
    not_before: float
    has_failed: bool

    @property
    def crashes(self) -> bool:
        """Whether it fails in the same way each time, and gets no further in between."""
        return self.alike >= CRASH_LOOP

    def may_start(self, now: float) -> bool:
        return now >= self.not_before


def standing_of(attempts: Sequence[AttemptRow], max_retries: int) -> Standing:
    """Count the failures of a job since it last got on.

    Only what the job itself did counts: not a lost node, a move or a refusal of the engine.
    """
    failed = _failed_since_it_got_on(attempts)
    last = attempts[-1] if attempts else None
    alike = 0
    if failed and last is not None and last.outcome == Outcome.FAILED:
        alike = len(list(takewhile(lambda one: one.exits == last.exits, reversed(failed))))
    wait = _wait(attempts, len(failed))
    if last is None or last.ended_seconds is None or not wait:
        return Standing(len(failed), alike, 0.0, has_failed=False)
    has_failed = last.outcome == Outcome.FAILED and len(failed) > max_retries
    return Standing(len(failed), alike, last.ended_seconds + wait, has_failed)


def _failed_since_it_got_on(attempts: Sequence[AttemptRow]) -> list[AttemptRow]:
    failed, saved = list[AttemptRow](), None
    for attempt in attempts:
        saves = attempt.checkpoint_step
        has_saved = saves is not None and (saved is None or saves > saved)
        if has_saved or _trained_long(attempt):
            failed = []
        saved = saves if has_saved else saved
        if attempt.outcome == Outcome.FAILED:
            failed.append(attempt)
    return failed


def _wait(attempts: Sequence[AttemptRow], failures: int) -> float:
    """Return how long the job must wait after its last attempt.

    After a refusal too: the engine would say the same again. What was cancelled in the engine is
    started again at once, and the second time in a row after the longest pause: a person may want
    its end, and Maat cannot know.
    """
    last = attempts[-1] if attempts else None
    if last is None:
        return 0.0
    if last.outcome == Outcome.FAILED:
        return _backoff(failures)
    if last.outcome == Outcome.REFUSED:
        return _backoff(_in_a_row(attempts, Outcome.REFUSED))
    if _in_a_row(attempts, Outcome.CANCELLED) >= _CANCELLED_AGAIN:
        return _LONGEST_BACKOFF
    return 0.0


def _in_a_row(attempts: Sequence[AttemptRow], outcome: Outcome) -> int:
    ended = [one for one in attempts if one.outcome not in _NOT_STARTED]
    last = attempts[-1].outcome
    if last != outcome:
        return 0
    return len(list(takewhile(lambda one: one.outcome == outcome, reversed(ended))))


def _backoff(times: int) -> float:
    wait: float = min(_FIRST_BACKOFF * 2.0 ** (times - 1), _LONGEST_BACKOFF)
    return wait


def _trained_long(attempt: AttemptRow) -> bool:
    if attempt.running_seconds is None or attempt.ended_seconds is None:
        return False
    return attempt.ended_seconds - attempt.running_seconds >= _GOOD_SECONDS


def held_back(
    standing: Standing, attempts: Sequence[AttemptRow], now: float
) -> Mapping[str, float | int | str | None] | None:
    """Return what a job that must wait is explained by; None if it need not."""
    if standing.may_start(now) or standing.has_failed:
        return None
    last = attempts[-1]
    return {
        "attempt": last.number,
        "outcome": last.outcome,
        "reason": last.reason,
        "failures": standing.failures,
        "crash_loop": int(standing.crashes),
        "wait_seconds": standing.not_before - (last.ended_seconds or now),
    }
