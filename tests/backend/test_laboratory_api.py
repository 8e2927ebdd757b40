"""The CPU budget of tenants: what is used, what is left, and who is refused; work nobody reads."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st
from sqlmodel import func, select

from backend.accounts.permissions import Role
from backend.clocktime import utc_now
from backend.database import Database
from backend.laboratory.budget import Use
from backend.laboratory.models import LaboratoryUse
from backend.laboratory.use import WINDOW, hour_of
from backend.models import Simulation, Tenant
from backend.settings import Settings
from backend.simulations import traces
from backend.web import bodies, strict_json
from maat.api.laboratory import use_words

USE, SIMULATIONS = "/api/v1/laboratory/use", "/api/v1/simulations"
LARGE = {"kind": "generated", "family": "philly", "jobs": 20_000, "seed": 1}
REQUESTS = {
    "simulations": {
        "name": "s",
        "traces": [LARGE],
        "cluster": "t4=2x4",
        "runs": [{"policy": "fifo"}],
    },
    "sweeps": {
        "name": "s",
        "trace": {"kind": "generated", "jobs": 5},
        "cluster": "t4=2x4",
        "vary": [{"name": "p", "values": [0.5]}],
    },
    "reproductions": {"paper": "sia"},
    "experiments/tuning": {"name": "t", "cluster": "t4=2x4"},
}


@pytest.fixture
def budget(app: FastAPI, settings: Settings) -> Callable[[float], None]:
    def set_hours(hours: float) -> None:
        app.state.settings = settings.model_copy(update={"laboratory_cpu_hours": hours})

    return set_hours


def use(database: Database, tenant: str, hours: float, *, hours_ago: int = 0) -> datetime:
    """Charge CPU hours to a tenant; return the hour."""
    at = hour_of(utc_now()) - timedelta(hours=hours_ago)
    with database.session_scope() as session:
        tenant_id = session.exec(select(Tenant.id).where(Tenant.name == tenant)).one()
        row = LaboratoryUse(tenant_id=tenant_id, kind="simulation", hour=at)
        row.cpu_seconds = hours * 3600
        session.add(row)
    return at


def test_a_tenant_sees_what_it_has_used_and_what_is_left(
    client_as: Callable[..., TestClient], database: Database, budget: Callable[[float], None]
) -> None:
    red, _ = client_as(Role.VIEWER, tenant="red"), client_as(Role.VIEWER, tenant="blue")
    budget(10.0)
    assert red.get(USE).json()["items"][0]["left_cpu_seconds"] == 36_000
    use(database, "red", 4.0)
    use(database, "blue", 1.0)
    use(database, "red", 50.0, hours_ago=25)
    (mine,) = red.get(USE).json()["items"]
    assert (mine["tenant"], mine["used_cpu_seconds"], mine["left_cpu_seconds"]) == (
        "red",
        4 * 3600,
        6 * 3600,
    )
    assert (mine["free_at"], mine["budget_cpu_seconds"]) == (None, 36_000)
    assert use_words(mine) == "red has used 4.00 of 10 CPU hours within 24 hours; 6.00 are left."
    assert mine["by_kind"] == [{"kind": "simulation", "cpu_seconds": 4 * 3600}]


def test_who_sees_all_tenants_sees_those_that_used_any(
    client: TestClient, client_as: Callable[..., TestClient], database: Database
) -> None:
    client_as(Role.VIEWER, tenant="red")
    client_as(Role.VIEWER, tenant="idle")
    use(database, "red", 1.0)
    assert [one["tenant"] for one in client.get(USE).json()["items"]] == ["default", "red"]


@pytest.mark.parametrize("what", REQUESTS)
def test_a_tenant_whose_budget_is_used_is_refused_with_what_is_left_and_until_when(
    client_as: Callable[..., TestClient],
    database: Database,
    budget: Callable[[float], None],
    what: str,
) -> None:
    red, blue = client_as(Role.SUBMITTER, tenant="red"), client_as(Role.SUBMITTER, tenant="blue")
    budget(10.0)
    oldest = use(database, "red", 4.0, hours_ago=5)
    use(database, "red", 6.5)
    refused = red.post(f"/api/v1/{what}", json=REQUESTS[what])
    assert (refused.status_code, refused.json()["type"]) == (429, "/problems/cpu-budget-used")
    free_at = oldest + WINDOW
    assert refused.json()["detail"] == (
        "The tenant red has used 10.50 of the 10 CPU hours that a tenant has within 24 hours; "
        f"0 are left. It is free again at {free_at:%Y-%m-%d %H:%M} UTC."
    )
    seconds = (free_at - utc_now()).total_seconds()
    assert seconds - 5 < int(refused.headers["Retry-After"]) <= seconds + 65
    assert blue.post(f"/api/v1/{what}", json=REQUESTS[what]).status_code == 202
    budget(0.0)
    assert red.post(f"/api/v1/{what}", json=REQUESTS[what]).status_code == 202


@given(
    st.lists(st.floats(0.0, 50.0), min_size=1, max_size=24),
    st.floats(0.1, 100.0),
)
def test_a_tenant_is_free_at_the_first_hour_at_which_less_than_its_budget_counts(
    by_hour: list[float], most: float
) -> None:
    last = datetime(2026, 1, 2)
    hours = [last - timedelta(hours=len(by_hour) - 1 - n) for n in range(len(by_hour))]
    found = Use({(hour, "sweep"): used for hour, used in zip(hours, by_hour, strict=True)}, most)
    free_at = found.free_at()
    if found.used < most:
        assert free_at is None
    else:
        assert free_at is not None
        left = [u for hour, u in zip(hours, by_hour, strict=True) if hour + WINDOW > free_at]
        before = [u for hour, u in zip(hours, by_hour, strict=True) if hour + WINDOW >= free_at]
        assert sum(left) < most + 1e-6
        assert sum(before) >= most - 1e-6


def test_a_large_trace_is_not_drawn_by_the_service(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn, real = list[int](), traces.generate

    def noting(*given: Any, **named: Any) -> Any:
        drawn.append(named["jobs"])
        return real(*given, **named)

    monkeypatch.setattr(traces, "generate", noting)
    several = [LARGE, LARGE | {"seed": 2}, LARGE | {"jobs": 19_000}]
    answer = client.post(SIMULATIONS, json=REQUESTS["simulations"] | {"traces": several})
    assert answer.status_code == 202, answer.text
    assert drawn == [traces.SAMPLED_JOBS] * 3
    operation = client.get(answer.headers["Location"]).json()
    assert operation["total"] == 59_000


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"traces": [LARGE, LARGE]}, "/traces/1"),
        ({"traces": [LARGE | {"jobs": None, "hours": 2000}]}, "/traces/0/jobs"),
        ({"traces": [LARGE | {"family": "nope"}]}, "/traces/0/family"),
        ({"traces": [LARGE | {"family": "sharing", "xxl_share": 0.5}]}, "/traces/0/xxl_share"),
        ({"cluster": "unheard-of=2x4"}, "/cluster"),
    ],
)
def test_what_is_wrong_with_a_large_trace_is_still_told_at_once(
    refusing: TestClient, change: dict[str, Any], pointer: str
) -> None:
    answer = refusing.post(SIMULATIONS, json=REQUESTS["simulations"] | change)
    assert answer.status_code == 422, answer.text
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]


@pytest.mark.parametrize("what", ["simulations", "sweeps"])
def test_a_request_whose_client_has_gone_stores_nothing(
    app: FastAPI, client: TestClient, database: Database, what: str
) -> None:
    """The client is there while it sends the body, and gone while the request is checked."""
    text = json.dumps(REQUESTS[what]).encode()
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "path": f"/api/v1/{what}",
        "raw_path": f"/api/v1/{what}".encode(),
        "query_string": b"",
        "root_path": "",
        "scheme": "http",
        "headers": [
            (b"host", b"127.0.0.1:8000"),
            (b"content-type", b"application/json"),
            (b"content-length", str(len(text)).encode()),
        ],
        "client": ("127.0.0.1", 50000),
        "server": ("127.0.0.1", 8000),
    }
    messages = [{"type": "http.request", "body": text, "more_body": False}]
    answers: list[Any] = []

    async def receive() -> dict[str, Any]:
        return messages.pop() if messages else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        answers.append(message)

    asyncio.run(app(scope, receive, send))  # type: ignore[arg-type]
    assert [one["status"] for one in answers if "status" in one and one["status"] < 500] == []
    with database.session_scope(writes=False) as session:
        assert session.exec(select(func.count()).select_from(Simulation)).one() == 0
    assert client.get(f"/api/v1/{what}").json()["items"] == []


def test_what_a_large_body_took_is_given_back_once_it_was_answered(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_back = threading.Event()
    monkeypatch.setattr(bodies, "_LARGE_BYTES", 100_000)
    monkeypatch.setattr(strict_json, "GIVE_BACK_SECONDS", 0.0)
    monkeypatch.setattr(strict_json, "give_back_memory", given_back.set)
    assert client.post(SIMULATIONS, json=REQUESTS["simulations"]).status_code == 202
    assert not given_back.is_set(), "it was a small one"
    padded = json.dumps(REQUESTS["simulations"]) + " " * 150_000
    sent = client.post(SIMULATIONS, content=padded, headers={"Content-Type": "application/json"})
    assert sent.status_code == 202, sent.text
    assert given_back.wait(60)
