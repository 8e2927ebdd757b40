"""Answers equal refreshes of open pages once.

After a change that the event stream tells, all tabs ask at the same moment, and the value of `live`
that they send names the change. Equal calls of the same visitor then have the same answer.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend.accounts.identity import Principal
from backend.accounts.senders import Senders
from backend.problems import Problem
from backend.web.problem_responses import DATABASE_AWAY

KEPT_SECONDS = 4.0
MOST_KEPT_BYTES = 32_000_000
_LIVE = "live.data"
_CHANGE = re.compile(r"r[0-9]+\.j[0-9]+\.o[0-9]+/[0-9]+")


@dataclass(eq=False)
class _Answer:
    """An answer on its way, or whole: the messages that make it."""

    asked_at: float
    messages: list[Message] = field(default_factory=list)
    bytes: int = 0
    is_whole: asyncio.Event = field(default_factory=asyncio.Event)
    is_good: bool = False

    async def send(self, send: Send) -> None:
        for message in self.messages:
            await send(message)


class SharedRefreshes:
    """Middleware inside the guard of the pages' calls, outside what compresses answers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._answers: dict[str, _Answer] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        call = scope.get("state", {}).get("page_call")
        is_one = call is not None and is_refresh(call)
        key = await self._key(Request(scope, receive), call) if is_one else None
        if key is None:
            await self._app(scope, receive, send)
            return
        self._forget_old()
        known = self._answers.get(key)
        if known is not None:
            await known.is_whole.wait()
            if known.is_good:
                await known.send(send)
                return
        await self._work_out(key, scope, receive, send)

    async def _work_out(self, key: str, scope: Scope, receive: Receive, send: Send) -> None:
        answer = self._answers[key] = _Answer(time.monotonic())

        async def noted(message: Message) -> None:
            answer.messages.append(message)
            answer.bytes += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive, noted)
            answer.is_good = _is_good(answer.messages)
        finally:
            answer.is_whole.set()
            if not answer.is_good and self._answers.get(key) is answer:
                del self._answers[key]

    async def _key(self, request: Request, call: Any) -> str | None:
        """Return what equal calls of one visitor have in common; None for a stranger."""
        senders: Senders = request.app.state.senders
        try:
            visitor = await senders.now(request)
        except (Problem, *DATABASE_AWAY):
            return None
        encoding = request.headers.get("accept-encoding", "")
        return json.dumps([_named(visitor), encoding, request.url.netloc, call], sort_keys=True)

    def _forget_old(self) -> None:
        since, room = time.monotonic() - KEPT_SECONDS, MOST_KEPT_BYTES
        for key, answer in reversed(list(self._answers.items())):
            room -= answer.bytes
            if answer.is_whole.is_set() and (answer.asked_at < since or room < 0):
                del self._answers[key]


def is_refresh(call: Mapping[str, Any]) -> bool:
    """Return whether a page asks only because of a change that the event stream told."""
    if call.get("changedPropIds") != [_LIVE]:
        return False
    given = (entry for entry in call.get("inputs", []) if isinstance(entry, dict))
    live = [entry.get("value") for entry in given if entry.get("id") == "live"]
    return len(live) == 1 and isinstance(live[0], dict) and _names_a_change(live[0].get("at"))


def _names_a_change(at: object) -> bool:
    return isinstance(at, str) and _CHANGE.fullmatch(at) is not None


def _named(visitor: Principal) -> list[str]:
    """Name all that decides what the visitor may see and do."""
    permissions = sorted(permission.value for permission in visitor.permissions)
    return [visitor.user_id, visitor.tenant_id, visitor.role.value, *permissions]


def _is_good(messages: list[Message]) -> bool:
    """Return whether the answer is whole, of status 200, and sets no cookie."""
    if not messages or messages[0]["type"] != "http.response.start":
        return False
    headers = {name.lower() for name, _ in messages[0].get("headers", [])}
    ended = messages[-1].get("more_body", False) is False and len(messages) > 1
    return messages[0]["status"] == 200 and b"set-cookie" not in headers and ended
