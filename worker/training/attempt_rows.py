"""An attempt as its row has it: from the row to the state machine, and back."""

from __future__ import annotations

from dataclasses import dataclass

from backend.models import AttemptRow
from maat.vocabulary import AttemptKind, AttemptState, StopReason
from worker.training.attempts import Attempt


@dataclass(frozen=True)
class LiveAttempt:
    """A live attempt as its row has it, its time to stop, and whether its script has the agent."""

    row: AttemptRow
    stop_seconds: float
    has_agent: bool = True

    def attempt(self) -> Attempt:
        row = self.row
        return Attempt(
            AttemptState(row.state),
            reports=row.reports or row.reported_seconds is not None,
            stop_seconds=self.stop_seconds,
            rank_count=row.gpu_count,
            launched=row.launched,
            queued_at=row.queued_seconds,
            alive_at=row.alive_seconds,
            last_report_at=row.reported_seconds,
            stop_reason=None if row.stop_reason is None else StopReason(row.stop_reason),
            stop_at=row.stop_seconds,
            stop_told=row.stop_told,
            killed_at=row.killed_seconds,
            finished=row.finished,
            absent_since=row.absent_seconds,
            is_profile=row.kind == AttemptKind.PROFILE,
            running_at=row.running_seconds,
            has_agent=self.has_agent,
        )


def columns_of(attempt: Attempt) -> dict[str, object]:
    """Return what the worker stores of an attempt; its reports are the service's."""
    reason = attempt.stop_reason
    return {
        "state": attempt.state.value,
        "launched": attempt.launched,
        "queued_seconds": attempt.queued_at,
        "alive_seconds": attempt.alive_at,
        "running_seconds": attempt.running_at,
        "stop_reason": None if reason is None else reason.value,
        "stop_seconds": attempt.stop_at,
        "stop_told": attempt.stop_told,
        "killed_seconds": attempt.killed_at,
        "absent_seconds": attempt.absent_since,
    }
