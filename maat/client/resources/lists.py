"""A page of a list."""

from __future__ import annotations

from typing import Generic, NotRequired, TypedDict, TypeVar

Item = TypeVar("Item")


class Page(TypedDict, Generic[Item]):
    """One page of a list. `next_cursor` is None on the last; `total` comes only when it was asked for."""

    items: list[Item]
    next_cursor: str | None
    total: NotRequired[int | None]
    state_counts: NotRequired[dict[str, int]]
