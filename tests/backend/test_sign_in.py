"""Signing in from a browser: sessions, cookies, CSRF tokens, throttling, passwords."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlmodel import select

from backend.accounts import passwords
from backend.accounts.cookies import csrf_token
from backend.accounts.models import BrowserSession, SignInTries, User
from backend.accounts.permissions import Role
from backend.app import create_app
from backend.bootstrap_data import first_password
from backend.clocktime import utc_now
from backend.database import Database
from backend.new_password import new_password
from backend.problems import NotFound
from backend.settings import Settings

MakeClient = Callable[..., TestClient]
Browser = Callable[..., TestClient]
SESSIONS, ME, JOBS = "/api/v1/sessions", "/api/v1/me", "/api/v1/jobs"
PASSWORD, ANOTHER = "a sentence to remember", "another sentence for it"
HTTPS = "https://maat.example"
SECURE_COOKIE, PLAIN_COOKIE = "__Host-maat_session", "maat_session"
pytestmark = pytest.mark.usefixtures("quick_hashes")


@pytest.fixture
def browser(app: FastAPI, settings: Settings) -> Browser:
    """A browser that is not on the machine, so that nobody is the local administrator."""

    def make(*, url: str = HTTPS, address: str = "10.0.0.9") -> TestClient:
        return TestClient(app, base_url=url, client=(address, 50000), raise_server_exceptions=False)

    return make


@pytest.fixture
def ann(client: TestClient) -> str:
    body = {"name": "ann", "password": PASSWORD, "role": "submitter"}
    assert client.post("/api/v1/users", json=body).status_code == 201
    return "ann"


def sign_in(browser: TestClient, name: str = "ann", password: str = PASSWORD) -> Any:
    return browser.post(SESSIONS, json={"name": name, "password": password})


def signed_in(browser: TestClient, name: str = "ann", password: str = PASSWORD) -> TestClient:
    """The browser, as Maat's own pages use it: it repeats the CSRF token."""
    answer = sign_in(browser, name, password)
    assert answer.status_code == 201, answer.text
    browser.headers["X-CSRF-Token"] = answer.json()["csrf_token"]
    return browser


def submit(browser: TestClient, **more: Any) -> Any:
    return browser.post(JOBS, json={"name": "train", "model": "bert"}, **more)


# ---- sessions and their cookies


def test_a_session_lets_its_user_in_until_they_sign_out(ann: str, browser: Browser) -> None:
    visitor = signed_in(browser())
    me = visitor.get(ME).json()
    assert (me["user"], me["role"], me["by"]) == ("ann", "submitter", "session")
    held = dict(visitor.cookies)
    out = visitor.delete(f"{SESSIONS}/current")
    assert out.status_code == 204
    assert dict(visitor.cookies) == {}
    assert browser().get(ME, headers={"Cookie": _header(held)}).status_code == 401


def _header(cookies: dict[str, str]) -> str:
    return "; ".join(f"{name}={value}" for name, value in cookies.items())


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
    assert browser().get(ME, headers={"Cookie": _header(before)}).status_code == 401
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


# ---- other sites


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


# ---- who is refused, and how


def test_every_refusal_is_the_same(client: TestClient, ann: str, browser: Browser) -> None:
    """An answer must not say which names exist, or why somebody may not sign in."""
    make = "/api/v1/users"
    client.post(make, json={"name": "idle", "password": PASSWORD})
    client.patch(f"{make}/idle", json={"active": False}, headers={"If-Match": "*"})
    client.post("/api/v1/tenants", json={"name": "closed"})
    client.post(make, json={"name": "cid", "password": PASSWORD, "tenant": "closed"})
    client.patch("/api/v1/tenants/closed", json={"closed": True}, headers={"If-Match": "*"})
    client.post(make, json={"name": "ci", "kind": "service"})
    client.post(make, json={"name": "blank"})
    answers = [
        sign_in(browser(), name, password)
        for name, password in (
            ("ann", "wrong"),
            ("nobody", "wrong"),
            ("idle", PASSWORD),
            ("cid", PASSWORD),
            ("ci", "wrong"),
            ("blank", "x"),
            ("ANN", "wrong"),
        )
    ]
    kept = [
        {name: value for name, value in answer.json().items() if name != "request_id"}
        for answer in answers
    ]
    assert all(answer.status_code == 401 for answer in answers)
    assert all(one == kept[0] for one in kept)
    assert all("set-cookie" not in answer.headers for answer in answers)


def test_an_unknown_name_takes_the_same_work_as_a_wrong_password(
    ann: str, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted, not timed: a hash of the same parameters is checked in every case."""
    seen: list[str] = []
    verify = passwords.PasswordHasher.verify

    def counted(self: Any, stored: str, password: str) -> Any:
        seen.append(stored.rpartition("$")[0].rpartition("$")[0])
        return verify(self, stored, password)

    monkeypatch.setattr(passwords.PasswordHasher, "verify", counted)
    for name in ("ann", "nobody"):
        sign_in(browser(), name, "wrong")
    assert len(seen) == 2
    assert seen[0] == seen[1]


def test_who_guesses_is_slowed_down_and_the_owner_is_not_locked_out(
    ann: str, browser: Browser, settings: Settings, database: Database
) -> None:
    guesser = browser(address="10.6.6.6")
    answers = [sign_in(guesser, "ann", f"guess {n}") for n in range(settings.sign_in_tries + 1)]
    assert [answer.status_code for answer in answers[:-1]] == [401] * settings.sign_in_tries
    refused = answers[-1]
    assert (refused.status_code, refused.json()["type"]) == (429, "/problems/too-many-tries")
    assert 0 < int(refused.headers["Retry-After"]) <= settings.sign_in_window_seconds
    assert sign_in(guesser).status_code == 429  # the right password would tell that it is right
    assert sign_in(guesser, "bob", "x").status_code == 401
    assert sign_in(browser()).status_code == 201
    with database.session_scope() as session:
        for row in session.exec(select(SignInTries)):
            row.since = utc_now() - timedelta(seconds=settings.sign_in_window_seconds + 1)
    assert sign_in(guesser).status_code == 201


def test_who_tries_many_names_from_one_address_is_slowed_down(
    app: FastAPI, browser: Browser, settings: Settings
) -> None:
    app.state.settings = settings.model_copy(update={"sign_in_tries": 1})
    same_network = [browser(address=f"2001:db8::{n + 1}") for n in range(6)]
    seen = [sign_in(one, f"user {n}", "x").status_code for n, one in enumerate(same_network)]
    assert seen == [401] * 5 + [429]


def test_many_addresses_together_cannot_guess_for_ever(
    app: FastAPI, ann: str, browser: Browser, settings: Settings
) -> None:
    app.state.settings = settings.model_copy(update={"sign_in_tries": 1})
    seen = [sign_in(browser(address=f"10.1.{n}.1"), "ann", "x").status_code for n in range(12)]
    assert seen == [401] * 10 + [429] * 2


@pytest.mark.both_databases
def test_tries_at_the_same_moment_are_all_counted(
    ann: str, browser: Browser, settings: Settings
) -> None:
    statuses: list[int] = []
    start = threading.Barrier(8)

    def guess(number: int) -> None:
        one = browser(address="10.6.6.6")
        start.wait()
        for turn in range(2):
            statuses.append(sign_in(one, "ann", f"guess {number} {turn}").status_code)

    threads = [threading.Thread(target=guess, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses.count(401) == settings.sign_in_tries
    assert statuses.count(429) == 16 - settings.sign_in_tries


# ---- passwords


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
    assert browser().get(ME, headers={"Cookie": _header(before)}).status_code == 401
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
