"""The answer to a body with too many errors.

It describes the object where the limit was reached.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Any

from backend.problems import FieldError, Invalid
from backend.validation_errors import field_error, pointer_part
from maat.api.mistakes import MOST_MISTAKES, TooManyMistakes

_MOST_REPORTED = 100


def too_many(found: TooManyMistakes) -> Invalid:
    """Return the problem, which describes only that object."""
    place = _pointer_to(found.held, found.body)
    reported = islice(found.error.errors(include_url=False), _MOST_REPORTED)
    errors = [
        _within(place, field_error({**one, "loc": ("body", *one["loc"])})) for one in reported
    ]
    detail = (
        f"More than {MOST_MISTAKES} values of the body cannot be used; the rest was not checked. "
        f"This describes {place or 'the body'}."
    )
    return Invalid(
        f"{detail} Correct it and similar entries, then send the body again.", errors=errors
    )


def _within(place: str, error: FieldError) -> FieldError:
    return replace(error, pointer=f"{place}{error.pointer}")


def _pointer_to(held: object, body: Any) -> str:
    """Return the JSON Pointer to this very object; the body's own if it is not found."""
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
