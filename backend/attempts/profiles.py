"""When profiles of a job have failed too often to go on. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from backend.attempts.models import AttemptRow
from maat.vocabulary import AttemptKind, AttemptState, Outcome, StopReason

_MOST_FAILURES = 2
_NO_FAULT = frozenset({Outcome.LOST.value, Outcome.NEVER_STARTED.value})


def why_given_up(believed: Collection[str], attempts: Sequence[AttemptRow]) -> str | None:
    """Return why a job is profiled no further; None while it is.

    `believed`: the types of which something is known. A profile has failed if it ended and nothing
    is known of its type. One that never reported is not tried again: its script does not use the
    agent, or cannot start.
    """
    failed = [
        one
        for one in attempts
        if one.kind == AttemptKind.PROFILE
        and one.state == AttemptState.ENDED
        and one.outcome not in _NO_FAULT
        and one.gpu_type not in believed
    ]
    if any(one.stop_reason == StopReason.NO_AGENT for one in failed):
        return "Its script does not use maat.agent: it runs as it stands, on the GPUs that it gets."
    if any(one.reported_seconds is None for one in failed):
        return "Its script never reported: it is profiled no further, and learns as it runs."
    if len(failed) >= _MOST_FAILURES:
        return f"{len(failed)} profiles failed: it is profiled no further, and learns as it runs."
    return None
