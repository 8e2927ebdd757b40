"""Options whose values are numbers in their bounds."""

from __future__ import annotations

import math
from typing import Any

import typer

from maat.library.numbers import number_reader, whole_number_reader
from maat.vocabulary import LEAST_WEIGHT, MOST_WEIGHT


def whole_option(*names: str, least: int, most: int, help: str, panel: str | None = None) -> Any:
    """Make an option, named by its first name, whose value is a whole number.

    `panel`: the part of the help that it stands in.
    """
    read = whole_number_reader(_field(names[0]), least=least, most=most)
    return typer.Option(*names, parser=read, metavar="COUNT", help=help, rich_help_panel=panel)


def whole_argument(field: str, *, least: int, most: int, help: str) -> Any:
    """Make an argument whose value is a whole number."""
    return typer.Argument(
        parser=whole_number_reader(field, least=least, most=most), metavar=field.upper(), help=help
    )


def number_option(
    *names: str,
    help: str,
    least: float = -math.inf,
    most: float = math.inf,
    panel: str | None = None,
) -> Any:
    """Make an option, named by its first name, whose value is a number; see whole_option."""
    read = number_reader(_field(names[0]), least=least, most=most)
    return typer.Option(*names, parser=read, metavar="NUMBER", help=help, rich_help_panel=panel)


def weight_option(*, help: str) -> Any:
    """Make the option of a job's weight, held to its bounds."""
    return number_option("--weight", least=LEAST_WEIGHT, most=MOST_WEIGHT, help=help)


def _field(option: str) -> str:
    return option.removeprefix("--").replace("-", "_")
