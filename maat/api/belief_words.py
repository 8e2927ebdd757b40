"""What is believed of a job in words, the same on its page and in the terminal."""

from __future__ import annotations

from maat.api.beliefs import BeliefOut, FitOut, PenaltyOut
from maat.api.shown_numbers import number, percent
from maat.vocabulary import PenaltyOrigin


def missed_words(fit: FitOut) -> str:
    """Say that a model misses measured points by over a tenth, with the worst; or nothing.

    A sentence and a space after it.
    """
    missed = fit["missed"]
    if not missed:
        return ""
    worst = missed[0]
    off = abs(worst["modelled_seconds"] / worst["measured_seconds"] - 1.0)
    replicas, nodes = worst["replica_count"], worst["node_count"]
    where = f"{replicas} replica{'s' * (replicas > 1)} on {nodes} node{'s' * (nodes > 1)}"
    return (
        f"Its model misses {len(missed)} of them by more than 10 %: on {where}, at "
        f"{worst['per_gpu_batch_size']} samples per GPU, a step took "
        f"{number(worst['measured_seconds'])} s and is believed to take "
        f"{number(worst['modelled_seconds'])} s, {percent(off)} off. "
    )


def unmeasured_words(belief: BeliefOut) -> str:
    """Say why no step time is shown; nothing where some are."""
    if belief["types"]:
        return ""
    if belief["played"]:
        return (
            "This cluster plays its jobs by the catalog and measures no steps of its own. What a "
            "round believed of the job stands in its reasons (maat explain)."
        )
    return "No step time was measured yet."


def restart_words(belief: BeliefOut) -> str:
    """Say how long rounds believe a restart to take, and what they know it by."""
    takes = f"A restart takes about {number(belief['restart_seconds'])} s"
    if belief["played"]:
        return f"{takes}, by the catalog."
    measured = sum(part["measured"] for part in belief["restart"])
    if not measured:
        return f"{takes}, assumed: none was measured."
    return f"{takes}, by {measured} measurement{'s' * (measured > 1)}."


def penalty_words(belief: BeliefOut) -> str:
    """Say what a step across nodes costs on each type, and whence that is known; or nothing."""
    known = "; ".join(_penalty_words(one) for one in belief["locality"])
    return f"A step across nodes, as the placer pal weighs it: {known}." if known else ""


def weighed_words(penalty: PenaltyOut) -> str:
    """Say what the placer took a step across nodes to cost where the job is."""
    return f"Its placer weighed what a step across nodes costs: {_penalty_words(penalty)}."


def _penalty_words(one: PenaltyOut) -> str:
    longer = f"on {one['gpu_type']} {number(one['penalty'])} times as long"
    if one["origin"] == PenaltyOrigin.DECLARED:
        return f"{longer} (declared)"
    if one["origin"] == PenaltyOrigin.MEASURED:
        count = one["configurations"]
        plural = "s" * (count > 1)
        return f"{longer} (measured: {count} configuration{plural}, {one['steps']} steps)"
    return f"on {one['gpu_type']} nothing (assumed: not measured within a node and across nodes)"
