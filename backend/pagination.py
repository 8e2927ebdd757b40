"""Keyset pagination: pages stay correct while rows are added.

A cursor is valid only for the list that it was made for.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Generic, TypeVar

import sqlalchemy as sa
from fastapi import Depends, Query, Request, Response
from sqlmodel import Session
from sqlmodel.sql.expression import SelectOfScalar

from backend.columns import WithoutIndex
from backend.problems import BadCursor
from maat.api.fields import Page
from maat.shown_text import is_shown

T = TypeVar("T")
Shown = TypeVar("Shown")

MAX_LIMIT = 500
MAX_SKIP = 1_000_000

Limit = Annotated[int, Query(ge=1, le=MAX_LIMIT, description="Maximum number of items on a page.")]
Cursor = Annotated[
    str | None,
    Query(
        max_length=2000,
        description="`next_cursor` of the previous page, with the same filters and sort order.",
    ),
]


Skip = Annotated[
    int,
    Query(
        ge=0,
        le=MAX_SKIP,
        description="How many items to pass over, after the cursor if there is one: a jump to a "
        "place in a long list. Go on from there by cursor, without it.",
    ),
]


@dataclass(frozen=True)
class Rows(Generic[T]):
    """The rows of one page."""

    items: list[T]
    next_cursor: str | None

    def shown(self, show: Callable[[T], Shown]) -> Page[Shown]:
        return Page(items=[show(item) for item in self.items], next_cursor=self.next_cursor)


@dataclass
class _Asked:
    """The requested page of a list, and the response that will link the next one."""

    request: Request
    response: Response
    limit: int
    cursor: str | None

    def linked(self, found: Rows[T]) -> Rows[T]:
        """Name the page after these rows in the Link header too (RFC 8288); return the rows."""
        if found.next_cursor is not None:
            here = self.request.url.remove_query_params("skip")
            following = here.include_query_params(cursor=found.next_cursor)
            self.response.headers["Link"] = f'<{following.path}?{following.query}>; rel="next"'
        return found


async def page_asked(
    request: Request, response: Response, limit: Limit = 50, cursor: Cursor = None
) -> _Asked:
    return _Asked(request, response, limit, cursor)


PageAsked = Annotated[_Asked, Depends(page_asked)]


@dataclass(frozen=True)
class Order:
    """The sort order of a list: expressions that are never null, the last one unique.

    All have one direction.
    """

    keys: Sequence[Any]
    descending: bool = False

    def clauses(self) -> list[sa.ColumnElement[Any]]:
        return [key.desc() if self.descending else key.asc() for key in self.keys]

    def beyond(self, values: Sequence[Any]) -> sa.ColumnElement[bool]:
        """Select the rows after the one with these key values.

        Compares whole rows, so that an index can start there.
        """
        keys, last = sa.tuple_(*self.keys), sa.tuple_(*values)
        return keys < last if self.descending else keys > last


@dataclass(frozen=True)
class Branch:
    """A part of a list that one index holds in order.

    The parts are disjoint and make up the list.

    `condition`: the whole condition of the part. `column`, `offset`: within the part, the first key
    of the order equals this column plus this number. `few`: the part has so few rows that they
    should be found and sorted, instead of read in order among many others.
    """

    condition: sa.ColumnElement[bool]
    column: Any = None
    offset: float = 0.0
    few: bool = False

    def within(self, condition: sa.ColumnElement[bool]) -> Branch:
        return replace(self, condition=sa.and_(self.condition, condition))

    def order_of(self, order: Order) -> Order:
        keys = order.keys if self.column is None else [self.column, *order.keys[1:]]
        return replace(order, keys=[WithoutIndex(key) for key in keys] if self.few else keys)

    def near(self, order: Order, values: Sequence[Any]) -> sa.ColumnElement[bool]:
        """Bound where an index may start: at most a second before the next row.

        The second allows for rounded sums.
        """
        if self.column is None:
            return sa.true()
        at = values[0] - self.offset
        near: sa.ColumnElement[bool] = (
            self.column <= at + 1.0 if order.descending else self.column >= at - 1.0
        )
        return near


def paginate(
    session: Session,
    statement: SelectOfScalar[T],
    *,
    order: Order,
    filters: Mapping[str, Any],
    limit: int,
    cursor: str | None,
    branches: Sequence[Branch] = (),
    skip: int = 0,
) -> Rows[T]:
    """Return the page of `statement` after `cursor`.

    `filters`: everything that decides which list this is. `branches`: the parts to read it in, if
    any. `skip`: how many rows to pass over first; only the keys of the order are read of them.
    Raises BadCursor.
    """
    listed = Listed(statement, order=order, filters=filters, branches=branches)
    return listed.page(session, limit=limit, cursor=cursor, skip=skip)


class Listed(Generic[T]):
    """A list of which pages are read; see `paginate`. It may be kept, and read by any session.

    Building the statement of a page takes longer than reading it: that of the first page stays.
    """

    _first: tuple[int, Any] | None

    def __init__(
        self,
        statement: SelectOfScalar[T],
        *,
        order: Order,
        filters: Mapping[str, Any],
        branches: Sequence[Branch] = (),
        only_shown: bool = False,
    ) -> None:
        """`only_shown`: no session tracks the rows, which is faster; see `untracked`."""
        self._order, self._branches, self._digest = order, branches, _digest(filters)
        self._only_shown, self._first = only_shown, None
        self._table: Any = statement.column_descriptions[0]["entity"]
        self._columns: list[Any] = [*self._table.__table__.c] if only_shown else [self._table]
        self._names = [column.key for column in self._columns] if only_shown else []
        self._statement: Any = (
            statement.with_only_columns(*self._columns) if only_shown else statement
        )

    def page(self, session: Session, *, limit: int, cursor: str | None, skip: int = 0) -> Rows[T]:
        after = None if cursor is None else _read_cursor(cursor, self._digest, self._order)
        if skip:
            last = _last_of(self._statement, self._order, self._branches, after, skip)
            passed = session.execute(last).first()
            if passed is None:
                return Rows([], None)
            after = list(passed)
        reads = session.connection() if self._only_shown else session
        rows = reads.execute(self._page_of(after, limit + 1)).all()
        more = len(rows) > limit
        rows = rows[:limit]
        keys = rows[-1][len(self._columns) :] if more else ()
        next_cursor = _write_cursor(self._digest, list(keys)) if more else None
        return Rows([self._item(row) for row in rows], next_cursor)

    def _page_of(self, after: Sequence[Any] | None, most: int) -> Any:
        first = self._first
        if after is None and first is not None and first[0] == most:
            return first[1]
        built = (
            _merged(self._columns, self._order, self._branches, after, most)
            if self._branches
            else _plain(self._statement, self._order, after, most)
        )
        if after is None:
            self._first = (most, built)
        return built

    def _item(self, row: Any) -> T:
        item: T = untracked(self._table, self._names, row) if self._only_shown else row[0]
        return item


def untracked(table: type[T], names: Sequence[str], values: Sequence[Any]) -> T:
    """Make a row that no session tracks, for what only reads it.

    A row that is tracked takes the mapper several times as long. `values`: of the columns `names`;
    more are ignored.
    """
    row = object.__new__(table)
    object.__setattr__(row, "__dict__", dict(zip(names, values, strict=False)))
    return row


def _plain(statement: Any, order: Order, after: Sequence[Any] | None, most: int) -> Any:
    keyed = statement.add_columns(*order.keys)
    if after is not None:
        keyed = keyed.where(order.beyond(after))
    return keyed.order_by(*order.clauses()).limit(most)


def _last_of(
    statement: SelectOfScalar[T],
    order: Order,
    branches: Sequence[Branch],
    after: Sequence[Any] | None,
    many: int,
) -> Any:
    """Select the keys of the last of the next `many` rows; nothing if there are fewer."""
    if not branches:
        keyed: Any = statement.with_only_columns(*order.keys)
        if after is not None:
            keyed = keyed.where(order.beyond(after))
        return keyed.order_by(*order.clauses()).offset(many - 1).limit(1)
    first = _first_of_branches(order, branches, after, many)
    merged = Order(list(first.c), order.descending)
    return sa.select(*first.c).order_by(*merged.clauses()).offset(many - 1).limit(1)


def _merged(
    columns: Sequence[Any],
    order: Order,
    branches: Sequence[Branch],
    after: Sequence[Any] | None,
    most: int,
) -> Any:
    """Select the first rows of every branch, merged by the order's last key."""
    first = _first_of_branches(order, branches, after, most)
    merged = Order(list(first.c), order.descending)
    return (
        sa.select(*columns, *first.c)
        .join(first, order.keys[-1] == merged.keys[-1])
        .order_by(*merged.clauses())
        .limit(most)
    )


