"""Keyset pagination: pages that stay right while rows are added, with cursors that only their own list understands."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

import sqlalchemy as sa
from fastapi import Query, Request, Response
from pydantic import BaseModel, Field
from sqlmodel import Session
from sqlmodel.sql.expression import SelectOfScalar

from backend.problems import BadCursor

T = TypeVar("T")
Shown = TypeVar("Shown")

MAX_LIMIT = 500

Limit = Annotated[int, Query(ge=1, le=MAX_LIMIT, description="Most items of a page.")]
Cursor = Annotated[
    str | None, Query(max_length=2000, description="`next_cursor` of the page before; with the same filters and sort order.")
]


class Page(BaseModel, Generic[Shown]):
    """One page of a list. `next_cursor` is null on the last."""

    items: list[Shown]
    next_cursor: str | None = Field(description="Pass it as `cursor` for the next page; null on the last.")


@dataclass(frozen=True)
class Rows(Generic[T]):
    """What the database gave for one page."""

    items: list[T]
    next_cursor: str | None

    def shown(self, show: Callable[[T], Shown]) -> Page[Shown]:
        return Page(items=[show(item) for item in self.items], next_cursor=self.next_cursor)


@dataclass(frozen=True)
class Order:
    """What a list is sorted by: expressions that are never null, the last of them unique. All in one direction."""

    keys: Sequence[Any]
    descending: bool = False

    def clauses(self) -> list[sa.ColumnElement[Any]]:
        return [key.desc() if self.descending else key.asc() for key in self.keys]

    def beyond(self, values: Sequence[Any]) -> sa.ColumnElement[bool]:
        """Rows that come after the one with these key values."""
        options = []
        for i, (key, value) in enumerate(zip(self.keys, values, strict=True)):
            further = key < value if self.descending else key > value
            options.append(sa.and_(*(k == v for k, v in zip(self.keys[:i], values[:i], strict=True)), further))
        return sa.or_(*options)


def paginate(
    session: Session, statement: SelectOfScalar[T], *, order: Order, filters: Mapping[str, Any], limit: int, cursor: str | None
) -> Rows[T]:
    """The page of `statement` after `cursor`. `filters`: everything that decides which list this is. Raises BadCursor."""
    list_digest = _digest(filters)
    if cursor is not None:
        statement = statement.where(order.beyond(_read_cursor(cursor, list_digest, len(order.keys))))
    keyed: Any = statement.add_columns(*order.keys).order_by(*order.clauses()).limit(limit + 1)
    rows = session.execute(keyed).all()
    more = len(rows) > limit
    rows = rows[:limit]
    next_cursor = _write_cursor(list_digest, list(rows[-1][1:])) if more else None
    return Rows([row[0] for row in rows], next_cursor)


def link_next(request: Request, response: Response, next_cursor: str | None) -> None:
    """Name the next page in the Link header too (RFC 8288)."""
    if next_cursor is not None:
        following = request.url.include_query_params(cursor=next_cursor)
        response.headers["Link"] = f'<{following.path}?{following.query}>; rel="next"'


def _digest(filters: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(filters, sort_keys=True, default=str).encode()).hexdigest()[:16]


def _write_cursor(list_digest: str, values: list[Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps([list_digest, *values], separators=(",", ":")).encode()).decode().rstrip("=")


def _read_cursor(cursor: str, list_digest: str, count: int) -> list[Any]:
    try:
        found = json.loads(base64.urlsafe_b64decode(cursor.encode() + b"=" * (-len(cursor) % 4)))
    except (ValueError, binascii.Error, RecursionError):
        raise BadCursor("The cursor is not one that this service made.") from None
    if not isinstance(found, list) or len(found) != count + 1 or not all(_is_key(value) for value in found):
        raise BadCursor("The cursor is not one that this service made.")
    if found[0] != list_digest:
        raise BadCursor("The cursor was made for other filters or another sort order.")
    return found[1:]


def _is_key(value: Any) -> bool:
    plain = isinstance(value, str | int | float) and not isinstance(value, bool)
    return plain and (isinstance(value, str) or abs(value) < 2**62)
