"""The series of a simulated run as JSON: of the cluster for charts, of jobs to be asked for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from backend.simulations.series import MAX_POINTS, reduced
from maat.scheduling.arrays import FloatArray
from maat.simulation.series import RunSeries, Stretches

# What a reader sees, and more than a float's text needs: seconds to a millisecond.
TIME_DIGITS, SHARE_DIGITS = 3, 5


def cluster_series(series: RunSeries) -> dict[str, Any]:
    """Return GPUs in use by type, efficiency and nodes, as [[seconds, value], ...].

    Each value holds until the next; no series has more than MAX_POINTS. Null: no job trains.
    """
    used, known, nodes = series.gpus, series.efficiency, series.nodes
    return {
        "gpus_by_type": {
            name: reduced(changes_of(used.times, used.counts[:, column].astype(np.float64)))
            for column, name in enumerate(series.types)
        },
        "efficiency": reduced(changes_of(known.times, known.mean)),
        "efficiency_by_gpu": reduced(changes_of(known.times, known.by_gpu)),
        "nodes": reduced(
            [*changes_of(nodes.times, nodes.nodes.astype(np.float64)), *_until(series)]
        ),
    }


def _until(series: RunSeries) -> list[list[float | None]]:
    """Return the last count of nodes at the end of the run, for a line that reaches it."""
    nodes = series.nodes
    late = len(nodes.times) and series.end_time > nodes.times[-1]
    return [[_time(series.end_time), int(nodes.nodes[-1])]] if late else []


def changes_of(times: FloatArray, values: FloatArray) -> list[list[float | None]]:
    """Return the first value, each that differs from the one before it, and the last."""
    points: list[list[float | None]] = [
        [_time(time), value] for time, value in zip(times.tolist(), _rounded(values), strict=True)
    ]
    last = len(points) - 1
    return [
        point
        for row, point in enumerate(points)
        if row in (0, last) or point[1] != points[row - 1][1]
    ]


def job_series(series: RunSeries) -> dict[str, dict[str, Any]]:
    """Return the stretches of each job as columns, at most MAX_POINTS of them.

    `time`: where each begins; `end`: where the last one ends.
    """
    return {name: _columns(series.of_job(name), series.types) for name in series.jobs}


def _columns(life: Stretches, types: tuple[str, ...]) -> dict[str, Any]:
    end = _time(life.end[-1]) if len(life) else 0.0
    if len(life) > MAX_POINTS:
        life = life.chosen(np.linspace(0, len(life) - 1, MAX_POINTS).round().astype(np.int64))
    names = (*types, None)  # -1, of a wait, is the last
    return {
        "time": [_time(time) for time in life.start.tolist()],
        "end": end,
        "gpu_type": [names[number] for number in life.gpu_type.tolist()],
        "gpu_count": life.gpu_count.tolist(),
        "node_count": life.node_count.tolist(),
        "total_batch_size": [size or None for size in life.batch_size.tolist()],
        "efficiency": _rounded(life.efficiency),
        "locality": _rounded(life.locality),
        "variability": _rounded(life.variability),
        "slowdown": _rounded(life.slowdown),
    }


def _time(seconds: float) -> float:
    return round(float(seconds), TIME_DIGITS)


def _rounded(values: FloatArray) -> list[float | None]:
    """Return the values, rounded; None for NaN, which is not JSON."""
    return [None if math.isnan(value) else round(value, SHARE_DIGITS) for value in values.tolist()]
