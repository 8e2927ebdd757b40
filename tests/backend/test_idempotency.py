"""Idempotency-Key: one effect, the first answer again, and never somebody else's."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from measurement_samples import pairs
from pydantic import Field
from sqlmodel import func, select

from backend.accounts.permissions import Role
from backend.clocktime import utc_now
from backend.database import Database
from backend.idempotency import Once
from backend.models import IdempotencyKey, Job, metadata
from maat.api.fields import Body
from maat.api.jobs import JobBody

pytestmark = pytest.mark.both_databases

JOBS = "/api/v1/jobs"
BODY = {"name": "train", "model": "bert"}
KEY = {"Idempotency-Key": "k-1"}


def jobs_stored(database: Database) -> int:
    with database.session_scope(writes=False) as session:
        return session.exec(select(func.count()).select_from(Job)).one()


# A request for each address that makes something, and another one that it could be taken for.
SIMULATION: dict[str, Any] = {
    "name": "s",
    "traces": [{"kind": "generated", "jobs": 2, "hours": 1}],
    "cluster": "t4=1x4",
}
SWEEP = {
    "name": "w",
    "trace": SIMULATION["traces"][0],
    "cluster": "t4=1x4",
    "vary": [{"name": "p", "values": [-1, 0.5]}],
    "seeds": [0],
}
AUTOSCALING = {"name": "e", "model": "cifar10", "cluster": "t4=2x4"}
WEBHOOK = {
    "cluster": "demo",
    "channel": "webhook",
    "url": "https://hooks.example.com/services/T0/B0/token",
    "secret": "a-secret-of-more-than-16",
}
MAKING: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "/jobs": (BODY, BODY | {"name": "other"}),
    "/jobs:batch": ({"jobs": [BODY, BODY]}, {"jobs": [BODY]}),
    "/jobs:array": ({"job": BODY, "count": 2}, {"job": BODY, "count": 3}),
    "/jobs:demo": ({"count": 3}, {"count": 4}),
    "/forecasts": ({"job": BODY}, {"job": BODY | {"name": "other"}}),
    "/tenants": ({"name": "vision"}, {"name": "speech"}),
    "/users": ({"name": "ann"}, {"name": "bob"}),
    "/clusters": ({"name": "new", "shape": "t4=1x4"}, {"name": "newer", "shape": "t4=1x4"}),
    "/clusters/{cluster_id}/nodes": (
        {"nodes": [{"gpu_type": "t4", "gpu_count": 4}]},
        {"nodes": [{"gpu_type": "t4", "gpu_count": 2}]},
    ),
    "/clusters/{cluster_id}/previews": ({"policy": "fifo"}, {"policy": "srtf"}),
    "/clusters/{cluster_id}/reservations": (
        {"gpu_type": "t4", "gpu_count": 2, "tenant": "default"},
        {"gpu_type": "t4", "gpu_count": 1, "tenant": "default"},
    ),
    "/clusters/{cluster_id}/prices": (
        {"gpu_type": "t4", "price_per_gpu_hour": "1", "currency": "EUR"},
        {"gpu_type": "a100", "price_per_gpu_hour": "2", "currency": "EUR"},
    ),
    "/report-schedules": (
        {"name": "weekly", **WEBHOOK},
        {"name": "others", **WEBHOOK},
    ),
    "/measurements": (pairs(), pairs(name="others")),
    "/simulations": (SIMULATION | {"runs": [{}]}, SIMULATION | {"runs": [{"policy": "fifo"}]}),
    "/sweeps": (SWEEP, SWEEP | {"name": "other"}),
    "/reproductions": (
        {"paper": "sia", "items": ["table-2"]},
        {"paper": "sia", "items": ["table-1"]},
    ),
    "/experiments/autoscaling": (AUTOSCALING, AUTOSCALING | {"name": "other"}),
    "/experiments/tuning": ({"name": "e"}, {"name": "other"}),
}
PARTIAL = {"jobs": [BODY, {"name": 1}], "mode": "partial"}


def making_routes(app: FastAPI) -> set[str]:
    """Return the paths of every POST of the API, without those that act on an existing thing.

    Actions such as pause, drain and cancel have the same effect twice as once, and an agent numbers
    its reports. A second sign-in makes a second session. A new token's answer holds its secret, so
    it is not kept for a repeated request: test_tokens_api.py. So does a new webhook's:
    test_webhooks_api.py.
    An action on many jobs makes nothing either: test_bulk_api.py. Nor does an import, which is read
    and answered: test_imports_api.py.
    """
    document = app.openapi()["paths"]
    return {
        path.removeprefix("/api/v1")
        for path, operations in document.items()
        if "post" in operations
        and "/actions/" not in path
        and "/imports/" not in path
        and not path.endswith("/reports")
    } - {"/sessions", "/tokens", "/webhooks", "/me/password", "/jobs:bulk"}


def rows_stored(database: Database) -> dict[str, int]:
    with database.session_scope(writes=False) as session:
        return {
            name: session.execute(select(func.count()).select_from(table)).scalar_one()
            for name, table in metadata.tables.items()
        }


def test_every_address_that_makes_something_is_tried_here(app: FastAPI) -> None:
    assert making_routes(app) == set(MAKING)


@pytest.mark.parametrize(
    ("path", "body"),
    [*((path, bodies[0]) for path, bodies in MAKING.items()), ("/jobs:batch", PARTIAL)],
)
def test_a_repeated_request_gets_the_first_answer_and_has_no_second_effect(
    client: TestClient, queue: Any, database: Database, path: str, body: dict[str, Any]
) -> None:
    address = f"/api/v1{path.format(cluster_id='demo')}"
    first = client.post(address, json=body, headers=KEY)
    stored, sent = rows_stored(database), list(queue.sent)
    again = client.post(address, json=body, headers=KEY)
    later = (
        "/simulations",
        "/sweeps",
        "/reproductions",
        "/experiments/autoscaling",
        "/experiments/tuning",
        "/forecasts",
        "/clusters/{cluster_id}/previews",
    )
    assert first.status_code == (207 if body is PARTIAL else 202 if path in later else 201), (
        first.text
    )
    assert (again.status_code, again.json()) == (first.status_code, first.json())
    assert [again.headers.get(name) for name in ("Location", "ETag")] == [
        first.headers.get(name) for name in ("Location", "ETag")
    ]
    assert "Idempotency-Replayed" not in first.headers
    assert again.headers["Idempotency-Replayed"] == "true"
    assert (rows_stored(database), queue.sent) == (stored, sent)


@pytest.mark.parametrize("path", MAKING)
def test_another_request_under_the_same_key_is_refused_and_makes_nothing(
    client: TestClient, database: Database, path: str
) -> None:
    address = f"/api/v1{path.format(cluster_id='demo')}"
    body, other = MAKING[path]
    assert client.post(address, json=body, headers=KEY).is_success
    stored = rows_stored(database)
    answer = client.post(address, json=other, headers=KEY)
    assert (answer.status_code, answer.json()["type"]) == (422, "/problems/idempotency-key-reused")
    assert rows_stored(database) == stored


@pytest.mark.parametrize("path", [path for path in MAKING if path != "/jobs"])
def test_a_volley_under_one_key_makes_one(
    client: TestClient, database: Database, path: str
) -> None:
    address, before = f"/api/v1{path.format(cluster_id='demo')}", rows_stored(database)
    with ThreadPoolExecutor(4) as pool:
        answers = list(
            pool.map(lambda _: client.post(address, json=MAKING[path][0], headers=KEY), range(4))
        )
    assert len({(answer.status_code, answer.text) for answer in answers}) == 1
    assert sum("Idempotency-Replayed" in answer.headers for answer in answers) == 3
    assert rows_stored(database)["idempotency_keys"] == before["idempotency_keys"] + 1


def test_a_cluster_under_its_name_and_under_its_id_is_one_address(client: TestClient) -> None:
    cluster_id = client.get("/api/v1/clusters/demo").json()["id"]
    body = MAKING["/clusters/{cluster_id}/nodes"][0]
    first, again = (
        client.post(f"/api/v1/clusters/{named}/nodes", json=body, headers=KEY)
        for named in ("demo", cluster_id)
    )
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.json() == first.json()


def test_the_order_of_fields_and_defaults_make_no_other_request(
    client: TestClient, database: Database
) -> None:
    client.post(JOBS, json=BODY, headers=KEY)
    assert (
        client.post(
            JOBS, json={"model": "bert", "min_gpus": 1, "name": "train"}, headers=KEY
        ).status_code
        == 201
    )
    assert jobs_stored(database) == 1


def test_a_refused_request_leaves_its_key_free(client: TestClient) -> None:
    assert client.post(JOBS, json=BODY | {"model": "nonsense"}, headers=KEY).status_code == 422
    assert client.post(JOBS, json=BODY, headers=KEY).status_code == 201


def test_a_key_is_its_users_and_its_routes_own(
    client: TestClient, client_as: Callable[..., TestClient], database: Database
) -> None:
    client.post(JOBS, json=BODY, headers=KEY)
    client_as(Role.SUBMITTER).post(JOBS, json=BODY, headers=KEY)
    client.post(f"{JOBS}:batch", json={"jobs": [BODY]}, headers=KEY)
    assert jobs_stored(database) == 3


def test_a_key_is_forgotten_after_its_time(client: TestClient, database: Database) -> None:
    client.post(JOBS, json=BODY, headers=KEY)
    with database.session_scope() as session:
        session.exec(select(IdempotencyKey)).one().created_at = utc_now() - timedelta(hours=25)
    answer = client.post(JOBS, json=BODY, headers=KEY)
    assert answer.status_code == 201
    assert "Idempotency-Replayed" not in answer.headers
    assert jobs_stored(database) == 2


def test_requests_that_come_at_once_under_one_key_make_one_job(
    app: FastAPI, client: TestClient, database: Database
) -> None:
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda _: client.post(JOBS, json=BODY, headers=KEY), range(12)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert jobs_stored(database) == 1


@pytest.mark.parametrize("key", ["", "x" * 201, "with space"])
def test_a_key_of_another_form_is_refused(refusing: TestClient, key: str) -> None:
    assert refusing.post(JOBS, json=BODY, headers={"Idempotency-Key": key}).status_code == 422


class _Before(Body):
    name: str
    kinds: list[str] = Field(default_factory=list)


class _After(_Before):
    priority: int = 0
    note: str | None = None


def test_a_key_is_the_same_request_after_an_upgrade_that_adds_fields() -> None:
    sent = {"name": "train", "kinds": ["t4"]}
    before, after = (
        Once("usr_1", "POST /jobs", "k", kind.model_validate(sent)) for kind in (_Before, _After)
    )
    assert before.digest == after.digest
    assert Once("usr_1", "POST /jobs", "k", _After(name="train")).digest != after.digest


def test_a_key_of_a_version_that_knew_requests_by_all_their_fields_is_still_known(
    client: TestClient, database: Database
) -> None:
    made = client.post(JOBS, json=BODY, headers=KEY)
    whole = JobBody.model_validate(BODY).model_dump()
    digest = hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()
    with database.session_scope() as session:
        session.exec(select(IdempotencyKey)).one().digest = digest
    again = client.post(JOBS, json=BODY, headers=KEY)
    assert (again.status_code, again.json()["id"]) == (201, made.json()["id"])
    assert jobs_stored(database) == 1
    assert client.post(JOBS, json=BODY | {"name": "other"}, headers=KEY).status_code == 422
