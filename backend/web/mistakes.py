"""The problem that answers a body with too many mistakes: it describes the object where the bound was passed."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Any

from backend.problems import FieldError, Invalid
from backend.validation_errors import field_error, pointer_part
from maat.api.mistakes import MOST_MISTAKES, TooManyMistakes

_MOST_TOLD = 100


def too_many(found: TooManyMistakes) -> Invalid:
    """Points at the object at which it was too much, and tells of that alone."""
    place = _pointer_to(found.held, found.body)
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
