"""What is read of another system's record of a job, and why a record is dropped."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from maat.workloads.formats.foreign.numbers import is_unclear, plain_number
from maat.workloads.formats.foreign.questions import ReadingOptions

_ABSENT = {"", "none", "unknown", "n/a", "null", "nan", "nat", "na", "<na>", "\\n", "invalid"}
_ELAPSED = re.compile(r"(?:(\d{1,6})-)?(\d{1,4}):(\d{2}):(\d{2}(?:\.\d+)?)")


@dataclass(frozen=True, slots=True)
class Run:
    """When a record's run began and ended, where it says so, and whether its job ran again.

    `owner`: whose job it is; "" if the record does not say.
    """

    begins: float | None
    ends: float | None
    goes_on: bool
    owner: str


@dataclass(frozen=True, slots=True)
class ForeignJob:
    """A job as another system recorded it.

    `submitted`: seconds since 1970; only differences matter. `ran_seconds`: on its GPUs, all its
    runs together. `gpu_types`: those that it may use, as the record writes them; empty if it names
    none. `state`: its word for how the job ended. `run`: of formats in which a job may have several
    records.
    """

    row: int
    name: str
    submitted: float
    ran_seconds: float
    gpu_count: int
    gpu_types: tuple[str, ...]
    tenant: str
    state: str
    run: Run | None = None

    @property
    def gpu_seconds(self) -> float:
        return self.gpu_count * self.ran_seconds


@dataclass(frozen=True, slots=True)
class Dropped:
    """A record that becomes no job. `cause` is the same for all records dropped for it.

    `gpu_seconds`: what the job held by its record; None if the record does not say.
    """

    row: int
    cause: str
    column: str
    value: str
    remedy: str
    gpu_seconds: float | None


@dataclass(frozen=True, slots=True)
class FurtherRun:
    """A record of another run of a job that has a record already: its work is counted there."""

    row: int
    name: str


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence on how the file was read, for the report."""

    text: str


class Unusable(Exception):
    """A record cannot become a job; the reader of the format turns this into Dropped.

    `gpu_seconds`: what is lost, where the cause itself says it.
    """

    def __init__(
        self,
        cause: str,
        *,
        column: str,
        value: object,
        remedy: str,
        gpu_seconds: float | None = None,
    ) -> None:
        super().__init__(cause)
        self.cause, self.column, self.value, self.remedy = cause, column, str(value)[:80], remedy
        self.gpu_seconds = gpu_seconds

    def at(self, row: int, gpu_seconds: float | None = None) -> Dropped:
        lost = gpu_seconds if self.gpu_seconds is None else self.gpu_seconds
        return Dropped(row, self.cause, self.column, self.value, self.remedy, lost)


Found = Iterator[ForeignJob | Dropped | FurtherRun | Note]
Cells = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ForeignFormat:
    """A format of another system.

    `read`: yields what is read of a file (Path) or its text (str), in its order; raises TraceError
    if it is not of the format, TraceQuestion if it can be read in several ways. `about`: in a
    sentence, what becomes of a record.
    """

    title: str
    read: Callable[[Path | str, ReadingOptions], Found]
    about: str


def is_absent(text: str) -> bool:
    return text.lower() in _ABSENT


def seconds_cell(cells: Cells, column: str) -> float:
    """Return a duration above zero: seconds, or [days-]HH:MM:SS."""
    text = cells[column]
    parts = _ELAPSED.fullmatch(text)
    seconds = (
        plain_number(text)
        if parts is None
        else ((int(parts[1] or 0) * 24 + int(parts[2])) * 60 + int(parts[3])) * 60.0
        + float(parts[4])
    )
    if seconds is None:
        raise no_duration(column, text)
    return ran(seconds, column, text)


def no_duration(column: str, text: str) -> Unusable:
    if is_unclear(text):
        return Unusable(
            f"{column} may be read in two ways: by a decimal point or comma",
            column=column,
            value=text,
            remedy="Say which stands before the decimals (--decimal point).",
        )
    return Unusable(
        f"{column} is no duration",
        column=column,
        value=text,
        remedy="Write seconds, or [days-]HH:MM:SS.",
    )


def ran(seconds: float, column: str, value: object) -> float:
    """Return how long a job ran, if it did. `value`: as the record has it."""
    if seconds < 0 and str(value).lstrip().startswith("-"):
        raise Unusable(
            f"{column} is negative", column=column, value=value, remedy="Correct the record."
        )
    if seconds < 0:
        raise Unusable(
            f"by its {column} it ends before it starts",
            column=column,
            value=value,
            remedy="Give the zone of local times (--zone Europe/Berlin), for clocks that are set "
            "back; or correct the record.",
        )
    if seconds == 0:
        raise Unusable(
            "it never ran",
            column=column,
            value=value,
            remedy="Nothing: a job that held no GPUs says not how long it would.",
            gpu_seconds=0.0,
        )
    if seconds > 1e8:
        raise Unusable(
            f"{column} is longer than three years",
            column=column,
            value=value,
            remedy="Correct the record, or its unit.",
        )
    return seconds


def count_cell(cells: Cells, column: str) -> int:
    """Return a number of GPUs, at least one."""
    text = cells[column]
    return whole_count(plain_number(text), column, text)


def whole_count(number: float | None, column: str, text: str) -> int:
    """Return a number as one of GPUs, at least one."""
    if number is None or not number.is_integer() or number < 0:
        raise Unusable(
            f"{column} is no number of GPUs",
            column=column,
            value=text,
            remedy="Write a whole number.",
        )
    return gpus(int(number), column, text)


def gpus(count: int, column: str, value: object) -> int:
    if count < 1:
        raise Unusable(
            "it had no GPUs",
            column=column,
            value=value,
            remedy="Nothing: a job without GPUs is none for Maat.",
            gpu_seconds=0.0,
        )
    return count
