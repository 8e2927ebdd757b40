"""A benchmark's figures as data, and their output. Measures nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from rich.console import Console
from rich.table import Table

Cell = float | int | str | None


@dataclass(frozen=True)
class Figures:
    """Rows of measured figures.

    `columns`: key -> heading; rows have those keys, absent or None if nothing was measured.
    """

    name: str
    title: str
    columns: dict[str, str]
    rows: list[dict[str, Cell]]
    notes: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, object]:
        return asdict(self)


def show(figures: Figures, console: Console) -> None:
    table = Table(title=figures.title, title_justify="left", header_style="bold")
    for key, heading in figures.columns.items():
        words = any(isinstance(row.get(key), str) for row in figures.rows[:1])
        table.add_column(heading, justify="left" if words else "right", overflow="fold")
    for row in figures.rows:
        table.add_row(*(_text(row.get(key)) for key in figures.columns))
    if figures.rows:
        console.print(table)
    else:
        console.print(figures.title, style="italic")
    for note in figures.notes:
        console.print(f"  {note}", highlight=False, style="dim")
    console.print()


def _text(cell: Cell) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, float):
        return "0" if cell == 0 else f"{cell:.3g}" if abs(cell) >= 1e-3 else f"{cell:.1e}"
    return str(cell)


def growth(sizes: Sequence[float], costs: Sequence[float]) -> list[float | None]:
    """Return the exponent of cost growth from each row to the next; None first.

    1 is linear.
    """
    exponents: list[float | None] = [None]
    for (s0, c0), (s1, c1) in zip(
        zip(sizes, costs, strict=True), list(zip(sizes, costs, strict=True))[1:], strict=False
    ):
        grown = s1 > s0 > 0 and c0 > 0 and c1 > 0
        exponents.append(math.log(c1 / c0) / math.log(s1 / s0) if grown else None)
    return exponents
