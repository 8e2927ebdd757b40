"""The route that Prometheus scrapes: /metrics, and the same below /api/v1."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from backend.accounts.identity import Principal, require
from backend.accounts.permissions import Permission
from backend.metrics.service import Metrics
from backend.web.dependencies import SessionDep
from backend.web.strict_json import StrictRoute

router = APIRouter(tags=["health"], route_class=StrictRoute)
at_root = APIRouter(route_class=StrictRoute, include_in_schema=False)

Reader = Annotated[Principal, Depends(require(Permission.METRICS_READ))]


@at_root.get("/metrics", response_class=Response)
@router.get(
    "/metrics",
    operation_id="getMetrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
def read_metrics(request: Request, session: SessionDep, _: Reader) -> Response:
    """Figures for Prometheus, in its text form or OpenMetrics. Also at /metrics."""
    metrics: Metrics = request.app.state.metrics
    content, media_type = metrics.text(session, request.headers.get("accept", ""))
    return Response(content, media_type=media_type)
