"""Simulations that are cancelled, shared by workers, or left by workers that died."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from simulation_samples import operation_of, request_simulation, runs_of
from sqlmodel import col

from backend.clocktime import utc_now
from backend.database import Database
from backend.models import (
    Operation,
    OperationState,
    SimulationRun,
)
from maat.simulation.record import Position
from worker.simulations import runs as simulations
from worker.simulations.progress import Progress


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
    assert simulations.waiting_simulations(database) == [(simulation_id, 1)]
    assert simulations.run_simulation(database, simulation_id) is OperationState.SUCCEEDED
    again_first, again_second = runs_of(database, simulation_id)
    assert again_first.finished_at == first.finished_at
    assert again_second.state == "succeeded"
    for name in ("jobs", "gpus_by_type", "efficiency", "nodes"):
        assert again_second.result[name] == second.result[name]
    assert again_second.series == second.series
    assert set(second.series) == {"first", "second", "third"}


def test_a_run_whose_worker_is_gone_is_sent_though_another_worker_keeps_its_simulation_alive(
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

    assert simulations.waiting_simulations(database) == [(simulation_id, 1)]
    assert simulations.waiting_simulations(database) == [], "it counts as sent"
    set_run(database, left.id, heartbeat_at=long_ago)
    assert simulations.waiting_simulations(database) == [(simulation_id, 1)], "its message was lost"

    assert simulations.run_simulation(database, simulation_id) is None
    assert [run.state for run in runs_of(database, simulation_id)] == [
        "succeeded",
        "running",
        "succeeded",
    ]


def test_what_a_dead_worker_left_comes_before_what_was_requested_later(
    database: Database,
) -> None:
    first, second, third = (request_simulation(database, policies=("fifo",)) for _ in range(3))
    abandon(database, first)
    assert simulations.run_simulation(database, second) is OperationState.SUCCEEDED
    left, later = runs_of(database, first)[0], runs_of(database, second)[0]
    assert (left.state, operation_of(database, first).state) == ("succeeded", "succeeded")
    assert left.finished_at <= later.started_at  # type: ignore[operator]
    assert runs_of(database, third)[0].state == "queued"


def test_what_a_dead_worker_left_waits_for_the_run_that_is_played_and_not_for_the_next(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = request_simulation(database, policies=("fifo",))
    second = request_simulation(database, policies=("fifo", "srtf"))
    real, playing = simulations.simulate, []

    def simulate(scenario: Any, **given: Any) -> Any:
        if not playing:  # the worker of the first dies while this one is at the second
            abandon(database, first)
        playing.append(scenario)
        return real(scenario, **given)

    monkeypatch.setattr(simulations, "simulate", simulate)
    assert simulations.run_simulation(database, second) is OperationState.SUCCEEDED
    moments = [
        (run.started_at, run.simulation_id)
        for work in (first, second)
        for run in runs_of(database, work)
    ]
    assert [work for _, work in sorted(moments)] == [second, first, second]  # type: ignore[type-var]
    assert operation_of(database, second).done == 6.0


def test_what_a_dead_worker_left_of_a_later_request_does_not_come_first(
    database: Database,
) -> None:
    first, second = (request_simulation(database, policies=("fifo",)) for _ in range(2))
    abandon(database, second)
    assert simulations.run_simulation(database, first) is OperationState.SUCCEEDED
    assert runs_of(database, second)[0].state == "running"


def test_a_simulation_that_a_worker_is_at_is_not_sent_again(database: Database) -> None:
    request_simulation(database)
    with database.session_scope() as session:
        session.connection().execute(
            sa.update(Operation).values(state="running", heartbeat_at=utc_now())
        )
    assert simulations.waiting_simulations(database) == []


def test_a_waiting_simulation_is_sent_once_and_again_only_much_later(database: Database) -> None:
    simulation_id = request_simulation(database)
    assert simulations.waiting_simulations(database) == [(simulation_id, 2)]
    assert simulations.waiting_simulations(database) == []
    with database.session_scope() as session:
        session.connection().execute(
            sa.update(Operation).values(heartbeat_at=utc_now() - timedelta(minutes=2))
        )
    assert simulations.waiting_simulations(database) == [(simulation_id, 2)]


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
