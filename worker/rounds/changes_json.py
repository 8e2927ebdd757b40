"""Converts the changes of a round to JSON data and back, for the outbox.

Decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from maat.scheduling.goodput import BatchPlan
from maat.scheduling.job import Allocation
from maat.scheduling.rounds import Change, ChangeKind, Changes, Grant

JsonObject = dict[str, Any]


def changes_to_json(changes: Changes) -> JsonObject:
    return {
        "round_number": changes.round_number,
        "time": changes.time,
        "items": [_change_to_json(item) for item in changes.items],
    }


def changes_from_json(data: Mapping[str, Any]) -> Changes:
    return Changes(
        int(data["round_number"]),
        float(data["time"]),
        tuple(_change_from_json(item) for item in data["items"]),
    )


def grant_to_json(grant: Grant) -> JsonObject:
    return {
        "gpu_type": grant.gpu_type,
        "gpu_count": grant.gpu_count,
        "node_count": grant.node_count,
        "gpus_by_node": None if grant.gpus_by_node is None else dict(grant.gpus_by_node),
        "share_with": list(grant.share_with),
        "shared_gpus": grant.shared_gpus,
        "batch": None if grant.batch is None else batch_to_json(grant.batch),
        "gpus": None if grant.gpus is None else list(grant.gpus),
    }


def grant_from_json(data: Mapping[str, Any]) -> Grant:
    batch, gpus = data["batch"], data.get("gpus")
    return Grant(
        gpu_type=data["gpu_type"],
        gpu_count=data["gpu_count"],
        node_count=data["node_count"],
        gpus_by_node=data["gpus_by_node"],
        share_with=tuple(data["share_with"]),
        shared_gpus=data.get("shared_gpus", 0),
        batch=None if batch is None else BatchPlan(**batch),
        gpus=None if gpus is None else tuple(gpus),
    )


def batch_to_json(plan: BatchPlan) -> JsonObject:
    return {
        "total_batch_size": plan.total_batch_size,
        "per_gpu_batch_size": plan.per_gpu_batch_size,
        "accumulation_steps": plan.accumulation_steps,
    }


def _change_to_json(change: Change) -> JsonObject:
    return {
        "job_id": change.job_id,
        "kind": change.kind.value,
        "before": _allocation_to_json(change.before),
        "after": _allocation_to_json(change.after),
        "grant": None if change.grant is None else grant_to_json(change.grant),
    }


def _change_from_json(data: Mapping[str, Any]) -> Change:
    grant = data["grant"]
    return Change(
        job_id=data["job_id"],
        kind=ChangeKind(data["kind"]),
        before=_allocation_from_json(data["before"]),
        after=_allocation_from_json(data["after"]),
        grant=None if grant is None else grant_from_json(grant),
    )


def _allocation_to_json(allocation: Allocation | None) -> JsonObject | None:
    return (
        None
        if allocation is None
        else {"gpu_type": allocation.gpu_type, "gpus": list(allocation.gpus)}
    )


def _allocation_from_json(data: Mapping[str, Any] | None) -> Allocation | None:
    return None if data is None else Allocation(data["gpu_type"], tuple(data["gpus"]))
