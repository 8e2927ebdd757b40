"""Reads CSV files as untrusted input, which may be binary or endless.

Knows rows and cells, not their meaning. Rows carry their line number as an editor shows it (the
header is line 1). Memory is bounded by one line, for a file of any size.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

from maat.compression import problem_and_remedy, problem_of_text
from maat.scheduling.errors import InputError

MAX_LINE_CHARACTERS = 10_000
_SNIFFED_BYTES = 8192

Chosen = TypeVar("Chosen", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Blame:
    """The owner of an input: the error class to raise, and the name to show in it."""

    error: type[InputError]
    source: str | None

    def __call__(
        self, problem: str, *, field: str, remedy: str, value: object = None, row: int | None = None
    ) -> InputError:
        return self.error(
            problem, field=field, value=value, remedy=remedy, source=self.source, row=row
        )


class Row(NamedTuple):
    """One line of the file: its number, and its cells by column name."""

    line: int
    cells: dict[str, str]
    blame: Blame

    def number(
        self,
        column: str,
        *,
        minimum: float = -math.inf,
        maximum: float = math.inf,
        above: float = -math.inf,
    ) -> float:
        """Return a finite number from `minimum` to `maximum`, greater than `above`."""
        text = self.cells[column]
        value = _parsed(text)
        if value is None or not math.isfinite(value):
            raise self.blame(
                "is no finite number",
                field=column,
                value=text,
                row=self.line,
                remedy="Give a plain decimal number.",
            )
        if value <= above or not minimum <= value <= maximum:
            raise self.blame(
                _out_of_bounds(minimum, maximum, above),
                field=column,
                value=text,
                row=self.line,
                remedy="Correct it or remove the row.",
            )
        return value

    def whole_number(self, column: str, *, minimum: int = 1, maximum: int = 1_000_000_000) -> int:
        """Return a whole number from `minimum` to `maximum`; 6.0 counts as one."""
        value = self.number(column, minimum=minimum, maximum=maximum)
        if not value.is_integer():
            raise self.blame(
                "is no whole number",
                field=column,
                value=self.cells[column],
                row=self.line,
                remedy=f"Give a whole number from {minimum} up.",
            )
        return int(value)

    def one_of(self, column: str, known: type[Chosen]) -> Chosen:
        """Return a value of an enumeration, written as its members are."""
        text = self.cells[column]
        if text not in [member.value for member in known]:
            remedy = f"Use one of: {', '.join(member.value for member in known)}."
            raise self.blame(
                "is none of the values it may have",
                field=column,
                value=text,
                row=self.line,
                remedy=remedy,
            )
        return known(text)


def _out_of_bounds(minimum: float, maximum: float, above: float) -> str:
    """Say which numbers are allowed; a bound that is infinite is none, and is not named."""
    if math.isfinite(minimum) and math.isfinite(maximum):
        return f"is not between {_plain(minimum)} and {_plain(maximum)}"
    bounds = (("above", above), ("at least", minimum), ("at most", maximum))
    words = [f"{words} {_plain(bound)}" for words, bound in bounds if math.isfinite(bound)]
    return f"must be {' and '.join(words)}"


def _plain(bound: float) -> str:
    return f"{bound:.15g}".replace("e+", "e")


def _parsed(text: str) -> float | None:
    """Return the number in plain decimal notation; None if the text is none.

    Digit groups as in 1_000 are not plain.
    """
    if "_" in text:
        return None
    try:
        return float(text)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class CsvInput:
    """An opened CSV: its header, and its rows, which can be read once."""

    header: tuple[str, ...]
    rows: Iterator[Row]
    blame: Blame

    def require(self, columns: Collection[str]) -> None:
        """Raise an error naming the first of `columns` that the header lacks."""
        for column in columns:
            if column not in self.header:
                raise self.blame(
                    "column is missing",
                    field=column,
                    value=", ".join(self.header),
                    row=1,
                    remedy=f"The header needs the columns {', '.join(columns)}.",
                )


def read_csv(
    source: Path | str,
    *,
    error: type[InputError],
    name: str | None = None,
) -> CsvInput:
    """Return the CSV in a file (Path) or in a text (str).

    Raises `error` for anything that is no CSV with a header.
    """
    blame = Blame(
        error, name if name is not None else (str(source) if isinstance(source, Path) else None)
    )
    lines = source_lines(source, blame)
    cells = _cells(lines, blame)
    _, header = next(cells, (1, []))
    columns = _columns(header, blame)
    return CsvInput(columns, _rows(cells, columns, blame), blame)


def source_lines(source: Path | str, blame: Blame) -> Iterator[str]:
    """Yield the lines of a file (Path) or a text (str), each checked to be text."""
    return _file_lines(source, blame) if isinstance(source, Path) else _text_lines(source, blame)


def check_unpacked(first: bytes | str, blame: Blame) -> None:
    """Raise the owner's error if a file is compressed, by its first bytes, or a text made of it."""
    packed = problem_of_text(first) if isinstance(first, str) else problem_and_remedy(first)
    if packed:
        problem, remedy = packed
        raise blame(problem, field="file", remedy=remedy)


