"""What the operator of the machine decides about signing in."""

from __future__ import annotations

import pytest
from browsers import ME, PASSWORD, SESSIONS, Browser, sign_in, signed_in
from fastapi import FastAPI
from fastapi.testclient import TestClient

from backend.app import create_app
from backend.bootstrap_data import first_password, first_token, nobody_came
from backend.database import Database
from backend.new_password import new_password
from backend.problems import NotFound
from backend.settings import Settings


def test_an_operator_can_always_give_a_person_another_password(
    client: TestClient, ann: str, browser: Browser, database: Database
) -> None:
    visitor = signed_in(browser())
    chosen = new_password(database, user_name="ann")
    assert visitor.get(ME).status_code == 401
    assert sign_in(browser()).status_code == 401
    assert sign_in(browser(), password=chosen).status_code == 201
    client.post("/api/v1/users", json={"name": "ci", "kind": "service"})
    for nobody in ("ci", "no such"):
        with pytest.raises(NotFound):
            new_password(database, user_name=nobody)


def test_an_operator_can_always_make_a_person_the_administrator(
    client: TestClient, browser: Browser, database: Database
) -> None:
    body = {"name": "ada", "password": PASSWORD, "role": "cluster_admin"}
    client.post("/api/v1/users", json=body)
    changed = {"role": "viewer", "active": False}
    client.patch("/api/v1/users/local", json=changed, headers={"If-Match": "*"})
    chosen = new_password(database, user_name="local", administrator=True)
    visitor = signed_in(browser(), "local", chosen)
    assert visitor.get(ME).json()["role"] == "cluster_admin"
    assert visitor.post("/api/v1/tenants", json={"name": "new"}).status_code == 201


def test_the_scheme_is_a_proxys_word_only_where_the_operator_named_the_proxy(
    ann: str, settings: Settings, database: Database
) -> None:
    claimed = {"X-Forwarded-Proto": "https", "Host": "evil.example"}
    for proxies, status in (("", 403), ("10.9.0.0/16", 403), ("10.0.0.0/16, 127.0.0.1", 201)):
        named = settings.model_copy(update={"trusted_proxies": proxies})
        scheme = "http" if status == 201 else "https"  # as a server that believes anybody tells it
        with TestClient(create_app(named), client=("10.0.0.9", 5), headers=claimed) as visitor:
            visitor.base_url = f"{scheme}://evil.example"
            assert sign_in(visitor).status_code == status, proxies


def test_the_first_start_gives_the_administrator_a_password_once(
    app: FastAPI, database: Database, browser: Browser
) -> None:
    chosen = first_password(database)
    assert chosen is not None
    assert signed_in(browser(), "local", chosen).get(ME).json()["role"] == "cluster_admin"
    assert first_password(database) is None


def test_until_somebody_came_the_start_says_how_to_get_a_lost_password(
    database: Database, browser: Browser
) -> None:
    """The first start may end after the password was stored and before it was shown."""
    chosen = first_password(database)
    assert chosen is not None
    assert nobody_came(database)
    visitor = signed_in(browser(), "local", chosen)
    assert not nobody_came(database)
    visitor.delete(f"{SESSIONS}/current")
    assert not nobody_came(database)


def test_who_used_a_token_came(app: FastAPI, database: Database) -> None:
    token = first_token(database)
    assert nobody_came(database)
    asked = {"Authorization": f"Bearer {token}"}
    with TestClient(app, client=("10.0.0.9", 5), headers=asked) as visitor:
        assert visitor.get(ME).status_code == 200
    assert not nobody_came(database)
