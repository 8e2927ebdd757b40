"""Results without the CPU seconds of their rounds, in which no two runs are equal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from maat.laboratory.comparison import Outcome
from maat.laboratory.figures import FIGURES, untimed
from maat.laboratory.sweep_runner import SweepResult


def outcomes_of(outcomes: Sequence[Outcome]) -> list[Outcome]:
    return [replace(each, figures=untimed(each.figures)) for each in outcomes]


def points_of(result: SweepResult) -> SweepResult:
    points = tuple(replace(each, figures=untimed(each.figures)) for each in result.points)
    return replace(result, points=points)


def columns_of(table: Any) -> Mapping[str, Any]:
    return {
        name: cells
        for name, cells in table.to_dict().items()
        if name not in FIGURES or not FIGURES[name].timed
    }
