"""Takes simulations: checks the whole request, then stores it with its runs and its operation. Running them is the worker's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy.orm import defer
from sqlmodel import Session, col, select

from backend.accounts.identity import Principal
from backend.clusters.repository import get_cluster
from backend.clusters.service import check_parts
from backend.database import after_commit
from backend.operations.models import Operation
from backend.problems import FieldError, Invalid, NotFound, Problem, invalid_input
from backend.queue import RUN_SIMULATION, Queue
from backend.simulations.conditions import check_conditions, check_reserved_jobs
from backend.simulations.models import Simulation, SimulationRun
from backend.simulations.schemas import RunBody, SimulationBody
from backend.simulations.traces import workload_of
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import InputError
from maat.scheduling.policies import suiting_placer
from maat.simulation.catalog import load_catalog
from maat.simulation.workloads import Workload


def request_simulation(session: Session, principal: Principal, body: SimulationBody, queue: Queue) -> Simulation:
    """Raises Invalid naming what cannot be used; nothing is stored then."""
    cluster = check_conditions(body)
    for index, run in enumerate(body.runs):
        _check_run(run, index)
    request = body.model_dump(mode="json")
    if body.trace.kind == "cluster":
        request["trace"]["cluster_id"] = cluster_id_of(session, body.trace.cluster_id)
    workload = _checked_workload(session, request["trace"])
    check_fits(workload, cluster)
    check_reserved_jobs(body, {job.name for job in workload.jobs})
    simulation = _store(session, principal, body, request)
    after_commit(session, lambda: queue.send(RUN_SIMULATION, simulation.id))
    return simulation


def get_simulation(session: Session, principal: Principal, simulation_id: str) -> Simulation:
    """Raises NotFound for another tenant's simulation too."""
    found = session.get(Simulation, simulation_id)
    if found is None or not principal.may_see(found.tenant_id):
        raise NotFound(f"There is no simulation {simulation_id!r}.")
    return found


def runs_of(session: Session, simulation_ids: list[str]) -> dict[str, list[SimulationRun]]:
    """Their runs in order, without the large results."""
    found: dict[str, list[SimulationRun]] = {simulation_id: [] for simulation_id in simulation_ids}
    without_result: Any = defer(SimulationRun.result, raiseload=True)
    statement = select(SimulationRun).options(without_result).where(col(SimulationRun.simulation_id).in_(simulation_ids))
    for run in session.exec(statement.order_by(col(SimulationRun.position))):
        found[run.simulation_id].append(run)
    return found


def get_run(session: Session, simulation: Simulation, run_id: str) -> SimulationRun:
    """With its result. Raises NotFound."""
    run = session.get(SimulationRun, run_id)
    if run is None or run.simulation_id != simulation.id:
        raise NotFound(f"The simulation has no run {run_id!r}.")
    return run


def chosen_result(result: Mapping[str, Any], jobs: Sequence[str]) -> dict[str, Any]:
    """The result with the allocations of these jobs alone. Raises Invalid naming a job that the run does not have."""
    known = {job["name"] for job in result["jobs"]}
    for name in jobs:
        if name not in known:
            message = "The run has no job of this name."
            raise Invalid(message, errors=[FieldError("/jobs", "unknown_job", message, "Use names of the result's `jobs`.", name)])
    kept = result.get("allocations", {})
    return {**result, "allocations": {name: kept.get(name, []) for name in jobs}}


def _check_run(run: RunBody, index: int) -> None:
    try:
        check_parts(run.policy, run.policy_parameters, run.placer, {})
    except Invalid as problem:
        errors = [FieldError(f"/runs/{index}{e.pointer}", e.code, e.message, e.remedy, e.value, e.row) for e in problem.errors]
        raise Invalid(problem.detail, errors=errors) from None


def cluster_id_of(session: Session, named: str) -> str:
    try:
        return get_cluster(session, named).id
    except NotFound as problem:
        error = FieldError("/trace/cluster_id", "unknown_cluster", problem.detail, "Use the id or name of GET /api/v1/clusters.", named)
        raise Invalid(problem.detail, errors=[error]) from None


def _checked_workload(session: Session, trace: dict[str, Any]) -> Workload:
    try:
        return workload_of(session, trace)
    except InputError as error:
        field = "text" if trace["kind"] == "csv" else error.field
        problem: Problem = invalid_input(error, f"/trace/{field}")
        raise problem from None


def check_fits(workload: Workload, cluster: Cluster) -> None:
    """Every model of the trace runs on some GPU type of the cluster: else its jobs would wait for ever."""
    models = load_catalog()
    for name in sorted(workload.models):
        if name not in models or not set(models[name].fits) & set(cluster.type_names):
            runs_on = ", ".join(models[name].fits) if name in models else "no type that is known"
            message = f"No GPU type of the cluster can run {name}, which the trace has."
            raise Invalid(message, errors=[FieldError("/cluster", "no_compatible_gpu_type", message, f"It runs on {runs_on}.", name)])


def _store(session: Session, principal: Principal, body: SimulationBody, request: dict[str, Any]) -> Simulation:
    owner: dict[str, Any] = {"owner_id": principal.user_id, "tenant_id": principal.tenant_id}
    operation = Operation(kind="simulation", total=float(len(body.runs)), unit="runs", message="Waiting for the worker.", **owner)
    session.add(operation)
    session.flush()
    simulation = Simulation(name=body.name, request=request, operation_id=operation.id, **owner)
    session.add(simulation)
    session.flush()
    operation.result_url = f"/api/v1/simulations/{simulation.id}"
    for position, run in enumerate(body.runs):
        chosen = run.model_dump() | {"placer": run.placer or suiting_placer(run.policy)}
        session.add(SimulationRun(simulation_id=simulation.id, position=position, **chosen))
    session.flush()
    return simulation
