"""Numbers as programs and spreadsheets write them: 1234.5, 1.234,5, 1,234.5 or 1 234,5.

`1.800` is 1.8 by one convention and 1,800 by the other. So a file's convention is decided by all of
its numbers; where they show neither, it is asked.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

_GROUP_SPACES = re.compile(r"(?<=\d)[ '\u2019\u00a0\u202f](?=\d{3}(?!\d))")
_PARTS = re.compile(r"[+-]?(\d*)((?:[.,]\d+)+)")


class Decimal(StrEnum):
    """What stands before the decimals of a number."""

    POINT = "point"
    COMMA = "comma"


def plain_number(text: str) -> float | None:
    """Return the finite number in plain notation that a text holds; None if it holds none."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and "_" not in text else None


def number_by(decimal: Decimal | None, text: str) -> float | None:
    """Return the number of a text by a convention; None if it holds none.

    Signs of the other kind may only group thousands. Without a convention, a number that is
    different by each is none.
    """
    if decimal is None:
        if is_unclear(text):
            return None
        decimal = shown_decimal(text) or Decimal.POINT
    text = _GROUP_SPACES.sub("", text)
    point, group = (".", ",") if decimal is Decimal.POINT else (",", ".")
    whole, mark, decimals = text.partition(point)
    if group in decimals or (group in whole and not _is_grouped(whole, group)):
        return None
    return plain_number(f"{whole.replace(group, '')}{'.' if mark else ''}{decimals}")


def _is_grouped(whole: str, group: str) -> bool:
    return re.fullmatch(rf"[+-]?\d{{1,3}}(?:{re.escape(group)}\d{{3}})+", whole) is not None


def shown_decimal(text: str) -> Decimal | None:
    """Return the convention that a number shows; None if it fits both, or is no number."""
    parts = _PARTS.fullmatch(_GROUP_SPACES.sub("", text))
    if parts is None:
        return None
    fits = [kind for kind in Decimal if number_by(kind, text) is not None]
    # a group of three after one to three digits, of which the first is not 0, may be thousands
    if len(fits) == 1:
        return fits[0]
    if parts[1].startswith("0") or not parts[1]:
        return Decimal.POINT if "." in text else Decimal.COMMA
    return None


def is_unclear(text: str) -> bool:
    """Return whether a text is one number by one convention, and another by the other."""
    return _PARTS.fullmatch(text) is not None and shown_decimal(text) is None


@dataclass(slots=True)
class DecimalEvidence:
    """What the cells of a file show: how many show which convention, and which are unclear."""

    cells: int = 0
    point: int = 0
    comma: int = 0
    unclear: int = 0
    example: str | None = None

    def see(self, text: str) -> None:
        self.cells += 1
        shown = shown_decimal(text)
        if shown is Decimal.POINT:
            self.point += 1
        elif shown is Decimal.COMMA:
            self.comma += 1
        elif is_unclear(text):
            self.unclear += 1
            self.example = self.example or text

    def decided(self) -> Decimal | None:
        """Return the file's convention; None if there is none, or it must be asked."""
        return by_far(self.point, self.comma, Decimal.POINT, Decimal.COMMA)

    @property
    def is_open(self) -> bool:
        """Whether so many cells are unclear that it must be asked."""
        return self.decided() is None and not is_rare(self.unclear, self.cells)


Choice = TypeVar("Choice")


def by_far(first: int, second: int, one: Choice, other: Choice) -> Choice | None:
    """Return the choice that many more cells show; those of a few broken records decide nothing."""
    if first >= 3 * second and first:
        return one
    return other if second >= 3 * first and second else None


def is_rare(count: int, cells: int) -> bool:
    """Return whether cells are so few that their records are dropped instead of the file asked."""
    return count == 0 or (cells >= 10 and count <= max(1, cells // 50))
