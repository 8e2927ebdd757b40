"""Simulations as the API answers them."""

from __future__ import annotations

from typing import Any

from backend.answers import answer_of
from backend.operations.models import Operation
from backend.sight import Sight
from backend.simulations.models import Simulation, SimulationRun
from backend.simulations.seen import of_trace, request_seen, summary_seen
from maat.api.measurements import UsedOut
from maat.api.simulations import RunOut, SimulationOut


def show_run(run: SimulationRun, sight: Sight) -> RunOut:
    summary = None if run.summary is None else summary_seen(run.summary, sight)
    return answer_of(RunOut, run, summary=summary)


def show_simulation(
    simulation: Simulation,
    operation: Operation,
    runs: list[SimulationRun],
    used: list[UsedOut],
    sight: Sight,
) -> SimulationOut:
    return answer_of(
        SimulationOut,
        simulation,
        state=operation.state,
        request=without_text(request_seen(simulation.request, sight)),
        measurements=used,
        runs=[show_run(run, of_trace(simulation, run.trace, sight)) for run in runs],
    )


def without_text(request: dict[str, Any]) -> dict[str, Any]:
    """Replace the text of a trace in a stored request by its length."""
    if "trace" in request:
        return request | {"trace": _shown(request["trace"])}
    return request | {"traces": [_shown(trace) for trace in request["traces"]]}


def _shown(trace: dict[str, Any]) -> dict[str, Any]:
    if "text" not in trace:
        return trace
    length = len(trace["text"].encode())
    return {name: value for name, value in trace.items() if name != "text"} | {"text_bytes": length}
