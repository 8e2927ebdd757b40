"""A priority on the command line: a class by name, or a number."""

from __future__ import annotations

from maat.library.numbers import whole_number_reader
from maat.scheduling.errors import ParameterError
from maat.vocabulary import MAX_PRIORITY, PRIORITIES, PriorityClass


def read_priority(given: str) -> int:
    """Return the number of a priority. Raises ParameterError."""
    if given in tuple(PriorityClass):
        return PRIORITIES[PriorityClass(given)]
    try:
        return whole_number_reader("--priority", least=-MAX_PRIORITY, most=MAX_PRIORITY)(given)
    except ParameterError:
        raise ParameterError(
            "is no priority",
            field="--priority",
            value=given,
            remedy=f"Give {', '.join(PriorityClass)}, or a whole number from {-MAX_PRIORITY} to "
            f"{MAX_PRIORITY}.",
        ) from None
