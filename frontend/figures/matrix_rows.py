"""Which jobs of a round's matrix are shown, in which order, and what was next best for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from maat.api.rounds import RoundRecord

Cells: TypeAlias = Mapping[tuple[int, int], tuple[float, float | None]]
"""(job, column) -> goodput and the policy's utility, of the pairs whose goodput is shown."""

ORDERS = {"decided": "As decided", "loss": "Furthest from best first", "name": "By name"}
DECIDED = "decided"


def cells_of(record: RoundRecord) -> Cells:
    pairs = record["pairs"]
    utilities: Sequence[float | None] = pairs.get("utility") or [None] * len(pairs["job"])
    return {
        (job, column): (goodput, utility)
        for job, column, goodput, utility in zip(
            pairs["job"], pairs["column"], pairs["goodput"], utilities, strict=True
        )
        if goodput is not None
    }


def best_of(cells: Cells) -> dict[int, float]:
    """Return job -> its largest goodput."""
    best: dict[int, float] = {}
    for (job, _), (goodput, _) in cells.items():
        best[job] = max(best.get(job, 0.0), goodput)
    return best


def rows_of(record: RoundRecord, *, sought: str = "", order: str = DECIDED) -> list[int]:
    """Return the rows of the jobs whose name has this text, in this order, a key of ORDERS."""
    names, wanted = record["job_names"], sought.strip().lower()
    rows = [row for row, name in enumerate(names) if wanted in name.lower()]
    if order == "name":
        return sorted(rows, key=lambda row: names[row])
    if order == "loss":
        cells = cells_of(record)
        best = best_of(cells)
        return sorted(rows, key=lambda row: _share_of_best(record, cells, best, row))
    return rows


def _share_of_best(record: RoundRecord, cells: Cells, best: Mapping[int, float], row: int) -> float:
    """Return goodput over the job's best; 0 while it waits, above 1 if neither is known."""
    chosen = record["chosen"][row]
    if not best.get(row):
        return 2.0
    cell = None if chosen is None else cells.get((row, chosen))
    return 0.0 if cell is None else cell[0] / best[row]
