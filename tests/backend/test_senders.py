"""Who sent credentials: asked once for all that bear the same, and for nobody else's."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from fastapi import FastAPI, Request

from backend.accounts import senders
from backend.accounts.cookies import CSRF_HEADER, CsrfFailed, csrf_token
from backend.accounts.permissions import Role
from backend.accounts.principals import Credential, Principal
from backend.accounts.senders import Senders
from backend.problems import Unauthenticated
from backend.settings import Settings


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The requests of which it was asked who sends them; those of `stranger` are refused."""
    found: list[str] = []

    async def sender_of(request: Any) -> str:
        found.append(request)
        await asyncio.sleep(0)
        if request.startswith("stranger"):
            raise Unauthenticated("Nobody knows this token.")
        return f"reader of {request}"

    monkeypatch.setattr(senders, "sender_of", sender_of)
    monkeypatch.setattr(senders, "check_change", lambda *_: None)  # of requests that are none
    monkeypatch.setattr(senders, "digest_of_credentials", lambda request: request.split()[0])
    return found


async def all_of(known: Senders, *requests: str) -> list[Any]:
    asking = [known.now(request) for request in requests]  # type: ignore[arg-type]
    return await asyncio.gather(*asking, return_exceptions=True)


def test_streams_of_one_reader_ask_once_and_those_of_another_apart(asked: list[str]) -> None:
    found = asyncio.run(all_of(Senders(), *("a 1", "a 2", "b 1", "a 3", "b 2")))

    assert asked == ["a 1", "b 1"]
    assert found == [f"reader of {one}" for one in ("a 1", "a 1", "b 1", "a 1", "b 1")]


def test_an_answer_counts_no_longer_than_it_is_said_to(
    asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def twice(known: Senders) -> None:
        await all_of(known, "a 1")
        await all_of(known, "a 2")
        monkeypatch.setattr(senders, "KNOWN_SECONDS", 0.0)
        await all_of(known, "a 3")

    asyncio.run(twice(Senders()))

    assert asked == ["a 1", "a 3"]


def test_a_refusal_is_that_of_all_who_sent_the_same(asked: list[str]) -> None:
    found = asyncio.run(all_of(Senders(), "stranger 1", "stranger 2", "a 1"))

    assert asked == ["stranger 1", "a 1"]
    assert [type(one) for one in found] == [Unauthenticated, Unauthenticated, str]


def test_a_change_by_a_session_that_is_known_still_needs_its_csrf_token(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Request] = []

    async def sender_of(request: Request) -> Principal:
        asked.append(request)
        return Principal(
            user_id="usr_1",
            user_name="ann",
            tenant_id="ten_1",
            tenant_name="vision",
            role=Role.VIEWER,
            permissions=frozenset(),
            credential=Credential("session", "ses_1"),
        )

    def request(method: str, **headers: str) -> Request:
        given = {"host": "127.0.0.1", "cookie": "maat_session=secret", **headers}
        scope = {
            "type": "http",
            "method": method,
            "path": "/",
            "scheme": "http",
            "headers": [(name.encode(), value.encode()) for name, value in given.items()],
            "client": ("127.0.0.1", 50000),
            "server": ("127.0.0.1", 8000),
            "app": FastAPI(),
        }
        scope["app"].state.settings = Settings(_env_file=None, implicit_admin=False)
        return Request(scope)

    monkeypatch.setattr(senders, "sender_of", sender_of)
    token = {CSRF_HEADER.lower(): csrf_token("secret")}

    async def ask(known: Senders) -> list[Any]:
        requests = [request("GET"), request("POST"), request("POST", **token)]
        asking = [known.now(one) for one in requests]
        return await asyncio.gather(*asking, return_exceptions=True)

    stream, forged, refresh = asyncio.run(ask(Senders()))

    assert (stream.user_name, refresh.user_name) == ("ann", "ann")
    assert isinstance(forged, CsrfFailed)
    assert len(asked) == 1
