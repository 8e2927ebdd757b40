"""rho and what is behind it, in words. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from maat.scheduling.explain import ReasonCode, sentence_of
from maat.vocabulary import FairnessState, WithoutRho

OTHER_TENANTS = "other tenants"

_WITHOUT: Mapping[WithoutRho, str] = {
    WithoutRho.NOT_SUCCEEDED: "The job failed or was cancelled: it has no completion time.",
    WithoutRho.LATENCY_BOUND: "Latency-bound inference is not about a completion time.",
    WithoutRho.NO_MODEL: "No step time of the job was kept, so nothing is known of it alone.",
    WithoutRho.UNKNOWN_WORK: "Nobody said how much work the job was.",
    WithoutRho.NO_TYPE: "Alone the job could run on no GPU type of the cluster.",
    WithoutRho.TIME_LIMIT: "It took too long to work out. Ask for it again, or leave it.",
    WithoutRho.FAULT: "A fault of Maat; the log of the worker has the details.",
    WithoutRho.SKIPPED: "An operator said that it need not be worked out.",
}
_STATES: Mapping[FairnessState, str] = {
    FairnessState.WAITING: "It waits to be worked out.",
    FairnessState.WORKING: "It is being worked out.",
}


def without_rho(reason: WithoutRho) -> str:
    """Return why a job has no rho, as a sentence."""
    return _WITHOUT[reason]


def rho_sentence(state: FairnessState, reason: WithoutRho | None, rho: float | None) -> str:
    """Return what rho of a job says."""
    if reason is not None:
        return _WITHOUT[reason]
    if rho is None:
        return _STATES.get(state, "")
    if rho > 1:
        return f"It took {rho:.2f} times as long as it would have alone on an equal share."
    return f"It took {rho:.2f} of the time that it would have alone on an equal share."


def reason_sentence(code: str) -> str:
    """Return the sentence of a reason's code; of one that this version does not know, the code."""
    return sentence_of(code, {}) if code in ReasonCode.__members__ else code


def why_sentence(why: Mapping[str, Any], jct_seconds: float) -> str:
    """Return how a life was spent, in one sentence."""
    waited = why["waiting_seconds"] + why["profiling_seconds"]
    parts = [
        f"{seconds / jct_seconds:.0%} {what}"
        for what, seconds in (
            ("waiting", waited),
            ("starting", why["starting_seconds"]),
            ("running", why["running_seconds"]),
            ("paused", why["paused_seconds"]),
        )
        if jct_seconds > 0 and seconds / jct_seconds >= 0.005
    ]
    times = why["preemptions"]
    preempted = f"; preempted {times} {'time' if times == 1 else 'times'}" if times else ""
    return f"Of its life: {', '.join(parts) or 'nothing'}{preempted}."
