"""Reservations of live clusters: who may make them, what is refused, how long they stand."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlmodel import func, select

from backend.accounts.permissions import Role
from backend.database import Database
from backend.models import ClusterReservation, Job

DEMO = "/api/v1/clusters/demo"
RESERVATIONS = f"{DEMO}/reservations"
Submit = Callable[..., dict[str, Any]]


def body(**fields: Any) -> dict[str, Any]:
    return {"gpu_type": "a100", "gpu_count": 8, "tenant": "default"} | fields


def hours_on(client: TestClient, hours: float) -> str:
    """A time of the cluster's clock."""
    return (
        datetime.fromisoformat(client.get(DEMO).json()["now"]) + timedelta(hours=hours)
    ).isoformat()


def test_a_reservation_is_made_seen_and_removed(client: TestClient) -> None:
    made = client.post(RESERVATIONS, json=body())
    assert made.status_code == 201, made.text
    shown = made.json()
    assert (shown["gpu_type"], shown["gpu_count"], shown["tenant"], shown["job_id"]) == (
        "a100",
        8,
        "default",
        None,
    )
    assert (shown["state"], shown["end_at"]) == ("active", None)
    assert client.get(made.headers["Location"]).json() == shown
    assert client.get(RESERVATIONS).json()["items"] == [shown]
    assert client.delete(made.headers["Location"]).status_code == 204
    assert client.get(made.headers["Location"]).status_code == 404
    assert client.get(RESERVATIONS, params={"over": True}).json()["items"] == []


def test_a_reservation_stands_from_its_start_to_its_end_in_the_time_of_the_cluster(
    client: TestClient, database: Database
) -> None:
    later = client.post(
        RESERVATIONS, json=body(start_at=hours_on(client, 100), end_at=hours_on(client, 200))
    ).json()
    assert later["state"] == "upcoming"
    with database.session_scope() as session:
        row = session.get_one(ClusterReservation, later["id"])
        row.start_seconds, row.end_seconds = 0.0, 0.001
    assert client.get(RESERVATIONS).json()["items"] == []
    assert [
        one["state"] for one in client.get(RESERVATIONS, params={"over": True}).json()["items"]
    ] == ["over"]


def test_a_reservation_for_a_job_ends_with_the_job(
    client: TestClient, database: Database, submit: Submit
) -> None:
    job = submit()
    made = client.post(RESERVATIONS, json=body(tenant=None, job_id=job["id"])).json()
    assert (made["job_id"], made["state"]) == (job["id"], "active")
    with database.session_scope() as session:
        session.get_one(Job, job["id"]).finished_seconds = 1.0
    assert client.get(RESERVATIONS).json()["items"] == []
    assert client.get(f"{RESERVATIONS}/{made['id']}").json()["state"] == "over"
    assert client.post(RESERVATIONS, json=body(tenant=None, job_id=job["id"])).status_code == 422


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"gpu_type": "h100"}, "/gpu_type"),
        ({"gpu_count": 17}, "/gpu_count"),
        ({"gpu_count": 0}, "/gpu_count"),
        ({"tenant": None}, "/tenant"),
        ({"job_id": "job_x"}, "/tenant"),
        ({"tenant": "nobody"}, "/tenant"),
        ({"tenant": None, "job_id": "job_x"}, "/job_id"),
        ({"end_at": "2020-01-01T00:00:00Z"}, "/end_at"),
        ({"start_at": "2090-01-02T00:00:00Z", "end_at": "2090-01-01T00:00:00Z"}, "/end_at"),
        ({"end_at": "tomorrow"}, "/end_at"),
        ({"end_at": "2090-01-01T00:00:00"}, "/end_at"),
        ({"end_at": 4_000_000_000}, "/end_at"),
        ({"note": "x"}, "/note"),
    ],
    ids=str,
)
def test_a_reservation_that_makes_no_sense_is_refused_by_field(
    client: TestClient, database: Database, fields: dict[str, Any], pointer: str
) -> None:
    answer = client.post(RESERVATIONS, json=body(**fields))
    assert answer.status_code == 422, answer.text
    error = next(error for error in answer.json()["errors"] if error["pointer"] == pointer)
    assert error["remedy"]
    with database.session_scope(writes=False) as session:
        assert session.exec(select(func.count()).select_from(ClusterReservation)).one() == 0


def test_more_holders_of_a_type_than_a_round_takes_are_refused_before_one_meets_them(
    client: TestClient, submit: Submit
) -> None:
    for number in range(6):
        job = submit(name=f"j{number}")
        assert (
            client.post(
                RESERVATIONS, json=body(tenant=None, job_id=job["id"], gpu_count=1)
            ).status_code
            == 201
        )
    refused = client.post(RESERVATIONS, json=body(gpu_count=1))
    assert refused.status_code == 422
    assert "at most 6" in refused.json()["errors"][0]["remedy"]
    assert client.post(RESERVATIONS, json=body(gpu_type="t4", gpu_count=1)).status_code == 201


def test_a_reservation_of_a_type_that_has_gone_from_the_cluster_stops_no_other(
    client: TestClient, database: Database
) -> None:
    made = client.post(RESERVATIONS, json=body()).json()
    with database.session_scope() as session:
        session.get_one(ClusterReservation, made["id"]).gpu_type = "h100"
    assert client.post(RESERVATIONS, json=body()).status_code == 201


def test_a_repeated_request_reserves_once(client: TestClient) -> None:
    key = {"Idempotency-Key": "k-1"}
    first, again = (client.post(RESERVATIONS, json=body(), headers=key) for _ in range(2))
    assert again.json() == first.json()
    assert len(client.get(RESERVATIONS).json()["items"]) == 1
    assert client.post(RESERVATIONS, json=body(gpu_count=4), headers=key).status_code == 422


def test_operators_alone_reserve_and_everybody_sees_what_is_reserved_but_for_whom_its_tenant_alone(
    client: TestClient, client_as: Callable[..., TestClient]
) -> None:
    made = client.post(RESERVATIONS, json=body()).json()
    manager, viewer = client_as(Role.TENANT_MANAGER), client_as(Role.VIEWER, tenant="other")
    assert manager.post(RESERVATIONS, json=body()).status_code == 403
    assert manager.delete(f"{RESERVATIONS}/{made['id']}").status_code == 403
    assert [one["tenant"] for one in manager.get(RESERVATIONS).json()["items"]] == ["default"]
    assert [
        (one["gpu_count"], one["tenant"], one["job_id"])
        for one in viewer.get(RESERVATIONS).json()["items"]
    ] == [(8, None, None)]


def test_a_reservation_of_one_cluster_is_none_of_another(client: TestClient) -> None:
    made = client.post(RESERVATIONS, json=body()).json()
    client.post("/api/v1/clusters", json={"name": "other", "shape": "a100=1x8"})
    other = "/api/v1/clusters/other/reservations"
    assert client.get(f"{other}/{made['id']}").status_code == 404
    assert client.delete(f"{other}/{made['id']}").status_code == 404
    assert client.get(other).json()["items"] == []
    assert client.post("/api/v1/clusters/mars/reservations", json=body()).status_code == 404
