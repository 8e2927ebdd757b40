"""Reads tables of other programs as untrusted input, record by record.

A record that cannot be read costs no other record: lines are decoded and cells are bounded one by
one. Knows records and cells, not their meaning. Memory is bounded by a line of MAX_LINE_BYTES.

Traces of Maat's own format are read by it too; profiles and measurements by `csv_input`, which
refuses the file instead: a throughput without one of its rows would be another one.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, AnyStr, NamedTuple

from maat.csv_input import Blame, check_unpacked
from maat.encodings import decoded, decoded_line, encoding_of
from maat.scheduling.errors import InputError

MAX_LINE_BYTES = 16 << 20
MAX_PIPE_BYTES = 256 << 20
MAX_CELL_CHARACTERS = 10_000
_CUT = "\N{HORIZONTAL ELLIPSIS}"  # ends a cell that was cut, so that it is no number
_MOST_LINES_OF_A_RECORD, _MOST_CHARACTERS_OF_A_RECORD = 200, 1 << 20
_SAMPLED_BYTES, _LOOKED_AHEAD = 4096, 10
_DELIMITERS = ",;\t|"
# The line before the header that tells spreadsheets what separates cells.
_SEPARATOR = re.compile(r'\s*"?sep=(.)"?[\s,;|]*', re.IGNORECASE)
_QUOTED_CELL = re.compile(r'\s*"[^"]*(?:""[^"]*)*"')
_CSV_FIELD_LIMIT = 100_000  # csv.field_size_limit() is 131,072, for the whole process


class Line(NamedTuple):
    """A line without its end. `is_utf8`: whether it was; `is_whole`: whether nothing was cut."""

    number: int
    text: str
    is_utf8: bool = True
    is_whole: bool = True


class Record(NamedTuple):
    """A record by the number of its first line.

    `problem`: why its cells cannot be told apart; "" if they can.
    """

    line: int
    cells: tuple[str, ...]
    problem: str = ""


@dataclass(frozen=True, slots=True)
class RecordTable:
    """An opened table: its header, and its records, which can be read once.

    Columns without a name, or whose name stands twice, are named by their place. `not_utf8`: the
    lines read so far that were not UTF-8, and were read as Windows-1252.
    """

    header: tuple[str, ...]
    records: Iterator[Record]
    blame: Blame
    not_utf8: list[int] = field(default_factory=list)


def read_records(
    source: Path | str, *, error: type[InputError], name: str | None = None, quoted: bool = True
) -> RecordTable:
    """Return the table in a file (Path) or in a text (str).

    Cells are separated by what the header has most of: commas, semicolons, tabs or bars; or by
    what a line `sep=` before it says. `quoted`: whether a cell may stand in quotes. Raises `error`
    for anything that has no header.
    """
    blame = Blame(error, name or (str(source) if isinstance(source, Path) else None))
    not_utf8: list[int] = []
    lines = _Lines(_noting_not_utf8(text_lines(source, blame), not_utf8))
    delimiter = _delimiter(lines)
    first = next(_records(lines, delimiter, quoted=quoted, width=None), Record(1, ()))
    if _ends_with_separators(lines, delimiter, len(first.cells)):
        first = first._replace(cells=(*first.cells, ""))
    header = _columns(first, blame)
    records = _records(lines, delimiter, quoted=quoted, width=len(header))
    return RecordTable(header, records, blame, not_utf8)


def _ends_with_separators(lines: _Lines, delimiter: str, width: int) -> bool:
    """Return whether rows, but not the header, end with a separator.

    All of the first rows must: a single one has a separator within a cell.
    """
    ahead = [line.text for place in range(_LOOKED_AHEAD) if (line := lines.look(place))]
    cells = [_quoted_cells(text, delimiter, strict=False) or [] for text in ahead if text.strip()]
    return bool(cells) and all(len(row) == width + 1 and not row[-1].strip() for row in cells)


def readable_twice(source: Path | str, blame: Blame) -> Path | str:
    """Return a file as it is, and the text of a pipe, such as /dev/stdin, which is read once.

    Raises the owner's error for a pipe that cannot be read, or gives more than MAX_PIPE_BYTES.
    """
    if isinstance(source, str) or not (source.is_fifo() or source.is_char_device()):
        return source
    try:
        with source.open("rb") as raw:
            found = raw.read(MAX_PIPE_BYTES + 1)
    except OSError as problem:
        raise _unreadable(problem, blame) from problem
    if len(found) > MAX_PIPE_BYTES:
        raise blame(
            f"gives more than {MAX_PIPE_BYTES >> 20} MiB",
            field="file",
            remedy="Write it to a file, and give that.",
        )
    check_unpacked(found, blame)
    return decoded(found)[0]


def _unreadable(problem: OSError, blame: Blame) -> InputError:
    return blame(
        f"cannot be read: {problem.strerror or problem}",
        field="file",
        remedy="Check the path and that the file may be read.",
    )


def text_lines(source: Path | str, blame: Blame) -> Iterator[Line]:
    """Yield the lines of a file (Path) or a text (str). Raises the owner's error for no text."""
    numbered = enumerate(_raw_lines(source, blame), start=1)
    for number, (text, is_utf8, is_whole) in numbered:
        yield Line(number, text, is_utf8, is_whole)


