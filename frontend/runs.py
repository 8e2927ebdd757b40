"""Names of the runs and of the measurements of a simulation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from frontend.formatting import count, plural
from maat.api.measurements import UsedOut
from maat.api.simulation_answers import RunOut
from maat.api.simulations import MAX_SIMULATED_JOBS as MOST_PLAYED

StoredRequest: TypeAlias = Mapping[str, Any]
"""A simulation or a sweep as it was asked for, perhaps of an earlier version."""


def run_names(runs: Sequence[RunOut]) -> list[str]:
    """Return the name of each run, as the comparison has it, with what else tells the runs apart.

    That is the trace, the seed, or a number.
    """
    seeds = len({run["seed"] for run in runs}) > 1
    traces = len({run["trace"] for run in runs}) > 1
    names: list[str] = []
    for run in runs:
        name = (
            run["name"]
            + (f", trace {run['trace'] + 1}" if traces else "")
            + (f", seed {run['seed']}" if seeds else "")
        )
        names.append(name if name not in names else f"{name} ({len(names) + 1})")
    return names


def named_measurements(used: Sequence[UsedOut]) -> list[UsedOut]:
    """Return the measurements under the names to show: a deleted one says so."""
    return [
        {**one, "name": f"{one['name']} (deleted)" if one["deleted"] else one["name"]}
        for one in used
    ]


def left_out_words(request: StoredRequest) -> str:
    """Say which jobs of a cluster's history are not played; nothing if all are."""
    traces = request["traces"] if "traces" in request else [request["trace"]]
    left = sum(trace.get("left_out") or 0 for trace in traces)
    if not left:
        return ""
    return (
        f"The history has more jobs than a replay has room for: the first {count(MOST_PLAYED)} are "
        f"played, {plural(left, 'later job is', 'later jobs are')} left out."
    )


def replayed_cluster(request: StoredRequest) -> str | None:
    """The cluster whose jobs a simulation or sweep replays, if they are those of one."""
    traces = request["traces"] if "traces" in request else [request["trace"]]
    clusters = {trace.get("cluster_id") for trace in traces}
    return clusters.pop() if len(clusters) == 1 else None
