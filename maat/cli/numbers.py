"""Numbers on the command line, with errors that name option, value and remedy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import typer

from maat.scheduling.errors import ParameterError
from maat.vocabulary import LEAST_WEIGHT, MOST_WEIGHT


def whole(field: str, *, least: int, most: int) -> Callable[[object], int]:
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


def number(
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


def whole_option(*names: str, least: int, most: int, help: str, panel: str | None = None) -> Any:
    """Make an option, named by its first name, whose value is a whole number.

    `panel`: the part of the help that it stands in.
    """
    read = whole(_field(names[0]), least=least, most=most)
    return typer.Option(*names, parser=read, metavar="COUNT", help=help, rich_help_panel=panel)


def whole_argument(field: str, *, least: int, most: int, help: str) -> Any:
    """Make an argument whose value is a whole number."""
    return typer.Argument(
        parser=whole(field, least=least, most=most), metavar=field.upper(), help=help
    )


def number_option(
    *names: str,
    help: str,
    least: float = -math.inf,
    most: float = math.inf,
    panel: str | None = None,
) -> Any:
    """Make an option, named by its first name, whose value is a number; see whole_option."""
    read = number(_field(names[0]), least=least, most=most)
    return typer.Option(*names, parser=read, metavar="NUMBER", help=help, rich_help_panel=panel)


def weight_option(*, help: str) -> Any:
    """Make the option of a job's weight, held to its bounds."""
    return number_option("--weight", least=LEAST_WEIGHT, most=MOST_WEIGHT, help=help)


def _field(option: str) -> str:
    return option.removeprefix("--").replace("-", "_")


def _refused(problem: str, field: str, given: object, remedy: str) -> ParameterError:
    return ParameterError(problem, field=field, value=given, remedy=remedy)
