"""A simulation's result as JSON for the API and the pages.

Computes no figure that the engine has.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from inspect import cleandoc
from typing import Any

import numpy as np

from backend.simulations.series import MAX_POINTS, reduced
from maat.laboratory.fairness import Fairness, fairness, fairness_by_rule
from maat.laboratory.figures import DEFAULT_RULE, of_fairness
from maat.scheduling.metrics import JobRecord, ScheduleMetrics
from maat.simulation.record import AllocationSpan, SimulationResult
from maat.vocabulary import FairnessRule
from worker.simulations.series import cluster_series


def result_to_json(result: SimulationResult) -> dict[str, Any]:
    """Return the summary, one row per job, and step series over cluster seconds.

    Every GPU figure is by type. No series has more than MAX_POINTS. `allocations` holds the spans
    of every job: the API answers only those of chosen jobs. `fairness` and `rho_by_rule` hold the
    figures of every rule of finish-time fairness: the API answers those of one.
    """
    fair = fairness_by_rule(result)
    measured = {record.name for record in result.measured}
    return {
        "summary": result.summary(),
        "jobs": [
            _job(record, fair, slowdown, is_measured=record.name in measured)
            for record, slowdown in zip(
                result.records, result.series.placement_slowdown.tolist(), strict=True
            )
        ],
        "fairness": {
            "worst_rho": None,
            "unfair_fraction": None,
            **of_fairness(fair),
            "jobs": len(fair[DEFAULT_RULE].rho),
        },
        "contention": reduced(list(zip(result.round_times, result.contention, strict=True))),
        **cluster_series(result.series),
        "gpu_hours_by_model_type": _gpu_hours_by_model(result.measured),
        "policy_seconds": quantiles(result.policy_seconds),
        "allocations": allocations_of(result),
        "definitions": DEFINITIONS,
    }


def quantiles(seconds: Sequence[float]) -> dict[str, float | int] | None:
    """CPU seconds of the policy in a round: minimum, quartiles, 95th percentile and maximum.

    Counts the rounds with jobs; there is no figure without such rounds.
    """
    if not seconds:
        return None
    least, first, median, third, high, most = np.percentile(
        seconds, [0, 25, 50, 75, 95, 100]
    ).tolist()
    return {
        "rounds": len(seconds),
        "min": least,
        "p25": first,
        "median": median,
        "p75": third,
        "p95": high,
        "max": most,
    }


def allocations_of(result: SimulationResult) -> dict[str, list[dict[str, Any]]]:
    """Return, by job, the spans of time in which it held GPUs, in order.

    Spans without GPUs are left out; at most MAX_POINTS are kept.
    """
    ends = {
        record.name: result.end_time if record.finish is None else record.finish
        for record in result.records
    }
    by_job: dict[str, list[AllocationSpan]] = {name: [] for name in ends}
    for span in result.spans:
        if span.job in by_job:
            by_job[span.job].append(span)
    return {name: _stretches(spans, ends[name])[:MAX_POINTS] for name, spans in by_job.items()}


def _stretches(spans: Sequence[AllocationSpan], end: float) -> list[dict[str, Any]]:
    ends = [*(span.start for span in spans[1:]), end] if spans else []
    return [
        {
            "start": span.start,
            "end": until,
            "gpu_type": span.gpu_type,
            "gpu_count": span.gpu_count,
            "node_count": span.node_count,
            "total_batch_size": span.total_batch_size,
        }
        for span, until in zip(spans, ends, strict=True)
        if span.gpu_type is not None and until > span.start
    ]


def _job(
    record: JobRecord,
    fair: Mapping[FairnessRule, Fairness],
    placement_slowdown: float,
    *,
    is_measured: bool,
) -> dict[str, Any]:
    rho = {rule: _finite(found.rho.get(record.name)) for rule, found in fair.items()}
    return {
        "name": record.name,
        "model": record.model,
        "measured": is_measured,
        "submit": record.submit,
        "start": record.start,
        "finish": record.finish,
        "jct": record.jct,
        "waited": record.waited,
        "placement_slowdown": _finite(placement_slowdown),
        "restarts": record.restarts,
        "adaptivity": record.adaptivity.value,
        "interruptions": record.interruptions,
        "lost_gpu_hours": record.lost_gpu_seconds / 3600,
        "gpu_hours_by_type": {kind: seconds / 3600 for kind, seconds in record.gpu_seconds.items()},
        "rho": rho[DEFAULT_RULE],
        "rho_by_rule": {
            rule.value: value for rule, value in rho.items() if rule is not DEFAULT_RULE
        },
    }


def _finite(value: float | None) -> float | None:
    """Return the value; None for NaN, which is not JSON."""
    return None if value is None or math.isnan(value) else value


def _gpu_hours_by_model(records: Sequence[JobRecord]) -> dict[str, dict[str, float]]:
    hours: dict[str, dict[str, float]] = {}
    for record in records:
        of_model = hours.setdefault(record.model, {})
        for kind, seconds in record.gpu_seconds.items():
            of_model[kind] = of_model.get(kind, 0.0) + seconds / 3600
    return hours


def _description(of: object) -> str:
    """Return the docstring's paragraphs and list items, one per line.

    Paragraphs for callers, which start with a backtick, are left out.
    """
    lines = re.split(r"\n\s*\n|\n(?=- )", cleandoc(of.__doc__ or ""))
    return "\n".join(
        " ".join(line.removeprefix("- ").split()) for line in lines if not line.startswith("`")
    )


# A page defines a figure by the docstring of the code that computes it.
_DEFINED: Mapping[str, tuple[object, ...]] = {
    "comparison": (ScheduleMetrics,),
    "jct": (JobRecord.jct,),
    "rho": (fairness, FairnessRule),
    "worst_rho": (Fairness.worst,),
    "unfair_fraction": (Fairness.unfair_fraction,),
    "policy_seconds": (quantiles,),
}
DEFINITIONS = {
    name: "\n".join(_description(of) for of in homes) for name, homes in _DEFINED.items()
}
