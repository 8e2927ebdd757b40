"""The health route. It needs no identity and reveals only whether all is well."""

from __future__ import annotations

from fastapi import APIRouter, Request

from backend.health.monitor import HealthMonitor
from backend.web.strict_json import StrictRoute
from maat.api.service import HealthOut

router = APIRouter(tags=["health"], route_class=StrictRoute)


@router.get("/health", operation_id="getHealth")
async def read_health(request: Request) -> HealthOut:
    """Whether the database answers and rounds are made.

    It answers while every other route waits: it shares neither threads nor connections with them.
    """
    monitor: HealthMonitor = request.app.state.health
    return await monitor.look()
