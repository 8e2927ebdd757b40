"""What is read of another system's record of a job, and why a record is dropped."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_ABSENT = {"", "none", "unknown", "n/a", "null", "nan", "invalid"}
_ELAPSED = re.compile(r"(?:(\d{1,6})-)?(\d{1,4}):(\d{2}):(\d{2})(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class ForeignJob:
    """A job as another system recorded it.

    `submitted`: seconds since 1970; only differences matter. `ran_seconds`: on its GPUs, all its
    runs together. `gpu_type`: as the record writes it; None if it does not. `state`: its word for
    how the job ended.
    """

    row: int
    name: str
    submitted: float
    ran_seconds: float
    gpu_count: int
    gpu_type: str | None
    tenant: str
    state: str


@dataclass(frozen=True, slots=True)
class Dropped:
    """A record that becomes no job. `cause` is the same for all records dropped for it."""

    row: int
    cause: str
    column: str
    value: str
    remedy: str


class Unusable(Exception):
    """A record cannot become a job; the reader of the format turns this into Dropped."""

    def __init__(self, cause: str, *, column: str, value: object, remedy: str) -> None:
        super().__init__(cause)
        self.cause, self.column, self.value, self.remedy = cause, column, str(value)[:80], remedy

    def at(self, row: int) -> Dropped:
        return Dropped(row, self.cause, self.column, self.value, self.remedy)


Found = Iterator[ForeignJob | Dropped]
Cells = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ForeignFormat:
    """A format of another system.

    `read`: yields what is read of a file (Path) or its text (str), in its order; raises TraceError
    if it is not of the format. `about`: in a sentence, what becomes of a record.
    """

    title: str
    read: Callable[[Path | str], Found]
    about: str


def is_absent(text: str) -> bool:
    return text.lower() in _ABSENT


def number_in(text: str) -> float | None:
    """Return the number that a cell holds; None if it holds none."""
    try:
        found = float(text)
    except ValueError:
        return None
    return found if math.isfinite(found) and "_" not in text else None


def seconds_cell(cells: Cells, column: str) -> float:
    """Return a duration above zero: seconds, or [days-]HH:MM:SS."""
    text = cells[column]
    parts = _ELAPSED.fullmatch(text)
    found = (
        number_in(text)
        if parts is None
        else ((int(parts[1] or 0) * 24 + int(parts[2])) * 60 + int(parts[3])) * 60.0 + int(parts[4])
    )
    if found is None:
        raise Unusable(
            f"{column} is no duration",
            column=column,
            value=text,
            remedy="Write seconds, or [days-]HH:MM:SS.",
        )
    return ran(found, column, text)


def ran(seconds: float, column: str, value: object) -> float:
    """Return how long a job ran, if it did."""
    if seconds < 0:
        raise Unusable(
            f"by its {column} it ends before it starts",
            column=column,
            value=value,
            remedy="Correct the record.",
        )
    if seconds == 0:
        raise Unusable(
            "it never ran",
            column=column,
            value=value,
            remedy="Nothing: a job that held no GPUs says not how long it would.",
        )
    if seconds > 1e8:
        raise Unusable(
            f"{column} is longer than three years",
            column=column,
            value=value,
            remedy="Correct the record.",
        )
    return seconds


def count_cell(cells: Cells, column: str) -> int:
    """Return a number of GPUs, at least one."""
    text = cells[column]
    found = number_in(text)
    if found is None or not found.is_integer() or found < 0:
        raise Unusable(
            f"{column} is no number of GPUs",
            column=column,
            value=text,
            remedy="Write a whole number.",
        )
    return gpus(int(found), column, text)


def gpus(count: int, column: str, value: object) -> int:
    if count < 1:
        raise Unusable(
            "it had no GPUs",
            column=column,
            value=value,
            remedy="Nothing: a job without GPUs is none for Maat.",
        )
    return count
