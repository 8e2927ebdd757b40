"""Whose run of the laboratory is next: tenants share the workers, and none is lost or doubled."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st
from simulation_samples import operation_of, request_simulation, runs_of
from sqlmodel import col, select

from backend.clocktime import utc_now
from backend.database import Database
from backend.laboratory.models import LaboratoryUse
from backend.laboratory.use import charge, lately_used
from backend.models import SimulationRun, Tenant
from backend.settings import Settings
from maat.simulation.record import Position
from worker.laboratory import playing
from worker.laboratory.playing import Laboratory, waiting_runs
from worker.laboratory.work import Work, in_turn
from worker.simulations import runs as simulations

pytestmark = pytest.mark.both_databases

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
DEADLINE_SECONDS = 60.0  # only a test that fails waits as long


@pytest.fixture
def laboratory(database: Database, tmp_path: Path) -> Laboratory:
    return Laboratory(database, Settings(_env_file=None, data_dir=tmp_path))


def work(
    name: str, tenant: str, *, cpu_seconds: float = 0.0, at: float = 0.0, waiting: int = 1
) -> Work:
    created_at = BEGIN + timedelta(seconds=at)
    return Work("simulation", name, tenant, created_at, cpu_seconds, waiting, left=0, played=0)


def names(ordered: list[Work]) -> list[str]:
    return [one.operation_id for one in ordered]


def test_the_tenant_that_has_used_least_for_its_weight_is_next() -> None:
    waiting = [work("a", "red"), work("b", "blue"), work("c", "green")]
    used = {"red": 90.0, "blue": 40.0}
    assert names(in_turn(waiting, used, {})) == ["c", "b", "a"]
    assert names(in_turn(waiting, used, {"red": 3.0})) == ["c", "a", "b"]


def test_of_a_tenants_own_requests_the_one_that_has_had_least_is_next_then_the_oldest() -> None:
    waiting = [
        work("large", "red", cpu_seconds=60.0, at=0.0),
        work("late", "red", at=9.0),
        work("small", "red", at=5.0),
        work("all played", "red", waiting=0),
    ]
    assert names(in_turn(waiting, {"red": 60.0}, {})) == ["small", "late", "large"]


@given(
    st.lists(
        st.tuples(st.sampled_from(("red", "blue", "green")), st.integers(1, 50)),
        min_size=1,
        max_size=40,
    ),
    st.fixed_dictionaries({name: st.integers(1, 4) for name in ("red", "blue", "green")}),
)
def test_tenants_that_always_want_more_get_cpu_by_their_weights(
    lengths: list[tuple[str, int]], weights: dict[str, int]
) -> None:
    """No tenant is further behind another, for its weight, than by one run of the other."""
    queues: dict[str, list[int]] = {}
    for tenant, seconds in lengths:
        queues.setdefault(tenant, []).append(seconds)
    used = dict.fromkeys(queues, 0.0)
    longest = max(seconds for _, seconds in lengths)
    while all(queues.values()):
        waiting = [work(tenant, tenant) for tenant in queues]
        tenant = in_turn(waiting, used, weights)[0].tenant_id
        used[tenant] += queues[tenant].pop()
        shares = [seconds / weights[name] for name, seconds in used.items()]
        assert max(shares) - min(shares) <= longest


def test_a_small_request_of_one_tenant_is_played_after_one_run_of_anothers_many(
    database: Database, laboratory: Laboratory
) -> None:
    many = request_simulation(database, policies=("fifo",) * 6, tenant="red")
    assert laboratory.play_next()
    small = request_simulation(database, policies=("fifo",), tenant="blue")
    assert waiting_runs(database) == 6
    assert laboratory.play_next()
    assert operation_of(database, small).state == "succeeded"
    assert [run.state for run in runs_of(database, many)].count("succeeded") == 1
    for _ in range(5):
        assert laboratory.play_next()
    assert not laboratory.play_next()
    assert operation_of(database, many).state == "succeeded"


def test_the_cpu_of_a_run_is_charged_to_its_operation_and_tenant(
    database: Database, laboratory: Laboratory
) -> None:
    simulation_id = request_simulation(database, policies=("fifo",), tenant="red")
    assert laboratory.play_next()
    operation = operation_of(database, simulation_id)
    with database.session_scope(writes=False) as session:
        (used,) = session.exec(select(LaboratoryUse)).all()
    assert (used.tenant_id, used.kind) == (operation.tenant_id, "simulation")
    assert used.cpu_seconds == operation.cpu_seconds > 0


def test_what_was_used_long_ago_counts_less_and_after_a_day_not_at_all(database: Database) -> None:
    operation = operation_of(database, request_simulation(database))
    with database.session_scope() as session:
        for hours in (0, 1, 25):
            charge(session, operation.id, 40.0, now=BEGIN - timedelta(hours=hours))
        charge(session, operation.id, 40.0, now=BEGIN)
        assert lately_used(session, now=BEGIN) == {operation.tenant_id: 80.0 + 20.0}
        assert lately_used(session, now=BEGIN + timedelta(days=2)) == {}


def test_workers_that_ask_together_play_every_run_once(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_red = request_simulation(database, policies=("fifo",) * 4, tenant="red")
    of_blue = request_simulation(database, policies=("fifo",) * 4, tenant="blue")
    played, meeting, real = list[str](), threading.Barrier(3), simulations._play

    def noting(database: Database, shared: Any, claim: Any, *given: Any) -> None:
        played.append(claim.key)
        real(database, shared, claim, *given)

    monkeypatch.setattr(simulations, "_play", noting)

    def work_on() -> None:
        mine = Laboratory(database, Settings(_env_file=None, data_dir=tmp_path))
        meeting.wait(DEADLINE_SECONDS)
        while mine.play_next():
            pass

    with ThreadPoolExecutor(3) as pool:
        for future in [pool.submit(work_on) for _ in range(3)]:
            future.result()
    runs = [*runs_of(database, of_red), *runs_of(database, of_blue)]
    assert sorted(played) == sorted(run.id for run in runs)
    assert {run.state for run in runs} == {"succeeded"}
    assert operation_of(database, of_red).state == operation_of(database, of_blue).state


def test_what_a_killed_worker_was_at_is_played_once_more_and_nothing_else_is(
    database: Database, laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulation_id = request_simulation(database, policies=("fifo",) * 3)
    assert laboratory.play_next()
    with monkeypatch.context() as patch:
        patch.setattr(simulations, "simulate", killed)
        with pytest.raises(KilledError):
            laboratory.play_next()
    assert waiting_runs(database) == 1, "the other one may still be played"
    before = runs_of(database, simulation_id)[0].finished_at
    long_ago = utc_now() - timedelta(minutes=5)
    with database.session_scope() as session:
        running = col(SimulationRun.state) == "running"
        session.execute(sa.update(SimulationRun).where(running).values(heartbeat_at=long_ago))
    assert waiting_runs(database) == 2
    while laboratory.play_next():
        pass
    runs = runs_of(database, simulation_id)
    assert [run.state for run in runs] == ["succeeded"] * 3
    assert runs[0].finished_at == before
    assert operation_of(database, simulation_id).done == 9.0


def test_a_worker_at_a_long_run_takes_in_a_run_of_a_tenant_that_has_none_played(
    database: Database, laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(playing, "PATIENCE", timedelta(seconds=0))
    monkeypatch.setattr("worker.laboratory.turn.LOOK_SECONDS", 0.0)
    long = request_simulation(database, policies=("fifo",), tenant="red")
    short: list[str] = []
    real = simulations.simulate

    def simulate(scenario: Any, *, on_progress: Callable[[Position], None]) -> Any:
        if not short:  # the first: it has as many rounds as the other one needs
            short.append(request_simulation(database, policies=("fifo",), tenant="blue"))
            deadline = utc_now() + timedelta(seconds=DEADLINE_SECONDS)
            while operation_of(database, short[0]).state != "succeeded":
                assert utc_now() < deadline, "nobody played the short one meanwhile"
                on_progress(Position(0, 0.0, finished=0, jobs=3))
        return real(scenario, on_progress=on_progress)

    monkeypatch.setattr(simulations, "simulate", simulate)
    assert laboratory.play_next()
    assert [operation_of(database, one).state for one in (long, *short)] == ["succeeded"] * 2


def test_a_tenants_weight_counts_among_tenants(database: Database, laboratory: Laboratory) -> None:
    of_red = request_simulation(database, policies=("fifo",), tenant="red")
    of_blue = request_simulation(database, policies=("fifo",), tenant="blue")
    red, blue = operation_of(database, of_red), operation_of(database, of_blue)
    with database.session_scope() as session:
        charge(session, red.id, 30.0, now=utc_now())
        charge(session, blue.id, 20.0, now=utc_now())
        session.execute(sa.update(Tenant).where(Tenant.id == red.tenant_id).values(weight=2.0))
    assert laboratory.play_next()
    states = [operation_of(database, one).state for one in (of_red, of_blue)]
    assert states == ["succeeded", "queued"]


def test_the_runs_of_a_tenant_without_budget_wait_and_others_go_on(
    database: Database, tmp_path: Path
) -> None:
    of_red = request_simulation(database, policies=("fifo",), tenant="red")
    of_blue = request_simulation(database, policies=("fifo",), tenant="blue")
    with database.session_scope() as session:
        charge(session, operation_of(database, of_red).id, 3600.0, now=utc_now())
    frugal = Settings(_env_file=None, data_dir=tmp_path, laboratory_cpu_hours=1.0)
    assert Laboratory(database, frugal).play_next()
    assert not Laboratory(database, frugal).play_next()
    assert operation_of(database, of_blue).state == "succeeded"
    assert operation_of(database, of_red).state == "queued"


def test_a_run_that_takes_more_cpu_than_a_run_may_fails_and_says_so(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worker.laboratory.turn.LOOK_SECONDS", 0.0)
    simulation_id = request_simulation(database, policies=("fifo",))
    short = Settings(_env_file=None, data_dir=tmp_path, run_cpu_hours=1e-9)
    assert Laboratory(database, short).play_next()
    error = operation_of(database, simulation_id).error
    assert error is not None
    assert "an operator can raise MAAT_RUN_CPU_HOURS" in error["detail"]


def test_a_large_trace_is_drawn_by_the_worker_with_the_checks_that_need_all_its_jobs(
    database: Database, laboratory: Laboratory
) -> None:
    trace = {"kind": "generated", "family": "philly", "jobs": 3, "hours": 1, "seed": 1}
    known = {"gpu_type": "t4", "gpu_count": 1, "job": "cifar10-0"}
    fine = request_simulation(database, policies=("fifo",), trace=trace, reservations=[known])
    unknown = known | {"job": "job-that-is-not-there"}
    wrong = request_simulation(database, policies=("fifo",), trace=trace, reservations=[unknown])
    while laboratory.play_next():
        pass
    assert operation_of(database, fine).state == "succeeded"
    error = operation_of(database, wrong).error
    assert error is not None
    assert error["errors"][0]["pointer"] == "/reservations/0/job"


class KilledError(BaseException):
    """Ends a worker where nothing catches it."""


def killed(*_: object, **__: object) -> None:
    raise KilledError
