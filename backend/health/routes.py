"""The health routes. They need no identity and reveal only what is well and what is not."""

from __future__ import annotations

from importlib.metadata import version

from fastapi import APIRouter, Request

from backend.health.monitor import HealthMonitor
from backend.health.readiness import WHAT, Readiness
from backend.web.strict_json import StrictRoute
from maat.api.service import AliveOut, HealthOut, ReadyOut

router = APIRouter(tags=["health"], route_class=StrictRoute)
at_root = APIRouter(route_class=StrictRoute, include_in_schema=False)


@router.get("/health", operation_id="getHealth")
async def read_health(request: Request) -> HealthOut:
    """Whether the database answers and rounds are made.

    It answers while every other route waits: it shares neither threads nor connections with them.
    """
    monitor: HealthMonitor = request.app.state.health
    return await monitor.look()


@at_root.get("/healthz")
async def read_alive() -> AliveOut:
    """Whether this process answers: nothing else is asked. Restart it if it does not."""
    return AliveOut(status="alive", version=version("maat"))


@at_root.get("/readyz")
async def read_ready(request: Request) -> ReadyOut:
    """Whether database, schema, broker, worker, rounds and disk are well; else 503 says which."""
    readiness: Readiness = request.app.state.readiness
    await readiness.check()
    return ReadyOut(status="ready", version=version("maat"), checked=list(WHAT))
