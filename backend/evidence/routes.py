"""Routes of what is believed by what jobs reported."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from backend.accounts.identity import Principal, require
from backend.accounts.permissions import Permission
from backend.evidence import service
from backend.web.dependencies import SessionDep
from backend.web.strict_json import StrictRoute
from maat.api.evidence import GpuScoreOut
from maat.api.fields import Page

router = APIRouter(tags=["evidence"], route_class=StrictRoute)

Reader = Annotated[Principal, Depends(require(Permission.JOBS_READ))]
Writer = Annotated[Principal, Depends(require(Permission.CLUSTERS_WRITE))]
OfNode = Annotated[str | None, Query(description="Only of this node, by id or name.")]


@router.get("/clusters/{cluster_id}/gpu-scores", operation_id="listGpuScores")
def list_gpu_scores(session: SessionDep, principal: Reader, cluster_id: str) -> Page[GpuScoreOut]:
    """How slow GPUs are believed to be, by jobs that ran on several; placers may go by it.

    The caller's tenant is named, others are counted. GPUs that no job compared are not listed.
    """
    return Page(items=service.gpu_scores(session, principal, cluster_id), next_cursor=None)


@router.delete("/clusters/{cluster_id}/gpu-scores", operation_id="resetGpuScores", status_code=204)
def reset_gpu_scores(
    session: SessionDep, _: Writer, cluster_id: str, node_id: OfNode = None
) -> Response:
    """Forget what jobs said of GPUs: all count as equal until jobs compare them again."""
    service.reset_gpu_scores(session, cluster_id, node_id)
    return Response(status_code=204)


@router.delete("/clusters/{cluster_id}/slowdowns", operation_id="resetSlowdowns", status_code=204)
def reset_slowdowns(session: SessionDep, _: Writer, cluster_id: str) -> Response:
    """Forget what jobs on one GPU cost each other: what the cluster declares counts again."""
    service.reset_slowdowns(session, cluster_id)
    return Response(status_code=204)


@router.delete("/jobs/{job_id}/belief", operation_id="resetJobBelief", status_code=204)
def reset_belief(session: SessionDep, principal: Writer, job_id: str) -> Response:
    """Forget what was measured of a job. It is measured again as it trains."""
    service.reset_belief(session, principal, job_id)
    return Response(status_code=204)
