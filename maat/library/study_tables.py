"""Columns that the tables of comparisons, sweeps and replays share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from maat.library.arrow import Kind


def mean_kinds(figures: Sequence[str]) -> dict[str, Kind]:
    """Return the columns of a table of means: every figure with its deviation."""
    cells: dict[str, Kind] = {"contestant": str, "policy": str, "placer": str}
    for name in figures:
        cells |= {name: float, f"{name}_deviation": float}
    return cells


DIFFERENCES: Mapping[str, Kind] = {
    "contestant": str,
    "baseline": str,
    "basis": str,
    **{
        f"{figure}{end}": float
        for figure in ("difference_hours", "ratio")
        for end in ("", "_low", "_high")
    },
    "sooner": float,
    "jobs": int,
    "left_out": int,
    "verdict": str,
}
"""The columns of a table of differences from a baseline."""


def difference_row(paired: Mapping[str, Any], baseline: str) -> tuple[Any, ...]:
    """Return a row of DIFFERENCES; `paired`: a paired difference as data, with a name."""
    intervals = (paired["difference_hours"], paired["ratio"])
    return (
        *(paired["contestant"], baseline, str(paired["basis"])),
        *(of[end] for of in intervals for end in ("estimate", "low", "high")),
        *(paired["sooner"], paired["jobs"], paired["left_out"], str(paired["verdict"])),
    )


def kind_of(values: Sequence[float | int | bool]) -> Kind:
    """Return the kind of a figure's column: whole numbers stay whole if all are."""
    if all(isinstance(value, bool) for value in values):
        return bool
    return int if all(isinstance(value, int) for value in values) else float
