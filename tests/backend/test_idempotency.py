"""Idempotency-Key: one effect, the first answer again, and never somebody else's."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlmodel import func, select

from backend.accounts.permissions import Role
from backend.clocktime import utc_now
from backend.database import Database
from backend.models import IdempotencyKey, Job

JOBS = "/api/v1/jobs"
BODY = {"name": "train", "model": "bert"}
KEY = {"Idempotency-Key": "k-1"}


def jobs_stored(database: Database) -> int:
    with database.session_scope(writes=False) as session:
        return session.exec(select(func.count()).select_from(Job)).one()


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (JOBS, BODY),
        (f"{JOBS}:batch", {"jobs": [BODY, BODY]}),
        (f"{JOBS}:batch", {"jobs": [BODY, {"name": 1}], "mode": "partial"}),
        ("/api/v1/simulations", {"name": "s", "traces": [{"kind": "generated", "jobs": 2, "hours": 1}], "cluster": "t4=1x4", "runs": [{}]}),
    ],
    ids=["job", "batch", "partial batch", "simulation"],
)
def test_a_repeated_request_gets_the_first_answer_and_has_no_second_effect(
    client: TestClient, queue: Any, database: Database, path: str, body: dict[str, Any]
) -> None:
    first = client.post(path, json=body, headers=KEY)
    stored = jobs_stored(database)
    again = client.post(path, json=body, headers=KEY)
    assert first.is_success
    assert (again.status_code, again.json()) == (first.status_code, first.json())
    assert again.headers.get("Location") == first.headers.get("Location")
    assert "Idempotency-Replayed" not in first.headers
    assert again.headers["Idempotency-Replayed"] == "true"
    assert jobs_stored(database) == stored
    assert len(queue.sent) == (1 if path.endswith("simulations") else 0)


def test_another_request_under_the_same_key_is_refused(client: TestClient, database: Database) -> None:
    client.post(JOBS, json=BODY, headers=KEY)
    answer = client.post(JOBS, json=BODY | {"name": "other"}, headers=KEY)
    assert answer.status_code == 422
    assert answer.json()["type"] == "/problems/idempotency-key-reused"
    assert jobs_stored(database) == 1


def test_the_order_of_fields_and_defaults_make_no_other_request(client: TestClient, database: Database) -> None:
    client.post(JOBS, json=BODY, headers=KEY)
    assert client.post(JOBS, json={"model": "bert", "min_gpus": 1, "name": "train"}, headers=KEY).status_code == 201
    assert jobs_stored(database) == 1


def test_a_refused_request_leaves_its_key_free(client: TestClient) -> None:
    assert client.post(JOBS, json=BODY | {"model": "nonsense"}, headers=KEY).status_code == 422
    assert client.post(JOBS, json=BODY, headers=KEY).status_code == 201


def test_a_key_is_its_users_and_its_routes_own(client: TestClient, client_as: Callable[..., TestClient], database: Database) -> None:
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


def test_requests_that_come_at_once_under_one_key_make_one_job(app: FastAPI, client: TestClient, database: Database) -> None:
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda _: client.post(JOBS, json=BODY, headers=KEY), range(12)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert jobs_stored(database) == 1


@pytest.mark.parametrize("key", ["", "x" * 201, "with space"])
def test_a_key_of_another_form_is_refused(client: TestClient, key: str) -> None:
    assert client.post(JOBS, json=BODY, headers={"Idempotency-Key": key}).status_code == 422
