"""A round's record as a principal may see it. Pure.

Another tenant's job keeps only its GPUs, its place in the objective and its row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from backend.sight import OTHER_JOB, Sight
from maat.scheduling.choice import choice_of
from maat.scheduling.explain import sentence_of

Record = Mapping[str, Any]

_OF_ALL = ("round", "at_seconds", "configurations", "chosen", "seconds")
_GRANT_OF_OTHERS = ("gpu_type", "gpu_count", "node_count", "gpus_by_node", "shared_gpus", "gpus")


def record_seen(record: Record, sight: Sight) -> dict[str, Any]:
    """Return the record with `others`, the rows of hidden jobs.

    For those the matrix keeps only the chosen cell, with its utility and without its goodput:
    goodputs by GPU type would reveal the model. Unknown members are not shown.
    """
    ids: list[str] = list(record["job_ids"])
    others = [row for row, job_id in enumerate(ids) if not sight.may_see(job_id)]
    beside = _beside(record, frozenset(others))
    if sight.is_whole:
        return {**record, "others": others, **beside}
    keys = {job_id: sight.job(job_id) for job_id in ids}
    return {
        **{name: record[name] for name in _OF_ALL if name in record},
        "job_ids": list(keys.values()),
        "job_names": _names(record, frozenset(others)),
        "pairs": _pairs(record, frozenset(others)),
        "grants": {
            sight.job(job_id): _grant(job_id, grant, sight)
            for job_id, grant in record.get("grants", {}).items()
        },
        "reasons": {
            sight.job(job_id): _reason(job_id, why, sight)
            for job_id, why in record.get("reasons", {}).items()
        },
        "report": _report(record.get("report", {}), sight),
        "others": others,
        **beside,
    }


def _beside(record: Record, others: frozenset[int]) -> dict[str, Any]:
    """Return what each row could have had instead, and why it has what it has, by row.

    The evidence of a job that waits names GPUs too: those that it waits for.
    """
    columns = {
        (one["gpu_type"], one["gpu_count"]): column
        for column, one in enumerate(record["configurations"])
    }
    reasons = record.get("reasons", {})
    evidence = [
        {} if row in others else reasons.get(job_id, {}).get("evidence", {})
        for row, job_id in enumerate(record["job_ids"])
    ]
    granted = record.get("grants", {})
    choices = [
        choice_of(one) if job_id in granted else None
        for job_id, one in zip(record["job_ids"], evidence, strict=True)
    ]
    return {
        **{
            name: [
                columns.get((one.get(f"{name}_gpu_type"), one.get(f"{name}_gpu_count")))
                for one in evidence
            ]
            for name in ("runner_up", "alone")
        },
        "why": [[] if choice is None else choice.sentences for choice in choices],
    }


def _names(record: Record, others: frozenset[int]) -> list[str]:
    return [
        OTHER_JOB if row in others else name
        for row, name in enumerate(record.get("job_names", record["job_ids"]))
    ]


def _pairs(record: Record, others: frozenset[int]) -> dict[str, Any]:
    pairs, chosen = record["pairs"], record["chosen"]
    rows, columns, utility = pairs["job"], pairs["column"], pairs["utility"]
    kept = [i for i, row in enumerate(rows) if row not in others or chosen[row] == columns[i]]
    return {
        "job": [rows[i] for i in kept],
        "column": [columns[i] for i in kept],
        "goodput": [None if rows[i] in others else pairs["goodput"][i] for i in kept],
        "utility": None if utility is None else [utility[i] for i in kept],
    }


def _grant(job_id: str, grant: Record, sight: Sight) -> dict[str, Any]:
    shown = (
        dict(grant)
        if sight.may_see(job_id)
        else {name: grant.get(name) for name in _GRANT_OF_OTHERS} | {"batch": None}
    )
    return shown | {"share_with": [sight.job(partner) for partner in grant.get("share_with", ())]}


def _reason(job_id: str, why: Record, sight: Sight) -> dict[str, Any]:
    may_see = sight.may_see(job_id)
    shown = _shown_reason(why, sight if may_see else None)
    also = why.get("also", ()) if may_see else ()
    return {**shown, "also": [_shown_reason(one, sight) for one in also]}


def _shown_reason(why: Record, sight: Sight | None) -> dict[str, Any]:
    """Return a reason with its sentence. `sight`: None for another tenant's job."""
    evidence = {} if sight is None else sight.evidence(why["evidence"])
    return {
        "code": why["code"],
        "sentence": sentence_of(why["code"], evidence),
        "evidence": evidence,
    }


def _report(report: Record, sight: Sight) -> dict[str, Any]:
    seen = (
        {"message": sight.text(report["message"]), "prices": sight.limits(report["prices"])}
        if report
        else {}
    )
    return {**report, **seen}
