"""The options that say how unequal a simulated cluster's GPUs are: what they mean, and what is read from them."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import ParameterError
from maat.simulation.fidelity import Fidelity
from maat.simulation.variability import ScoreDraw, Variability, read_variability

VariabilityFolder = Annotated[
    Path | None, typer.Option("--variability", help="Folder of measured GPUs: how fast each of the cluster's GPUs is.")
]
DrawRule = Annotated[
    ScoreDraw | None, typer.Option("--variability-draw", help="Medians of measured GPUs, or single measurements (rows), by the seed.")
]
Penalties = Annotated[
    list[str] | None,
    typer.Option("--locality-penalty", help="Slowdown across nodes: FACTOR, or MODEL=FACTOR. May be repeated; the last one counts."),
]


def with_draw(preset: Fidelity, draw: ScoreDraw | None, folder: Path | None) -> Fidelity:
    """The fidelity drawing scores in that way, by the simulation's seed; itself where nothing is asked for.

    Raises ParameterError where there is nothing to draw from.
    """
    if draw is None:
        return preset
    if folder is None:
        raise ParameterError(
            "draws from measured GPUs, of which there are none",
            field="variability_draw",
            value=draw.value,
            remedy="Add --variability FOLDER, or leave it out.",
        )
    return replace(preset, variability=replace(preset.variability, draw=draw, draw_seed=None))


def read_measured(folder: Path | None, cluster: Cluster) -> Variability | None:
    """What was measured of the GPU types of a cluster. Raises VariabilityError."""
    return None if folder is None else read_variability(folder, gpu_types=cluster.type_names)


def read_penalties(texts: Sequence[str], models: Collection[str]) -> dict[str, float]:
    """FACTOR for every model, MODEL=FACTOR for one. Raises ParameterError."""
    found: dict[str, float] = {}
    for text in texts:
        model, equals, factor = text.rpartition("=")
        if equals and model not in models:
            raise ParameterError(
                "is no known model", field="locality_penalty", value=model, remedy=f"Use one of: {', '.join(sorted(models))}."
            )
        found |= dict.fromkeys([model] if equals else sorted(models), _factor(factor, text))
    return found


def _factor(factor: str, text: str) -> float:
    try:
        value = float(factor)
    except ValueError:
        value = math.nan
    if not 1 <= value < math.inf:
        raise ParameterError(
            "is no factor of at least 1", field="locality_penalty", value=text, remedy="Write for example 1.7, or resnet50=1.2."
        )
    return value
