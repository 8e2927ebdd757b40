"""Pages of which one request fails: its parts say so and offer to try again, the rest shows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlmodel import col, select
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from walking import Page

from backend.bootstrap_data import ensure_defaults
from backend.clocktime import utc_now
from backend.database import Database
from backend.models import Cluster
from backend.settings import Settings
from frontend import app as composition
from frontend.components.cards import error_state
from maat.client import ApiError
from worker.live.step import step_cluster

HERE, API = "http://127.0.0.1:8000", "/api/v1"
WORDS = "Out for a moment"
WHY = {"title": WORDS, "status": 503, "retryable": True}


@dataclass
class Outage:
    """Answers 503 to each GET whose path matches `pattern`."""

    app: ASGIApp
    pattern: str = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = scope["type"] == "http" and scope["method"] == "GET"
        if asked and self.pattern and re.search(self.pattern, scope["path"]):
            await JSONResponse(WHY, 503)(scope, receive, send)
            return
        await self.app(scope, receive, send)


@dataclass
class Service:
    client: TestClient
    outage: Outage
    cluster_id: str
    job_id: str
    ended_id: str


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    settings = Settings(
        _env_file=None,
        data_dir=tmp_path_factory.mktemp("maat"),
        database_url="",
        broker_url="",
        implicit_admin=True,
        demo=True,
    )
    database = Database.of(settings)
    ensure_defaults(database, settings)
    app = composition.create_app(settings)
    outages: list[Outage] = []

    def outage_of(inner: ASGIApp) -> Outage:
        outages.append(Outage(inner))
        return outages[-1]

    app.add_middleware(outage_of)  # type: ignore[arg-type]  # makes a middleware, as a class does
    with TestClient(app, base_url=HERE, client=("127.0.0.1", 50000)) as client:
        jobs = [
            client.post(f"{API}/jobs", json={"name": f"job {n}", "model": "bert"}).json()["id"]
            for n in range(3)
        ]
        client.post(f"{API}/jobs/{jobs[-1]}/actions/cancel")
        cluster_id = _played(database)
        yield Service(client, outages[-1], cluster_id, jobs[0], jobs[-1])
    database.dispose()


def _played(database: Database) -> str:
    """Play three rounds of the demo cluster; return its id."""
    with database.session_scope() as session:
        cluster_id = session.exec(select(Cluster.id).order_by(col(Cluster.id))).one()
    for seconds in (60.0, 120.0, 180.0):
        with database.session_scope() as session:
            cluster = session.get_one(Cluster, cluster_id)
            cluster.speed, cluster.anchor_seconds, cluster.anchor_wall = 1e-9, seconds, utc_now()
        step_cluster(database, cluster_id)
    return cluster_id


def parts_of(service: Service, address: str, pattern: str) -> dict[str, Any]:
    """Load a page while requests fail; return what its elements show, by `ID.PROPERTY`."""
    chosen = {"cluster-select.value": service.cluster_id, "scheme.data": "light"}
    service.outage.pattern = pattern
    try:
        page = Page(service.client, address.format(job=service.job_id), chosen, None)
        assert [seen.where for seen in page.run() if seen.status >= 500] == []
    finally:
        service.outage.pattern = ""
    return page.shown


@pytest.mark.parametrize(
    ("address", "pattern", "failed", "stays"),
    [
        (
            "/",
            "/timeline$",
            ["overview-usage.figure", "overview-pending.figure"],
            ["overview-tiles.children", "overview-waiting.children", "overview-drawing.data"],
        ),
        (
            "/",
            "/rounds$",
            ["overview-tiles.children"],
            ["overview-verdict.children", "overview-usage.figure", "overview-changes.children"],
        ),
        (
            "/",
            "/state$",
            ["overview-drawing.data", "overview-changes.children"],
            ["overview-waiting.children"],
        ),
        (
            "/cluster",
            "/reservations$",
            ["cluster-reserved.children"],
            ["cluster-drawing.data", "cluster-free.children", "cluster-note.children"],
        ),
        (
            "/cluster",
            "/clusters/[^/]*$",
            [],
            ["cluster-drawing.data", "cluster-free.children", "cluster-reserved.children"],
        ),
        (
            "/usage",
            "/prices$",
            ["usage-prices.children"],
            ["usage-table.children", "usage-rows-chart.figure", "usage-tiles.children"],
        ),
        (
            "/usage",
            "/usage$",
            ["usage-table.children", "usage-types-chart.figure", "usage-told.children"],
            ["usage-prices.children"],
        ),
        (
            "/fairness",
            "/shares$",
            ["fairness-shares.figure", "fairness-jain.figure", "fairness-tiles.children"],
            ["fairness-rho.figure", "fairness-worst.children", "fairness-verdict.children"],
        ),
        (
            "/jobs/{job}",
            "/explanation$",
            ["job-why.children"],
            ["job-timeline.figure", "job-spec.children", "job-events.children"],
        ),
        (
            "/jobs/{job}",
            "/state$",
            ["job-timeline.figure"],
            ["job-why.children", "job-spec.children", "job-events.children"],
        ),
        (
            "/rounds/2",
            "/rounds$",
            ["rounds-grid-told.children", "rounds-prices.figure"],
            ["round-matrix.figure", "round-terms-told.children"],
        ),
        (
            "/rounds/2",
            "/rounds/2$",
            ["round-matrix.figure", "round-verdict.children"],
            ["rounds-grid.rowData", "rounds-prices.figure"],
        ),
        (
            "/simulate",
            "/fidelities$",
            ["simulate-problem.children"],
            ["simulate-policies.data", "simulate-list.children"],
        ),
    ],
)
def test_a_request_that_fails_takes_its_own_parts_only(
    address: str, pattern: str, failed: list[str], stays: list[str], service: Service
) -> None:
    shown = parts_of(service, address, pattern)

    assert [part for part in failed if WORDS not in str(shown[part])] == []
    assert [part for part in stays if WORDS in str(shown[part])] == []
    for part in failed:
        if part.endswith(".children"):
            assert "Try again" in str(shown[part])


def test_a_job_that_ended_is_asked_for_again_until_all_of_it_has_come(service: Service) -> None:
    address = f"/jobs/{service.ended_id}"

    assert parts_of(service, address, "/explanation$")["job-over.data"] is False
    assert parts_of(service, address, "")["job-over.data"] is True


@pytest.mark.parametrize(("status", "offers"), [(403, "What you may do"), (503, "Try again")])
def test_who_may_not_see_a_part_is_not_told_to_try_again(status: int, offers: str) -> None:
    shown = str(error_state(ApiError(status=status, title="Refused")))

    assert offers in shown
    assert ("Try again" in shown) is (status != 403)
