"""Who is refused a session, how little the answer tells, and who is slowed down."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from browsers import PASSWORD, Browser, sign_in
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlmodel import select

from backend.accounts import passwords
from backend.accounts.models import SignInTries
from backend.clocktime import utc_now
from backend.database import Database
from backend.settings import Settings


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
