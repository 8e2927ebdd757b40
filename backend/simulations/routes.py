"""Routes of simulations."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Response
from fastapi.responses import JSONResponse
from sqlmodel import Session

from backend.accounts.identity import Principal, a_simulation, require
from backend.accounts.permissions import Permission
from backend.idempotency import Answer, KeyHeader, Once, answer_prepared
from backend.laboratory.budget import within_budget
from backend.measurements.uses import shown_uses
from backend.operations.service import operations_of
from backend.pagination import PageAsked
from backend.problems import Conflict
from backend.simulations.comparison import compared
from backend.simulations.fairness_rule import AskedRule, result_by
from backend.simulations.figure_data import MAX_DRAWN, figures_of
from backend.simulations.models import Simulation
from backend.simulations.resources import show_simulation
from backend.simulations.seen import (
    of_trace,
    result_seen,
    results_sight,
    series_seen,
    simulations_sight,
)
from backend.simulations.service import (
    PreparedSimulation,
    chosen_result,
    get_run,
    get_simulation,
    kept_trace,
    prepare_simulation,
    runs_of,
    store_simulation,
)
from backend.tenancy import newest_owned
from backend.web.bodies import TRACE_BYTES, takes_bytes
from backend.web.dependencies import QueueDep, ReadingDep, SessionDep, SettingsDep
from backend.web.still_there import StillThere
from backend.web.strict_json import StrictRoute
from maat.api.fields import Page
from maat.api.simulation_answers import FiguresOut, SimulationOut, SimulationTraceOut
from maat.api.simulations import MAX_CHOSEN_JOBS, MAX_TRACES, SimulationBody
from maat.laboratory.figures import DEFAULT_RULE

router = APIRouter(prefix="/simulations", tags=["simulations"], route_class=StrictRoute)

Reader = Annotated[Principal, Depends(require(Permission.SIMULATIONS_READ))]
ChosenJobs = Annotated[
    list[str],
    Query(
        max_length=MAX_CHOSEN_JOBS,
        description="Names of jobs whose allocations and series to return; may be repeated.",
    ),
]
DrawnRuns = Annotated[
    list[str],
    Query(
        max_length=MAX_DRAWN,
        description="Ids of finished runs; may be repeated. Default: the first ones.",
    ),
]
Runner = Annotated[Principal, Depends(require(Permission.SIMULATIONS_RUN))]


@router.post(
    "",
    operation_id="requestSimulation",
    status_code=202,
    response_model=SimulationOut,
    dependencies=[Depends(a_simulation)],
)
@takes_bytes(TRACE_BYTES)
def create_simulation(
    session: SessionDep,
    reading: ReadingDep,
    settings: SettingsDep,
    queue: QueueDep,
    look: StillThere,
    principal: Runner,
    body: SimulationBody,
    key: KeyHeader = None,
) -> Response:
    """Compare policies on traces.

    Follow the operation in Location; results arrive run by run.
    """

    def answer(prepared: PreparedSimulation) -> Answer:
        simulation = store_simulation(session, principal, prepared, queue)
        (shown,) = _shown(session, principal, [simulation])
        return Answer(
            202,
            shown,
            {"Location": f"/api/v1/operations/{simulation.operation_id}", "Retry-After": "1"},
        )

    once = Once(principal.user_id, "POST /simulations", key, body)
    return answer_prepared(
        reading,
        session,
        once,
        settings,
        prepare=within_budget(
            principal,
            settings,
            lambda before: prepare_simulation(before, principal, body, look),
        ),
        answer=answer,
    )


@router.get("", operation_id="listSimulations")
def list_simulations(
    session: SessionDep, principal: Reader, asked: PageAsked
) -> Page[SimulationOut]:
    """Newest first."""
    found = newest_owned(session, principal, Simulation, asked)
    return Page(items=_shown(session, principal, found.items), next_cursor=found.next_cursor)


@router.get("/{simulation_id}", operation_id="getSimulation")
def read_simulation(session: SessionDep, principal: Reader, simulation_id: str) -> SimulationOut:
    return _shown(session, principal, [get_simulation(session, principal, simulation_id)])[0]


def _shown(
    session: Session, principal: Principal, simulations: Sequence[Simulation]
) -> list[SimulationOut]:
    runs = runs_of(session, [simulation.id for simulation in simulations])
    used = shown_uses(session, [simulation.operation_id for simulation in simulations])
    operations = operations_of(session, simulations)
    sight = simulations_sight(session, principal, simulations, chain.from_iterable(runs.values()))
    return [
        show_simulation(
            simulation,
            operations[simulation.id],
            runs[simulation.id],
            used[simulation.operation_id],
            sight,
        )
        for simulation in simulations
    ]


@router.get(
    "/{simulation_id}/comparison", operation_id="getComparison", response_model=dict[str, Any]
)
def read_comparison(
    session: SessionDep,
    principal: Reader,
    simulation_id: str,
    baseline: Annotated[
        int | None,
        Query(ge=0, description="Number of the contestant to compare the others with."),
    ] = None,
    fairness_rule: AskedRule = DEFAULT_RULE,
) -> dict[str, Any]:
    """Mean and sample standard deviation of every policy over finished runs.

    There is one row per policy and placer. Compares JCT with the baseline job by job: difference
    and ratio with their 95 % intervals, over traces and seeds if there are several, otherwise over
    the jobs of the one run.
    """
    return compared(
        session,
        get_simulation(session, principal, simulation_id),
        baseline=baseline,
        rule=fairness_rule,
    )


@router.get("/{simulation_id}/figures", operation_id="getFigures")
def read_figures(
    session: SessionDep,
    principal: Reader,
    simulation_id: str,
    runs: DrawnRuns = [],  # noqa: B006  (FastAPI copies defaults)
    fairness_rule: AskedRule = DEFAULT_RULE,
) -> FiguresOut:
    """What charts draw of the runs in `runs`, by default of the first finished runs.

    Distributions, sums and short series.
    """
    return figures_of(
        session,
        principal,
        get_simulation(session, principal, simulation_id),
        list(dict.fromkeys(runs)),
        fairness_rule,
    )


@router.get("/{simulation_id}/traces/{number}", operation_id="getSimulationTrace")
def read_trace(
    session: SessionDep,
    principal: Reader,
    simulation_id: str,
    number: Annotated[int, Path(ge=0, le=MAX_TRACES, description="As in the request's traces.")],
) -> SimulationTraceOut:
    """The text of a CSV trace that the simulation was sent with, to play it again."""
    simulation = get_simulation(session, principal, simulation_id)
    return SimulationTraceOut(text=kept_trace(simulation, number))


@router.get(
    "/{simulation_id}/runs/{run_id}/result",
    operation_id="getRunResult",
    response_model=dict[str, Any],
)
def read_result(
    session: SessionDep,
    principal: Reader,
    simulation_id: str,
    run_id: str,
    jobs: ChosenJobs = [],  # noqa: B006  (FastAPI copies defaults)
    fairness_rule: AskedRule = DEFAULT_RULE,
) -> JSONResponse:
    """The full result of a run.

    It has the summary, every job, contention, GPUs in use, efficiency and nodes over time,
    GPU-hours by model and type, decision times and the definitions of the figures; and of the jobs
    named in `jobs` the allocations, and all that they held and achieved over time.
    """
    simulation = get_simulation(session, principal, simulation_id)
    run = get_run(session, simulation, run_id)
    if run.result is None:
        raise Conflict(f"The run has no result: it is {run.state}.", headers={"Retry-After": "1"})
    sight = of_trace(
        simulation, run.trace, results_sight(session, principal, simulation, [run.result])
    )
    seen = result_seen(result_by(run.result, fairness_rule), sight)
    return JSONResponse(chosen_result(seen, series_seen(run.series or {}, sight), jobs))
