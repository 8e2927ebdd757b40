"""Builds API answers from rows and computed values."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TypeVar, cast

from maat.api.fields import Page, rfc3339

Answer = TypeVar("Answer")
Row = TypeVar("Row")


def answer_of(kind: type[Answer], row: object, **computed: object) -> Answer:
    """Fill the fields of a TypedDict from `computed`, else from the row's attributes.

    Dates become text. Raises AttributeError for a field that neither has, TypeError for a computed
    field that the answer lacks.
    """
    names = kind.__annotations__
    if not computed.keys() <= names.keys():
        raise TypeError(f"{kind.__name__} has no {sorted(computed.keys() - names.keys())}")
    # What is loaded of a row is in its dictionary, without the cost of an attribute of a table.
    given = {**getattr(row, "__dict__", {}), **computed}
    values = {name: given[name] if name in given else getattr(row, name) for name in names}
    for name, value in values.items():
        if isinstance(value, datetime) and name not in computed:
            values[name] = rfc3339(value)
    return cast(Answer, values)


def whole_list(items: list[Row], show: Callable[[Row], Answer]) -> Page[Answer]:
    """Put all items on one page."""
    return Page(items=[show(item) for item in items], next_cursor=None)
