"""A report as CSV (RFC 4180, UTF-8): one block per table, each with what it is before its rows.

A spreadsheet takes a cell that begins with = + - @ or a control character for a formula: such
text gets an apostrophe in front. Numbers are written as they are.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from io import StringIO

from maat.api.reports import Cell, FigureOut, ReportOut
from maat.csv_output import defused

HEADLINES = ("headline", "unit", "value", "before", "change", "formula")


def csv_of(report: ReportOut) -> bytes:
    """Return the report as CSV. Its first column says which table a row belongs to."""
    out = StringIO()
    writer = csv.writer(out, lineterminator="\r\n", quoting=csv.QUOTE_MINIMAL)
    for row in _rows(report):
        writer.writerow([_safe(cell) for cell in row])
    return out.getvalue().encode("utf-8")


def _rows(report: ReportOut) -> Iterator[Sequence[Cell]]:
    facts = ("title", "cluster", "tenant", "as_of", "currency", "maat_version")
    for name in facts:
        yield ["report", name, str(report[name] or "")]  # type: ignore[literal-required]
    for name in ("period", "before"):
        period = report[name]  # type: ignore[literal-required]
        yield ["report", name, period["from"], period["to"]]
    yield ["headlines", *HEADLINES]
    for one in report["headlines"]:
        yield [
            "headlines",
            one["key"],
            one["unit"],
            one["value"],
            one["before"],
            one["change"],
            one["formula"],
        ]
    for figure in report["figures"]:
        yield from _figure(figure)
    yield ["policies", "policy", "version", "placer", "from", "to", "hours", "rounds"]
    for span in report["policies"]:
        yield ["policies", *(str(value) for value in span.values())]
    for caveat in report["caveats"]:
        yield ["caveat", caveat]


def _figure(figure: FigureOut) -> Iterator[Sequence[Cell]]:
    key = figure["key"]
    for name in ("question", "answer", "formula", "window"):
        yield [f"{key}: {name}", figure[name]]
    yield [f"{key}: policies", *figure["policy_versions"]]
    for caveat in figure["caveats"]:
        yield [f"{key}: caveat", caveat]
    yield [
        key,
        *(
            column["label"] if column["unit"] is None else f"{column['label']} ({column['unit']})"
            for column in figure["columns"]
        ),
    ]
    for row in figure["rows"]:
        yield [key, *row]


def _safe(cell: Cell) -> Cell:
    if isinstance(cell, str):
        return defused(cell)
    return "" if cell is None else cell
