"""What a sweep found, in a sentence."""

from __future__ import annotations

from frontend.figures.sweep import METRICS, value_text
from frontend.formatting import number, percent
from maat.api.sweeps import RowOut, SweepDetail


def verdict(sweep: SweepDetail, metric: str) -> str:
    """Say with which settings a figure is lowest, how far from the highest, and how sure that is.

    Less is better of every figure of merit. Nothing is said of fewer than two combinations.
    """
    rows = [row for row in sweep["rows"] if metric in row["mean"]]
    if len(rows) < 2:
        return ""
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
    """`Round duration 60 s, Fairness power p -1`"""
    return ", ".join(
        f"{axis['title']} {value_text(row['settings'][axis['name']])}"
        + (f" {axis['unit']}" if axis["unit"] else "")
        for axis in sweep["axes"]
    )


def _certainty(best: RowOut, worst: RowOut, metric: str) -> str:
    seeds = min(len(best["seeds"]), len(worst["seeds"]))
    if seeds < 2:
        return "Not certain on one seed."
    spread = best["spread"].get(metric, 0.0) + worst["spread"].get(metric, 0.0)
    if worst["mean"][metric] - best["mean"][metric] > spread:
        return f"The difference is larger than the spread over {seeds} seeds."
    return f"Not certain: the spread over {seeds} seeds is as large."
