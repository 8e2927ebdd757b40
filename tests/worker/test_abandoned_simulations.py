"""Simulations that are cancelled, shared by workers, or left by workers that died."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from simulation_samples import operation_of, request_simulation, runs_of
from sqlmodel import col, select

from backend.clocktime import utc_now
from backend.database import Database
from backend.laboratory.use import charge
from backend.models import (
    Operation,
    OperationState,
    Simulation,
    SimulationRun,
)
from backend.settings import Settings
from maat.simulation.record import Position
from worker.laboratory.playing import Laboratory
from worker.simulations import runs as simulations
from worker.simulations.progress import Progress


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(_env_file=None, data_dir=tmp_path)


def test_cancelling_keeps_what_was_played_until_then(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulation_id = request_simulation(database)
    reports = []

    def ask_for_the_end(progress: Progress, position: Position, message: str) -> None:
        reports.append(message)
        if len(reports) == 10:
            request_cancel(database, simulation_id)
        progress._next_at = 0.0
        original(progress, position, message)

    original = Progress.report
    monkeypatch.setattr(Progress, "report", ask_for_the_end)
    assert simulations.run_simulation(database, simulation_id) is OperationState.CANCELLED
    first, second = runs_of(database, simulation_id)
    assert (first.state, second.state, second.result) == ("cancelled", "cancelled", None)
    assert first.summary is not None
    assert (first.summary["complete"], first.summary["rounds"]) == (False, 10)
    assert operation_of(database, simulation_id).state == "cancelled"


def test_workers_that_come_together_share_the_runs(database: Database) -> None:
    simulation_id = request_simulation(database, policies=("srtf", "fifo", "las"))
    meeting = threading.Barrier(2)

    def work() -> OperationState | None:
        meeting.wait()
        return simulations.run_simulation(database, simulation_id)

    with ThreadPoolExecutor(2) as pool:
        ends = [future.result() for future in [pool.submit(work) for _ in range(2)]]

    assert OperationState.SUCCEEDED in ends
    assert [run.state for run in runs_of(database, simulation_id)] == ["succeeded"] * 3
    operation = operation_of(database, simulation_id)
    assert (operation.state, operation.done, operation.total) == ("succeeded", 9.0, 9.0)


def test_a_run_that_another_worker_is_at_is_left_to_it(database: Database) -> None:
    simulation_id = request_simulation(database)
    set_run(
        database, runs_of(database, simulation_id)[0].id, state="running", heartbeat_at=utc_now()
    )
    assert simulations.run_simulation(database, simulation_id) is None
    assert [run.state for run in runs_of(database, simulation_id)] == ["running", "succeeded"]
    assert operation_of(database, simulation_id).state == "running"


def test_the_end_that_was_asked_for_reaches_runs_whose_worker_is_gone(database: Database) -> None:
    simulation_id = request_simulation(database)
    set_run(
        database,
        runs_of(database, simulation_id)[0].id,
        state="running",
        heartbeat_at=utc_now() - timedelta(minutes=5),
    )
    request_cancel(database, simulation_id)
    assert simulations.run_simulation(database, simulation_id) is OperationState.CANCELLED
    assert [run.state for run in runs_of(database, simulation_id)] == ["cancelled", "cancelled"]


def test_a_simulation_whose_worker_is_gone_goes_on_with_the_runs_that_are_left(
    database: Database,
) -> None:
    simulation_id = request_simulation(database)
    simulations.run_simulation(database, simulation_id)
    first, second = runs_of(database, simulation_id)
    long_ago = utc_now() - timedelta(minutes=5)
    with (
        database.session_scope() as session
    ):  # as a worker leaves it that is killed in the second run
        session.connection().execute(
            sa.update(Operation).values(state="running", heartbeat_at=long_ago, finished_at=None)
        )
    set_run(
        database,
        second.id,
        state="running",
        result=None,
        series=None,
        summary=None,
        finished_at=None,
        heartbeat_at=long_ago,
    )
    assert work(database) == {simulation_id: (1, 1, 0)}
    assert simulations.run_simulation(database, simulation_id) is OperationState.SUCCEEDED
    again_first, again_second = runs_of(database, simulation_id)
    assert again_first.finished_at == first.finished_at
    assert again_second.state == "succeeded"
    for name in ("jobs", "gpus_by_type", "efficiency", "nodes"):
        assert again_second.result[name] == second.result[name]
    assert again_second.series == second.series
    assert set(second.series) == {"first", "second", "third"}


def test_a_run_whose_worker_is_gone_waits_though_another_worker_keeps_its_simulation_alive(
    database: Database,
) -> None:
    simulation_id = request_simulation(database, policies=("srtf", "fifo", "las"))
    left, played, _ = runs_of(database, simulation_id)
    long_ago = utc_now() - timedelta(minutes=5)
    set_run(database, left.id, state="running", heartbeat_at=long_ago)
    set_run(database, played.id, state="running", heartbeat_at=utc_now())
    with database.session_scope() as session:
        session.connection().execute(
            sa.update(Operation).values(state="running", heartbeat_at=utc_now())
        )

    assert work(database) == {simulation_id: (2, 1, 1)}
    assert simulations.run_simulation(database, simulation_id) is None
    assert [run.state for run in runs_of(database, simulation_id)] == [
        "succeeded",
        "running",
        "succeeded",
    ]


def test_what_a_dead_worker_left_comes_before_what_was_requested_later(
    database: Database, settings: Settings
) -> None:
    first, second, third = (request_simulation(database, policies=("fifo",)) for _ in range(3))
    abandon(database, second)
    charge_to(database, second, seconds=100.0)
    laboratory = Laboratory(database, settings)
    assert laboratory.play_next()
    assert states(database, first, second, third) == ["queued", "succeeded", "queued"]
    assert laboratory.play_next()
    assert states(database, first, second, third) == ["succeeded", "succeeded", "queued"]


def test_a_cancelled_simulation_whose_worker_is_gone_is_ended(database: Database) -> None:
    simulation_id = request_simulation(database, policies=("fifo",))
    abandon(database, simulation_id)
    request_cancel(database, simulation_id)
    assert work(database) == {}
    simulations.end_cancelled(database)
    assert operation_of(database, simulation_id).state == "cancelled"
    assert states(database, simulation_id) == ["cancelled"]


def work(database: Database) -> dict[str, tuple[int, int, int]]:
    """Of each simulation: how many runs wait, were left by dead workers, and are played."""
    with database.session_scope(writes=False) as session:
        found = {one.operation_id: one for one in simulations.work(session)}
        mine = select(Simulation).where(col(Simulation.operation_id).in_(found))
        named = {one.id: found[one.operation_id] for one in session.exec(mine)}
    return {name: (one.waiting, one.left, one.played) for name, one in named.items()}


def states(database: Database, *simulations: str) -> list[str]:
    return [run.state for one in simulations for run in runs_of(database, one)]


def charge_to(database: Database, simulation_id: str, *, seconds: float) -> None:
    operation_id = operation_of(database, simulation_id).id
    with database.session_scope() as session:
        charge(session, operation_id, seconds, now=utc_now())


def set_run(database: Database, run_id: str, **values: object) -> None:
    with database.session_scope() as session:
        session.connection().execute(
            sa.update(SimulationRun).where(col(SimulationRun.id) == run_id).values(**values)
        )


def abandon(database: Database, simulation_id: str) -> None:
    """Leave a simulation as a worker that died long ago did."""
    long_ago = utc_now() - timedelta(minutes=5)
    left = {"state": "running", "heartbeat_at": long_ago, "started_at": long_ago}
    (run,) = runs_of(database, simulation_id)
    set_run(database, run.id, **left)
    operation = operation_of(database, simulation_id).id
    with database.session_scope() as session:
        session.connection().execute(
            sa.update(Operation).where(col(Operation.id) == operation).values(**left)
        )


def request_cancel(database: Database, simulation_id: str) -> None:
    operation_id = operation_of(database, simulation_id).id
    with database.session_scope() as session:
        operation = session.get_one(Operation, operation_id)
        operation.cancel_requested = True
        session.add(operation)
