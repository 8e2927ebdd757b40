"""The route of a cluster's state."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends
from sqlmodel import Session

from backend.accounts.identity import Principal, require
from backend.accounts.permissions import Permission
from backend.clusters.models import Cluster
from backend.clusters.repository import get_cluster, nodes_of
from backend.occupancy.repository import holders
from backend.occupancy.state import Holder, cluster_state
from backend.rounds.repository import latest_at
from backend.sight import OTHER_JOB, sight_of
from backend.web.dependencies import SessionDep
from backend.web.strict_json import StrictRoute
from maat.api.clusters import ClusterStateOut

router = APIRouter(prefix="/clusters", tags=["clusters"], route_class=StrictRoute)

Reader = Annotated[Principal, Depends(require(Permission.CLUSTERS_READ))]


@router.get("/{cluster_id}/state", operation_id="getClusterState")
def read_state(session: SessionDep, principal: Reader, cluster_id: str) -> ClusterStateOut:
    """Every GPU and the job that holds it; other tenants' jobs are anonymous."""
    cluster = get_cluster(session, cluster_id)
    nodes = nodes_of(session, cluster.id)
    return cluster_state(
        cluster,
        nodes,
        _holder_of(session, cluster, principal),
        as_of_seconds=latest_at(session, cluster.id),
    )


def _holder_of(session: Session, cluster: Cluster, principal: Principal) -> dict[int, Holder]:
    found: dict[int, Holder] = {}
    held = sorted(holders(session, cluster.id), key=lambda holder: min(holder[3], default=0))
    sight = sight_of(session, principal, [job_id for job_id, *_ in held])
    for job_id, name, tenant, gpus in held:
        holder: Holder = (
            (job_id, name, tenant)
            if sight.may_see(job_id)
            else (sight.job(job_id), OTHER_JOB, None)
        )
        found.update(dict.fromkeys(gpus, holder))
    return found
