"""Were we busy? GPU-hours by day: useful, held without use, idle."""

from __future__ import annotations

from collections.abc import Iterator

from backend.reports import words
from backend.reports.facts import Facts, Hours, Use
from backend.reports.figures.parts import GPU_HOURS, cell, figure, quantity, text
from maat.api.reports import FigureOut

QUESTION = "Were we busy?"
COLUMNS = (
    text("when", "From"),
    quantity("useful", "Useful", GPU_HOURS),
    quantity("overhead", "Allocated, not useful", GPU_HOURS),
    quantity("idle", "Idle", GPU_HOURS),
    quantity("capacity", "Capacity", GPU_HOURS),
)
FORMULA = (
    "Capacity = GPUs in service x time. Allocated = GPUs that jobs held x time. Useful = "
    "allocated, less restarts and repeated work, x statistical efficiency. Idle = capacity - "
    "allocated."
)


def busy(facts: Facts) -> FigureOut:
    use = facts.present.use
    if use is None or use.hours.capacity <= 0:
        answer = "Nothing is known: no GPU was in service in this period."
        rows: list[list[str | float | None]] = []
    else:
        answer = _answer(use, facts.past.use)
        rows = [[bucket.label, *_cells(bucket.hours)] for bucket in use.buckets]
    return figure(
        facts,
        "busy",
        QUESTION,
        answer,
        chart="hours",
        columns=COLUMNS,
        rows=rows,
        formula=use.formula if use and use.formula else FORMULA,
        caveats=[] if use is None else [*use.notes, *_caveats(use)],
    )


def _cells(hours: Hours) -> list[float | None]:
    values = (
        hours.useful,
        max(hours.allocated - hours.useful, 0.0),
        hours.idle,
        hours.capacity,
    )
    return [cell(value) for value in values]


def _answer(use: Use, before: Use | None) -> str:
    hours = use.hours
    share = hours.allocated / hours.capacity
    parts = [
        f"Utilisation was {words.percent(share)} of {words.hours(hours.capacity)}; "
        f"{words.percent(hours.useful / hours.capacity)} of the capacity did useful work."
    ]
    wasted = hours.allocated - hours.useful
    if hours.allocated > 0:
        parts.append(
            f"{words.hours(hours.idle)} stood idle, and {words.hours(max(wasted, 0.0))} were "
            "allocated and not useful: restarts, repeated work and batches larger than learning "
            "needs."
        )
    if before is not None and before.hours.capacity > 0:
        past = before.hours.allocated / before.hours.capacity
        parts.append(_compared(share - past))
    if len(use.buckets) > 1:
        known = [b for b in use.buckets if b.hours.capacity > 0]
        if known:
            top = max(known, key=lambda b: b.hours.allocated / b.hours.capacity)
            low = min(known, key=lambda b: b.hours.allocated / b.hours.capacity)
            if top is not low:
                parts.append(
                    f"The fullest was {top.label} "
                    f"({words.percent(top.hours.allocated / top.hours.capacity)}), the emptiest "
                    f"{low.label} ({words.percent(low.hours.allocated / low.hours.capacity)})."
                )
    return " ".join(parts)


def _compared(difference: float) -> str:
    if abs(difference) < 0.005:
        return "That is as full as the period before."
    more = "fuller" if difference > 0 else "emptier"
    return f"That is {abs(difference) * 100:.1f} percentage points {more} than the period before."


def _caveats(use: Use) -> Iterator[str]:
    if use.hours.lost > 0:
        yield (
            f"{words.hours(use.hours.lost)} were lost to failures: work after the last checkpoint."
        )
