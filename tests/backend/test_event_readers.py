"""Who reads open streams: asked once for all of the same credentials, and for nobody else's."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from backend.events import readers
from backend.events.readers import Readers
from backend.problems import Unauthenticated


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The requests of which it was asked who sends them; those of `stranger` are refused."""
    found: list[str] = []

    async def identified(request: Any) -> str:
        found.append(request)
        await asyncio.sleep(0)
        if request.startswith("stranger"):
            raise Unauthenticated("Nobody knows this token.")
        return f"reader of {request}"

    monkeypatch.setattr(readers, "identified", identified)
    monkeypatch.setattr(readers, "digest_of_credentials", lambda request: request.split()[0])
    return found


async def all_of(known: Readers, *requests: str) -> list[Any]:
    asking = [known.now(request) for request in requests]  # type: ignore[arg-type]
    return await asyncio.gather(*asking, return_exceptions=True)


def test_streams_of_one_reader_ask_once_and_those_of_another_apart(asked: list[str]) -> None:
    found = asyncio.run(all_of(Readers(), *("a 1", "a 2", "b 1", "a 3", "b 2")))

    assert asked == ["a 1", "b 1"]
    assert found == [f"reader of {one}" for one in ("a 1", "a 1", "b 1", "a 1", "b 1")]


def test_an_answer_counts_no_longer_than_it_is_said_to(
    asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def twice(known: Readers) -> None:
        await all_of(known, "a 1")
        await all_of(known, "a 2")
        monkeypatch.setattr(readers, "KNOWN_SECONDS", 0.0)
        await all_of(known, "a 3")

    asyncio.run(twice(Readers()))

    assert asked == ["a 1", "a 3"]


def test_a_refusal_is_that_of_all_who_sent_the_same(asked: list[str]) -> None:
    found = asyncio.run(all_of(Readers(), "stranger 1", "stranger 2", "a 1"))

    assert asked == ["stranger 1", "a 1"]
    assert [type(one) for one in found] == [Unauthenticated, Unauthenticated, str]
