"""GPU-hours of models by GPU type, from what is kept of runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from maat.papers.observation import Observation

COLUMNS = ("job", "start_seconds", "end_seconds", "gpu_type", "gpu_count")


def gpu_hours_by_type(
    runs: Iterable[Observation], *, round_seconds: float | None = None
) -> dict[str, dict[str, float]]:
    """Return model -> GPU type -> GPU-hours per job of the model, over all runs.

    `round_seconds`: the round in which a job ends counts whole; None: until it ends.
    """
    hours: dict[str, dict[str, float]] = {}
    count: dict[str, int] = {}
    for run in runs:
        model_of = dict(zip(run.jobs["name"], map(str, run.jobs["model"]), strict=True))
        for model in model_of.values():
            count[model] = count.get(model, 0) + 1
        spans: Mapping[str, Sequence[Any]] = run.spans
        for job, start, end, kind, gpus in zip(*(spans[c] for c in COLUMNS), strict=True):
            if kind is None or end is None:
                continue
            until = end if round_seconds is None else _round_end(end, round_seconds)
            of_model = hours.setdefault(model_of[job], {})
            of_model[kind] = of_model.get(kind, 0.0) + (until - start) * gpus / 3600
    return {
        model: {kind: total / count[model] for kind, total in of_model.items()}
        for model, of_model in sorted(hours.items())
    }


def _round_end(seconds: float, round_seconds: float) -> float:
    return math.ceil(seconds / round_seconds) * round_seconds
