"""Whether a job whose processes failed is started again, and when. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from backend.models import AttemptRow
from maat.vocabulary import Outcome

_FIRST_BACKOFF, _LONGEST_BACKOFF = 10.0, 600.0
_GOOD_SECONDS = 600.0  # that an attempt has trained for: failures before it are forgotten


@dataclass(frozen=True)
class Standing:
    """`failures`: in a row, without progress in between. `not_before`: when it may start again."""

    failures: int
    not_before: float
    has_failed: bool

    def may_start(self, now: float) -> bool:
        return now >= self.not_before


def standing_of(attempts: Sequence[AttemptRow], max_retries: int) -> Standing:
    """Count the failures of a job since it last got on.

    Only what the job itself did counts: not a lost node, a move or a refusal of the engine.
    """
    failures, saved = 0, None
    for attempt in attempts:
        saves = attempt.checkpoint_step
        has_saved = saves is not None and (saved is None or saves > saved)
        if has_saved or _trained_long(attempt):
            failures = 0
        saved = saves if has_saved else saved
        if attempt.outcome == Outcome.FAILED:
            failures += 1
    last = attempts[-1] if attempts else None
    if last is None or last.outcome != Outcome.FAILED or last.ended_seconds is None:
        return Standing(failures, 0.0, has_failed=False)
    wait = min(_FIRST_BACKOFF * 2.0 ** (failures - 1), _LONGEST_BACKOFF)
    return Standing(failures, last.ended_seconds + wait, has_failed=failures > max_retries)


def _trained_long(attempt: AttemptRow) -> bool:
    if attempt.running_seconds is None or attempt.ended_seconds is None:
        return False
    return attempt.ended_seconds - attempt.running_seconds >= _GOOD_SECONDS
