"""Parts of several forms: problems by field, seeds, values of fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from math import isfinite
from typing import Any, TypeAlias, TypedDict

from dash.development.base_component import Component

from frontend.components.cards import refused_state
from frontend.formatting import count
from frontend.problems import friendly_message
from maat.api.fields import Body
from maat.client import ApiError
from maat.client.errors import FieldProblem

FormValues: TypeAlias = Mapping[str, Any]
"""Name of a field -> what it holds: text, a number, a list, or nothing yet."""
MOST_DIGITS = 18  # of a number that a form takes: more is a slip of the finger


class Told(TypedDict):
    """What the service said at the last press: the values then, and what was wrong with them."""

    values: Mapping[str, object]
    errors: Mapping[str, str]


@lru_cache
def described(body: type[Body], name: str) -> Mapping[str, Any]:
    """Return the JSON Schema of a number of a body: title, description, default, limits."""
    field = body.model_json_schema()["properties"][name]
    branches = field.get("anyOf", [field])
    return {**field, **next(each for each in branches if each["type"] in ("integer", "number"))}


def wrong_number(body: type[Body], name: str, value: object) -> str:
    """Return what is wrong with a number that is not empty; nothing if the schema takes it."""
    schema = described(body, name)
    if value in ("", None):
        return ""
    if not isinstance(value, int | float):
        return "Give a number."
    if schema["type"] == "integer" and value != int(value):
        return "Give a whole number."
    above, least, most = map(schema.get, ("exclusiveMinimum", "minimum", "maximum"))
    if above is not None and value <= above:
        return f"Give more than {_limit(above)}."
    if most is not None and (value > most or (least is not None and value < least)):
        return f"Give {_limit(least or 0)} to {_limit(most)}."
    return ""


def not_a_number(value: object) -> str:
    """Return what is wrong with a number field that keeps a text; nothing if it is empty."""
    if value in ("", None) or isinstance(value, int | float):
        return ""
    return (
        f"“{value}” is no number that this field takes: give digits, without a unit or an exponent."
    )


def _limit(value: float) -> str:
    return count(int(value)) if value == int(value) else f"{value:g}"


def still_wrong(values: FormValues, told: Told | None, seen: Mapping[str, str]) -> dict[str, str]:
    """Return the errors to show: from the first press on, each until its field is mended.

    Those of the service stay as long as their field holds what it refused. `seen`: what the form
    itself sees to be wrong now.
    """
    if told is None:
        return {}
    before = told["values"]
    unchanged = {
        field: words
        for field, words in told["errors"].items()
        if values.get(field) == before.get(field)
    }
    return unchanged | dict(seen)


def errors_by_field(
    error: Exception, place: Callable[[FieldProblem], str | None], *, empty_name: str
) -> tuple[dict[str, str], Component | None]:
    """Return the errors by field, and what stands above the form: errors without a field, or None.

    `place`: gives the form's name for the field of a problem, or None if it has none. A problem
    with a file keeps the service's words, with row and value.
    """
    if not isinstance(error, ApiError):
        return {}, refused_state(error)
    beside: dict[str, str] = {}
    loose = not error.errors
    for problem in error.errors:
        field = place(problem)
        if field is None:
            loose = True
            continue
        words = (
            _row_words(error, problem)
            if field == "csv"
            else friendly_message(problem, empty_name=empty_name)
        )
        beside[field] = " ".join(filter(None, (beside.get(field), words)))
    return beside, refused_state(error) if loose else None


def parse_seeds(text: str | None) -> list[int] | None:
    """`0, 1, 2` as numbers, None where one is no whole number from 0 up, or stands twice."""
    parts = (text or "").replace(",", " ").split()
    if not all(part.isdecimal() and len(part) <= MOST_DIGITS for part in parts):
        return None
    seeds = [int(part) for part in parts]
    return seeds if seeds and len(set(seeds)) == len(seeds) else None


def _row_words(error: ApiError, problem: FieldProblem) -> str:
    """Return what is wrong in a file, with row and value, which only the detail names."""
    words = error.detail or problem.message
    return words if not problem.remedy or problem.remedy in words else f"{words} {problem.remedy}"


def number_or_name(text: str) -> str | float:
    """Return a slowdown as a number, and anything else as it is: also what JSON cannot carry."""
    try:
        number = float(text)
    except ValueError:
        return text
    return number if isfinite(number) else text
