"""The service as one ASGI application. `frontend.app` mounts the pages on it."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import APIRouter, FastAPI

from backend.accounts.locality import asking_the_system
from backend.accounts.oidc_routes import router as oidc
from backend.accounts.rate_limits import RateLimits
from backend.accounts.routes import router as accounts
from backend.accounts.senders import Senders
from backend.accounts.tenant_routes import router as tenants
from backend.accounts.token_routes import router as tokens
from backend.accounts.user_routes import router as users
from backend.attempts.routes import reporting
from backend.attempts.routes import router as attempts
from backend.audit.routes import router as audit
from backend.clusters.routes import router as clusters
from backend.database import Database
from backend.events.hub import Hub
from backend.events.routes import router as events
from backend.evidence.routes import router as evidence
from backend.experiments.routes import router as experiments
from backend.fairness.routes import router as fairness
from backend.forecasts.routes import router as forecasts
from backend.health.integrity import Integrity
from backend.health.monitor import HealthMonitor
from backend.health.readiness import Readiness
from backend.health.routes import at_root as health_at_root
from backend.health.routes import router as health
from backend.imports.routes import router as imports
from backend.jobs.action_routes import router as job_actions
from backend.jobs.bulk_routes import router as job_bulk
from backend.jobs.remedies import Rehearsal, RemedyFinder
from backend.jobs.routes import router as jobs
from backend.laboratory.routes import router as laboratory
from backend.logs import install_logging
from backend.measurements.routes import router as measurements
from backend.metrics.requests import MeasuredRequests
from backend.metrics.routes import at_root as metrics_at_root
from backend.metrics.routes import router as metrics
from backend.metrics.service import Metrics
from backend.models_catalog.routes import router as models_catalog
from backend.occupancy.node_routes import router as node_changes
from backend.occupancy.routes import router as occupancy
from backend.operations.routes import router as operations
from backend.pages.calls import PageCallGuard, ParsedCall
from backend.pages.refreshes import SharedRefreshes
from backend.papers.routes import papers, reproductions
from backend.policies.own import admit_own_policies
from backend.policies.routes import router as policies
from backend.previews.routes import router as previews
from backend.queue import Queue, celery_queue
from backend.quotas.routes import router as quotas
from backend.reports.routes import router as reports
from backend.reports.schedule_routes import router as report_schedules
from backend.reservations.routes import router as reservations
from backend.rounds.routes import router as rounds
from backend.settings import Settings, get_settings
from backend.shutdown import Shutdown
from backend.simulations.routes import router as simulations
from backend.sweeps.routes import router as sweeps
from backend.usage.routes import router as usage
from backend.web.documentation import OPENAPI_URL, install_documentation
from backend.web.fallback import install_fallback
from backend.web.faults import Faults
from backend.web.gates import Gates
from backend.web.middleware import RequestGuard
from backend.web.openapi import install_openapi
from backend.web.problem_responses import install_problem_handlers
from backend.web.proxies import TrustedProxies
from backend.web.safe_methods import SafeMethods
from backend.web.security_headers import SecurityHeaders
from backend.webhooks.delivery_routes import router as webhook_deliveries
from backend.webhooks.routes import router as webhooks

PREFIX = "/api/v1"
ROUTERS: tuple[APIRouter, ...] = (
    jobs,  # those that are asked most come first: a request tries one after the other
    health,
    metrics,
    accounts,
    oidc,
    tenants,
    users,
    tokens,
    audit,
    job_actions,
    job_bulk,
    attempts,
    reporting,
    evidence,
    laboratory,
    clusters,
    occupancy,
    node_changes,
    previews,
    reservations,
    quotas,
    rounds,
    policies,
    models_catalog,
    measurements,
    simulations,
    imports,
    sweeps,
    papers,
    reproductions,
    experiments,
    forecasts,
    fairness,
    reports,
    report_schedules,
    webhooks,
    webhook_deliveries,
    usage,
    operations,
    events,
)
AT_ROOT: tuple[APIRouter, ...] = (health_at_root, metrics_at_root)
"""What monitoring asks for, at the addresses where it looks."""


def create_app(
    settings: Settings | None = None,
    *,
    queue: Queue | None = None,
    rehearsal: Rehearsal | None = None,
    on_sockets: bool = False,
) -> FastAPI:
    """Build the service. The database must be migrated first.

    Args:
        queue: where long work is sent; by default the broker of the settings.
        rehearsal: plays the rounds that find remedies for a waiting job; without it the service
            offers no remedies.
        on_sockets: requests arrive over real connections, so the system can name the local user
            behind one; otherwise addresses and headers alone decide who is local.
    """
    settings = get_settings() if settings is None else settings
    install_logging(settings.log_level, settings.log_format)
    admit_own_policies(settings)
    # Pages call the service in-process: each call would be a line.
    logging.getLogger("httpx").setLevel("WARNING")
    app = FastAPI(
        title="Maat",
        version=version("maat"),
        summary="Schedules deep-learning training jobs on GPU clusters of mixed types.",
        openapi_url=OPENAPI_URL,
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan,
    )
    provide(app, settings, queue=queue, rehearsal=rehearsal, on_sockets=on_sockets)
    # The outputs that a call of the pages may name; the pages replace this by theirs.
    app.state.page_outputs = {}
    app.add_middleware(Faults)
    app.add_middleware(ParsedCall)
    app.add_middleware(SafeMethods)
    app.add_middleware(SharedRefreshes)
    app.add_middleware(PageCallGuard)
    # Hashes of the inline scripts that may run: documentation and pages add theirs.
    app.state.script_hashes = set()
    app.add_middleware(RequestGuard)
    app.add_middleware(SecurityHeaders, script_hashes=app.state.script_hashes)
    app.add_middleware(MeasuredRequests)
    app.add_middleware(TrustedProxies, proxies=settings.trusted_proxies)
    install_problem_handlers(app)
    for router in ROUTERS:
        app.include_router(router, prefix=PREFIX)
    for router in AT_ROOT:
        app.include_router(router)
    install_documentation(app)
    install_openapi(app)
    install_fallback(app)
    return app


def provide(
    app: FastAPI,
    settings: Settings,
    *,
    queue: Queue | None = None,
    rehearsal: Rehearsal | None = None,
    on_sockets: bool = False,
) -> None:
    """Give the routes what they work with, in place of what they had; see `create_app`."""
    app.state.settings = settings
    app.state.database = Database.of(settings)
    app.state.user_behind = asking_the_system() if on_sockets else None
    app.state.gates = Gates(settings)
    integrity = Integrity(settings)
    app.state.health = HealthMonitor(settings, integrity)
    app.state.event_hub = Hub(settings, app.state.database, app.state.gates)
    app.state.senders = Senders()
    app.state.queue = celery_queue(settings) if queue is None else queue
    app.state.rate_limits = RateLimits(settings)
    app.state.readiness = Readiness(settings, app.state.queue, integrity)
    app.state.metrics = Metrics(settings, app.state.database, app.state.queue)
    app.state.remedies = RemedyFinder(rehearsal)


def put_guards_outside(app: FastAPI) -> None:
    """Move the guards outside all middleware, also what was added later.

    Nothing may read a body before the guards have checked the request, and what compresses answers
    must see GET in place of HEAD.
    """
    outside: set[object] = {
        TrustedProxies,
        MeasuredRequests,
        SecurityHeaders,
        RequestGuard,
        PageCallGuard,
        SharedRefreshes,
        SafeMethods,
    }
    guards = [entry for entry in app.user_middleware if entry.cls in outside]
    app.user_middleware[:] = [
        *guards,
        *(entry for entry in app.user_middleware if entry not in guards),
    ]


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    app.state.shutdown = Shutdown()
    app.state.gates.provide_threads()
    with app.state.shutdown.on_signals():
        yield
    app.state.shutdown.begin()
    app.state.database.dispose()
    app.state.health.close()
    app.state.readiness.close()
