"""Converts a sweep request into the library's sweep. The worker calls it too."""

from __future__ import annotations

from collections.abc import Mapping

from backend.measurements.uses import NOTHING_MEASURED, Measured
from backend.simulations.conditions import cluster_of, conditions_of, tuned_of
from backend.simulations.stored import HistoryTrace
from backend.simulations.traces import csv_workload
from backend.sweeps.stored import StoredSweep
from maat.api.simulations import CsvTrace, DrawnTrace
from maat.laboratory.requested import Model
from maat.laboratory.setup import GeneratedTrace, GivenTrace, Setup, TraceSource
from maat.laboratory.sweep import Sweep, Varied


def sweep_of(request: StoredSweep, measured: Measured = NOTHING_MEASURED) -> Sweep:
    """Convert a request. Raises InputError naming field, value and remedy."""
    axes = tuple(Varied.of(vary.name, vary.values) for vary in request.vary)
    return Sweep(base_of(request, measured), axes, tuple(request.seeds))


def base_of(request: StoredSweep, measured: Measured = NOTHING_MEASURED) -> Setup:
    """Return what all points share. Raises InputError."""
    return Setup(
        trace=_source(request.trace, measured.models),
        models=measured.models,
        cluster=cluster_of(request),
        policy=request.policy,
        placer=request.placer,
        policy_parameters=request.policy_parameters,
        placer_parameters=request.placer_parameters,
        conditions=conditions_of(request, measured),
        tuned_by_policy={
            policy: tuned_of(request, rule) for policy, rule in request.tuned_by_policy.items()
        },
    )


def _source(
    trace: DrawnTrace | CsvTrace | HistoryTrace, models: Mapping[str, Model]
) -> TraceSource:
    if isinstance(trace, DrawnTrace):
        return GeneratedTrace(trace.family, trace.jobs, trace.hours, xxl_share=trace.xxl_share)
    return GivenTrace(csv_workload(trace.text, models))
