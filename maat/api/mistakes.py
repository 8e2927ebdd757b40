"""Counts the mistakes in one body and stops at a bound: describing very many is slow.

Which values are mistakes is for the schemas to say.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import ValidationError

T = TypeVar("T")

MOST_MISTAKES = 1000


class TooManyMistakes(Exception):
    """A body has more than MOST_MISTAKES mistakes.

    `held`: the object within `body` at which the bound was passed; `error`: the mistakes of that
    object. Not a ValueError, so that pydantic does not collect it but ends the validation.
    """

    def __init__(self, held: object, error: ValidationError) -> None:
        super().__init__(f"more than {MOST_MISTAKES} values cannot be used")
        self.held, self.error = held, error
        self.body: object = None


@dataclass
class _Count:
    mistakes: int = 0


_COUNT: ContextVar[_Count | None] = ContextVar("mistakes", default=None)


def checked(value: Any, check: Callable[[Any], T]) -> T:
    """Return what `check` makes of an object of a body.

    Called for the body and, by `check`, for every object within it. Raises TooManyMistakes as soon
    as the objects within it have more than MOST_MISTAKES together.
    """
    count = _COUNT.get()
    if count is not None:
        return _counted(value, check, count)
    token = _COUNT.set(_Count())
    try:
        return check(value)  # its own mistakes are as few as its members
    except TooManyMistakes as found:
        found.body = value
        raise
    finally:
        _COUNT.reset(token)


def _counted(value: Any, check: Callable[[Any], T], count: _Count) -> T:
    before = count.mistakes
    try:
        return check(value)
    except ValidationError as error:
        # The error holds those of the objects within.
        count.mistakes = max(count.mistakes, before + error.error_count())
        if count.mistakes > MOST_MISTAKES:
            raise TooManyMistakes(value, error) from None
        raise
