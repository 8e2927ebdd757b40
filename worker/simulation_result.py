"""A simulation's result as the JSON that the API hands to the pages. Computes no figure that the engine has."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from maat.scheduling.metrics import JobRecord
from maat.simulation.engine import SimulationResult
from maat.simulation.fairness import fairness


def result_to_json(result: SimulationResult) -> dict[str, Any]:
    """Summary, one row per job, and step series over cluster seconds; every GPU figure by type."""
    fair = fairness(result)
    return {
        "summary": result.summary(),
        "jobs": [_job(record, fair.rho.get(record.name)) for record in result.records],
        "contention": [[at, count] for at, count in zip(result.round_times, result.contention, strict=True)],
        "gpus_by_type": {name: changes_of(result.round_times, counts) for name, counts in result.gpus_by_type.items()},
        "gpu_hours_by_model_type": _gpu_hours_by_model(result.records),
    }


def changes_of(times: Sequence[float], values: Sequence[int]) -> list[list[float]]:
    """A step series [[time, value], ...] with only the rounds at which the value changed, and the last."""
    last = len(times) - 1
    return [[at, value] for i, (at, value) in enumerate(zip(times, values, strict=True)) if i in (0, last) or values[i - 1] != value]


def _job(record: JobRecord, rho: float | None) -> dict[str, Any]:
    return {
        "name": record.name,
        "model": record.model,
        "submit": record.submit,
        "start": record.start,
        "finish": record.finish,
        "restarts": record.restarts,
        "gpu_hours_by_type": {kind: seconds / 3600 for kind, seconds in record.gpu_seconds.items()},
        "rho": None if rho is None or math.isnan(rho) else rho,
    }


def _gpu_hours_by_model(records: Sequence[JobRecord]) -> dict[str, dict[str, float]]:
    hours: dict[str, dict[str, float]] = {}
    for record in records:
        of_model = hours.setdefault(record.model, {})
        for kind, seconds in record.gpu_seconds.items():
            of_model[kind] = of_model.get(kind, 0.0) + seconds / 3600
    return hours
