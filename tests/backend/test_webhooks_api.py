"""Webhooks over the API: who may make them, where they may go, what is shown of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlmodel import select

from backend.accounts.permissions import Role
from backend.app import provide
from backend.database import Database
from backend.models import IdempotencyKey, Webhook
from backend.secret_key import secret_key
from backend.settings import Settings
from backend.webhooks.service import MOST_WEBHOOKS

MakeClient = Callable[..., TestClient]
WEBHOOKS = "/api/v1/webhooks"
BODY = {
    "name": "pager",
    "url": "https://93.184.216.34/services/T0/token",
    "events": ["job.failed", "cluster.fault", "job.failed"],
}


def made(client: TestClient, **changes: Any) -> dict[str, Any]:
    answer = client.post(WEBHOOKS, json={**BODY, **changes})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def refused(client: TestClient, **changes: Any) -> tuple[int, list[str]]:
    answer = client.post(WEBHOOKS, json={**BODY, **changes})
    return answer.status_code, [one["pointer"] for one in answer.json()["errors"]]


def test_a_webhook_is_made_read_changed_paused_and_deleted(client: TestClient) -> None:
    found = made(client)
    secret = found.pop("secret")
    assert secret.startswith("whsec_")
    assert len(secret) > 40
    address = f"{WEBHOOKS}/{found['id']}"
    read = client.get(address)
    assert read.json() == found
    assert found["events"] == ["job.failed", "cluster.fault"]
    assert (found["tenant"], found["cluster"], found["active"]) == ("default", None, True)
    assert client.patch(address, json={"active": False}).status_code == 428
    tag = {"If-Match": read.headers["ETag"]}
    changes = {"active": False, "cluster": "demo", "events": ["report.ready"]}
    changed = client.patch(address, json=changes, headers=tag).json()
    assert (changed["active"], changed["cluster"], changed["events"]) == (
        False,
        "demo",
        ["report.ready"],
    )
    assert client.patch(address, json={"active": True}, headers=tag).status_code == 412
    assert client.post(f"{address}/actions/test").status_code == 409
    tag = {"If-Match": '"2"'}
    assert client.patch(address, json={"cluster": None}, headers=tag).json()["cluster"] is None
    assert client.delete(address).status_code == 204
    assert client.get(address).status_code == 404
    assert client.get(WEBHOOKS).json()["items"] == []


def test_the_secret_is_shown_once_stored_encrypted_and_replaced(
    client: TestClient, database: Database, settings: Settings
) -> None:
    key = {"Idempotency-Key": "once"}
    first = client.post(WEBHOOKS, json=BODY, headers=key)
    again = client.post(WEBHOOKS, json=BODY, headers=key)
    assert first.headers["Cache-Control"] == "no-store"
    assert (again.json()["id"], again.json()["secret"]) == (first.json()["id"], None)
    secret = first.json()["secret"]
    rotated = client.post(f"{WEBHOOKS}/{first.json()['id']}/actions/rotate-secret", headers=key)
    assert rotated.json()["secret"] not in (None, secret)
    with database.session_scope(writes=False) as session:
        row = session.exec(select(Webhook)).one()
        kept = str([one.body for one in session.exec(select(IdempotencyKey))])
    assert secret.encode() not in (row.old_secret or b"") + row.secret
    assert secret_key(settings).decrypted(row.old_secret or b"") == secret
    assert secret not in kept
    assert rotated.json()["secret"] not in kept
    for path in (WEBHOOKS, f"{WEBHOOKS}/{row.id}", "/api/v1/audit"):
        assert secret not in client.get(path).text


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("ftp://93.184.216.34/x", "not an address of the web"),
        ("http://", "not an address of the web"),
        ("http://127.0.0.1:9/x", "private network"),
        ("http://10.1.2.3/x", "private network"),
        ("http://[::1]/x", "private network"),
        ("https://user:word@93.184.216.34/", "user or password"),
        ("http://2130706433/x", "number"),
        ("https://no-such-host.invalid/x", "host is not known"),
        ("http://hooks..example.com/x", "host is no name"),
        ("http://93.184.216.34/\u0001", "control character"),
        ("http://93.184.216.34/\u007f", "control character"),
        ("http://.example.com/x", "host is no name"),
        (f"http://{'a' * 64}.example.com/x", "host is no name"),
    ],
)
def test_an_address_that_no_message_may_go_to_is_refused_when_it_is_given(
    client: TestClient, url: str, words: str
) -> None:
    answer = client.post(WEBHOOKS, json={**BODY, "url": url})
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert (error["pointer"], words in error["message"]) == ("/url", True)
    address = f"{WEBHOOKS}/{made(client)['id']}"
    changed = client.patch(address, json={"url": url}, headers={"If-Match": "*"})
    assert changed.status_code == 422


def test_what_is_wrong_is_named(client: TestClient) -> None:
    assert refused(client, events=[]) == (422, ["/events"])
    assert refused(client, events=["job.ended"]) == (422, ["/events/0"])
    assert refused(client, name="") == (422, ["/name"])
    assert refused(client, tenant="nobody") == (422, ["/tenant"])
    assert refused(client, tenant="default", deployment=True) == (422, ["/tenant"])
    assert refused(client, cluster="nowhere")[0] == 404
    for _ in range(MOST_WEBHOOKS):
        made(client)
    assert refused(client)[0] == 409
    made(client, deployment=True)


def test_a_manager_has_webhooks_of_the_own_tenant_only(
    app: FastAPI, client: TestClient, client_as: MakeClient
) -> None:
    manager = client_as(Role.TENANT_MANAGER, tenant="blue")
    other = client_as(Role.TENANT_MANAGER, tenant="red")
    own = made(manager)
    assert own["tenant"] == "blue"
    assert refused(manager, deployment=True)[0] == 403
    assert refused(manager, tenant="red") == (422, ["/tenant"])
    whole = made(client, deployment=True)
    assert whole["tenant"] is None
    assert [one["id"] for one in manager.get(WEBHOOKS).json()["items"]] == [own["id"]]
    assert other.get(WEBHOOKS).json()["items"] == []
    sent = manager.post(f"{WEBHOOKS}/{own['id']}/actions/test").json()
    message = f"{WEBHOOKS}/{own['id']}/deliveries/{sent['id']}"
    for stranger, address in ((other, f"{WEBHOOKS}/{own['id']}"), (other, message)):
        assert stranger.get(address).status_code == 404
    for address in (f"{WEBHOOKS}/{own['id']}", f"{WEBHOOKS}/{whole['id']}"):
        for answer in (
            other.patch(address, json={"active": False}, headers={"If-Match": "*"}),
            other.delete(address),
            other.post(f"{address}/actions/test"),
            other.post(f"{address}/actions/rotate-secret"),
            other.get(f"{address}/deliveries"),
            other.post(f"{address}/deliveries/{sent['id']}/actions/redeliver"),
        ):
            assert answer.status_code == 404
    auditor = client_as(Role.AUDITOR)
    assert {one["id"] for one in auditor.get(WEBHOOKS).json()["items"]} == {own["id"], whole["id"]}
    assert auditor.get(f"{WEBHOOKS}/{own['id']}").json()["url"] == "https://93.184.216.34/…"
    # A message of one webhook is none of another.
    crossed = client.get(f"{WEBHOOKS}/{whole['id']}/deliveries/{sent['id']}")
    assert crossed.status_code == 404


def test_messages_are_listed_read_and_sent_again(
    app: FastAPI, client: TestClient, settings: Settings, queue: Any
) -> None:
    allowed = settings.model_copy(update={"webhooks_to_private_addresses": True})
    provide(app, allowed, queue=queue)
    found = made(client, url="http://127.0.0.1:9/x")
    address = f"{WEBHOOKS}/{found['id']}"
    asked = client.post(f"{address}/actions/test")
    assert asked.status_code == 202
    sent = asked.json()
    assert (sent["number"], sent["type"], sent["state"]) == (1, "webhook.test", "queued")
    client.post(f"{address}/actions/test")
    listed = client.get(f"{address}/deliveries").json()["items"]
    assert [one["number"] for one in listed] == [2, 1]
    assert client.get(f"{address}/deliveries", params={"state": "failed"}).json()["items"] == []
    assert client.get(address).json()["waiting"] == 2
    body = client.get(f"{address}/deliveries/{sent['id']}").json()["body"]
    assert (body["id"], body["number"], body["webhook"]) == (sent["id"], 1, "pager")
    again = client.post(f"{address}/deliveries/{sent['id']}/actions/redeliver")
    assert (again.status_code, again.json()["tries"]) == (202, 0)
