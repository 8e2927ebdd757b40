"""A committed round as stored: the row that lists show, and its record.

Writes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from backend.models import Round
from maat.scheduling.arrays import FloatArray, IntArray
from maat.scheduling.cluster import Cluster
from maat.scheduling.matrix import GoodputMatrix
from maat.scheduling.round_result import RoundResult
from maat.scheduling.rounds import ClusterState, PolicyState
from maat.scheduling.solving.report import SolveReport, SolveStatus
from worker.rounds.capacity import unused_by_type
from worker.rounds.changes_json import JsonObject, grant_to_json


def round_row(
    result: RoundResult,
    observed: ClusterState,
    *,
    cluster_id: str,
    policy: str,
    placer: str,
    policy_version: str = "",
) -> Round:
    """Return the row of a round, record included."""
    report = result.decision.report
    solved = report.status not in (SolveStatus.NOT_NEEDED, SolveStatus.POLICY_FAILED)
    running = len(result.placement.placement.job_ids)
    used, capacity = used_by_type(result, observed), capacity_by_type(observed)
    free = {name: max(count - used[name], 0) for name, count in capacity.items()}
    unused = unused_by_type(result, observed, free)
    return Round(
        cluster_id=cluster_id,
        number=result.round_number,
        at_seconds=observed.now,
        active_jobs=len(observed.jobs),
        running_jobs=running,
        pending_jobs=len(observed.jobs) - running,
        gpus_used=sum(used.values()),
        gpus_total=sum(capacity.values()),
        changes=len(result.changes.items),
        policy=policy,
        policy_version=policy_version,
        placer=placer,
        status=report.status.value,
        method=report.method,
        objective=finite(report.objective) if solved else None,
        bound=finite(report.bound) if solved else None,
        gap=finite(report.gap) if solved else None,
        fallback=report.fallback,
        message=report.message,
        solve_seconds=report.seconds,
        policy_seconds=result.seconds.policy,
        place_seconds=result.seconds.place,
        prices={name: price for name, price in report.prices.items() if math.isfinite(price)},
        gpus_by_type={
            name: {"used": used[name], "capacity": capacity[name], **unused[name]}
            for name in capacity
        },
        record=round_record(result, observed),
    )


def used_by_type(result: RoundResult, observed: ClusterState) -> dict[str, int]:
    """Count GPUs that jobs hold after the round; two jobs on one GPU count once."""
    return _count_by_type(observed.cluster, np.unique(result.placement.placement.gpus))


def capacity_by_type(observed: ClusterState) -> dict[str, int]:
    """Count usable GPUs by type."""
    return _count_by_type(observed.cluster, np.flatnonzero(observed.cluster.gpu_available))


def round_record(result: RoundResult, observed: ClusterState) -> JsonObject:
    """Return everything that was decided and why.

    It has the matrix over the feasible pairs, the chosen columns, grants, reasons and the report.
    """
    decision = result.decision
    return {
        "round": result.round_number,
        "at_seconds": observed.now,
        "job_ids": [job.id for job in observed.jobs],
        "job_names": [job.spec.name or job.id for job in observed.jobs],
        **_matrix(decision.matrix, decision.utility),
        "chosen": _chosen(result, observed),
        "grants": {job_id: grant_to_json(grant) for job_id, grant in decision.grants.items()},
        "reasons": {
            job_id: {
                "code": why.primary.value,
                "sentence": why.sentence,
                "evidence": finite_values(why.evidence),
                "also": [
                    {
                        "code": other.primary.value,
                        "sentence": other.sentence,
                        "evidence": finite_values(other.evidence),
                    }
                    for other in why.also
                ],
            }
            for job_id, why in result.explained.items()
        },
        "report": _report(decision.report),
        "seconds": {"policy": result.seconds.policy, "place": result.seconds.place},
    }


def policy_state_to_json(state: PolicyState) -> JsonObject:
    """Return the state as JSON; what tenants are owed (`shares`) only if anybody is."""
    stored: JsonObject = {
        "owner": state.owner,
        "parameter_hash": state.parameter_hash,
        "data": dict(state.data),
    }
    return stored | ({"shares": dict(state.shares)} if state.shares else {})


def policy_state_from_json(data: Mapping[str, Any] | None) -> PolicyState:
    return (
        PolicyState()
        if data is None
        else PolicyState(
            data["owner"], data["parameter_hash"], data["data"], data.get("shares", {})
        )
    )


def finite(value: float) -> float | None:
    """Return the value; None if JSON cannot express it."""
    return float(value) if math.isfinite(value) else None


def finite_values(values: Mapping[str, float | int | str | None]) -> JsonObject:
    return {
        key: finite(value) if isinstance(value, float) else value for key, value in values.items()
    }


def _count_by_type(cluster: Cluster, gpus: IntArray) -> dict[str, int]:
    counts = np.bincount(cluster.gpu_type_of[gpus], minlength=len(cluster.gpu_types))
    return dict(zip(cluster.type_names, counts.tolist(), strict=True))


def _matrix(matrix: GoodputMatrix | None, utility: FloatArray | None) -> JsonObject:
    if matrix is None:
        return {
            "configurations": [],
            "pairs": {"job": [], "column": [], "goodput": [], "utility": None},
        }
    pairs = matrix.pairs
    return {
        "configurations": [
            {"gpu_type": c.gpu_type, "gpu_count": c.gpu_count, "node_count": c.node_count}
            for c in matrix.table.configurations
        ],
        "pairs": {
            "job": pairs.job.tolist(),
            "column": pairs.column.tolist(),
            "goodput": _finite_list(pairs.goodput),
            "utility": None if utility is None else _finite_list(utility),
        },
    }


def _chosen(result: RoundResult, observed: ClusterState) -> list[int | None]:
    """Return the column of every job's grant.

    None if it got none or the policy used no matrix.
    """
    matrix, grants = result.decision.matrix, result.decision.grants
    if matrix is None:
        return [None] * len(observed.jobs)
    found = (grants.get(job.id) for job in observed.jobs)
    return [
        None if grant is None else matrix.table.column(grant.gpu_type, grant.gpu_count)
        for grant in found
    ]


def _finite_list(values: FloatArray) -> list[float | None]:
    return [finite(value) for value in values.tolist()]


def _report(report: SolveReport) -> JsonObject:
    return {
        "status": report.status.value,
        "method": report.method,
        "objective": finite(report.objective),
        "bound": finite(report.bound),
        "gap": finite(report.gap),
        "seconds": report.seconds,
        "fallback": report.fallback,
        "out_of_time": report.out_of_time,
        "repairs": report.repairs,
        "message": report.message,
        "prices": finite_values(report.prices),
    }
