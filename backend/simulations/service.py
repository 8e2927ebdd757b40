"""Accepts simulations: checks a request, then stores it with its runs.

The worker runs them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

from sqlalchemy.orm import defer
from sqlmodel import Session, col, select, update

from backend.accounts.identity import Principal
from backend.clusters.repository import get_cluster
from backend.clusters.service import check_parts
from backend.database import after_commit
from backend.measurements.models import MeasurementUse
from backend.measurements.repository import texts_of
from backend.measurements.uses import (
    Measured,
    find_uses,
    keep_uses,
    measured,
    named_measurement,
)
from backend.operations.models import Operation, OperationState
from backend.operations.service import begin_operation, when_cancelled
from backend.problems import FieldError, Invalid, NotFound, Problem, invalid_input
from backend.queue import PLAY_NEXT_RUN, Queue
from backend.simulations.conditions import (
    check_conditions,
    check_gpu_types,
    check_measured_jobs,
    check_models,
    check_reserved_jobs,
    check_scores,
    check_shared_gpus,
    cluster_of,
    conditions_of,
)
from backend.simulations.history import hides_others, own_part, without_naming
from backend.simulations.idle_settings import idle_conditions, refuse
from backend.simulations.models import Simulation, SimulationRun
from backend.simulations.quotas import with_quotas_of
from backend.simulations.stored import (
    HistoryTrace,
    StoredSimulation,
    StoredTrace,
    refuse_unreadable,
)
from backend.simulations.traces import (
    SAMPLED_JOBS,
    drawn_jobs,
    history_of,
    is_drawn_later,
    workload_of,
)
from backend.tenancy import find_owned
from maat.api.simulations import (
    MAX_RUNS,
    ClusterTrace,
    CsvTrace,
    DrawnTrace,
    GeneratedTrace,
    RunBody,
    SimulationBody,
    UploadedTrace,
)
from maat.laboratory.comparison_run import check_different
from maat.laboratory.requested import Model, Scenario, with_runnable_jobs
from maat.scheduling.errors import InputError
from maat.scheduling.policies import suiting_placer
from maat.vocabulary import MeasurementKind
from maat.workloads.workloads import Workload

SIMULATION = "simulation"
AnyTrace = DrawnTrace | CsvTrace | UploadedTrace | ClusterTrace


@dataclass(frozen=True)
class PreparedSimulation:
    """A checked request, ready to store. `jobs`: of all runs together."""

    request: StoredSimulation
    uses: list[MeasurementUse]
    jobs: int


@dataclass(frozen=True)
class _CheckedTrace:
    """A trace as it is stored, and how many jobs it has that can run.

    `workload`: all of them; None where only some were drawn.
    """

    stored: StoredTrace
    jobs: int
    workload: Workload | None


def prepare_simulation(
    session: Session,
    principal: Principal,
    body: SimulationBody,
    look: Callable[[], object] = lambda: None,
) -> PreparedSimulation:
    """Check a request. It only reads, but takes time: traces are read, or some jobs drawn.

    `look`: called before each trace; it may raise. Raises Invalid naming what cannot be used.
    """
    uses = find_uses(session, principal, body)
    found = measured(session, uses, body)
    body = body.model_copy(
        update={
            "traces": [
                with_its_text(session, principal, trace, f"/traces/{index}")
                for index, trace in enumerate(body.traces)
            ]
        }
    )
    check_conditions(body, found)
    refuse(idle_conditions(body))
    _check_count(body)
    for index, run in enumerate(body.runs):
        _check_run(run, index)
    refuse(_repeated(body.runs))
    request = _with_quotas(session, StoredSimulation.of(body))
    checked = []
    for index in range(len(request.traces)):
        look()
        checked.append(_checked_trace(session, principal, request, index, found))
    _check_different(checked)
    return PreparedSimulation(
        request.model_copy(update={"traces": [trace.stored for trace in checked]}),
        uses,
        len(request.runs) * sum(trace.jobs for trace in checked),
    )


def _with_quotas(session: Session, request: StoredSimulation) -> StoredSimulation:
    """Return the request with the quotas of the first cluster whose history it plays again."""
    for index, trace in enumerate(request.traces):
        if isinstance(trace, ClusterTrace):
            cluster_id = cluster_id_of(session, trace.cluster_id, f"/traces/{index}")
            return with_quotas_of(session, request, cluster_id)
    return request


def store_simulation(
    session: Session, principal: Principal, prepared: PreparedSimulation, queue: Queue
) -> Simulation:
    simulation = _store(session, principal, prepared.request, jobs=prepared.jobs)
    keep_uses(session, prepared.uses, simulation.operation_id)
    after_commit(session, partial(queue.send, PLAY_NEXT_RUN))
    return simulation


def _repeated(runs: Sequence[RunBody]) -> Iterator[FieldError]:
    """Yield errors for runs equal to an earlier one.

    Equal figures are no independent evidence.
    """
    for index, run in enumerate(runs):
        first = runs.index(run)
        if first != index:
            message, remedy = (
                f"This run is the same as run {first + 1}.",
                "Give it another policy, placer, parameter or seed, or leave it out.",
            )
            yield FieldError(f"/runs/{index}", "repeated", message, remedy)


def _check_count(body: SimulationBody) -> None:
    count = len(body.runs) * len(body.traces)
    if count > MAX_RUNS:
        message, remedy = (
            f"Every run on every trace makes {count} runs.",
            f"Ask for at most {MAX_RUNS}: fewer traces, policies or seeds.",
        )
        raise Invalid(
            message, errors=[FieldError("/runs", "too_many_runs", message, remedy, count)]
        )


def _check_different(traces: Sequence[_CheckedTrace]) -> None:
    read = [(str(index), one.workload) for index, one in enumerate(traces)]
    try:
        check_different(
            [(name, workload) for name, workload in read if workload is not None], field="traces"
        )
    except InputError as error:
        raise invalid_input(error, f"/traces/{error.value}") from None
    stored = [one.stored for one in traces]
    for index, trace in enumerate(stored):
        if (twin := stored.index(trace)) != index:
            message = f"This trace is the same as trace {twin + 1}."
            twice = FieldError(f"/traces/{index}", "repeated", message, "Name each trace once.")
            raise Invalid(message, errors=[twice])


def _checked_trace(
    session: Session, principal: Principal, request: StoredSimulation, index: int, found: Measured
) -> _CheckedTrace:
    """Return a trace that can be simulated.

    Of one that is drawn, large ones are drawn by the worker alone: what only all jobs show, such as
    a reservation for a job that is not there, the worker tells. A cluster's history is fixed here:
    all runs play the jobs that the cluster has now.
    """
    trace, pointer = request.traces[index], f"/traces/{index}"
    if isinstance(trace, GeneratedTrace) and is_drawn_later(trace):
        sample = trace.model_copy(update={"jobs": SAMPLED_JOBS})
        _checked_scenario(checked_workload(session, sample, found.models, pointer), request, found)
        return _CheckedTrace(trace, drawn_jobs(trace), None)
    if not isinstance(trace, ClusterTrace):
        workload = checked_workload(session, trace, found.models, pointer)
        scenario = _checked_scenario(workload, request, found)
        check_reserved_jobs(scenario)
        check_measured_jobs(scenario)
        return _CheckedTrace(trace, len(scenario.workload), scenario.workload)
    cluster_id = cluster_id_of(session, trace.cluster_id, pointer)
    named = trace.model_copy(update={"cluster_id": cluster_id})
    workload, history = fixed_history(session, named, pointer)
    if found.profiles is not None:
        with without_naming():
            workload = checked_workload(session, history, found.models, pointer)
    if not hides_others(workload, principal):
        scenario = _checked_scenario(workload, request, found)
        check_reserved_jobs(scenario)
        check_measured_jobs(scenario)
        return _CheckedTrace(history, len(scenario.workload), scenario.workload)
    check_reserved_jobs(_checked_scenario(own_part(workload, principal), request, found))
    with without_naming():
        scenario = _checked_scenario(workload, request, found)
    check_measured_jobs(scenario)
    return _CheckedTrace(history, len(scenario.workload), scenario.workload)


def _checked_scenario(workload: Workload, request: StoredSimulation, found: Measured) -> Scenario:
    """Return the scenario, without the jobs that no GPU type of the cluster runs.

    Raises Invalid if these jobs could not be simulated as requested.
    """
    whole = Scenario(
        workload,
        found.models,
        cluster_of(request),
        conditions=conditions_of(request, found),
        seed=request.runs[0].seed,
    )
    check_models(whole)
    scenario = with_runnable_jobs(whole)
    check_fits(scenario)
    check_gpu_types(scenario)
    check_shared_gpus(scenario)
    check_scores(scenario)
    return scenario


def get_simulation(session: Session, principal: Principal, simulation_id: str) -> Simulation:
    """Find a simulation.

    Raises NotFound for another tenant's simulation too, Conflict for one that cannot be read.
    """
    found = find_owned(session, principal, Simulation, simulation_id, noun="simulation")
    refuse_unreadable(found.request)
    return found


def runs_of(session: Session, simulation_ids: list[str]) -> dict[str, list[SimulationRun]]:
    """Return their runs in order, without the large results."""
    found: dict[str, list[SimulationRun]] = {simulation_id: [] for simulation_id in simulation_ids}
    large: Any = (SimulationRun.result, SimulationRun.series)
    statement = (
        select(SimulationRun)
        .options(*(defer(column, raiseload=True) for column in large))
        .where(col(SimulationRun.simulation_id).in_(simulation_ids))
    )
    for run in session.exec(statement.order_by(col(SimulationRun.position))):
        found[run.simulation_id].append(run)
    return found


def kept_trace(simulation: Simulation, number: int) -> str:
    """Return the text of a trace that the simulation was sent with.

    Raises NotFound for a trace that was drawn, or is a cluster's history.
    """
    traces = simulation.request.traces
    trace = traces[number] if 0 <= number < len(traces) else None
    if not isinstance(trace, CsvTrace):
        raise NotFound(f"The simulation was sent with no text as trace {number}.")
    return trace.text


def get_run(session: Session, simulation: Simulation, run_id: str) -> SimulationRun:
    """Find a run with its result. Raises NotFound."""
    run = session.get(SimulationRun, run_id)
    if run is None or run.simulation_id != simulation.id:
        raise NotFound(f"The simulation has no run {run_id!r}.")
    return run


def chosen_result(
    result: Mapping[str, Any], series: Mapping[str, Any], jobs: Sequence[str]
) -> dict[str, Any]:
    """Return the result with the allocations and the series of these jobs only.

    A run of an earlier version has no series. Raises Invalid naming a job that the run does not
    have.
    """
    known = {job["name"] for job in result["jobs"]}
    for name in jobs:
        if name not in known:
            message = "The run has no job of this name."
            raise Invalid(
                message,
                errors=[
                    FieldError(
                        "/jobs", "unknown_job", message, "Use names of the result's `jobs`.", name
                    )
                ],
            )
    kept = result.get("allocations", {})
    return {
        **result,
        "allocations": {name: kept.get(name, []) for name in jobs},
        "series": {name: series[name] for name in jobs if name in series},
    }


def _check_run(run: RunBody, index: int) -> None:
    try:
        check_parts(run.policy, run.policy_parameters, run.placer, run.placer_parameters)
    except Invalid as problem:
        errors = [
            FieldError(f"/runs/{index}{e.pointer}", e.code, e.message, e.remedy, e.value, e.row)
            for e in problem.errors
        ]
        raise Invalid(problem.detail, errors=errors) from None


def cluster_id_of(session: Session, named: str, pointer: str) -> str:
    try:
        return get_cluster(session, named).id
    except NotFound as problem:
        error = FieldError(
            f"{pointer}/cluster_id",
            "unknown_cluster",
            problem.detail,
            "Use the id or name of GET /api/v1/clusters.",
            named,
        )
        raise Invalid(problem.detail, errors=[error]) from None


def fixed_history(
    session: Session, trace: ClusterTrace, pointer: str
) -> tuple[Workload, HistoryTrace]:
    """Return the jobs of a cluster's history, and the trace with their text."""
    try:
        found = history_of(session, trace)
    except InputError as error:
        raise invalid_input(error, f"{pointer}/{error.field}") from None
    stored = HistoryTrace.of(trace, found.workload, window=found.window, left_out=found.left_out)
    return found.workload, stored


