"""The routes of a cluster's state, and of what has changed in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from sqlmodel import Session

from backend.accounts.identity import Principal, require
from backend.accounts.permissions import Permission
from backend.clusters.repository import get_cluster, nodes_of
from backend.occupancy.changes import holding_changes
from backend.occupancy.repository import Holding, holders, holders_at, spans_changed_since
from backend.occupancy.state import cluster_state, gpu_types_of
from backend.rounds.repository import latest_at, round_at
from backend.sight import OTHER_JOB, sight_of
from backend.web.dependencies import SessionDep
from backend.web.strict_json import StrictRoute
from maat.api.clusters import ClusterChangesOut, ClusterStateOut, GpuHolderOut

router = APIRouter(prefix="/clusters", tags=["clusters"], route_class=StrictRoute)

Reader = Annotated[Principal, Depends(require(Permission.CLUSTERS_READ))]
AsOf = Annotated[
    int | None,
    Query(alias="round", ge=1, le=999_999_999, description="A past round; default: now."),
]

Since = Annotated[
    int | None,
    Query(
        alias="round", ge=1, le=999_999_999, description="A past round; default: the last but one."
    ),
]


@router.get("/{cluster_id}/state", operation_id="getClusterState")
def read_state(
    session: SessionDep, principal: Reader, cluster_id: str, number: AsOf = None
) -> ClusterStateOut:
    """Every GPU and the jobs that hold it; other tenants' jobs are anonymous.

    With `round`, as that round left them: its jobs on the present nodes, none of which is then
    drained or out of order. GPUs whose node has gone, or has another type since, are left out.
    """
    cluster = get_cluster(session, cluster_id)
    nodes = nodes_of(session, cluster.id)
    if number is None:
        held, at = holders(session, cluster.id), latest_at(session, cluster.id)
        return cluster_state(
            cluster, nodes, _holders_of(session, held, principal), as_of_seconds=at
        )
    at = round_at(session, cluster.id, number)
    held = holders_at(session, cluster.id, at, gpu_types=gpu_types_of(nodes))
    return cluster_state(
        cluster,
        nodes,
        _holders_of(session, held, principal),
        as_of_seconds=at,
        past_round=number,
    )


@router.get("/{cluster_id}/changes", operation_id="getClusterChanges")
def read_changes(
    session: SessionDep, principal: Reader, cluster_id: str, number: Since = None
) -> ClusterChangesOut:
    """The jobs that hold another type or number of GPUs now than `round` left them.

    Other tenants' jobs are anonymous. By default the round is the one before the latest, so that
    the changes are those of the latest.
    """
    cluster = get_cluster(session, cluster_id)
    latest = cluster.next_round_number - 1
    since = latest - 1 if number is None else number
    if since < 1:
        return ClusterChangesOut(since_round=None, changes=[])
    at = round_at(session, cluster.id, since)
    spans = spans_changed_since(session, cluster.id, at)
    sight = sight_of(session, principal, [span.job_id for span in spans])
    return ClusterChangesOut(since_round=since, changes=holding_changes(spans, at, sight))


def _holders_of(
    session: Session, held: Sequence[Holding], principal: Principal
) -> dict[int, list[GpuHolderOut]]:
    found: dict[int, list[GpuHolderOut]] = {}
    held = sorted(held, key=lambda holder: min(holder[3], default=0))
    sight = sight_of(session, principal, [job_id for job_id, *_ in held])
    for job_id, name, tenant, gpus in held:
        seen = sight.may_see(job_id)
        holder = GpuHolderOut(
            job_id=sight.job(job_id),
            job_name=name if seen else OTHER_JOB,
            tenant=tenant if seen else None,
        )
        for gpu in gpus:
            found.setdefault(gpu, []).append(holder)
    return found
