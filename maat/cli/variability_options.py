"""The options for the speed differences of a simulated cluster's GPUs."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Annotated

import typer

from maat.simulation.conditions import penalties_of
from maat.vocabulary import MEASURED, ScoreDraw

VariabilityFolder = Annotated[
    Path | None,
    typer.Option(
        "--variability", help="Folder of measured GPUs: how fast each of the cluster's GPUs is."
    ),
]
DrawRule = Annotated[
    ScoreDraw | None,
    typer.Option(
        "--variability-draw",
        help="Draw medians of measured GPUs, or single measurements (rows), by the seed.",
    ),
]
Penalties = Annotated[
    list[str] | None,
    typer.Option(
        "--locality-penalty",
        help="Slowdown across nodes: FACTOR, or MODEL=FACTOR. May be repeated; the last applies. "
        "Or alone: a table of maat measure locality (CSV); or measured: placers know what the "
        "models' step times show.",
    ),
]


def read_penalties(
    texts: Sequence[str], models: Collection[str]
) -> dict[str, float] | Path | str | None:
    """Read FACTOR for all models, MODEL=FACTOR for one, `measured`, or a table's path.

    Raises ParameterError.
    """
    if len(texts) == 1:
        (text,) = texts
        if text == MEASURED or Path(text).suffix == ".csv":
            return text if text == MEASURED else Path(text)
    found: dict[str, float] = {}
    for text in texts:
        model, equals, factor = text.rpartition("=")
        found |= penalties_of(
            {model: _number(factor)} if equals else _number(factor), models, written=text
        )
    return found or None


def _number(text: str) -> float:
    """Return the number, or NaN."""
    try:
        return float(text)
    except ValueError:
        return math.nan
