"""The series of a run as tables: GPUs in use, efficiency, nodes, waits, and each job over time."""

from __future__ import annotations

import math
from collections.abc import Mapping

from maat.library.arrow import Kind
from maat.library.tables import Table
from maat.scheduling.arrays import FloatArray
from maat.simulation.series import RunSeries


def gpus_table(series: RunSeries) -> Table:
    """GPUs in use from `time_seconds` to the next row's: all, and of each type (`t4_gpus`)."""
    used = series.gpus
    return Table(
        {"time_seconds": float, "gpus": int, **_of_types(series)},
        [
            (time, sum(counts), *counts)
            for time, counts in zip(used.times.tolist(), used.counts.tolist(), strict=True)
        ],
    )


def efficiency_table(series: RunSeries) -> Table:
    """Mean statistical efficiency from `time_seconds` to the next row's; None while none trains."""
    known = series.efficiency
    return Table(
        {"time_seconds": float, "efficiency": float, "efficiency_by_gpu": float},
        zip(
            known.times.tolist(),
            _none_for_nan(known.mean),
            _none_for_nan(known.by_gpu),
            strict=True,
        ),
    )


def nodes_table(series: RunSeries) -> Table:
    """Nodes in service from `time_seconds` to the next row's, and their GPUs, also by type."""
    nodes = series.nodes
    return Table(
        {"time_seconds": float, "nodes": int, "gpus": int, **_of_types(series)},
        [
            (time, count, sum(gpus), *gpus)
            for time, count, gpus in zip(
                nodes.times.tolist(), nodes.nodes.tolist(), nodes.gpus.tolist(), strict=True
            )
        ],
    )


def waits_table(series: RunSeries) -> Table:
    """One row per wait: a time in which a job had no GPUs."""
    waits = series.stretches.waits
    return Table(
        {"job": str, "start_seconds": float, "end_seconds": float, "wait_seconds": float},
        zip(
            [series.jobs[number] for number in waits.job.tolist()],
            waits.start.tolist(),
            waits.end.tolist(),
            (waits.end - waits.start).tolist(),
            strict=True,
        ),
    )


def job_series_table(series: RunSeries) -> Table:
    """One row per stretch of a job's life in which nothing changed."""
    cut = series.stretches
    types = (*series.types, None)  # -1, of a wait, is the last
    return Table(
        {
            "job": str,
            "start_seconds": float,
            "end_seconds": float,
            "gpu_type": str,
            "gpu_count": int,
            "node_count": int,
            "total_batch_size": int,
            "efficiency": float,
            "locality": float,
            "variability": float,
            "slowdown": float,
        },
        zip(
            [series.jobs[number] for number in cut.job.tolist()],
            cut.start.tolist(),
            cut.end.tolist(),
            [types[number] for number in cut.gpu_type.tolist()],
            cut.gpu_count.tolist(),
            cut.node_count.tolist(),
            [size or None for size in cut.batch_size.tolist()],
            _none_for_nan(cut.efficiency),
            _none_for_nan(cut.locality),
            _none_for_nan(cut.variability),
            _none_for_nan(cut.slowdown),
            strict=True,
        ),
    )


def _of_types(series: RunSeries) -> Mapping[str, Kind]:
    return {f"{name}_gpus": int for name in series.types}


def _none_for_nan(values: FloatArray) -> list[float | None]:
    """Return the values; None for NaN."""
    return [None if math.isnan(value) else value for value in values.tolist()]
