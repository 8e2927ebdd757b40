"""Passwords are changed and renewed; sessions end with what an administrator does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from browsers import ANOTHER, ME, PASSWORD, Browser, cookie_header, sign_in, signed_in, submit
from fastapi.testclient import TestClient
from sqlmodel import select

from backend.accounts import passwords
from backend.accounts.models import User
from backend.database import Database
from backend.settings import Settings


def test_a_password_is_changed_with_the_old_one_and_all_other_sessions_end(
    ann: str, browser: Browser
) -> None:
    here, there = signed_in(browser()), signed_in(browser())
    path = "/api/v1/me/password"
    wrong = here.post(path, json={"old_password": "wrong", "new_password": ANOTHER})
    assert (wrong.status_code, wrong.json()["type"]) == (401, "/problems/sign-in-refused")
    before = dict(here.cookies)
    changed = here.post(path, json={"old_password": PASSWORD, "new_password": ANOTHER})
    assert changed.json() == {"ended": 2}
    assert dict(here.cookies) != before
    assert here.get(ME).status_code == 200
    assert there.get(ME).status_code == 401
    assert browser().get(ME, headers={"Cookie": cookie_header(before)}).status_code == 401
    assert sign_in(browser()).status_code == 401
    assert sign_in(browser(), password=ANOTHER).status_code == 201


def test_guessing_the_old_password_is_slowed_down_too(
    ann: str, browser: Browser, settings: Settings
) -> None:
    visitor = signed_in(browser())
    body = {"old_password": "wrong", "new_password": ANOTHER}
    seen = [
        visitor.post("/api/v1/me/password", json=body).status_code
        for _ in range(settings.sign_in_tries + 1)
    ]
    assert seen == [401] * settings.sign_in_tries + [429]


def test_an_administrator_cannot_go_around_the_old_password(
    client: TestClient, browser: Browser
) -> None:
    client.post(
        "/api/v1/users/local/actions/set-password", json={"password": PASSWORD}
    ).raise_for_status()
    visitor = signed_in(browser(), "local")
    going_round = visitor.post(
        "/api/v1/users/local/actions/set-password", json={"password": ANOTHER}
    )
    assert going_round.status_code == 403


@pytest.mark.parametrize(
    "end",
    [
        lambda client: client.patch(
            "/api/v1/users/ann", json={"active": False}, headers={"If-Match": "*"}
        ),
        lambda client: client.post("/api/v1/users/ann/actions/sign-out"),
        lambda client: client.post(
            "/api/v1/users/ann/actions/set-password", json={"password": ANOTHER}
        ),
        lambda client: client.delete("/api/v1/users/ann"),
    ],
    ids=["deactivated", "signed out", "another password", "removed"],
)
def test_a_live_session_ends_with_what_the_administrator_does(
    client: TestClient, ann: str, browser: Browser, end: Callable[[TestClient], Any]
) -> None:
    visitor = signed_in(browser())
    assert end(client).is_success
    assert visitor.get(ME).status_code == 401


def test_a_role_that_is_taken_away_is_gone_at_once(
    client: TestClient, ann: str, browser: Browser
) -> None:
    visitor = signed_in(browser())
    assert submit(visitor).status_code == 201
    client.patch("/api/v1/users/ann", json={"role": "viewer"}, headers={"If-Match": "*"})
    assert submit(visitor).status_code == 403


def test_one_sees_and_ends_ones_own_sessions_only(
    client: TestClient, ann: str, browser: Browser
) -> None:
    client.post("/api/v1/users", json={"name": "bob", "password": PASSWORD})
    here, there, other = (
        signed_in(browser()),
        signed_in(browser()),
        signed_in(browser(), "bob"),
    )
    mine = here.get("/api/v1/me/sessions").json()["items"]
    assert [one["current"] for one in mine] == [False, True]
    assert other.delete(f"/api/v1/me/sessions/{mine[0]['id']}").status_code == 404
    assert here.delete(f"/api/v1/me/sessions/{mine[0]['id']}").status_code == 204
    assert there.get(ME).status_code == 401
    signed_in(there)
    assert here.delete("/api/v1/me/sessions").json() == {"ended": 1}
    assert (here.get(ME).status_code, there.get(ME).status_code) == (200, 401)
    assert other.get(ME).status_code == 200


def test_a_hash_of_other_parameters_is_renewed(
    ann: str, browser: Browser, database: Database
) -> None:
    old = passwords.PasswordHasher(time_cost=2, memory_cost=16, parallelism=1).hash(PASSWORD)
    with database.session_scope() as session:
        session.exec(select(User).where(User.name == "ann")).one().password_hash = old
    assert sign_in(browser()).status_code == 201
    with database.session_scope(writes=False) as session:
        fresh = session.exec(select(User.password_hash).where(User.name == "ann")).one()
    assert fresh != old
    assert sign_in(browser()).status_code == 201
