"""Tokens by the API: shown once, never more than their user and their maker may."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlmodel import select

from backend.accounts.models import ApiToken
from backend.accounts.permissions import Permission, Role
from backend.clocktime import utc_now
from backend.database import Database

MakeClient = Callable[..., TestClient]
TOKENS, ME = "/api/v1/tokens", "/api/v1/me"


def make(client: TestClient, **fields: Any) -> dict[str, Any]:
    answer = client.post(TOKENS, json={"name": "laptop", **fields})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


def with_token(app: FastAPI, secret: str) -> TestClient:
    return TestClient(
        app,
        base_url="http://maat.example",
        client=("10.0.0.9", 50000),
        headers={"Authorization": f"Bearer {secret}"},
        raise_server_exceptions=False,
    )


def test_a_token_is_shown_once_and_lets_its_user_in(app: FastAPI, client_as: MakeClient) -> None:
    ann = client_as(Role.SUBMITTER, name="ann")
    answer = ann.post(TOKENS, json={"name": "laptop"})
    made = answer.json()
    assert answer.headers["Cache-Control"] == "no-store"
    assert with_token(app, made["secret"]).get(ME).json()["user"] == "ann"
    shown = ann.get(answer.headers["Location"]).json()
    assert made == shown | {"secret": made["secret"], "last_used_at": None}
    assert made["secret"] not in ann.get(TOKENS).text
    assert shown["last_used_at"] is not None


@pytest.mark.both_databases
def test_no_table_holds_a_tokens_secret_also_for_repetitions(
    client_as: MakeClient, database: Database
) -> None:
    ann = client_as(Role.SUBMITTER, name="ann")
    body = {"name": "laptop"}
    first, again = (
        ann.post(TOKENS, json=body, headers={"Idempotency-Key": "one"}).json() for _ in range(2)
    )
    assert first["id"] == again["id"]
    assert first["secret"] is not None
    assert again["secret"] is None
    with database.session_scope(writes=False) as session:
        tables = sa.inspect(session.connection()).get_table_names()
        for table in tables:
            rows = session.execute(sa.text(f'SELECT * FROM "{table}"')).all()
            assert first["secret"] not in str([list(map(str, row)) for row in rows]), table


def test_scopes_never_exceed_what_the_user_and_the_maker_may(
    app: FastAPI, client_as: MakeClient
) -> None:
    ann = client_as(Role.SUBMITTER, name="ann")
    for scope, code in (("clusters:write", "scope_above_own"), ("fly", "unknown_scope")):
        refused = ann.post(TOKENS, json={"name": "x", "scopes": ["jobs:read", scope]}).json()
        assert (refused["errors"][0]["pointer"], refused["errors"][0]["code"]) == (
            "/scopes/1",
            code,
        )
    narrow = client_as(
        Role.CLUSTER_ADMIN,
        scopes=[Permission.ACCOUNT_MANAGE, Permission.JOBS_READ],
        name="narrow",
    )
    wider = narrow.post(TOKENS, json={"name": "x", "scopes": ["clusters:write"]})
    assert wider.status_code == 422
    assert make(narrow)["scopes"] == ["account:manage", "jobs:read"]
    none_at_all = with_token(app, make(ann, scopes=[])["secret"])
    assert none_at_all.get(ME).json()["permissions"] == []
    assert none_at_all.get("/api/v1/jobs").status_code == 403


def test_a_token_made_with_a_token_ends_with_it(
    app: FastAPI, client_as: MakeClient, client: TestClient
) -> None:
    ann = client_as(Role.SUBMITTER, name="ann")
    end = (utc_now() + timedelta(hours=1)).isoformat()
    parent = make(ann, expires_at=end)
    held = with_token(app, parent["secret"])
    child = make(held)
    assert child["expires_at"] == parent["expires_at"]
    grandchild = make(with_token(app, child["secret"]))
    assert ann.post(f"{TOKENS}/{parent['id']}/actions/revoke").json()["state"] == "revoked"
    for one in (parent, child, grandchild):
        assert with_token(app, one["secret"]).get(ME).status_code == 401
    assert ann.get(ME).status_code == 200


def test_an_expired_token_lets_nobody_in_and_a_past_end_is_refused(
    app: FastAPI, client_as: MakeClient, database: Database
) -> None:
    ann = client_as(Role.VIEWER, name="ann")
    past = (utc_now() - timedelta(seconds=1)).isoformat()
    refused = ann.post(TOKENS, json={"name": "x", "expires_at": past})
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["value"][:23] == past[:23]
    made = make(ann, expires_at=(utc_now() + timedelta(hours=1)).isoformat())
    with database.session_scope() as session:
        session.get_one(ApiToken, made["id"]).expires_at = utc_now()
    assert with_token(app, made["secret"]).get(ME).status_code == 401
    assert ann.get(f"{TOKENS}/{made['id']}").json()["state"] == "expired"


def test_nobody_makes_a_token_in_another_persons_name(
    client: TestClient, client_as: MakeClient
) -> None:
    client_as(Role.SUBMITTER, name="ann")
    refused = client.post(TOKENS, json={"name": "x", "user": "ann"})
    assert refused.json()["errors"][0]["code"] == "not_a_service_account"
    bob = client_as(Role.SUBMITTER, name="bob")
    assert bob.post(TOKENS, json={"name": "x", "user": "ann"}).status_code == 403


def test_a_manager_makes_and_revokes_tokens_of_the_tenants_service_accounts(
    app: FastAPI, client: TestClient, client_as: MakeClient
) -> None:
    users = "/api/v1/users"
    manager = client_as(Role.TENANT_MANAGER, tenant="vision", name="max")
    manager.post(users, json={"name": "ci", "kind": "service", "role": "submitter"})
    client.post(users, json={"name": "ops", "kind": "service", "role": "cluster_admin"})
    made = make(manager, user="ci")
    assert (made["user"], made["tenant"], made["made_by"]) == ("ci", "vision", "max")
    robot = with_token(app, made["secret"])
    assert robot.get(ME).json()["user"] == "ci"
    ours = client.post(TOKENS, json={"name": "o", "user": "ops"}).json()
    unseen = manager.post(TOKENS, json={"name": "x", "user": "ops"})
    assert unseen.json()["errors"][0]["code"] == "unknown_user"
    assert manager.get(f"{TOKENS}/{ours['id']}").status_code == 404
    assert manager.post(f"{TOKENS}/{ours['id']}/actions/revoke").status_code == 404
    assert {one["user"] for one in manager.get(TOKENS).json()["items"]} == {"ci", "max"}
    assert manager.get(TOKENS, params={"user": "ops"}).status_code == 404
    assert manager.post(f"{TOKENS}/{made['id']}/actions/revoke").status_code == 200
    assert robot.get(ME).status_code == 401


def _robot_of(app: FastAPI, manager: TestClient) -> TestClient:
    body = {"name": "ci", "kind": "service", "role": "submitter"}
    manager.post("/api/v1/users", json=body)
    return with_token(app, make(manager, user="ci")["secret"])


def change(client: TestClient, user: str, **fields: Any) -> None:
    answer = client.patch(f"/api/v1/users/{user}", json=fields, headers={"If-Match": "*"})
    assert answer.status_code == 200, answer.text


@pytest.mark.both_databases
def test_a_token_does_not_grow_with_its_user_beyond_its_maker(
    app: FastAPI, client: TestClient, client_as: MakeClient
) -> None:
    manager = client_as(Role.TENANT_MANAGER, tenant="vision", name="max")
    robot = _robot_of(app, manager)
    child = with_token(app, make(robot)["secret"])
    change(client, "ci", role="cluster_admin")
    assert client.get("/api/v1/users/ci").json()["role"] == "cluster_admin"
    for held in (robot, child):
        me = held.get(ME).json()
        assert me["role"] == "tenant_manager"
        assert "tenants:manage" not in me["permissions"]
        assert held.post("/api/v1/tenants", json={"name": "new"}).status_code == 403
        assert held.get("/api/v1/tenants/default").status_code in (403, 404)
        assert held.get("/api/v1/jobs").status_code == 200
    ours = with_token(app, make(client, user="ci")["secret"])
    assert ours.post("/api/v1/tenants", json={"name": "new"}).status_code == 201


@pytest.mark.both_databases
def test_a_token_shrinks_and_ends_with_its_maker(
    app: FastAPI, client: TestClient, client_as: MakeClient
) -> None:
    manager = client_as(Role.TENANT_MANAGER, tenant="vision", name="max")
    robot = _robot_of(app, manager)
    child = with_token(app, make(robot)["secret"])
    job = {"name": "train", "model": "bert"}
    assert child.post("/api/v1/jobs", json=job).status_code == 201
    change(client, "max", role="viewer")
    for held in (robot, child):
        assert held.get("/api/v1/jobs").status_code == 200
        assert held.post("/api/v1/jobs", json=job).status_code == 403
    change(client, "max", role="tenant_manager", active=False)
    for held in (robot, child):
        assert held.get(ME).status_code == 401
    assert states_of(client, "ci") == {"suspended"}
    change(client, "max", active=True)
    assert states_of(client, "ci") == {"active"}
    change(client, "ci", active=False)
    assert states_of(client, "ci") == {"suspended"}
    change(client, "ci", active=True)
    assert robot.get(ME).status_code == 200
    assert client.delete("/api/v1/users/max").status_code == 204
    for held in (robot, child):
        assert held.get(ME).status_code == 401


def states_of(client: TestClient, user: str) -> set[str]:
    return {one["state"] for one in client.get(TOKENS, params={"user": user}).json()["items"]}


def test_a_manager_gets_no_token_of_an_administrators_service_account_of_the_same_tenant(
    client: TestClient, client_as: MakeClient
) -> None:
    manager = client_as(Role.TENANT_MANAGER, name="max")
    client.post("/api/v1/users", json={"name": "ops", "kind": "service", "role": "cluster_admin"})
    assert manager.post(TOKENS, json={"name": "x", "user": "ops"}).status_code == 403
    ours = client.post(TOKENS, json={"name": "o", "user": "ops"}).json()
    assert manager.post(f"{TOKENS}/{ours['id']}/actions/revoke").status_code == 403


def test_others_see_only_their_own_tokens(client: TestClient, client_as: MakeClient) -> None:
    ann, bob = client_as(Role.SUBMITTER, name="ann"), client_as(Role.VIEWER, name="bob")
    token = make(ann)["id"]
    assert {one["user"] for one in bob.get(TOKENS).json()["items"]} == {"bob"}
    for answer in (
        bob.get(f"{TOKENS}/{token}"),
        bob.post(f"{TOKENS}/{token}/actions/revoke"),
        bob.get(TOKENS, params={"user": "ann"}),
        bob.get(TOKENS, params={"user": "nobody"}),
    ):
        assert answer.status_code == 404
    assert {one["user"] for one in client.get(TOKENS).json()["items"]} == {"ann", "bob"}


@pytest.mark.parametrize("name", ["token", "access_token", "authorization"])
def test_a_token_in_the_address_is_not_read(app: FastAPI, client_as: MakeClient, name: str) -> None:
    secret = client_as(Role.VIEWER).headers["Authorization"].removeprefix("Bearer ")
    stranger = TestClient(app, base_url="http://maat.example", client=("10.0.0.9", 1))
    assert stranger.get("/api/v1/jobs", params={name: secret}).status_code == 401


def test_what_a_scope_was_is_stored_as_data(client_as: MakeClient, database: Database) -> None:
    make(client_as(Role.SUBMITTER, name="ann"), scopes=["jobs:read", "jobs:read"])
    with database.session_scope(writes=False) as session:
        found = session.exec(select(ApiToken).where(ApiToken.name == "laptop")).one()
    assert json.dumps(found.scopes) == '["jobs:read"]'
