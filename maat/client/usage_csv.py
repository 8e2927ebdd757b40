"""A report of use as CSV: one row for each of its rows, then other tenants and the total."""

from __future__ import annotations

from collections.abc import Iterator

from maat.api.usage import UsageFigures, UsageOut, WaitsOut
from maat.csv_output import csv_text

FIGURES = tuple(UsageFigures.__annotations__)
WAITS = tuple(WaitsOut.__annotations__)
COLUMNS = ("by", "name", "from", "to", *FIGURES, "currency", *(f"waits_{name}" for name in WAITS))


def usage_csv(found: UsageOut) -> str:
    """Return the report as CSV text. Costs are decimals; an hour without a price has none."""
    return csv_text(COLUMNS, _rows(found))


def _rows(found: UsageOut) -> Iterator[list[str | float | None]]:
    others = [] if found["others"] is None else [found["others"]]
    for row in (*found["rows"], *others):
        yield _row(found, row["name"], row["figures"], row["waits"])
    yield _row(found, "total", found["total"], found["waits"])


def _row(
    found: UsageOut, name: str, figures: UsageFigures, waits: WaitsOut | None
) -> list[str | float | None]:
    period = found["period"]
    of_figures: list[str | float | None] = [figures[key] for key in FIGURES]  # type: ignore[literal-required]
    of_waits: list[str | float | None] = [
        None if waits is None else waits[key]  # type: ignore[literal-required]
        for key in WAITS
    ]
    head: list[str | float | None] = [str(found["by"]), name, period["from"], period["to"]]
    return [*head, *of_figures, found["currency"], *of_waits]
