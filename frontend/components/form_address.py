"""Values of a form in its page's address: those that differ from the form as it opens.

assets/form_address.js writes them. Each form says which of its fields are there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from math import isfinite

from frontend.addresses import Check
from frontend.forms import FormValues
from frontend.routing import QueryValue, query_value, query_values

LONGEST = 1000  # characters of a value in the address
EMPTY = "empty"  # names the fields that were emptied


def too_long(value: str) -> str:
    """Return what is wrong with the length of a value; nothing if the address takes it."""
    return f"Give at most {LONGEST} characters." if len(value) > LONGEST else ""


def number_in(value: str) -> float | None:
    """Return the number of an address, a whole one as an integer; None if it is none."""
    try:
        number = float(value)
    except ValueError:
        return None
    if not isfinite(number):
        return None
    return int(number) if number == int(number) else number


def asked_values(
    query: Mapping[str, QueryValue],
    takes: Mapping[str, Check],
    *,
    lists: Collection[str],
    held: Callable[[str, str], object],
) -> FormValues:
    """Return the values of an address, by field; what the form cannot take is left out.

    `takes`: the parameters that are fields, and `EMPTY`. `lists`: fields of several values.
    `held`: a value as its field holds it.
    """

    def taken(name: str, given: QueryValue) -> list[str]:
        return [value for value in query_values(given) if takes[name](value) is None]

    found: dict[str, object] = {
        name: [] if name in lists else "" for name in taken(EMPTY, query.get(EMPTY))
    }
    for name in query.keys() & takes.keys() - {EMPTY}:
        if name in lists:
            values = list(dict.fromkeys(taken(name, query[name])))
        else:
            values = taken(name, query_value(query[name]))
        if values:
            found[name] = values if name in lists else held(name, values[0])
    return found
