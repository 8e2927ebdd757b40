"""Reasons in words, the same on pages and in the terminal: codes, and the numbers behind them.

The service makes the sentence itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from maat.api.shown_numbers import count, duration, number, percent

Evidence: TypeAlias = str | float | bool

# Key of the evidence -> what it is called, with its unit.
LABELS = {
    "accumulation_steps": "accumulation steps",
    "ahead": "job that it does not overtake",
    "alone_free_gpus": "alone: free GPUs of its type",
    "alone_goodput_samples_per_second": "alone: goodput (effective samples/s)",
    "alone_gpu_count": "alone: GPUs",
    "alone_gpu_type": "alone: GPU type",
    "alone_limit": "alone: held back by",
    "alone_pays_after_seconds": "alone: a move pays after",
    "alone_price": "alone: what the GPUs cost",
    "alone_value": "alone: what it is worth",
    "asked_gpu_types": "GPU types that it asks for",
    "asked_gpus": "GPUs that it asks for",
    "batch_size": "batch size (samples)",
    "best_batch_size": "batch size believed best (samples)",
    "binding_limit": "held back by",
    "by_request": "the count is what it asks for",
    "cluster_gpu_types": "GPU types of the cluster",
    "decided_by_round": "decided by round",
    "free_gpus": "GPUs left for it",
    "gains_nowhere_else": "beside jobs of known slowdown it gains nothing",
    "goodput_samples_per_second": "goodput, as the round believed (effective samples/s)",
    "gpu_count": "GPUs",
    "gpu_type": "GPU type",
    "gpus_with_one_job": "GPUs with one job",
    "held_by": "GPUs are held by",
    "higher_class": "class that comes first",
    "idle_gpus": "idle GPUs",
    "idle_penalty": "idle penalty",
    "idle_penalty_above": "idle penalty that would do, above",
    "initial_batch_size": "initial batch size (samples)",
    "largest_type_gpus": "GPUs of the most numerous type",
    "lease_seconds_left": "lease left",
    "least_stay_seconds": "least stay",
    "length_is_known": "how long it runs is known",
    "model": "model",
    "moves_in_last_hour": "moves in the last hour",
    "needed_gpus": "GPUs that it needs at least",
    "noise_scale": "gradient noise scale (samples)",
    "offered_gpus": "GPUs that the policy offers",
    "part_kept": "part of its share that it keeps",
    "partner_model": "model of a job that it could join",
    "partner_slowdown": "the partner's slowdown beside it",
    "per_gpu_batch_size": "batch size per GPU (samples)",
    "placed_without_scores": "placed without the scores of GPUs",
    "places": "GPUs that the limit has",
    "preemptible": "may be preempted",
    "price": "what the GPUs cost the objective",
    "priority": "priority",
    "promised_seconds": "promised for a batch",
    "quota_by_weight": "set by the team's weight in this round",
    "quota_gpu_type": "GPU type of the quota",
    "quota_gpus": "GPUs of the quota",
    "quota_guaranteed_gpus": "GPUs that the team is guaranteed",
    "quota_used_gpus": "GPUs of the quota in use",
    "remaining_seconds": "time left as the round believed",
    "remaining_steps": "steps left",
    "restart_seconds": "time of a restart",
    "restarting": "is restarting",
    "rho_without_gpus": "finish-time fairness rho without GPUs",
    "runner_up_free_gpus": "next best: free GPUs of its type",
    "runner_up_goodput_samples_per_second": "next best: goodput (effective samples/s)",
    "runner_up_gpu_count": "next best: GPUs",
    "runner_up_gpu_type": "next best: GPU type",
    "runner_up_limit": "next best: held back by",
    "runner_up_pays_after_seconds": "next best: a move pays after",
    "runner_up_price": "next best: what the GPUs cost",
    "runner_up_step_seconds": "next best: time of a step",
    "runner_up_value": "next best: what it is worth",
    "seconds_late": "late by (s)",
    "shared_gpus": "GPUs that it shares",
    "shares_with": "shares with",
    "slowdown": "its slowdown beside the partner",
    "smallest_per_gpu_batch_size": "least batch size per GPU (samples)",
    "speedup_over_fair_share": "speed-up over its fair share",
    "starting": "is starting",
    "stays_for_seconds": "must stay for",
    "step_seconds": "time of a step",
    "time_share": "share of the time that it is due",
    "value": "what it is worth to the objective",
    "wait_seconds": "pause (s)",
    "weight": "weight of the job",
}
YES_OR_NO = frozenset(
    {
        "by_request",
        "gains_nowhere_else",
        "length_is_known",
        "placed_without_scores",
        "preemptible",
        "quota_by_weight",
        "restarting",
        "starting",
    }
)
SHARES = frozenset({"time_share", "part_kept"})
_CODES = {
    "GRANTED": "granted",
    "PINNED": "keeps its GPUs",
    "EXCEEDS_QUOTA_LIMIT": "exceeds its quota",
    "NO_COMPATIBLE_GPU_TYPE": "no compatible GPU type",
    "IDLE_COSTS_LESS": "idling costs less",
    "WAITING_CAPACITY": "waits for GPUs",
    "WAITING_QUOTA": "waits for quota",
    "WAITING_RESERVATION": "waits for reserved GPUs",
    "ENDING": "is being cancelled",
    "PAUSING": "is being paused",
    "RESUMING": "is resumed",
    "HELD_BACK": "pauses before it is tried again",
    "FRAGMENTED": "free GPUs are scattered",
    "SHARING_UNKNOWN": "no slowdown is known",
    "SHARING_NO_GAIN": "no gain from sharing",
    "LOWER_GOODPUT_GAIN": "others gain more",
    "SOLVER_FALLBACK": "the solver fell back",
    "POLICY_FAILED": "the policy failed",
    "NOT_CHOSEN": "not chosen by the policy",
}


def reason_words(code: str) -> str:
    """`WAITING_CAPACITY` as `waits for GPUs`."""
    return _CODES.get(code, code.replace("_", " ").lower())


def label(name: str) -> str:
    return LABELS.get(name, name.replace("_", " "))


def evidence_words(evidence: Mapping[str, Evidence | None]) -> list[tuple[str, str]]:
    """Label and value of everything that is known, and of no limit that was not what decided."""
    value, second = evidence.get("value"), evidence.get("runner_up_value")
    is_worth_less = (
        isinstance(value, int | float) and isinstance(second, int | float) and second <= value
    )
    unsaid = {"runner_up_limit"} if is_worth_less else set()
    if _has_the_same_alone(evidence):
        unsaid |= {name for name in evidence if name.startswith("alone_")}
    return [
        (label(name), _value(name, known))
        for name, known in evidence.items()
        if known is not None and name not in unsaid
    ]


def _has_the_same_alone(evidence: Mapping[str, Evidence | None]) -> bool:
    mine = evidence.get("gpu_type"), evidence.get("gpu_count")
    return mine == (evidence.get("alone_gpu_type"), evidence.get("alone_gpu_count"))


def _value(name: str, value: Evidence) -> str:
    if name in YES_OR_NO:
        return "yes" if value else "no"
    if name.endswith("limit"):
        return _limit(str(value))
    if isinstance(value, str):
        return value
    if name in SHARES:
        return percent(value)
    if name.endswith("_seconds") or name == "lease_seconds_left":
        return duration(value) if value >= 60 else f"{number(value)} s"
    return count(value) if isinstance(value, int) else number(value)


def _limit(name: str) -> str:
    """Describe a limit.

    `capacity:t4`: the GPUs of a type. `reservation:t4:tenant vision`: GPUs reserved for others.
    """
    kind, _, rest = name.partition(":")
    gpu_type, _, holders = rest.partition(":")
    words = {
        "capacity": f"too few {gpu_type} GPUs are left",
        "quota": f"the share of {holders} in the {gpu_type} GPUs",
        "ceiling": f"the quota of {holders} on {gpu_type}",
        "reservation": f"{gpu_type} reserved for {holders}",
        "shape": f"no room for as many {gpu_type.replace('>=', ' as ')}",
    }
    return words.get(kind, name.replace(":", " "))