def with_its_text(
    session: Session, principal: Principal, trace: AnyTrace, pointer: str
) -> AnyTrace:
    """Return an uploaded trace with its text, another as it is.

    Raises Invalid if there is none of this name.
    """
    if not isinstance(trace, UploadedTrace):
        return trace
    named = named_measurement(
        session,
        principal,
        MeasurementKind.TRACE,
        trace.measurement,
        pointer=f"{pointer}/measurement",
    )
    (text,) = texts_of(session, named.id).values()
    return CsvTrace(kind="csv", text=text, name=named.name)


def checked_workload(
    session: Session, trace: StoredTrace, models: Mapping[str, Model], pointer: str
) -> Workload:
    """Return the jobs of a trace. Raises Invalid at the field that is wrong."""
    try:
        return workload_of(session, trace, models)
    except InputError as error:
        field = "text" if isinstance(trace, CsvTrace) else error.field
        problem: Problem = invalid_input(error, f"{pointer}/{field}")
        raise problem from None


def check_fits(scenario: Scenario) -> None:
    """Check that some job may run on the cluster. Raises Invalid.

    A job that is bound to types that the cluster lacks only does not finish; those that no type
    runs are left out before, if others can run.
    """
    workload, models, names = scenario.workload, scenario.models, scenario.cluster.type_names
    here = [job for job in workload.jobs if not job.is_bound_elsewhere(names)]
    kinds = {(job.model, job.gpu_types) for job in here or workload.jobs}
    for name, allowed in sorted(kinds, key=repr):
        model = models.get(name)
        usable = [kind for kind in names if model is not None and model.runs_on(kind)]
        if not [kind for kind in usable if allowed is None or kind in allowed]:
            raise _without_type(name, allowed, tuple(model.memory) if model is not None else ())