def _first_of_branches(
    order: Order, branches: Sequence[Branch], after: Sequence[Any] | None, most: int
) -> sa.Subquery:
    """Select the keys of the first rows of every branch, `most` of each, in no order."""
    keys = [key.label(f"key_{number}") for number, key in enumerate(order.keys)]
    arms = []
    for branch in branches:
        found: Any = sa.select(*keys).where(branch.condition)
        if after is not None:
            found = found.where(order.beyond(after), branch.near(order, after))
        arms.append(
            sa.select(found.order_by(*branch.order_of(order).clauses()).limit(most).subquery())
        )
    return sa.union_all(*arms).subquery("first")


def _digest(filters: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(filters, sort_keys=True, default=str).encode()).hexdigest()[
        :16
    ]


def _write_cursor(list_digest: str, values: list[Any]) -> str:
    return (
        base64.urlsafe_b64encode(json.dumps([list_digest, *values], separators=(",", ":")).encode())
        .decode()
        .rstrip("=")
    )


def _read_cursor(cursor: str, list_digest: str, order: Order) -> list[Any]:
    try:
        found = json.loads(base64.urlsafe_b64decode(cursor.encode() + b"=" * (-len(cursor) % 4)))
    except (ValueError, binascii.Error, RecursionError):
        raise BadCursor("This service did not make the cursor.") from None
    if (
        not isinstance(found, list)
        or len(found) != len(order.keys) + 1
        or not isinstance(found[0], str)
    ):
        raise BadCursor("This service did not make the cursor.")
    if found[0] != list_digest:
        raise BadCursor("The cursor was made for other filters or another sort order.")
    if not all(_is_key(value, key) for value, key in zip(found[1:], order.keys, strict=True)):
        raise BadCursor("This service did not make the cursor.")
    return found[1:]


def _is_key(value: Any, key: Any) -> bool:
    """Return whether a cursor may hold this value of a column.

    It must have the column's type and a value that both databases accept.
    """
    if issubclass(key.type.python_type, int | float):
        return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**62
    return isinstance(value, str) and is_shown(value)
