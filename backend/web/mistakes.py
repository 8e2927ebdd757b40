"""How many mistakes are looked for in one body: telling all of very many holds up every other thread. Not which values are mistakes."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TypeVar

from pydantic import ValidationError

from backend.problems import FieldError, Invalid
from backend.validation_errors import field_error, pointer_part

T = TypeVar("T")

MOST_MISTAKES = 1000
_MOST_TOLD = 100


@dataclass
class _Count:
    mistakes: int = 0


class _TooMany(Exception):
    """Ends the validation: the exception is none that a validator collects."""

    def __init__(self, held: object, error: ValidationError) -> None:
        super().__init__()
        self.held, self.error = held, error


_COUNT: ContextVar[_Count | None] = ContextVar("mistakes", default=None)


def checked(value: Any, check: Callable[[Any], T]) -> T:
    """What `check` makes of an object of a body. Raises Invalid as soon as the objects within it have more than MOST_MISTAKES together.

    Called for the body and, by `check`, for every object within it.
    """
    count = _COUNT.get()
    if count is not None:
        return _counted(value, check, count)
    token = _COUNT.set(_Count())
    try:
        return check(value)  # its own mistakes are as few as its members
    except _TooMany as found:
        raise _refusal(value, found) from None
    finally:
        _COUNT.reset(token)


def _counted(value: Any, check: Callable[[Any], T], count: _Count) -> T:
    before = count.mistakes
    try:
        return check(value)
    except ValidationError as error:
        count.mistakes = max(
            count.mistakes, before + error.error_count()
        )  # it holds those of the objects within
        if count.mistakes > MOST_MISTAKES:
            raise _TooMany(value, error) from None
        raise


def _refusal(body: Any, found: _TooMany) -> Invalid:
    """Points at the object at which it was too much, and tells of that alone."""
    place = _pointer_to(found.held, body)
    told = islice(found.error.errors(include_url=False), _MOST_TOLD)
    errors = [_within(place, field_error({**one, "loc": ("body", *one["loc"])})) for one in told]
    detail = f"More than {MOST_MISTAKES} values of the body cannot be used; the rest was not looked at. {place or 'The body'} is told of here."
    return Invalid(f"{detail} Correct it and its like, then send the body again.", errors=errors)


def _within(place: str, error: FieldError) -> FieldError:
    return replace(error, pointer=f"{place}{error.pointer}")


def _pointer_to(held: object, body: Any) -> str:
    """JSON Pointer to this very object; the body's own where it is not found."""
    waiting = [(body, "")]
    while waiting:
        value, pointer = waiting.pop()
        if value is held:
            return pointer
        parts = (
            value.items()
            if isinstance(value, dict)
            else enumerate(value)
            if isinstance(value, list)
            else ()
        )
        waiting.extend(
            (item, f"{pointer}/{pointer_part(str(part))}")
            for part, item in parts
            if isinstance(item, dict | list)
        )
    return ""
