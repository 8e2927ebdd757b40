"""What another site, or another way in, cannot do with a session."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from browsers import HTTPS, JOBS, ME, PASSWORD, SESSIONS, Browser, signed_in, submit
from fastapi import FastAPI
from fastapi.testclient import TestClient

from backend.accounts.cookies import csrf_token
from backend.accounts.permissions import Role
from backend.database import Database

MakeClient = Callable[..., TestClient]
PLAIN_COOKIE = "maat_session"


def test_a_change_by_cookie_needs_the_sessions_token(ann: str, browser: Browser) -> None:
    visitor = signed_in(browser())
    good = visitor.headers.pop("X-CSRF-Token")
    for token in (None, "", "wrong", csrf_token("another session"), "é"):
        headers = {} if token is None else {"X-CSRF-Token": token.encode()}
        refused = submit(visitor, headers=headers)
        assert (refused.status_code, refused.json()["type"]) == (403, "/problems/csrf-token")
    assert visitor.get(JOBS).json()["items"] == []
    assert submit(visitor, headers={"X-CSRF-Token": good}).status_code == 201


def test_the_csrf_cookie_alone_proves_nothing(ann: str, browser: Browser) -> None:
    """A neighbour that can set cookies sets its own: it must follow from the session's."""
    visitor = signed_in(browser())
    visitor.headers.pop("X-CSRF-Token")
    visitor.cookies.set("__Host-maat_csrf", "planted")
    assert submit(visitor, headers={"X-CSRF-Token": "planted"}).status_code == 403


def test_callbacks_of_pages_need_the_sessions_token_too(
    app_with_pages: FastAPI, client_as: MakeClient, database: Database
) -> None:
    local = TestClient(app_with_pages, base_url="http://127.0.0.1:8000", client=("127.0.0.1", 1))
    local.post("/api/v1/users", json={"name": "ann", "password": PASSWORD, "role": "submitter"})
    far = TestClient(app_with_pages, base_url=HTTPS, client=("10.0.0.9", 1))
    signed_in(far)
    far.get("/_dash-dependencies")
    good = far.headers.pop("X-CSRF-Token")
    call = {
        "output": "..cluster-select.data...clusters.data...frame-problem.children..",
        "outputs": [],
        "inputs": [],
        "state": [],
        "changedPropIds": [],
    }
    path = "/_dash-update-component"
    refused = far.post(path, json=call)
    assert refused.json()["type"] == "/problems/csrf-token"
    # A browser that lost the one cookie loses the other too: it would see no page any more.
    assert "maat_session" in str(refused.headers.get_list("set-cookie"))
    signed_in(far)
    good = far.headers.pop("X-CSRF-Token")
    known = far.post(path, json=call, headers={"X-CSRF-Token": good})
    assert known.json().get("type") != "/problems/csrf-token"


def test_another_site_cannot_sign_somebody_in_or_out(ann: str, browser: Browser) -> None:
    visitor = browser()
    body = {"name": "ann", "password": PASSWORD}
    for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        assert visitor.post(SESSIONS, json=body, headers=headers).status_code == 403
    signed_in(visitor)
    evil = {"Origin": "https://evil.example"}
    assert visitor.delete(f"{SESSIONS}/current", headers=evil).status_code == 403
    form = visitor.post(SESSIONS, content="name=ann", headers={"Content-Type": "text/plain"})
    assert form.status_code == 415


def test_a_token_counts_before_a_session(ann: str, browser: Browser, client_as: MakeClient) -> None:
    visitor = signed_in(browser())
    token = client_as(Role.VIEWER, name="vic").headers["Authorization"]
    assert visitor.get(ME, headers={"Authorization": token}).json()["user"] == "vic"
    bad = visitor.get(ME, headers={"Authorization": "Bearer maat_unknown"})
    assert bad.status_code == 401


def test_on_the_machine_itself_a_session_counts_before_the_local_administrator(
    ann: str, browser: Browser
) -> None:
    visitor = browser(url="http://127.0.0.1:8000", address="127.0.0.1")
    assert visitor.get(ME).json()["user"] == "local"
    signed_in(visitor)
    assert visitor.get(ME).json()["user"] == "ann"
    assert visitor.get("/api/v1/users").status_code == 403
    visitor.delete(f"{SESSIONS}/current")
    assert visitor.get(ME).json()["user"] == "local"


def test_on_the_machine_itself_a_session_that_is_over_does_not_become_the_administrator(
    client: TestClient, ann: str, browser: Browser
) -> None:
    visitor = signed_in(browser(url="http://127.0.0.1:8000", address="127.0.0.1"))
    assert visitor.get("/api/v1/sign-in-ways").json()["local"]
    assert client.post("/api/v1/users/ann/actions/sign-out").is_success
    for method, path in (("GET", ME), ("POST", JOBS), ("GET", "/api/v1/events")):
        refused = visitor.request(method, path)
        assert (refused.status_code, refused.json()["type"]) == (401, "/problems/unauthenticated")
    assert "The session is over" in visitor.get(ME).json()["detail"]
    evil = {"Origin": "https://evil.example"}
    assert visitor.delete(f"{SESSIONS}/current", headers=evil).status_code == 403
    assert visitor.get(ME).status_code == 401
    assert visitor.delete(f"{SESSIONS}/current").status_code == 204
    assert dict(visitor.cookies) == {}
    assert visitor.get(ME).json()["user"] == "local"


@pytest.mark.parametrize("cookie", ["of-another-data-folder", "x" * 500])
def test_a_cookie_of_another_maat_is_asked_to_sign_in_or_out(
    ann: str, browser: Browser, cookie: str
) -> None:
    visitor = browser(url="http://127.0.0.1:8000", address="127.0.0.1")
    visitor.cookies.set(PLAIN_COOKIE, cookie)
    assert visitor.get(ME).status_code == 401
    assert signed_in(visitor).get(ME).json()["user"] == "ann"


def test_a_far_away_browser_whose_session_is_over_signs_out_and_is_nobody(
    client: TestClient, ann: str, browser: Browser
) -> None:
    visitor = signed_in(browser())
    assert not visitor.get("/api/v1/sign-in-ways").json()["local"]
    assert client.post("/api/v1/users/ann/actions/sign-out").is_success
    assert visitor.delete(f"{SESSIONS}/current").status_code == 204
    assert dict(visitor.cookies) == {}
    assert visitor.get(ME).status_code == 401
    assert visitor.delete(f"{SESSIONS}/current").status_code == 401
