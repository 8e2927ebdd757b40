"""Tests of a machine's clock that is set by an hour: rounds go on, and nothing waits an hour."""

from __future__ import annotations

import itertools
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from live_samples import assert_history_is_whole, make_cluster, round_numbers, submit
from machine_clock import HOUR, MachineClock
from simulation_samples import operation_of, request_simulation, runs_of
from sqlmodel import col, select

from backend.accounts.identity import Principal
from backend.accounts.permissions import PERMISSIONS, Role
from backend.clocktime import reanchor, utc_now
from backend.database import Database
from backend.events.feed import TOPICS, Feed, present_position
from backend.health.service import worker_health
from backend.models import Cluster, Operation, Round
from backend.moments import moment_of
from maat.scheduling.round_result import RoundResult
from maat.scheduling.rounds import ClusterState
from worker import beat
from worker.app import app
from worker.live import step as live
from worker.live.lease import LEASE_SECONDS, take
from worker.rounds.store import SqlRoundStore
from worker.simulations import runs as simulations

BY_AN_HOUR = pytest.mark.parametrize("set_by", [HOUR, -HOUR], ids=["forward", "back"])


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> MachineClock:
    return MachineClock(monkeypatch)


def anchored(database: Database, clock: MachineClock) -> str:
    """A cluster with a round each second, in its first round."""
    cluster_id = make_cluster(database, speed=60.0)
    submit(database, cluster_id, count=3, work_scale=0.2)
    assert live.step_cluster(database, cluster_id) == 1
    return cluster_id


def times_of(database: Database, cluster_id: str) -> list[float]:
    with database.session_scope(writes=False) as session:
        return list(
            session.exec(
                select(Round.at_seconds)
                .where(Round.cluster_id == cluster_id)
                .order_by(col(Round.number))
            )
        )


def make_rounds(database: Database, clock: MachineClock, count: int) -> None:
    """What the beat asks for, as often as rounds are due."""
    for _ in range(count):
        clock.seconds += 1.0
        for cluster_id in live.due_clusters(database):
            live.step_cluster(database, cluster_id)


@BY_AN_HOUR
def test_every_round_is_made_and_cluster_time_passes_evenly(
    database: Database, clock: MachineClock, set_by: float
) -> None:
    cluster_id = anchored(database, clock)
    make_rounds(database, clock, 2)
    clock.off_seconds = set_by
    make_rounds(database, clock, 3)
    clock.off_seconds = 0.0
    make_rounds(database, clock, 3)
    times = times_of(database, cluster_id)
    assert round_numbers(database, cluster_id) == list(range(1, 10))
    assert [later - earlier for earlier, later in itertools.pairwise(times)] == pytest.approx(
        [60.0] * 8
    )
    assert_history_is_whole(database, cluster_id)