def _raw_lines(source: Path | str, blame: Blame) -> Iterator[tuple[str, bool, bool]]:
    if isinstance(source, str):
        check_unpacked(source, blame)
        text = source.removeprefix("\ufeff")
        yield from _split_lines((line, True, True) for line in io.StringIO(text, newline="\n"))
        return
    try:
        with source.open("rb") as raw:
            check_unpacked(raw.peek(_SAMPLED_BYTES), blame)
            yield from _split_lines(
                _decoded_lines(raw, encoding_of(raw.peek(_SAMPLED_BYTES)[:_SAMPLED_BYTES]))
            )
    except OSError as problem:
        raise _unreadable(problem, blame) from problem


def _split_lines(lines: Iterator[tuple[str, bool, bool]]) -> Iterator[tuple[str, bool, bool]]:
    """Split at single carriage returns too, as old spreadsheets end their lines."""
    for text, is_utf8, is_whole in lines:
        for part in text.removesuffix("\n").removesuffix("\r").split("\r"):
            yield part, is_utf8, is_whole


def _decoded_lines(raw: IO[bytes], encoding: str) -> Iterator[tuple[str, bool, bool]]:
    if encoding != "utf-8":
        text = io.TextIOWrapper(raw, encoding=encoding, errors="replace", newline="\n")
        for wide, whole in _bounded(text):
            yield wide, True, whole
        return
    mark = b"\xef\xbb\xbf"
    if raw.read(len(mark)) != mark:
        raw.seek(0)
    for line, whole in _bounded(raw):
        yield *decoded_line(line), whole


def _bounded(file: IO[AnyStr]) -> Iterator[tuple[AnyStr, bool]]:
    """Yield each line, or its first MAX_LINE_BYTES; and whether that is all of it."""
    while line := file.readline(MAX_LINE_BYTES):
        whole, rest = True, line
        while len(rest) == MAX_LINE_BYTES and (rest := file.readline(MAX_LINE_BYTES)):
            whole = False
        yield line, whole


def _noting_not_utf8(lines: Iterator[Line], not_utf8: list[int]) -> Iterator[Line]:
    for line in lines:
        if not line.is_utf8:
            not_utf8.append(line.number)
        yield line


class _Lines:
    """Lines, of which some can be looked at before they are taken."""

    def __init__(self, lines: Iterator[Line]) -> None:
        self._lines, self._ahead = lines, deque[Line]()

    def take(self) -> Line | None:
        return self._ahead.popleft() if self._ahead else next(self._lines, None)

    def look(self, place: int) -> Line | None:
        """Return the line that many places ahead; 0: the next."""
        while len(self._ahead) <= place:
            line = next(self._lines, None)
            if line is None:
                return None
            self._ahead.append(line)
        return self._ahead[place]


def _delimiter(lines: _Lines) -> str:
    """Return what separates cells. Takes the line `sep=`, and blank lines before the header."""
    while (first := lines.look(0)) is not None and not first.text.strip():
        lines.take()
    if first is None:
        return ","
    separator = _SEPARATOR.fullmatch(first.text)
    if separator:
        lines.take()
        return separator[1]
    bare = _QUOTED_CELL.sub("", first.text)
    return max(_DELIMITERS, key=bare.count)


