"""Counts the errors in one body and stops at a limit.

Describing very many is slow. The schemas decide which values are errors.
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
    """A body has more than MOST_MISTAKES errors.

    `held`: the object within `body` at which the limit was passed; `error`: the errors of that
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
    as the objects within it have more than MOST_MISTAKES errors together.
    """
    count = _COUNT.get()
    if count is not None:
        return _counted(value, check, count)
    token = _COUNT.set(_Count())
    try:
        return check(value)  # the body's own errors are at most as many as its members
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
        # The error includes those of inner objects.
        count.mistakes = max(count.mistakes, before + error.error_count())
        if count.mistakes > MOST_MISTAKES:
            raise TooManyMistakes(value, error) from None
        raise
