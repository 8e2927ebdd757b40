"""The service as one ASGI application. Pages are mounted on it elsewhere (frontend.app)."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import APIRouter, FastAPI

from backend.accounts.routes import router as accounts
from backend.clusters.routes import router as clusters
from backend.database import Database
from backend.events.routes import router as events
from backend.health.routes import router as health
from backend.jobs.routes import router as jobs
from backend.measurements.routes import router as measurements
from backend.models_catalog.routes import router as models_catalog
from backend.operations.routes import router as operations
from backend.policies.routes import router as policies
from backend.queue import Queue, celery_queue
from backend.reservations.routes import router as reservations
from backend.rounds.routes import router as rounds
from backend.settings import Settings, get_settings
from backend.shutdown import Shutdown
from backend.simulations.routes import router as simulations
from backend.sweeps.routes import router as sweeps
from backend.web.documentation import OPENAPI_URL, install_documentation
from backend.web.fallback import install_fallback
from backend.web.middleware import RequestGuard
from backend.web.openapi import install_openapi
from backend.web.page_calls import PageCallGuard
from backend.web.problem_responses import install_problem_handlers

PREFIX = "/api/v1"
ROUTERS: tuple[APIRouter, ...] = (
    health,
    accounts,
    jobs,
    clusters,
    reservations,
    rounds,
    policies,
    models_catalog,
    measurements,
    simulations,
    sweeps,
    operations,
    events,
)


def create_app(settings: Settings | None = None, *, queue: Queue | None = None) -> FastAPI:
    """The service. `queue`: where long work is sent, the broker of the settings where absent. The database must be migrated."""
    settings = get_settings() if settings is None else settings
    logging.basicConfig(level=settings.log_level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("httpx").setLevel("WARNING")  # pages call the service in-process: each call would be a line
    app = FastAPI(
        title="Maat",
        version=version("maat"),
        summary="Schedules deep-learning training jobs on GPU clusters of mixed types.",
        openapi_url=OPENAPI_URL,
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan,
    )
    app.state.settings = settings
    app.state.database = Database.of(settings)
    app.state.queue = celery_queue(settings) if queue is None else queue
    app.add_middleware(PageCallGuard)
    app.add_middleware(RequestGuard, max_body_bytes=settings.max_upload_bytes)
    install_problem_handlers(app)
    for router in ROUTERS:
        app.include_router(router, prefix=PREFIX)
    install_documentation(app)
    install_openapi(app)
    install_fallback(app)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    app.state.shutdown = Shutdown()
    with app.state.shutdown.on_signals():
        yield
    app.state.shutdown.begin()
    app.state.database.dispose()
