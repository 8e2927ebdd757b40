"""What a sweep found, in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from frontend.figures.sweep import METRICS, value_text
from frontend.formatting import number, percent
from maat.api.sweeps import RowOut, SweepDetail


def verdict(sweep: SweepDetail, metric: str) -> str:
    """Say with which settings a figure is lowest, how far from the highest, and how sure that is.

    Less is better of every figure of merit. Nothing is said of fewer than two combinations. First
    stands where jobs can never run: of such settings none is called the lowest.
    """
    rows = [row for row in sweep["rows"] if metric in row["mean"]]
    never = _never(sweep, rows)
    fewest = min((_cannot_run(row) for row in rows), default=0.0)
    rows = [row for row in rows if _cannot_run(row) == fewest]
    found = "" if len(rows) < 2 else _lowest(sweep, rows, metric)
    return f"{never} {found}".strip()


def _cannot_run(row: RowOut) -> float:
    return row["mean"].get("cannot_run", 0.0)


def _never(sweep: SweepDetail, rows: Sequence[RowOut]) -> str:
    """`14 of 30 jobs cannot run with Policy fifo.`: the settings under which most cannot."""
    most = max(rows, key=_cannot_run, default=None)
    if most is None or not _cannot_run(most):
        return ""
    where = f"with {_words(sweep, most)}"
    if all(_cannot_run(row) == _cannot_run(most) for row in rows):
        where = "whatever the setting"
    return f"{number(_cannot_run(most))} of {number(most['mean']['jobs'])} jobs cannot run {where}."


def _lowest(sweep: SweepDetail, rows: Sequence[RowOut], metric: str) -> str:
    best = min(rows, key=lambda row: row["mean"][metric])
    worst = max(rows, key=lambda row: row["mean"][metric])
    low, high = best["mean"][metric], worst["mean"][metric]
    so_far = "" if sweep["done"] >= sweep["total"] else "So far: "
    title, axis = METRICS[metric]
    show = percent if metric == "unfair_fraction" else number
    unit = " h" if axis.endswith("(hours)") else ""
    if low == high:
        return f"{so_far}{title} is {show(low)}{unit} whatever the setting."
    found = f"{title} is lowest, {show(low)}{unit}, with {_words(sweep, best)}"
    less = f"{percent((high - low) / high)} less than the highest, {_words(sweep, worst)}"
    return f"{so_far}{found}: {less}. {_certainty(best, worst, metric)}"


def _words(sweep: SweepDetail, row: RowOut) -> str:
    """`Round duration 60 s, Fairness power p -1`; a value in words has no unit."""
    found = []
    for axis in sweep["axes"]:
        value = row["settings"][axis["name"]]
        unit = f" {axis['unit']}" if axis["unit"] and not isinstance(value, str) else ""
        found.append(f"{axis['title']} {value_text(value)}{unit}")
    return ", ".join(found)


def _certainty(best: RowOut, worst: RowOut, metric: str) -> str:
    seeds = min(len(best["seeds"]), len(worst["seeds"]))
    if seeds < 2:
        return "Not certain on one seed."
    spread = best["spread"].get(metric, 0.0) + worst["spread"].get(metric, 0.0)
    if worst["mean"][metric] - best["mean"][metric] > spread:
        return f"The difference is larger than the spread over {seeds} seeds."
    return f"Not certain: the spread over {seeds} seeds is as large."
