"""Simulations as the API answers them."""

from __future__ import annotations

from backend.answers import answer_of
from backend.operations.models import Operation
from backend.sight import Sight
from backend.simulations.comparison import contestant_of
from backend.simulations.models import Simulation, SimulationRun
from backend.simulations.seen import of_trace, request_seen, summary_seen
from backend.simulations.stored import why_unreadable
from maat.api.measurements import UsedOut
from maat.api.simulation_answers import RunOut, SimulationOut
from maat.api.simulations import RunBody


def show_run(run: SimulationRun, requested: RunBody | None, sight: Sight) -> RunOut:
    """Show a run. `requested`: None if what was asked for cannot be read."""
    summary = None if run.summary is None else summary_seen(run.summary, sight)
    name = run.policy if requested is None else contestant_of(run, requested).name
    return answer_of(RunOut, run, name=name, summary=summary)


def show_simulation(
    simulation: Simulation,
    operation: Operation,
    runs: list[SimulationRun],
    used: list[UsedOut],
    sight: Sight,
) -> SimulationOut:
    unreadable = why_unreadable(simulation.request)
    return answer_of(
        SimulationOut,
        simulation,
        state=operation.state,
        request={} if unreadable else request_seen(simulation.request, sight).as_answered(),
        unreadable=unreadable,
        measurements=used,
        runs=[
            show_run(
                run,
                None if unreadable else simulation.request.run_at(run.position),
                of_trace(simulation, run.trace, sight),
            )
            for run in runs
        ],
    )
