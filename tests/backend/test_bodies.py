"""Tests of request bodies: the sender is checked before reading, and every route has its limit.

Large bodies are parsed outside of the event loop.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from starlette.types import Receive, Scope, Send

from backend.app import PREFIX, ROUTERS
from backend.pages import calls as page_calls
from backend.pages.calls import PageCallGuard
from backend.secret_key import secret_key
from backend.settings import Settings
from backend.web import bodies, strict_json
from backend.web.bodies import PAGE_CALL_BYTES, SMALL_BYTES, most_bytes_of
from backend.web.gates import Gate
from maat.api import fields, mistakes
from maat.api.jobs import JobBody

CALL = "/_dash-update-component"
JSON = (b"content-type", b"application/json")
CHUNK = 16 * 1024

ROUTES = [
    route
    for router in ROUTERS
    for route in router.routes
    if isinstance(route, APIRoute) and route.body_field is not None
]
with_a_body = pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.operation_id)
FOR_STRANGERS = {"signIn"}


class Exchange:
    """One request of the application, and how much of its body was read."""

    def __init__(self, app: FastAPI, *, client: str = "127.0.0.1") -> None:
        self._app, self._client = app, client
        self.read_bytes = 0
        self.status = 0
        self.answer = bytearray()
        self.headers: set[bytes] = set()

    @property
    def problem(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.answer)
        return found

    def send(
        self, method: str, path: str, *, size: int, announced: bool, token: str | None = None
    ) -> Exchange:
        credentials = [] if token is None else [(b"authorization", f"Bearer {token}".encode())]
        length = (
            [(b"content-length", str(size).encode())]
            if announced
            else [(b"transfer-encoding", b"chunked")]
        )
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "scheme": "http",
            "headers": [(b"host", b"127.0.0.1:8000"), JSON, *length, *credentials],
            "client": (self._client, 50000),
            "server": ("127.0.0.1", 8000),
        }

        self._size = size

        async def send(message: Any) -> None:
            self.status = message.get("status", self.status)
            self.headers |= {name for name, _ in message.get("headers", [])}
            self.answer.extend(message.get("body", b""))

        asyncio.run(self._app(scope, self.receive, send))  # type: ignore[arg-type]
        return self

    async def receive(self) -> dict[str, Any]:
        left = min(CHUNK, self._size - self.read_bytes)
        self.read_bytes += left
        return {
            "type": "http.request",
            "body": b"[" * left,
            "more_body": self.read_bytes < self._size,
        }


def method_of(route: APIRoute) -> str:
    (method,) = route.methods
    return method


def token_for(route: APIRoute, settings: Settings) -> str | None:
    """An attempt's token where only attempts may ask; else nobody's: the local admin asks."""
    if "{attempt_id}" not in route.path:
        return None
    return secret_key(settings).attempt_token("{attempt_id}")


@pytest.fixture
def database_url(migrated_sqlite: Path, tmp_path: Path) -> str:
    """One database is enough: nothing here comes as far."""
    shutil.copyfile(migrated_sqlite, tmp_path / "maat.db")
    return f"sqlite:///{tmp_path / 'maat.db'}"


@pytest.fixture
def roomy(settings: Settings) -> Settings:
    """As deployed: the limits are those of the routes."""
    return settings.model_copy(
        update={"max_upload_bytes": Settings(_env_file=None).max_upload_bytes}
    )


@pytest.fixture
def local(app: FastAPI, roomy: Settings) -> Iterator[TestClient]:
    app.state.settings = roomy
    with TestClient(
        app,
        base_url="http://127.0.0.1:8000",
        client=("127.0.0.1", 50000),
        raise_server_exceptions=False,
    ) as client:
        yield client


@pytest.mark.parametrize(
    "route",
    [route for route in ROUTES if route.operation_id not in FOR_STRANGERS],
    ids=lambda route: route.operation_id,
)
@pytest.mark.parametrize("announced", [True, False])
def test_nothing_is_read_of_a_body_that_a_stranger_sends(
    app: FastAPI, route: APIRoute, announced: bool
) -> None:
    exchange = Exchange(app, client="10.0.0.9").send(
        method_of(route), PREFIX + route.path, size=31 << 20, announced=announced
    )
    assert (exchange.status, exchange.read_bytes) == (401, 0)


@pytest.mark.parametrize("announced", [True, False])
def test_a_stranger_who_signs_in_sends_little(app: FastAPI, announced: bool) -> None:
    exchange = Exchange(app, client="10.0.0.9").send(
        "POST", f"{PREFIX}/sessions", size=31 << 20, announced=announced
    )
    assert exchange.status == 413
    assert exchange.read_bytes <= SMALL_BYTES + CHUNK


@with_a_body
def test_a_body_that_is_announced_as_too_large_is_refused_unread(
    app: FastAPI, roomy: Settings, route: APIRoute
) -> None:
    app.state.settings = roomy
    most = most_bytes_of(route.endpoint)
    exchange = Exchange(app).send(
        method_of(route),
        PREFIX + route.path,
        size=most + 1,
        announced=True,
        token=token_for(route, roomy),
    )
    assert (exchange.status, exchange.read_bytes) == (413, 0)
    assert f"larger than {most} bytes" in exchange.problem["detail"]
    assert PREFIX + route.path in exchange.problem["detail"]


@with_a_body
def test_a_body_in_chunks_is_read_no_further_than_the_limit(
    app: FastAPI, roomy: Settings, route: APIRoute
) -> None:
    app.state.settings = roomy
    most = most_bytes_of(route.endpoint)
    exchange = Exchange(app).send(
        method_of(route),
        PREFIX + route.path,
        size=31 << 20,
        announced=False,
        token=token_for(route, roomy),
    )
    assert (exchange.status, exchange.problem["type"]) == (413, "/problems/payload-too-large")
    assert most < exchange.read_bytes <= most + CHUNK


def test_jobs_batches_traces_and_measurements_have_the_room_that_they_need_and_others_little() -> (
    None
):
    limits = {route.operation_id: most_bytes_of(route.endpoint) for route in ROUTES}
    assert (limits["submitJob"], limits["submitJobs"]) == (256 << 10, 2 << 20)
    assert limits["requestSimulation"] == limits["requestSweep"] == 8 << 20
    assert limits["changeCluster"] == limits["changeNode"] == limits["reserveGpus"] == SMALL_BYTES


def test_a_deployment_may_allow_less(local: TestClient, app: FastAPI, roomy: Settings) -> None:
    app.state.settings = roomy.model_copy(update={"max_upload_bytes": 2000})
    answer = local.post("/api/v1/jobs", json={"name": "x" * 2000, "model": "bert"})
    assert answer.status_code == 413
    assert "2000 bytes" in answer.json()["detail"]


@pytest.mark.parametrize("value", ["[]", '""', "{}", "1"])
def test_very_many_values_are_refused_before_any_is_made(
    local: TestClient, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setattr(bodies, "json", None)  # nobody can parse with it
    answer = local.post(
        "/api/v1/simulations",
        content=f"[{','.join([value] * 100_000)}]",
        headers={"content-type": "application/json"},
    )
    assert answer.status_code == 413
    assert str(bodies.MAX_VALUES) in answer.json()["detail"]


def test_a_batch_of_as_many_jobs_as_may_be_with_every_field_is_no_large_one(
    local: TestClient,
) -> None:
    job = {name: f"value of {name}" for name in JobBody.model_fields} | {
        "gpu_types": ["t4", "rtx", "a100"]
    }
    answer = local.post("/api/v1/jobs:batch", json={"jobs": [job] * 1000})
    assert answer.status_code == 422, answer.text


def test_marks_within_texts_are_no_values(local: TestClient) -> None:
    text = 'name,model\n"a[{,"\\\\' * 50_000
    answer = local.post(
        "/api/v1/simulations",
        json={
            "name": "x",
            "cluster": "t4=1x4",
            "traces": [{"kind": "csv", "text": text}],
            "runs": [{}],
        },
    )
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/traces/0/text"


def test_a_text_without_an_end_is_no_json(local: TestClient) -> None:
    answer = local.post(
        "/api/v1/simulations",
        content='{"name": "' + "x" * 100_000,
        headers={"content-type": "application/json"},
    )
    assert (answer.status_code, answer.json()["type"]) == (400, "/problems/malformed-request")


def test_an_object_of_very_many_members_is_refused_by_its_place(local: TestClient) -> None:
    run = {"policy_parameters": {f"k{i}": 1 for i in range(1001)}}
    body = {"name": "x", "cluster": "t4=1x4", "traces": [{"kind": "generated"}], "runs": [run]}
    answer = local.post("/api/v1/simulations", json=body)
    (error,) = answer.json()["errors"]
    assert (answer.status_code, error["pointer"], error["value"]) == (
        422,
        "/runs/0/policy_parameters",
        1001,
    )


def test_of_many_errors_a_hundred_are_told(local: TestClient) -> None:
    run = {f"k{i}": 1 for i in range(9)}
    body = {
        "name": "x",
        "cluster": "t4=1x4",
        "traces": [{"kind": "generated"}],
        "runs": [run] * 100,
    }
    answer = local.post("/api/v1/simulations", json=body).json()
    assert (answer["status"], len(answer["errors"])) == (422, 100)
    assert "And 897 more." in answer["detail"]


def hostile_runs(keys: int, count: int) -> dict[str, Any]:
    runs: list[dict[str, Any]] = [{f"k{i}": 1 for i in range(keys)} for _ in range(count)]
    return {"name": "x", "cluster": "t4=1x4", "traces": [{"kind": "generated"}], "runs": runs}


def test_a_body_of_very_many_errors_is_looked_at_no_further_and_points_at_the_one_too_many(
    local: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at: list[Any] = []

    def noticing(value: Any, check: Callable[[Any], Any]) -> Any:
        looked_at.append(value)
        return mistakes.checked(value, check)

    monkeypatch.setattr(fields, "checked", noticing)
    answer = local.post("/api/v1/simulations", json=hostile_runs(225, 200)).json()
    assert (answer["status"], len(answer["errors"])) == (422, 100)
    assert (
        answer["errors"][0]["pointer"] == "/runs/4/k0"
    )  # 4 x 225 before it: with its own more than a thousand
    assert "Leave it out" in answer["errors"][0]["remedy"]
    assert "More than 1000 values" in answer["detail"]
    assert "/runs/4" in answer["detail"]
    assert len([value for value in looked_at if "k0" in value]) == 5


def test_what_was_wrong_with_one_body_is_not_held_against_the_next(local: TestClient) -> None:
    local.post("/api/v1/simulations", json=hostile_runs(225, 200))
    answer = local.post("/api/v1/simulations", json=hostile_runs(2, 1)).json()
    assert [error["pointer"] for error in answer["errors"]] == ["/runs/0/k0", "/runs/0/k1"]


def test_a_small_body_is_bounded_too(local: TestClient) -> None:
    answer = local.post("/api/v1/simulations", json=hostile_runs(6, 200)).json()
    assert answer["status"] == 422
    assert "More than 1000 values" in answer["detail"]


@pytest.mark.parametrize("address", ["/api/v1/jobs:batch", CALL])
def test_a_body_that_takes_time_is_parsed_outside_of_the_event_loop(
    with_pages: FastAPI, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    seen: list[bool] = []

    def noticing(body: bytes, **options: Any) -> Any:
        seen.append(is_on_the_event_loop())
        return bodies.parse_json(body, **options)

    monkeypatch.setattr(strict_json, "parse_json", noticing)
    monkeypatch.setattr(page_calls, "parse_json", noticing)
    client = TestClient(
        with_pages,
        base_url="http://127.0.0.1:8000",
        client=("127.0.0.1", 50000),
        raise_server_exceptions=False,
    )
    client.post(address, json={"jobs": [{"name": "train", "model": "bert"}] * 1000})
    assert seen == [False]


def is_on_the_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


# ---- the pages' callbacks


@pytest.fixture
def with_pages(app_with_pages: FastAPI, roomy: Settings) -> FastAPI:
    app_with_pages.state.settings = roomy
    return app_with_pages


@pytest.mark.parametrize("announced", [True, False])
def test_nothing_is_read_of_a_large_call_that_a_stranger_sends(
    with_pages: FastAPI, announced: bool
) -> None:
    exchange = Exchange(with_pages, client="10.0.0.9").send(
        "POST", CALL, size=31 << 20, announced=announced
    )
    assert (exchange.status, exchange.read_bytes) == (401, 0)


@pytest.mark.parametrize("announced", [True, False])
def test_a_call_that_is_too_large_is_refused(with_pages: FastAPI, announced: bool) -> None:
    exchange = Exchange(with_pages).send("POST", CALL, size=31 << 20, announced=announced)
    assert (exchange.status, exchange.problem["type"]) == (413, "/problems/payload-too-large")
    assert exchange.read_bytes <= (0 if announced else PAGE_CALL_BYTES + CHUNK)
    assert {b"content-security-policy", b"x-request-id"} <= exchange.headers


def test_a_large_call_leaves_its_place_to_what_it_asks_the_service_for(
    app: FastAPI, roomy: Settings
) -> None:
    app.state.settings, app.state.gates.large = roomy, Gate(1, 0.1)

    async def as_large_again(scope: Scope, receive: Receive, send: Send) -> None:
        async with app.state.gates.large.passed():
            await JSONResponse({"went": "through"})(scope, receive, send)

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        await PageCallGuard(as_large_again)({**scope, "app": app}, receive, send)

    client = TestClient(guarded, base_url="http://127.0.0.1:8000", client=("127.0.0.1", 50000))
    call = {
        "output": "a.b",
        "outputs": {},
        "inputs": [{"id": "a", "property": "b", "value": "x" * 500_000}],
    }
    assert client.post(CALL, json=call).json() == {"went": "through"}


@pytest.mark.parametrize("address", ["/", "/_dash-layout", "/_dash-dependencies"])
def test_no_other_address_of_the_pages_reads_a_body(with_pages: FastAPI, address: str) -> None:
    exchange = Exchange(with_pages).send("GET", address, size=31 << 20, announced=False)
    assert (exchange.status, exchange.read_bytes) == (200, 0)


def test_a_call_of_a_page_is_answered_as_before(with_pages: FastAPI) -> None:
    client = TestClient(
        with_pages,
        base_url="http://127.0.0.1:8000",
        client=("127.0.0.1", 50000),
        raise_server_exceptions=False,
    )
    calls = client.get("/_dash-dependencies").json()
    call = next(call for call in calls if "cluster-select.data" in call["output"])
    outputs = [
        dict(zip(("id", "property"), part.split("."), strict=True))
        for part in call["output"].strip(".").split("...")
    ]
    several = call["output"].startswith("..")
    asked = {
        "output": call["output"],
        "outputs": outputs if several else outputs[0],
        "inputs": call["inputs"],
        "state": call["state"],
        "changedPropIds": [],
    }
    answer = client.post(CALL, json=asked)
    assert answer.status_code == 200, answer.text
    assert "demo" in json.dumps(answer.json()["response"]["cluster-select"])


def test_a_client_that_hangs_up_is_no_fault_of_the_service(
    app: FastAPI, caplog: pytest.LogCaptureFixture
) -> None:
    class HangsUp(Exchange):
        async def receive(self) -> dict[str, Any]:
            return {"type": "http.disconnect"}

    with caplog.at_level("INFO"):
        HangsUp(app).send("POST", "/api/v1/jobs", size=100, announced=True)

    assert [record for record in caplog.records if record.levelname == "ERROR"] == []
    assert "hung up" in caplog.text