def _columns(first: Record, blame: Blame) -> tuple[str, ...]:
    if not first.cells:
        raise blame(
            "is empty",
            field="file",
            remedy="Give a CSV file with a header line and at least one row.",
        )
    if first.problem or any("\0" in cell for cell in first.cells):
        raise blame(
            first.problem or "holds a NUL byte: this is a binary file",
            field="header",
            row=first.line,
            remedy="Give a CSV text file with a header.",
        )
    names = [cell.strip() for cell in first.cells]
    counts = Counter(names)
    return tuple(
        name if name and counts[name] == 1 else f"{name} (column {place})".strip()
        for place, name in enumerate(names, start=1)
    )


def _records(lines: _Lines, delimiter: str, *, quoted: bool, width: int | None) -> Iterator[Record]:
    """Yield the records that are not blank. `width`: how many cells one has; None: any number."""
    while (line := lines.take()) is not None:
        record = _record(line, lines, delimiter, quoted=quoted, width=width)
        if any(map(str.strip, record.cells)):
            yield record


def _record(
    line: Line, lines: _Lines, delimiter: str, *, quoted: bool, width: int | None
) -> Record:
    if not line.is_whole:
        problem = f"it is longer than {MAX_LINE_BYTES >> 20} MiB"
        return Record(line.number, _bounded_cells(line.text[:80].split(delimiter)), problem)
    if not quoted or '"' not in line.text:
        return _fitted(line, line.text.split(delimiter), width)
    cells = _quoted_cells(line.text, delimiter, strict=True)
    if cells is None:
        cells = _over_lines(line, lines, delimiter, width)
    if cells is None:
        cells = _quoted_cells(line.text, delimiter, strict=False)
    return _fitted(line, cells or [line.text], width)


def _fitted(line: Line, cells: Sequence[str], width: int | None) -> Record:
    wrong = width is not None and len(cells) != width
    problem = f"it has not {width} cells, as the header has" if wrong else ""
    return Record(line.number, _bounded_cells(cells), problem)


def _bounded_cells(cells: Sequence[str]) -> tuple[str, ...]:
    most = MAX_CELL_CHARACTERS
    if max(map(len, cells), default=0) <= most:
        return tuple(map(str.strip, cells))
    return tuple(
        cell.strip() if len(cell) <= most else f"{cell[:most].strip()}{_CUT}" for cell in cells
    )


def _over_lines(line: Line, lines: _Lines, delimiter: str, width: int | None) -> list[str] | None:
    """Return the cells of a record one of whose quoted cells goes over several lines.

    A quote that is never closed would swallow the records below it, up to the next quote. So a
    line within the cell must not be a record of its own: then this line alone is broken. None: it
    is; nothing is taken.
    """
    text = line.text
    for place in range(_MOST_LINES_OF_A_RECORD):
        more = lines.look(place)
        if more is None or len(text) > _MOST_CHARACTERS_OF_A_RECORD:
            return None
        text = f"{text}\n{more.text}"
        cells = _quoted_cells(text, delimiter, strict=True)
        if cells is not None and width in (None, len(cells)):
            for _ in range(place + 1):
                lines.take()
            return cells
        if width is not None and len(more.text.split(delimiter)) == width > 1:
            return None
    return None


def _quoted_cells(text: str, delimiter: str, *, strict: bool) -> list[str] | None:
    """Return the cells of a text in which quotes count; None if they do not close."""
    if len(text) > _CSV_FIELD_LIMIT:
        return _long_cells(text, delimiter)
    reader = csv.reader([text], delimiter=delimiter, strict=strict, skipinitialspace=True)
    try:
        return next(reader, [])
    except csv.Error:
        return None


def _long_cells(text: str, delimiter: str) -> list[str] | None:
    cell = re.compile(rf'\s*"([^"]*(?:""[^"]*)*)"\s*|([^{re.escape(delimiter)}]*)')
    cells, at = [], 0
    while match := cell.match(text, at):
        quoted, bare = match.groups()
        cells.append(bare if quoted is None else quoted.replace('""', '"'))
        at = match.end() + 1
        if match.end() == len(text):
            return cells
        if text[match.end()] != delimiter:
            return None
    return None