def test_a_speed_given_while_a_round_is_made_counts_from_then(
    database: Database, clock: MachineClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster_id, commit = anchored(database, clock), SqlRoundStore.commit

    def after_a_change(store: SqlRoundStore, result: RoundResult, observed: ClusterState) -> bool:
        clock.seconds += 0.5
        with database.session_scope() as session:
            reanchor(session.get_one(Cluster, cluster_id), moment_of(session), speed=1.0)
        return commit(store, result, observed)

    monkeypatch.setattr(SqlRoundStore, "commit", after_a_change)
    clock.seconds += 1.0
    before = times_of(database, cluster_id)[-1]
    assert live.step_cluster(database, cluster_id) == 2
    with database.session_scope(writes=False) as session:
        row = session.get_one(Cluster, cluster_id)
        assert (row.speed, row.anchor_seconds) == (1.0, pytest.approx(before + 90.0))


def test_where_only_the_wall_clock_tells_the_time_rounds_go_on_from_where_it_was_set_back(
    database: Database,
) -> None:
    cluster_id = make_cluster(database, speed=1e-9)
    assert live.step_cluster(database, cluster_id) == 1
    in_an_hour = utc_now() + timedelta(hours=1)
    with database.session_scope() as session:
        row = session.get_one(Cluster, cluster_id)
        row.anchor_wall, row.anchor_boot, row.speed, before = (
            in_an_hour,
            "before the machine started again",
            1e6,
            row.anchor_seconds,
        )
    live.due_clusters(database)
    assert live.due_clusters(database) == [cluster_id]
    assert live.step_cluster(database, cluster_id) == 2
    assert times_of(database, cluster_id)[-1] > before


@BY_AN_HOUR
def test_a_lease_that_a_killed_worker_left_is_taken_over(
    database: Database, clock: MachineClock, set_by: float
) -> None:
    cluster_id = anchored(database, clock)
    clock.off_seconds = -set_by
    assert take(database, cluster_id) is not None
    if (
        not database.is_sqlite
    ):  # PostgreSQL's clock cannot be set here: the lease is written as it would stand
        lease_ends(database, cluster_id, clock.wall() + timedelta(seconds=LEASE_SECONDS))
    clock.off_seconds = 0.0
    make_rounds(database, clock, 2)
    assert round_numbers(database, cluster_id)[-1] >= 2


# Of PostgreSQL alone: all processes on one SQLite have one clock.
@BY_AN_HOUR
@pytest.mark.parametrize(
    "database_url", [pytest.param("postgresql", marks=pytest.mark.needs_postgres)], indirect=True
)
def test_a_worker_whose_clock_is_wrong_takes_no_lease_from_its_holder(
    database: Database, clock: MachineClock, set_by: float
) -> None:
    cluster_id = make_cluster(database)
    assert take(database, cluster_id) is not None
    clock.off_seconds = set_by
    assert take(database, cluster_id) is None


def test_health_calls_a_round_of_the_future_stale_until_the_next_is_made(
    database: Database, clock: MachineClock
) -> None:
    clock.off_seconds = HOUR
    anchored(database, clock)
    with database.session_scope(writes=False) as session:
        assert worker_health(session, clock.wall(), stale_seconds=30.0)["state"] == "ok"
        assert (
            worker_health(session, clock.wall() - timedelta(seconds=1), stale_seconds=30.0)["state"]
            == "ok"
        ), "clocks of two machines differ"
        clock.off_seconds = 0.0
        assert worker_health(session, clock.wall(), stale_seconds=30.0)["state"] == "stale"
    make_rounds(database, clock, 1)
    with database.session_scope(writes=False) as session:
        assert worker_health(session, clock.wall(), stale_seconds=30.0)["state"] == "ok"


def test_a_run_whose_worker_died_before_the_clock_was_set_back_is_played(
    database: Database, clock: MachineClock
) -> None:
    simulation_id = request_simulation(database, policies=("fifo",))
    clock.off_seconds = HOUR
    simulations.join(database, operation_of(database, simulation_id).id)
    with database.session_scope(writes=False) as session:
        simulation = session.get_one(simulations.Simulation, simulation_id)
    assert simulations._claim(database, simulation) is not None
    clock.off_seconds = 0.0
    with database.session_scope(writes=False) as session:
        assert [one.left for one in simulations.work(session)] == [1]
    assert simulations.run_simulation(database, simulation_id) == "succeeded"
    assert [run.state for run in runs_of(database, simulation_id)] == ["succeeded"]


def test_a_stream_tells_of_operations_that_change_after_the_clock_was_set_back(
    database: Database, clock: MachineClock
) -> None:
    simulation_id = request_simulation(database, policies=("fifo",))
    with database.session_scope(writes=False) as session:
        everything = Principal(
            "usr_x", "x", "ten_x", "x", Role.CLUSTER_ADMIN, PERMISSIONS[Role.CLUSTER_ADMIN]
        )
        feed = Feed(present_position(session), frozenset(TOPICS), everything)
        feed.advance(session)
    clock.seconds += 10.0
    clock.off_seconds = -HOUR
    for message in ("first", "second"):
        clock.seconds += 1.0
        with database.session_scope() as session:
            operation = session.get_one(Operation, operation_of(database, simulation_id).id)
            operation.message, operation.updated_at = message, clock.wall()
        with database.session_scope(writes=False) as session:
            assert [change.data["operation_id"] for change in feed.advance(session)] == [
                operation.id
            ]
    assert (
        feed.position.operations_ms <= (clock.wall() + timedelta(seconds=5)).timestamp() * 1000
    ), "a reader that comes back misses nothing"


def test_the_beat_goes_on_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = [0.0]
    monkeypatch.setattr(beat.time, "monotonic", lambda: beat._BEGAN_AT + seconds[0])
    entries = beat.beat.Scheduler(app=app, lazy=True)
    entries.update_from_dict(app.conf.beat_schedule)
    (rounds,) = [entry for entry in entries.schedule.values() if entry.task == "maat.tick"]
    monkeypatch.setattr(app, "now", lambda: beat._BEGAN - timedelta(hours=1))  # what Celery goes by
    assert not rounds.is_due()[0]
    seconds[0] += 1.0
    assert rounds.is_due()[0]


def test_the_sign_of_life_of_a_beat_that_died_before_the_clock_was_set_back_is_no_sign(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(beat, "alive_file", lambda: tmp_path / "beat.alive")
    beat._show_life()
    assert beat.is_alive()
    now = beat.time.time()
    monkeypatch.setattr(beat.time, "time", lambda: now - HOUR)
    assert not beat.is_alive()


def lease_ends(database: Database, cluster_id: str, at: object) -> None:
    with database.session_scope() as session:
        session.connection().execute(
            sa.update(Cluster).where(col(Cluster.id) == cluster_id).values(lease_until=at)
        )