def _without_type(name: str, allowed: Sequence[str] | None, known: Sequence[str]) -> Invalid:
    which = "has" if allowed is None else f"has for {', '.join(allowed)} only"
    message = f"No GPU type of the cluster can run {name}, which the trace {which}."
    remedy = f"It runs on {', '.join(known) or 'no known type'}."
    return Invalid(
        message, errors=[FieldError("/cluster", "no_compatible_gpu_type", message, remedy, name)]
    )


def _store(
    session: Session, principal: Principal, request: StoredSimulation, *, jobs: int
) -> Simulation:
    owner: dict[str, Any] = {"owner_id": principal.user_id, "tenant_id": principal.tenant_id}
    operation = Operation(
        kind=SIMULATION,
        total=float(jobs),
        unit="jobs",
        message="Waiting for a worker.",
        **owner,
    )
    simulation = Simulation(name=request.name, request=request, operation_id="", **owner)
    begin_operation(session, operation, simulation, result_url="/api/v1/simulations")
    for position, (run, trace) in enumerate(product(request.runs, range(len(request.traces)))):
        chosen = run.model_dump(exclude={"placer_parameters", "round_seconds"}) | {
            "placer": run.placer or suiting_placer(run.policy),
            "trace": trace,
        }
        session.add(SimulationRun(simulation_id=simulation.id, position=position, **chosen))
    session.flush()
    return simulation


def _cancel_queued_runs(session: Session, operation: Operation) -> None:
    of_operation = select(Simulation.id).where(Simulation.operation_id == operation.id)
    waiting = (
        col(SimulationRun.simulation_id).in_(of_operation),
        col(SimulationRun.state) == OperationState.QUEUED.value,
    )
    session.execute(
        update(SimulationRun).where(*waiting).values(state=OperationState.CANCELLED.value)
    )


when_cancelled(SIMULATION, _cancel_queued_runs)
