"""The published times of an iteration of PAL's models: their source is in iteration_times.json."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class IterationTimes:
    """Seconds of an iteration by model, on any of the types; `locality_penalty`: across nodes."""

    seconds: Mapping[str, float]
    gpu_types: tuple[str, ...]
    locality_penalty: float


@cache
def iteration_times() -> IterationTimes:
    table = json.loads(files("maat.models").joinpath("iteration_times.json").read_text("utf-8"))
    return IterationTimes(
        table["iteration_seconds"], tuple(table["gpu_types"]), table["locality_penalty"]
    )