def _columns(header: Sequence[str], blame: Blame) -> tuple[str, ...]:
    if not header:
        raise blame(
            "is empty",
            field="file",
            remedy="Give a CSV file with a header line and at least one row.",
        )
    columns = tuple(column.strip() for column in header)
    _check_header(columns, blame)
    return columns


def _file_lines(path: Path, blame: Blame) -> Iterator[str]:
    try:
        with path.open("rb") as raw:
            sample = raw.peek(_SNIFFED_BYTES)[:_SNIFFED_BYTES]
            check_unpacked(sample, blame)
            if b"\0" in sample:
                raise blame(
                    "is a binary file, not CSV",
                    field="file",
                    remedy="Give a CSV text file in UTF-8.",
                )
            for number, line in enumerate(
                iter(partial(raw.readline, MAX_LINE_CHARACTERS + 1), b""), start=1
            ):
                # the fast path of most lines
                if line.isascii() and len(line) <= MAX_LINE_CHARACTERS and b"\0" not in line:
                    yield line.decode("ascii")
                else:
                    yield _checked(_decoded(line, number, blame), number, blame)
    except OSError as problem:
        raise blame(
            f"cannot be read: {problem.strerror}",
            field="file",
            remedy="Check the path and that the file may be read.",
        ) from problem


def _text_lines(text: str, blame: Blame) -> Iterator[str]:
    check_unpacked(text, blame)
    stream = io.StringIO(text.removeprefix("\ufeff"), newline="")
    for number, line in enumerate(
        iter(lambda: stream.readline(MAX_LINE_CHARACTERS + 1), ""), start=1
    ):
        yield _checked(line, number, blame)


def _decoded(line: bytes, number: int, blame: Blame) -> str:
    try:
        return line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as problem:
        if len(line) > MAX_LINE_CHARACTERS:  # perhaps cut within a character; refused as too long
            return line.decode("latin-1")
        raise blame(
            "is not UTF-8",
            field="file",
            value=line,
            row=number,
            remedy="Save the file as UTF-8 text.",
        ) from problem


def _checked(line: str, number: int, blame: Blame) -> str:
    if len(line) > MAX_LINE_CHARACTERS:
        raise blame(
            f"is longer than {MAX_LINE_CHARACTERS} characters",
            field="line",
            row=number,
            remedy="Put each job or measurement on a line of its own.",
        )
    if "\0" in line:
        raise blame(
            "holds a NUL byte: this is a binary file",
            field="line",
            row=number,
            remedy="Give a CSV text file in UTF-8.",
        )
    return line


def _cells(lines: Iterator[str], blame: Blame) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines that are not blank, as (line number, cells)."""
    reader = csv.reader(lines, strict=True)
    while True:
        try:
            cells = next(reader, None)
        except csv.Error as problem:
            raise blame(
                f"is no CSV: {problem}",
                field="line",
                row=reader.line_num,
                remedy="Check quotes and commas.",
            ) from problem
        if cells is None:
            return
        if any(map(str.strip, cells)):
            yield reader.line_num, cells


def _check_header(columns: Sequence[str], blame: Blame) -> None:
    for index, column in enumerate(columns):
        if column in columns[:index]:
            raise blame(
                "column stands twice in the header",
                field=column or "header",
                row=1,
                remedy="Keep one of them.",
            )


def _rows(
    cells: Iterator[tuple[int, list[str]]], columns: tuple[str, ...], blame: Blame
) -> Iterator[Row]:
    for line, values in cells:
        if len(values) != len(columns):
            raise blame(
                f"has {len(values)} cells where there are {len(columns)} columns",
                field="line",
                value=",".join(values),
                row=line,
                remedy="Complete the row.",
            )
        yield Row(line, dict(zip(columns, map(str.strip, values), strict=True)), blame)
