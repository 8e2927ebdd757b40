"""Readers of numbers in their bounds, with errors that name field, value and remedy."""

from __future__ import annotations

import math
from collections.abc import Callable

from maat.scheduling.errors import ParameterError


def whole_number_reader(field: str, *, least: int, most: int) -> Callable[[object], int]:
    """Make a reader of whole numbers, which raises ParameterError."""

    def read(given: object) -> int:
        try:
            value = int(str(given))
        except ValueError:  # also for thousands of digits
            raise _refused(
                "is not a whole number",
                field,
                given,
                f"Give a whole number from {least} to {most}.",
            ) from None
        if not least <= value <= most:
            raise _refused(
                f"is not between {least} and {most}",
                field,
                given,
                "Give a whole number in that range.",
            )
        return value

    return read


def number_reader(
    field: str, *, least: float = -math.inf, most: float = math.inf
) -> Callable[[object], float]:
    """Make a reader of numbers, which raises ParameterError."""

    def read(given: object) -> float:
        try:
            value = float(str(given))
        except ValueError:
            value = math.nan
        if math.isnan(value):
            raise _refused("is not a number", field, given, "Give a plain decimal number.")
        if not least <= value <= most:
            raise _refused(
                f"is not between {least:g} and {most:g}",
                field,
                given,
                "Give a number in that range.",
            )
        return value

    return read


def _refused(problem: str, field: str, given: object, remedy: str) -> ParameterError:
    return ParameterError(problem, field=field, value=given, remedy=remedy)
