"""What the cells of a table show together, before any record is read.

A number such as 1.800 or a date such as 02/03/2026 can be read in two ways: other cells of the file
show which one is meant. All records count, so that a single broken one decides nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from maat.scheduling.errors import TraceError
from maat.workloads.formats.foreign.dates import DayOrder, needs_order, shown_order, written_date
from maat.workloads.formats.foreign.numbers import Decimal, DecimalEvidence, by_far, is_rare
from maat.workloads.formats.foreign.questions import ReadingOptions, TraceQuestion
from maat.workloads.formats.foreign.record_table import read_records
from maat.workloads.formats.foreign.records import Cells, Note
from maat.workloads.formats.foreign.zone_evidence import ZoneEvidence

_SAMPLED_ROWS = 20_000


@dataclass(slots=True)
class OrderEvidence:
    """How many dates show that the day, or the month, comes first; and how many are unclear."""

    dates: int = 0
    day_first: int = 0
    month_first: int = 0
    unclear: int = 0
    example: str | None = None

    def see(self, text: str) -> None:
        self.dates += 1
        if text[:4].isdigit():  # the year comes first
            return
        shown = shown_order(text)
        if shown is DayOrder.DAY_FIRST:
            self.day_first += 1
        elif shown is DayOrder.MONTH_FIRST:
            self.month_first += 1
        elif needs_order(text):
            self.unclear += 1
            self.example = self.example or text

    def decided(self) -> DayOrder | None:
        """Return the file's order; None if there is none, or it must be asked."""
        return by_far(self.day_first, self.month_first, DayOrder.DAY_FIRST, DayOrder.MONTH_FIRST)

    @property
    def is_open(self) -> bool:
        """Whether so many dates are unclear that it must be asked."""
        return self.decided() is None and not is_rare(self.unclear, self.dates)


@dataclass(slots=True)
class TableScan:
    """The first rows of a table, and what the cells of all rows show."""

    sample: list[Cells] = field(default_factory=list)
    numbers: DecimalEvidence = field(default_factory=DecimalEvidence)
    dates: OrderEvidence = field(default_factory=OrderEvidence)
    dates_without_zone: int = 0
    zones: ZoneEvidence = field(default_factory=ZoneEvidence)

    def check_zone(self, options: ReadingOptions) -> None:
        """Raise TraceQuestion if nobody said the zone of local times on which durations depend."""
        if options.zone is None and self.zones.is_open:
            raise TraceQuestion(
                "name no zone, and clocks changed in some while jobs ran: it decides how long",
                field="zone",
                choices=["Europe/Berlin", "UTC"],
                value=self.zones.example,
                remedy="Say the zone of the machine that wrote them: --zone Europe/Berlin, or "
                "--zone UTC if its clock is not changed. Or export how long jobs ran.",
            )

    def zone_notes(self, options: ReadingOptions) -> Iterator[Note]:
        """Yield what local times count as, if nobody said their zone."""
        if self.dates_without_zone and options.zone is None:
            yield Note(
                f"Times without a zone count as UTC ({self.dates_without_zone} cells): what ran "
                "while clocks changed is an hour off. For local times give their zone "
                "(--zone Europe/Berlin)."
            )

    def decimal(self, options: ReadingOptions) -> Decimal | None:
        """Return the convention of numbers; None if none is needed. Raises TraceQuestion."""
        if options.decimal is None and self.numbers.is_open:
            raise TraceQuestion(
                "does not show whether a comma or a point stands before the decimals",
                field="decimal",
                choices=list(Decimal),
                value=self.numbers.example,
            )
        return options.decimal or self.numbers.decided()

    def order(self, options: ReadingOptions) -> DayOrder | None:
        """Return the order of dates whose year comes last; None if none is needed.

        Raises TraceQuestion.
        """
        if options.dates is None and self.dates.is_open:
            raise TraceQuestion(
                "do not show whether the day or the month comes first",
                field="dates",
                choices=list(DayOrder),
                value=self.dates.example,
            )
        return options.dates or self.dates.decided()


def scan_table(
    source: Path | str,
    *,
    times: Collection[str],
    numbers: Collection[str] = (),
    ran: tuple[str, str] | None = None,
    quoted: bool = True,
) -> TableScan:
    """Read a table once. `times`, `numbers`: its columns of moments, and of other numbers.

    `ran`: the columns of start and end, where the time between them is how long a job ran.
    Raises TraceError for what is no table.
    """
    table, scan = read_records(source, error=TraceError, quoted=quoted), TableScan()
    columns = {name: table.header.index(name) for name in (*times, *numbers)}
    for record in table.records:
        if record.problem:
            continue
        cells = {name: record.cells[place] for name, place in columns.items()}
        if len(scan.sample) < _SAMPLED_ROWS:
            scan.sample.append(cells)
        for name in times:
            _see_time(scan, cells[name])
        for name in numbers:
            scan.numbers.see(cells[name])
        if ran is not None:
            scan.zones.see(cells[ran[0]], cells[ran[1]])
    return scan


def _see_time(scan: TableScan, text: str) -> None:
    date = written_date(text, None)
    if date is None:
        scan.numbers.see(text)
        return
    scan.dates.see(text)
    scan.dates_without_zone += not date.has_zone


def cells_of(sample: Collection[Mapping[str, str]], column: str) -> list[str]:
    """Return the cells of a column."""
    return [cells[column] for cells in sample]
