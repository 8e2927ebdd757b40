"""Tests of requests made to break the service: deep bodies, forged cursors and positions.

The service answers each with a problem, and never fails.
"""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from test_problems import check

from backend.database import Database
from backend.events.feed import Position, begin_at, present_position
from backend.problems import shown_value

JSON = {"content-type": "application/json"}


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


def objects(depth: int) -> str:
    return '{"p":' * depth + "1" + "}" * depth


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/jobs", '{"name": %s, "model": "bert"}'),
        ("/jobs:batch", '{"jobs": [%s]}'),
        ("/clusters", '{"name": "deep", "shape": "t4=1x4", "policy_parameters": {"p": %s}}'),
        ("/simulations", '{"name": "s", "traces": [%s], "cluster": "t4=1x4", "runs": [{}]}'),
    ],
)
def test_a_deep_body_is_a_problem(refusing: TestClient, path: str, body: str) -> None:
    for depth in (40, 97, 101, 900, 990, 20_000):
        for deep in (nested(depth), objects(depth)):
            answer = refusing.post(f"/api/v1{path}", content=body % deep, headers=JSON)
            assert answer.status_code == (400 if depth > 100 else 422), answer.text
            assert answer.headers["content-type"] == "application/problem+json"
            assert len(answer.content) < 5000


def test_brackets_in_text_make_no_body_deep(client: TestClient) -> None:
    answer = client.post("/api/v1/jobs", json={"name": "[" * 150, "model": "bert"})
    assert answer.status_code == 201


def test_a_deep_or_wide_value_is_shown_in_short() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assert len(shown_value(deep)) < 100
    assert len(shown_value({str(i): "x" * 1000 for i in range(10_000)})) <= 200
    assert shown_value({"a": [1, "two"], "b": None}) == "{'a': [1, 'two'], 'b': None}"


# ---- cursors

BAD_KEYS: list[Any] = [
    "\ud800",
    "a\0b",
    float("nan"),
    float("inf"),
    10**30,
    -(10**30),
    True,
    None,
    [],
    {},
    "text",
    "",
    1,
    1.5,
    "x" * 3000,
]


