"""The route of a cluster's state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from sqlmodel import Session

from backend.accounts.identity import Principal, require
from backend.accounts.permissions import Permission
from backend.clusters.repository import get_cluster, nodes_of
from backend.occupancy.repository import Holding, holders, holders_at
from backend.occupancy.state import Holder, cluster_state, gpu_types_of
from backend.rounds.repository import get_round, latest_at
from backend.sight import OTHER_JOB, sight_of
from backend.web.dependencies import SessionDep
from backend.web.strict_json import StrictRoute
from maat.api.clusters import ClusterStateOut

router = APIRouter(prefix="/clusters", tags=["clusters"], route_class=StrictRoute)

Reader = Annotated[Principal, Depends(require(Permission.CLUSTERS_READ))]
AsOf = Annotated[
    int | None,
    Query(alias="round", ge=1, le=999_999_999, description="A past round; default: now."),
]


@router.get("/{cluster_id}/state", operation_id="getClusterState")
def read_state(
    session: SessionDep, principal: Reader, cluster_id: str, number: AsOf = None
) -> ClusterStateOut:
    """Every GPU and the job that holds it; other tenants' jobs are anonymous.

    With `round`, as that round left them: its jobs on the present nodes, none of which is then
    drained or out of order. GPUs whose node has gone, or has another type since, are left out.
    """
    cluster = get_cluster(session, cluster_id)
    nodes = nodes_of(session, cluster.id)
    if number is None:
        held, at = holders(session, cluster.id), latest_at(session, cluster.id)
        return cluster_state(cluster, nodes, _holder_of(session, held, principal), as_of_seconds=at)
    past = get_round(session, cluster.id, number)
    held = holders_at(session, cluster.id, past.at_seconds, gpu_types=gpu_types_of(nodes))
    return cluster_state(
        cluster,
        nodes,
        _holder_of(session, held, principal),
        as_of_seconds=past.at_seconds,
        past_round=past.number,
    )


def _holder_of(
    session: Session, held: Sequence[Holding], principal: Principal
) -> dict[int, Holder]:
    found: dict[int, Holder] = {}
    held = sorted(held, key=lambda holder: min(holder[3], default=0))
    sight = sight_of(session, principal, [job_id for job_id, *_ in held])
    for job_id, name, tenant, gpus in held:
        holder: Holder = (
            (job_id, name, tenant)
            if sight.may_see(job_id)
            else (sight.job(job_id), OTHER_JOB, None)
        )
        found.update(dict.fromkeys(gpus, holder))
    return found
