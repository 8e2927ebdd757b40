"""The jobs of a replayed cluster are those at the request, for all runs and after restarts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from live_samples import make_cluster, make_owner, submit
from simulation_samples import operation_of, request_simulation, runs_of
from sqlmodel import col

from backend.accounts.identity import Principal
from backend.accounts.permissions import PERMISSIONS, Role
from backend.clocktime import utc_now
from backend.database import Database
from backend.models import OperationState, Simulation, SimulationRun
from backend.simulations.service import prepare_simulation, store_simulation
from maat.api.simulations import SimulationBody
from worker.simulations import runs as simulations

CANNOT_RUN = {"model": "yolov3", "gpu_types": ["rtx"]}


class Unsent:
    """A queue whose messages nobody needs: the test calls the worker itself."""

    def send(self, task: str, *arguments: str) -> None:
        pass


def ask(database: Database, cluster_id: str, **fields: Any) -> str:
    """Ask for two runs on the cluster's history as the service does; return the id."""
    user, tenant = make_owner(database)
    role = Role.CLUSTER_ADMIN
    principal = Principal(user, "owner", tenant, "tenant", role, PERMISSIONS[role])
    body = SimulationBody.model_validate(
        {
            "name": "s",
            "traces": [{"kind": "cluster", "cluster_id": cluster_id}],
            "cluster": "t4=4x4,a100=2x8",
            "runs": [{"policy": "srtf"}, {"policy": "fifo"}],
        }
        | fields
    )
    with database.session_scope(writes=False) as session:
        prepared = prepare_simulation(session, principal, body)
    with database.session_scope() as session:
        return store_simulation(session, principal, prepared, Unsent()).id


def set_run(database: Database, run: SimulationRun, **values: object) -> None:
    with database.session_scope() as session:
        session.connection().execute(
            sa.update(SimulationRun).where(col(SimulationRun.id) == run.id).values(**values)
        )


def play_the_first(database: Database, simulation_id: str) -> None:
    """Play the first run while another worker is at the second; that worker is then killed."""
    _, second = runs_of(database, simulation_id)
    set_run(database, second, state="running", heartbeat_at=utc_now())
    assert simulations.run_simulation(database, simulation_id) is None
    set_run(database, second, heartbeat_at=utc_now() - timedelta(minutes=5))


def names_in(run: SimulationRun) -> set[str]:
    return {job["name"] for job in run.result["jobs"]}


def test_jobs_submitted_after_the_request_take_part_in_no_run(database: Database) -> None:
    cluster_id = make_cluster(database)
    known = {
        *submit(database, cluster_id, count=2, work_scale=0.05),
        *submit(database, cluster_id, work_scale=0.1, submitted_seconds=90.5, priority=3),
    }
    simulation_id = ask(database, cluster_id)
    submit(database, cluster_id, work_scale=0.05, submitted_seconds=100.0)
    play_the_first(database, simulation_id)
    submit(database, cluster_id, count=2, work_scale=0.05, submitted_seconds=200.0)
    submit(database, cluster_id, submitted_seconds=200.0, **CANNOT_RUN)

    assert simulations.run_simulation(database, simulation_id) is OperationState.SUCCEEDED

    runs = runs_of(database, simulation_id)
    assert [names_in(run) for run in runs] == [known, known]
    assert [run.done for run in runs] == [3.0, 3.0]
    operation = operation_of(database, simulation_id)
    assert (operation.done, operation.total) == (6.0, 6.0)


def test_of_several_traces_only_the_clusters_is_stored_as_text(database: Database) -> None:
    cluster_id = make_cluster(database)
    (known,) = submit(database, cluster_id)
    drawn = {"kind": "generated", "jobs": 3, "hours": 1.0, "seed": 4}
    history = {"kind": "cluster", "cluster_id": "demo"}
    simulation_id = ask(database, cluster_id, traces=[drawn, history])
    submit(database, cluster_id)
    with database.session_scope(writes=False) as session:
        request = session.get_one(Simulation, simulation_id).request
    first, second = request.model_dump(mode="json")["traces"]
    assert (first["kind"], "text" in first) == ("generated", False)
    assert (second["cluster_id"], known in second["text"]) == (cluster_id, True)
    assert request.as_answered()["traces"] == [
        first,
        {"kind": "cluster", "cluster_id": cluster_id},
    ]


def test_a_simulation_stored_without_its_jobs_reads_them_when_it_is_played(
    database: Database,
) -> None:
    cluster_id = make_cluster(database)
    known = submit(database, cluster_id, work_scale=0.05)
    trace = {"kind": "cluster", "cluster_id": cluster_id}
    simulation_id = request_simulation(database, policies=("srtf",), trace=trace)
    known += submit(database, cluster_id, work_scale=0.05)
    assert simulations.run_simulation(database, simulation_id) is OperationState.SUCCEEDED
    (run,) = runs_of(database, simulation_id)
    assert names_in(run) == set(known)
    with database.session_scope(writes=False) as session:
        request = session.get_one(Simulation, simulation_id).request
    assert (request.as_answered()["traces"], request.replays_a_cluster) == ([trace], True)


def test_a_fixed_history_that_cannot_be_played_names_no_job(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    cluster_id = make_cluster(database)
    submit(database, cluster_id, **CANNOT_RUN)
    simulation_id = ask(database, cluster_id, cluster="t4=1x4,rtx=1x4")
    with database.session_scope() as session:
        simulation = session.get_one(Simulation, simulation_id)
        simulation.request = simulation.request.model_copy(update={"cluster": "t4=1x4"})
        session.add(simulation)
    assert simulations.run_simulation(database, simulation_id) is OperationState.FAILED
    error = operation_of(database, simulation_id).error
    assert error is not None
    assert (error["status"], "yolov3" in str(error)) == (422, False)
    assert error["errors"][0]["message"].startswith("A job in the cluster's history"), (
        "it is one's own"
    )
    assert "got 'rtx'" in caplog.text, "the log has the cause"
