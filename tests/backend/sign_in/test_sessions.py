"""Sessions of browsers and their cookies: who is let in, and until when."""

from __future__ import annotations

from datetime import timedelta

import pytest
import sqlalchemy as sa
from browsers import (
    ANOTHER,
    HTTPS,
    ME,
    PASSWORD,
    SESSIONS,
    Browser,
    cookie_header,
    sign_in,
    signed_in,
)
from fastapi import FastAPI
from sqlmodel import select

from backend.accounts.models import BrowserSession, User
from backend.clocktime import utc_now
from backend.database import Database
from backend.settings import Settings

SECURE_COOKIE = "__Host-maat_session"
PLAIN_COOKIE = "maat_session"


def test_a_session_lets_its_user_in_until_they_sign_out(ann: str, browser: Browser) -> None:
    visitor = signed_in(browser())
    me = visitor.get(ME).json()
    assert (me["user"], me["role"], me["by"]) == ("ann", "submitter", "session")
    held = dict(visitor.cookies)
    out = visitor.delete(f"{SESSIONS}/current")
    assert out.status_code == 204
    assert dict(visitor.cookies) == {}
    assert browser().get(ME, headers={"Cookie": cookie_header(held)}).status_code == 401


@pytest.mark.parametrize("written", ["ANN", "\uff41nn"])  # the latter with a full-width a
def test_capitals_and_forms_of_letters_make_no_difference(
    ann: str, browser: Browser, written: str
) -> None:
    assert signed_in(browser(), written).get(ME).json()["user"] == "ann"


def test_cookies_are_kept_from_scripts_other_sites_and_plain_http(
    ann: str, browser: Browser
) -> None:
    given = sign_in(browser()).headers.get_list("set-cookie")
    session, csrf = sorted(given, key=lambda one: "csrf" in one)
    assert session.startswith("__Host-maat_session=")
    assert csrf.startswith("__Host-maat_csrf=")
    for cookie in given:
        parts = {part.strip().lower() for part in cookie.split(";")[1:]}
        assert {"secure", "samesite=lax", "path=/"} <= parts
        assert not any(part.startswith("domain") for part in parts)
    assert "httponly" in session.lower()
    assert "httponly" not in csrf.lower()


@pytest.mark.parametrize("url", ["http://127.0.0.1:8000", "http://localhost:8000"])
def test_on_the_machine_itself_plain_http_will_do(ann: str, browser: Browser, url: str) -> None:
    (session, *_) = sign_in(browser(url=url)).headers.get_list("set-cookie")
    assert session.startswith("maat_session=")
    assert "secure" not in session.lower()


def test_elsewhere_nobody_signs_in_over_plain_http(
    app: FastAPI, ann: str, browser: Browser, settings: Settings
) -> None:
    plain = browser(url="http://maat.example")
    refused = sign_in(plain)
    assert (refused.status_code, refused.json()["type"]) == (403, "/problems/plain-http")
    assert plain.get("/api/v1/sign-in-ways").json()["problem"] is not None
    # A proxy that ends TLS asks by http: the public address says so, and cookies stay secure.
    app.state.settings = settings.model_copy(update={"public_url": HTTPS})
    assert "secure" in sign_in(plain).headers["set-cookie"].lower()


def test_a_session_chosen_by_another_is_not_taken_over(ann: str, browser: Browser) -> None:
    visitor = browser()
    visitor.cookies.set(SECURE_COOKIE, "chosen-by-the-attacker")
    answer = sign_in(visitor)
    assert "chosen-by-the-attacker" not in str(answer.headers.get_list("set-cookie"))
    attacker = browser().get(ME, headers={"Cookie": f"{SECURE_COOKIE}=chosen-by-the-attacker"})
    assert attacker.status_code == 401


def test_signing_in_again_ends_the_session_before(ann: str, browser: Browser) -> None:
    visitor = signed_in(browser())
    before = dict(visitor.cookies)
    signed_in(visitor)
    assert dict(visitor.cookies) != before
    assert browser().get(ME, headers={"Cookie": cookie_header(before)}).status_code == 401
    assert len(visitor.get("/api/v1/me/sessions").json()["items"]) == 1


def test_a_cookie_of_the_other_name_is_not_read(ann: str, browser: Browser) -> None:
    """A neighbour domain could set a cookie without the prefix."""
    visitor = signed_in(browser())
    secret = visitor.cookies[SECURE_COOKIE]
    other = browser().get(ME, headers={"Cookie": f"{PLAIN_COOKIE}={secret}"})
    assert other.status_code == 401


@pytest.mark.parametrize(
    ("column", "ago"),
    [("expires_at", timedelta(0)), ("last_seen_at", timedelta(hours=12, minutes=1))],
    ids=["too old", "idle for too long"],
)
def test_a_session_ends_by_itself(
    ann: str, browser: Browser, database: Database, column: str, ago: timedelta
) -> None:
    visitor = signed_in(browser())
    with database.session_scope() as session:
        setattr(session.exec(select(BrowserSession)).one(), column, utc_now() - ago)
    assert visitor.get(ME).status_code == 401


def test_use_keeps_a_session_from_being_idle(
    ann: str, browser: Browser, database: Database
) -> None:
    visitor = signed_in(browser())
    with database.session_scope() as session:
        row = session.exec(select(BrowserSession)).one()
        row.last_seen_at = utc_now() - timedelta(hours=11)
    assert visitor.get(ME).status_code == 200
    with database.session_scope(writes=False) as session:
        seen = session.exec(select(BrowserSession.last_seen_at)).one()
    assert utc_now() - seen < timedelta(minutes=1)


@pytest.mark.both_databases
def test_no_table_holds_a_password_or_a_session(
    ann: str, browser: Browser, database: Database
) -> None:
    visitor = signed_in(browser())
    sign_in(browser(), password="the-wrong-one-typed")
    secrets = [PASSWORD, "the-wrong-one-typed", *dict(visitor.cookies).values()]
    with database.session_scope(writes=False) as session:
        for table in sa.inspect(session.connection()).get_table_names():
            rows = str(session.execute(sa.text(f'SELECT * FROM "{table}"')).all())
            assert [secret for secret in secrets if secret in rows] == [], table
        stored = session.exec(select(User.password_hash).where(User.name == "ann")).one()
    assert str(stored).startswith("$argon2id$")


def test_no_log_holds_a_password_or_a_session(
    ann: str, browser: Browser, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("DEBUG"):
        visitor = signed_in(browser())
        visitor.post(
            "/api/v1/me/password", json={"old_password": PASSWORD, "new_password": ANOTHER}
        )
        sign_in(browser(), password="the-wrong-one-typed")
        browser().post(SESSIONS, json={"name": "ann", "password": ["the-wrong-one-typed"]})
        visitor.get(ME)
    written = caplog.text
    for secret in (PASSWORD, ANOTHER, "the-wrong-one-typed", *dict(visitor.cookies).values()):
        assert secret not in written
