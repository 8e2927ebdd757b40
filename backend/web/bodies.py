"""How large a body may be, by route, and how it is read: counted as it comes, and looked at before it is parsed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, TypeVar

from fastapi import Request
from starlette.datastructures import Headers

from backend.problems import MalformedRequest, PayloadTooLarge

KIB, MIB = 1024, 1024 * 1024

SMALL_BYTES = 64 * KIB  # every route that says nothing else
JOB_BYTES = 256 * KIB
NODES_BYTES = 1 * MIB
BATCH_BYTES = 2 * MIB
MEASUREMENT_BYTES = 6 * MIB
TRACE_BYTES = 8 * MIB
PAGE_CALL_BYTES = 12 * MIB  # files come from pages as base64, a third longer

MAX_VALUES = 50_000
_INLINE_BYTES = 16 * KIB  # parsed sooner than a thread is found
_LARGE_BYTES = 256 * KIB

_MOST_BYTES = "most_body_bytes"
_NO_END = "The body is no JSON: a text in it has no end."
_BACKSLASH = ord("\\")
_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)

Route = TypeVar("Route", bound=Callable[..., Any])


class BodyTooLarge(PayloadTooLarge):
    """The body is larger than this address accepts. Send less, or split it."""


def takes_bytes(most: int) -> Callable[[Route], Route]:
    """Marks a route whose body may have up to `most` bytes."""

    def marked(route: Route) -> Route:
        setattr(route, _MOST_BYTES, most)
        return route

    return marked


def most_bytes_of(route: Callable[..., Any]) -> int:
    most: int = getattr(route, _MOST_BYTES, SMALL_BYTES)
    return most


def announced_bytes(headers: Headers) -> int | None:
    """What Content-Length says; None for a body that comes in chunks."""
    given = headers.get("content-length")
    if given is None:
        return None if "transfer-encoding" in headers else 0
    return int(given) if given.isdecimal() else None


def is_large(announced: int | None) -> bool:
    return announced is None or announced > _LARGE_BYTES


def is_quickly_parsed(body: bytes) -> bool:
    """Whether it is parsed before the event loop has anything else to do."""
    return len(body) <= _INLINE_BYTES


async def read_body(request: Request, most: int) -> bytes:
    """The body. Raises BodyTooLarge without reading it where its length is announced, else as soon as it has grown too long."""
    announced = announced_bytes(request.headers)
    if announced is not None and announced > most:
        raise _too_large(request, most)
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            raise _too_large(request, most)
    return bytes(body)


def parse_json(body: bytes, *, most_values: int = MAX_VALUES, **options: Any) -> Any:
    """The JSON value. A body of very many values is refused before it is parsed: parsing it holds up every other thread.

    Raises BodyTooLarge, MalformedRequest, and what json.loads raises. `options`: of json.loads.
    """
    if not is_quickly_parsed(body) and not _has_at_most(body, most_values):
        raise BodyTooLarge(
            f"The body holds more than {most_values} values, the most that this server accepts. Send less, or split it."
        )
    return json.loads(body.decode("utf-8"), **options)


def _has_at_most(body: bytes, most: int) -> bool:
    """Whether a JSON text has at most so many values, by what stands outside of its texts: a comma or a bracket for each."""
    values, texts, at = 0, 0, 0
    while values <= most and texts <= 2 * most:  # a member has a name and may have a text
        quote = body.find(b'"', at)
        outside = body[at:] if quote < 0 else body[at:quote]
        values += outside.count(b",") + outside.count(b"[") + outside.count(b"{")
        if quote < 0:
            return values <= most
        texts += 1
        at = _end_of_text(body, quote)
    return False


def _end_of_text(body: bytes, quote: int) -> int:
    """Where the text that begins with this quote is over. One with quotes in it is read mark by mark, any other is not."""
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
        f"The body is larger than {most} bytes, the most that {request.method} {request.url.path} accepts."
    )
