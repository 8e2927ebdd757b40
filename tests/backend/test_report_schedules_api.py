"""Schedules of reports over the API: when they are due, where they may go, who sees what."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlmodel import select

from backend.accounts.permissions import Role
from backend.app import provide
from backend.database import Database
from backend.models import IdempotencyKey, ReportDelivery, ReportSchedule
from backend.reports.due import next_due
from backend.secret_key import secret_key
from backend.settings import Settings
from maat.api.reports import ScheduleEvery

MakeClient = Callable[..., TestClient]
SCHEDULES = "/api/v1/report-schedules"
SECRET = "a-secret-of-more-than-16"
WEBHOOK = {
    "name": "Mondays",
    "cluster": "demo",
    "channel": "webhook",
    "url": "https://hooks.example.com/services/T0/B0/token",
    "secret": SECRET,
}


@pytest.fixture
def with_folder(app: FastAPI, settings: Settings, tmp_path: Path, queue: Any) -> Path:
    folder = tmp_path / "reports"
    provide(app, settings.model_copy(update={"reports_folder": str(folder)}), queue=queue)
    return folder


def made(client: TestClient, **changes: Any) -> dict[str, Any]:
    body = {key: value for key, value in {**WEBHOOK, **changes}.items() if value is not None}
    answer = client.post(SCHEDULES, json=body)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def refusal(client: TestClient, **changes: Any) -> tuple[str, str]:
    body = {key: value for key, value in {**WEBHOOK, **changes}.items() if value is not None}
    answer = client.post(SCHEDULES, json=body)
    assert answer.status_code == 422, answer.text
    (error, *_) = answer.json()["errors"]
    assert SECRET not in answer.text
    return error["pointer"], error["code"]


@pytest.mark.parametrize(
    ("every", "hour", "after", "due"),
    [
        ("week", 6, "2026-11-09T05:59:59", "2026-11-09T06:00:00"),  # a Monday, before six
        ("week", 6, "2026-11-09T06:00:00", "2026-11-16T06:00:00"),
        ("week", 0, "2026-11-15T23:59:59", "2026-11-16T00:00:00"),
        ("month", 6, "2026-11-01T00:00:00", "2026-11-01T06:00:00"),
        ("month", 6, "2026-12-01T06:00:00", "2027-01-01T06:00:00"),
        ("month", 23, "2028-02-29T12:00:00", "2028-03-01T23:00:00"),
    ],
)
def test_a_report_is_due_each_monday_or_on_the_first(
    every: str, hour: int, after: str, due: str
) -> None:
    moment = datetime.fromisoformat(after).replace(tzinfo=UTC)
    expected = datetime.fromisoformat(due).replace(tzinfo=UTC)
    assert next_due(ScheduleEvery(every), hour, moment) == expected


def test_a_schedule_is_read_back_changed_and_deleted(client: TestClient) -> None:
    found = made(client)
    address = f"{SCHEDULES}/{found['id']}"
    read = client.get(address)
    assert read.json() == found
    assert (found["every"], found["hour"], found["forms"]) == ("week", 6, ["pdf"])
    assert found["has_secret"] is True
    assert client.patch(address, json={"hour": 7}).status_code == 428
    tag = {"If-Match": read.headers["ETag"]}
    changed = client.patch(address, json={"hour": 7, "active": False}, headers=tag)
    assert changed.json()["next_due_at"][11:13] == "07"
    assert client.patch(address, json={"hour": 8}, headers=tag).status_code == 412
    assert client.delete(address).status_code == 204
    assert client.get(address).status_code == 404
    assert client.get(SCHEDULES).json()["items"] == []


def test_a_secret_is_stored_encrypted_and_never_shown(
    client: TestClient, database: Database, settings: Settings
) -> None:
    answer = client.post(SCHEDULES, json=WEBHOOK, headers={"Idempotency-Key": "k"})
    again = client.post(SCHEDULES, json=WEBHOOK, headers={"Idempotency-Key": "k"})
    other = client.post(
        SCHEDULES,
        json=WEBHOOK | {"secret": "another-secret-of-16"},
        headers={"Idempotency-Key": "k"},
    )
    assert again.json() == answer.json()
    assert other.status_code == 422
    with database.session_scope(writes=False) as session:
        row = session.exec(select(ReportSchedule)).one()
        kept = session.exec(select(IdempotencyKey)).one()
    assert row.secret is not None
    assert SECRET.encode() not in row.secret
    assert secret_key(settings).decrypted(row.secret) == SECRET
    assert SECRET not in str(kept.body) + kept.digest + answer.text
    short = client.post(SCHEDULES, json=WEBHOOK | {"secret": "too-short"})
    assert short.status_code == 422
    assert "too-short" not in short.text


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"url": "http://127.0.0.1/x"}, ("/url", "private_address")),
        ({"url": "http://[::1]:9000/x"}, ("/url", "private_address")),
        ({"url": "http://localhost:6379"}, ("/url", "private_address")),
        ({"url": "http://169.254.169.254/latest"}, ("/url", "private_address")),
        ({"url": "http://2130706433/"}, ("/url", "bad_url")),
        ({"url": "http://0x7f.1/"}, ("/url", "bad_url")),
        ({"url": "http://127.1/"}, ("/url", "bad_url")),
        ({"url": "http://017700000001/"}, ("/url", "bad_url")),
        ({"url": "http://127.0.0.1./"}, ("/url", "private_address")),
        ({"url": "http://10.1.2.3/"}, ("/url", "private_address")),
        ({"url": "https://[::ffff:10.0.0.1]/"}, ("/url", "private_address")),
        ({"url": "https://user:pw@hooks.example.com/"}, ("/url", "bad_url")),
        ({"url": "https://hooks.example.com:99999/"}, ("/url", "bad_url")),
        ({"url": "https://hooks.example.com/#part"}, ("/url", "bad_url")),
        ({"url": "file:///etc/passwd"}, ("/url", "value_error")),
        ({"url": None}, ("/url", "missing")),
        ({"secret": None}, ("/secret", "missing")),
        ({"hour": 24}, ("/hour", "less_than_equal")),
        ({"forms": []}, ("/forms", "too_short")),
        ({"every": "day"}, ("/every", "enum")),
        ({"folder": "/etc"}, ("/folder", "extra_forbidden")),
        ({"channel": "folder"}, ("/url", "either_or")),
        ({"channel": "folder", "url": None, "secret": None}, ("/channel", "no_folder")),
        ({"channel": "folder", "url": None}, ("/secret", "either_or")),
    ],
)
def test_what_cannot_be_is_refused_with_its_field(
    client: TestClient, changes: dict[str, Any], expected: tuple[str, str]
) -> None:
    assert refusal(client, **changes) == expected
    assert client.post(SCHEDULES, json=WEBHOOK | {"tenant": "nobody"}).status_code == 404
    assert client.get(SCHEDULES).json()["items"] == []


@pytest.mark.usefixtures("with_folder")
def test_a_folder_is_the_operators_and_takes_no_path(client: TestClient) -> None:
    found = made(client, channel="folder", url=None, secret=None, forms=["pdf", "csv", "pdf"])
    assert (found["url"], found["has_secret"], found["forms"]) == (None, False, ["pdf", "csv"])


def test_schedules_are_seen_and_changed_by_whom_they_concern(
    client: TestClient, client_as: MakeClient
) -> None:
    whole = made(client)
    manager, viewer = client_as(Role.TENANT_MANAGER), client_as(Role.VIEWER)
    own = made(manager, name="ours")
    stranger, auditor = client_as(Role.TENANT_MANAGER, tenant="blue"), client_as(Role.AUDITOR)
    assert own["tenant"] == "default"
    assert whole["tenant"] is None
    assert [one["id"] for one in viewer.get(SCHEDULES).json()["items"]] == [own["id"]]
    address = f"{SCHEDULES}/{own['id']}"
    assert viewer.get(address).json()["url"] == "https://hooks.example.com/…"
    assert manager.get(address).json()["url"] == WEBHOOK["url"]
    for asked in (
        viewer.delete(address),
        viewer.post(SCHEDULES, json=WEBHOOK),
        viewer.post(f"{address}/actions/deliver"),
        auditor.delete(address),
    ):
        assert asked.status_code == 403
    for path in (f"{SCHEDULES}/{whole['id']}", f"{SCHEDULES}/{whole['id']}/deliveries"):
        assert manager.get(path).status_code == 404
    assert stranger.get(address).status_code == 404
    assert stranger.delete(address).status_code == 404
    assert stranger.post(f"{address}/actions/deliver").status_code == 404
    refused = stranger.post(SCHEDULES, json=WEBHOOK | {"tenant": "default"})
    assert refused.status_code == 404
    assert len(auditor.get(SCHEDULES).json()["items"]) == 2


def test_a_delivery_is_asked_for_once_and_a_failed_one_can_be_tried_again(
    client: TestClient, database: Database
) -> None:
    schedule = made(client)
    address = f"{SCHEDULES}/{schedule['id']}"
    key = {"Idempotency-Key": "now"}
    asked = [client.post(f"{address}/actions/deliver", headers=key) for _ in range(2)]
    assert [one.status_code for one in asked] == [202, 202]
    (listed,) = client.get(f"{address}/deliveries").json()["items"]
    assert listed == asked[0].json() == asked[1].json()
    retry = f"{address}/deliveries/{listed['id']}/actions/retry"
    assert client.post(retry).status_code == 409
    with database.session_scope() as session:
        row = session.exec(select(ReportDelivery)).one()
        row.state, row.tries = "failed", 7
        session.add(row)
    again = client.post(retry).json()
    assert (again["state"], again["tries"], again["id"]) == ("queued", 0, listed["id"])
    assert client.post(f"{address}/deliveries/rdl_none/actions/retry").status_code == 404
