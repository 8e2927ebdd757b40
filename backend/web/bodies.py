"""How large a body may be by route, and how it is read.

Bytes are counted as they arrive, and values are counted before parsing.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any, TypeVar

from fastapi import Request
from starlette.datastructures import Headers

from backend.problems import MalformedRequest, PayloadTooLarge, Problem

KIB, MIB = 1024, 1024 * 1024

SMALL_BYTES = 64 * KIB  # the default of a route
JOB_BYTES = 256 * KIB
NODES_BYTES = 1 * MIB
BATCH_BYTES = 2 * MIB
MEASUREMENT_BYTES = 6 * MIB
TRACE_BYTES = 8 * MIB
PAGE_CALL_BYTES = 12 * MIB  # pages send files as base64, a third longer

MAX_VALUES = 50_000
_INLINE_BYTES = 16 * KIB  # parsing it takes less time than starting a thread
_LARGE_BYTES = 256 * KIB

_MOST_BYTES = "most_body_bytes"
_NO_END = "The body is not JSON: a string in it has no end."
_BACKSLASH = ord("\\")
_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)

Route = TypeVar("Route", bound=Callable[..., Any])


class BodyTooSlow(Problem):
    """The body did not arrive in time, and the connection was closed. Nothing was done."""

    remedy = "Send it again, in smaller parts if it is large."
    slug, title, status = "body-too-slow", "The body did not arrive in time", 408
    retryable = True


class BodyTooLarge(PayloadTooLarge):
    """The body is larger than this address accepts. Send less, or split it."""


def takes_bytes(most: int) -> Callable[[Route], Route]:
    """Mark a route whose body may have up to `most` bytes."""

    def marked(route: Route) -> Route:
        setattr(route, _MOST_BYTES, most)
        return route

    return marked


def most_bytes_of(route: Callable[..., Any]) -> int:
    most: int = getattr(route, _MOST_BYTES, SMALL_BYTES)
    return most


def announced_bytes(headers: Headers) -> int | None:
    """Return Content-Length; None for a body that arrives in chunks."""
    given = headers.get("content-length")
    if given is None:
        return None if "transfer-encoding" in headers else 0
    return int(given) if given.isdecimal() else None


def is_large(announced: int | None) -> bool:
    return announced is None or announced > _LARGE_BYTES


def is_quickly_parsed(body: bytes) -> bool:
    """Return whether parsing is fast enough for the event loop."""
    return len(body) <= _INLINE_BYTES


async def read_body(request: Request, most: int) -> bytes:
    """Read the body. Raises BodyTooLarge, BodyTooSlow.

    A body with too large a Content-Length is not read; otherwise reading stops at the limit.
    """
    announced = announced_bytes(request.headers)
    if announced is not None and announced > most:
        raise _too_large(request, most)
    seconds = request.app.state.settings.request_body_seconds
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for chunk in request.stream():
                body += chunk
                if len(body) > most:
                    raise _too_large(request, most)
    except TimeoutError:
        raise BodyTooSlow(
            f"The body did not arrive within {seconds:g} s. Send less at once.",
            headers={"Connection": "close"},
        ) from None
    return bytes(body)


def parse_json(body: bytes, *, most_values: int = MAX_VALUES, **options: Any) -> Any:
    """Parse JSON.

    A body with too many values is refused before parsing, which would block all threads.

    `options`: of json.loads. Raises BodyTooLarge, MalformedRequest, and what json.loads raises.
    """
    if not is_quickly_parsed(body) and not _has_at_most(body, most_values):
        raise BodyTooLarge(
            f"The body holds more than {most_values} values, the most that this server accepts. "
            "Send less, or split it."
        )
    return json.loads(body.decode("utf-8"), **options)


def _has_at_most(body: bytes, most: int) -> bool:
    """Return whether a JSON text has at most `most` values.

    Counts a comma or a bracket outside of strings for each value.
    """
    values, texts, at = 0, 0, 0
    while values <= most and texts <= 2 * most:  # a member has a name and may have a string value
        quote = body.find(b'"', at)
        outside = body[at:] if quote < 0 else body[at:quote]
        values += outside.count(b",") + outside.count(b"[") + outside.count(b"{")
        if quote < 0:
            return values <= most
        texts += 1
        at = _end_of_text(body, quote)
    return False


def _end_of_text(body: bytes, quote: int) -> int:
    """Return the index after the string that begins with this quote.

    Only a string with escaped quotes is read character by character.
    """
    end = body.find(b'"', quote + 1)
    if end < 0:
        raise MalformedRequest(_NO_END)
    if body[end - 1] != _BACKSLASH:
        return end + 1
    text = _TEXT.match(body, quote)
    if text is None:
        raise MalformedRequest(_NO_END)
    return text.end()


def _too_large(request: Request, most: int) -> BodyTooLarge:
    return BodyTooLarge(
        f"The body is larger than {most} bytes, "
        f"the most that {request.method} {request.url.path} accepts."
    )
