"""Previews of rounds: what may be asked, by whom, and what is stored for the worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient
from remembering_queue import RememberingQueue

from backend.accounts.permissions import Role
from backend.database import Database
from backend.models import Operation, RoundPreview

DEMO = "/api/v1/clusters/demo"
PREVIEWS = f"{DEMO}/previews"


def test_a_preview_is_stored_with_what_it_tries_and_sent_to_a_worker(
    client: TestClient, database: Database, queue: RememberingQueue
) -> None:
    version = client.get(DEMO).json()["version"]
    asked = client.post(PREVIEWS, json={"policy": "fifo", "drained_nodes": ["t4-1", "t4-1"]})
    assert asked.status_code == 202, asked.text
    shown = asked.json()
    assert (shown["state"], shown["result"], shown["cluster_version"]) == ("queued", None, version)
    assert queue.sent[-1] == ("maat.preview_round", shown["id"])
    with database.session_scope(writes=False) as session:
        wanted = session.get_one(RoundPreview, shown["id"]).wanted
        operation = session.get_one(Operation, shown["operation_id"])
    assert wanted == {
        "policy": "fifo",
        "policy_parameters": {},
        "placer": "packed-sticky",
        "placer_parameters": {},
        "round_seconds": 60.0,
        "drained_nodes": ["t4-1"],
        "jobs_per_gpu": 1,
        "interference": None,
        "least_stay_seconds": None,
        "most_moves_per_hour": None,
    }
    assert (operation.kind, operation.result_url) == ("preview", asked.headers["Location"])
    assert client.get(asked.headers["Location"]).json() == shown
    cluster = client.get(DEMO).json()
    assert (cluster["policy"], cluster["version"]) == ("sia", version)


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"policy": "magic"}, "/policy"),
        ({"policy_parameters": {"luck": 1}}, "/policy_parameters/luck"),
        ({"policy": "fifo", "policy_parameters": {"p": -1.0}}, "/policy_parameters/p"),
        ({"placer": "anywhere"}, "/placer"),
        ({"round_seconds": 0}, "/round_seconds"),
        ({"drained_nodes": ["t4-0", "t9-9"]}, "/drained_nodes/1"),
        ({"interference": 0.5}, "/interference"),
        ({"jobs_per_gpu": 2, "interference": "nobody's"}, "/interference"),
        ({"speed": 2.0}, "/speed"),
    ],
    ids=str,
)
def test_what_could_not_be_applied_is_not_tried(
    refusing: TestClient, body: dict[str, Any], pointer: str
) -> None:
    refused = refusing.post(PREVIEWS, json=body)
    assert refused.status_code == 422, refused.text
    (error,) = refused.json()["errors"]
    assert (error["pointer"], bool(error["remedy"])) == (pointer, True)


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ({"jobs_per_gpu": 2}, "synthetic"),
        ({"jobs_per_gpu": 2, "interference": 1.5}, "1.5"),
        ({"jobs_per_gpu": 2, "interference": "synthetic"}, "synthetic"),
    ],
    ids=str,
)
def test_a_preview_tries_the_interference_that_the_change_would_store(
    client: TestClient, database: Database, given: dict[str, Any], stored: str
) -> None:
    shown = client.post(PREVIEWS, json=given).json()
    with database.session_scope(writes=False) as session:
        wanted = session.get_one(RoundPreview, shown["id"]).wanted
    assert (wanted["jobs_per_gpu"], wanted["interference"]) == (2, stored)
    changed = client.patch(DEMO, json=shown["request"], headers={"If-Match": "*"}).json()
    assert str(changed["interference"]) == stored


def test_a_preview_is_of_its_cluster_and_for_those_who_may_change_it(
    client: TestClient, client_as: Callable[..., TestClient]
) -> None:
    client.post("/api/v1/clusters", json={"name": "other", "shape": "t4=1x4"})
    address = client.post(PREVIEWS, json={}).headers["Location"]
    elsewhere = address.replace(address.split("/")[4], "other")
    assert client.get(elsewhere).status_code == 404
    for role in (Role.VIEWER, Role.TENANT_MANAGER, Role.AUDITOR):
        assert client_as(role).get(address).status_code == 403


def test_a_queued_preview_is_cancelled_at_once(client: TestClient) -> None:
    shown = client.post(PREVIEWS, json={"policy": "fifo"}).json()
    client.post(f"/api/v1/operations/{shown['operation_id']}/actions/cancel")
    assert client.get(f"{PREVIEWS}/{shown['id']}").json()["state"] == "cancelled"
