"""The route that watchers ask. It needs no identity, and tells no more than whether all is well."""

from __future__ import annotations

from fastapi import APIRouter

from backend.health.service import HealthOut, health
from backend.web.dependencies import SessionDep, SettingsDep
from backend.web.strict_json import StrictRoute

router = APIRouter(tags=["health"], route_class=StrictRoute)


@router.get("/health", operation_id="getHealth")
def read_health(session: SessionDep, settings: SettingsDep) -> HealthOut:
    return health(session, stale_seconds=settings.worker_stale_seconds)