def cursor_of(values: list[Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(values).encode()).decode().rstrip("=")


def lists(client: TestClient) -> list[str]:
    """Every list of the API that takes a cursor, with ids filled in."""
    job = client.get("/api/v1/jobs").json()["items"][0]["id"]
    document = client.get("/openapi.json").json()
    found = [
        path
        for path, operations in document["paths"].items()
        if any(
            parameter["name"] == "cursor"
            for parameter in operations.get("get", {}).get("parameters", [])
        )
    ]
    schedule = client.get("/api/v1/report-schedules").json()["items"][0]["id"]
    webhook = client.get("/api/v1/webhooks").json()["items"][0]["id"]
    ids = {
        "{job_id}": job,
        "{cluster_id}": "demo",
        "{schedule_id}": schedule,
        "{webhook_id}": webhook,
    }
    for name, value in ids.items():
        found = [path.replace(name, value) for path in found]
    return found


def test_no_list_fails_on_a_cursor_with_another_key(
    client: TestClient, filled_lists: dict[str, list[Any]]
) -> None:
    """`filled_lists`: of lists that go on after one row, what their cursor holds."""
    assert set(filled_lists) >= {
        "/api/v1/jobs",
        "/api/v1/clusters",
        "/api/v1/simulations",
        "/api/v1/operations",
    }
    for path, values in filled_lists.items():
        for position in range(1, len(values)):
            for bad in BAD_KEYS:
                changed = [*values[:position], bad, *values[position + 1 :]]
                answer = client.get(path, params={"limit": 1, "cursor": cursor_of(changed)})
                assert answer.status_code in (200, 400, 422), (path, bad, answer.text)


def test_a_key_of_another_type_than_its_column_is_refused(
    client: TestClient, filled_lists: dict[str, list[Any]]
) -> None:
    digest, submitted, job_id = filled_lists["/api/v1/jobs"]
    for values in (
        [digest, "text", job_id],
        [digest, submitted, 7],
        [digest, submitted, "\ud800"],
        [digest, True, job_id],
    ):
        check(
            client.get("/api/v1/jobs", params={"limit": 1, "cursor": cursor_of(values)}),
            400,
            "bad-cursor",
        )
    assert (
        client.get(
            "/api/v1/jobs", params={"limit": 1, "cursor": cursor_of([digest, submitted, job_id])}
        ).status_code
        == 200
    )


def test_a_made_up_cursor_is_refused_by_every_list(
    client: TestClient, filled_lists: dict[str, list[Any]]
) -> None:
    for path in lists(client):
        for made_up in (
            "x",
            "\ud800".encode("utf-8", "surrogatepass"),
            "é",
            cursor_of([]),
            cursor_of([1, 2, 3]),
            base64.b64encode(b"[" * 1400),
        ):
            check(client.get(path, params={"cursor": made_up}), 400, "bad-cursor")


@pytest.fixture
def filled_lists(client: TestClient) -> dict[str, list[Any]]:
    """Two rows in every list that the API can fill, and the values of each list's first cursor."""
    simulation = {
        "name": "s",
        "traces": [{"kind": "generated", "jobs": 2, "hours": 1}],
        "cluster": "t4=1x4",
        "runs": [{}],
    }
    schedule = {
        "name": "s",
        "cluster": "demo",
        "channel": "webhook",
        "url": "https://hooks.example.com/",
        "secret": "s" * 16,
    }
    webhook = {"name": "w", "url": "https://93.184.216.34/", "events": ["job.failed"]}
    reservation = {"gpu_type": "t4", "gpu_count": 1, "tenant": "default"}
    for number in range(2):
        client.post("/api/v1/webhooks", json=webhook).raise_for_status()
        client.post("/api/v1/jobs", json={"name": f"j{number}", "model": "bert"}).raise_for_status()
        client.post(
            "/api/v1/clusters", json={"name": f"c{number}", "shape": "t4=2x1"}
        ).raise_for_status()
        client.post("/api/v1/simulations", json=simulation).raise_for_status()
        client.post("/api/v1/clusters/demo/reservations", json=reservation).raise_for_status()
        client.post("/api/v1/reports", json={"cluster": "demo"}).raise_for_status()
        client.post("/api/v1/report-schedules", json=schedule).raise_for_status()
    (made, *_) = client.get("/api/v1/report-schedules").json()["items"]
    for _ in range(2):
        deliver = f"/api/v1/report-schedules/{made['id']}/actions/deliver"
        client.post(deliver).raise_for_status()
    (hook, *_) = client.get("/api/v1/webhooks").json()["items"]
    for _ in range(2):
        client.post(f"/api/v1/webhooks/{hook['id']}/actions/test").raise_for_status()
    found = {}
    for path in lists(client):
        cursor = client.get(path, params={"limit": 1}).json()["next_cursor"]
        if cursor is not None:
            found[path] = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    return found


# ---- positions of the event stream


@pytest.mark.parametrize(
    "text",
    [
        "r1.j1.o999999999999999",
        "r1.j1.o253402300800000",
        "r1.j1.o1٣",
        "r٣.j1.o1",
        f"r{2**63}.j1.o1",
    ],
)
def test_a_position_that_no_date_or_id_has_is_not_read(text: str) -> None:
    assert Position.parse(text) is None


def test_a_stream_begins_anew_at_a_position_that_is_still_to_come(
    client: TestClient, database: Database
) -> None:
    with database.session_scope(writes=False) as session:
        here = present_position(session)
        ahead = (
            Position(here.round_id + 1, here.job_event_id, 0),
            Position(0, here.job_event_id + 1, 0),
            Position(0, 0, here.operations_ms + 10**9),
        )
        assert [begin_at(session, str(position)) for position in ahead] == [None] * 3
        assert begin_at(session, str(here)) == here
        assert begin_at(session, str(Position())) == Position()


# ---- callbacks of the pages


@pytest.mark.parametrize(
    "body",
    [
        {"output": "nobody.knows", "outputs": {"id": "nobody", "property": "knows"}, "inputs": []},
        {"output": "navigate.href", "outputs": {}, "inputs": [[]], "changedPropIds": [1]},
        {"output": "navigate.href", "outputs": {}, "inputs": ["x"]},
        {"output": "navigate.href", "outputs": {}, "inputs": [[["x"]]]},
        {"output": "navigate.href", "outputs": {}, "inputs": [], "state": [{"id": "a"}]},
    ],
)
def test_a_callback_that_no_page_has_is_a_problem(
    app_with_pages: FastAPI, body: dict[str, Any]
) -> None:
    client = TestClient(
        app_with_pages,
        base_url="http://127.0.0.1:8000",
        client=("127.0.0.1", 50000),
        raise_server_exceptions=False,
    )
    check(client.post("/_dash-update-component", json=body), 400, "malformed-request")


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ('{"name": "a", "model": "bert", "name": "b"}', "/name"),
        ('{"name": "a", "model": "bert", "n\\u0061me": "a"}', "/name"),
        ('{"name": "a", "x/y": {"p": [0, {"q": 1, "q": 2}]}}', "/x~1y/p/1/q"),
    ],
)
def test_a_member_that_is_given_twice_is_refused_by_its_place(
    client: TestClient, body: str, pointer: str
) -> None:
    headers = {"Content-Type": "application/json"}
    answer = client.post("/api/v1/jobs", content=body, headers=headers)
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert (error["pointer"], error["code"]) == (pointer, "repeated")
    assert client.get("/api/v1/jobs").json()["items"] == []
