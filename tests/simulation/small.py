"""A model whose speed can be computed by hand.

A pass takes one second at any batch size; synchronisation takes no time, and there is no noise.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from maat.laboratory.setup import Setup
from maat.models.truth import FittedTruth
from maat.scheduling.job import JobSpec, MemoryLimits
from maat.simulation.scenario import Scenario

Run = TypeVar("Run", Scenario, Setup)

LIMITS = MemoryLimits(smallest_per_gpu=1, largest_per_gpu=30)


def truth(
    *,
    pass_seconds: float = 1.0,
    noise_scale: float = 0.0,
    slowdown: float = 1.0,
    work: float = 1000.0,
) -> FittedTruth:
    """Four epochs of 250 effective samples; ten samples a step at the start, up to 400."""
    parameters = np.array([pass_seconds, 1e-12, 1e-8, 1e-8, 1e-8, 1e-8, 1.0])
    return FittedTruth(
        initial_batch_size=10,
        max_batch_size=400,
        work=work,
        epochs=4,
        parameters={"t4": parameters, "a100": parameters / np.array([2, 2, 1, 1, 1, 1, 1])},
        smallest_per_gpu={"t4": 1, "a100": 1},
        largest_per_gpu={"t4": 30, "a100": 30},
        gpus_per_replica={},
        noise_scale_curve=[(0.0, noise_scale), (1.0, noise_scale)],
        slowdown=slowdown,
    )


def spec(job_id: str = "x", **changes: Any) -> JobSpec:
    """What its owner declares of a job that trains the model."""
    values: dict[str, Any] = {
        "model": "m",
        "submitted_at": 0.0,
        "work": 1000.0,
        "initial_batch_size": 10,
        "max_batch_size": 400,
        "memory": {"t4": LIMITS, "a100": LIMITS},
        **changes,
    }
    return JobSpec(id=job_id, **values)


def under(run: Run, **conditions: object) -> Run:
    """The same run under conditions that differ in these."""
    return replace(run, conditions=replace(run.conditions, **conditions))  # type: ignore[arg-type]
