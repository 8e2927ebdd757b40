"""Routes of what is believed by what jobs reported."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Response

from backend.accounts.identity import Principal, require
from backend.accounts.permissions import Permission
from backend.evidence import service, shared_models
from backend.evidence.of_models import model_evidence, reset_evidence
from backend.evidence.slowdowns import slowdowns
from backend.web.dependencies import SessionDep
from backend.web.strict_json import StrictRoute
from maat.api.evidence import (
    GpuScoreOut,
    Measured,
    ModelEvidenceOut,
    SharedModelOut,
    SlowdownOut,
)
from maat.api.fields import ModelName, Page

router = APIRouter(tags=["evidence"], route_class=StrictRoute)

Reader = Annotated[Principal, Depends(require(Permission.JOBS_READ))]
Writer = Annotated[Principal, Depends(require(Permission.CLUSTERS_WRITE))]
SharedName = Annotated[ModelName, Path(description="The model's name, as jobs give it.")]
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


@router.get("/clusters/{cluster_id}/slowdowns", operation_id="listSlowdowns")
def list_slowdowns(session: SessionDep, principal: Reader, cluster_id: str) -> Page[SlowdownOut]:
    """How much jobs on one GPU slowed each other, by their models, as their reports measured it.

    Another tenant's models are anonymous; so is a shared one of which the caller's has no job.
    """
    return Page(items=slowdowns(session, principal, cluster_id), next_cursor=None)


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


@router.get("/clusters/{cluster_id}/evidence", operation_id="listModelEvidence")
def list_model_evidence(
    session: SessionDep, principal: Reader, cluster_id: str
) -> Page[ModelEvidenceOut]:
    """Of how many jobs of each model there are reports by which decisions or forecasts go.

    Models of which only other tenants have jobs are left out.
    """
    return Page(items=model_evidence(session, principal, cluster_id), next_cursor=None)


@router.delete(
    "/clusters/{cluster_id}/evidence/{what}", operation_id="resetModelEvidence", status_code=204
)
def reset_model_evidence(
    session: SessionDep,
    principal: Writer,
    cluster_id: str,
    what: Measured,
    model: Annotated[ModelName | None, Query(description="Only of models of this name.")] = None,
    tenant: Annotated[str | None, Query(description="Only of this tenant, id or name.")] = None,
) -> Response:
    """Forget what jobs reported of their models. It is measured again as they train."""
    reset_evidence(session, principal, cluster_id, what, model=model, tenant=tenant)
    return Response(status_code=204)


@router.get("/shared-models", operation_id="listSharedModels")
def list_shared_models(session: SessionDep, _: Reader) -> Page[SharedModelOut]:
    """The models of which all tenants' evidence counts together, by name."""
    return Page(items=list(shared_models.shared_by_name(session)), next_cursor=None)


@router.put("/shared-models/{model:path}", operation_id="shareModel")
def share_model(session: SessionDep, _: Writer, model: SharedName) -> SharedModelOut:
    """Say that a name means the same model for all tenants. Repeating a request changes nothing.

    What their jobs reported of it then counts together: GPU scores, what is usual of its steps,
    slowdowns on shared GPUs, what it costs to span nodes, and the past that forecasts go by.
    """
    return shared_models.share_model(session, model)


@router.delete("/shared-models/{model:path}", operation_id="unshareModel", status_code=204)
def unshare_model(session: SessionDep, _: Writer, model: SharedName) -> Response:
    """Say that each tenant's model of this name is its own again."""
    shared_models.unshare_model(session, model)
    return Response(status_code=204)
