"""Tests of the demo cluster on real databases: its history, its jobs, and that it is optional."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlmodel import col, func, select

from backend.bootstrap_data import ensure_defaults
from backend.clocktime import cluster_seconds, shown_day, this_moment, wind_to
from backend.database import Database
from backend.demo.arrivals import TEAMS, arrivals, hour_of_week
from backend.demo.beginning import begin_on
from backend.demo.cluster import DEMO_CLUSTER
from backend.demo.examples import COMPARISON
from backend.models import Cluster, GpuPrice, Job, Round, Simulation, Sweep, Tenant
from backend.queue import PLAY_NEXT_RUN
from backend.settings import Settings
from maat.scheduling.cluster import Cluster as Shape
from maat.workloads.generators import generate
from worker import demo
from worker.app import create_app
from worker.live.lease import leased

HISTORY_SECONDS = 900.0
BUSY = datetime(2026, 1, 5, 10, tzinfo=UTC)  # on a Monday, so that jobs arrive soon


class Remembering:
    """A queue that only remembers."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def send(self, task: str, *arguments: str) -> None:
        self.sent.append(task)


@pytest.fixture(autouse=True)
def short_history(monkeypatch: pytest.MonkeyPatch) -> None:
    """One beat plays the history whole, however busy the machine is."""
    monkeypatch.setattr(demo, "AT_ONCE_SECONDS", float("inf"))


@pytest.fixture
def cluster_id(database: Database, database_url: str, tmp_path: Path) -> str:
    """A demo cluster whose history is short, and all of it still to be played."""
    ensure_defaults(
        database, Settings(_env_file=None, data_dir=tmp_path, database_url=database_url, demo=True)
    )
    with database.session_scope() as session:
        row = session.exec(select(Cluster)).one()
        begin_on(session, row, BUSY)
        row.created_at = BUSY + timedelta(seconds=HISTORY_SECONDS)
        row.speed = 1e-6  # its clock moves by being wound alone
        session.add(row)
    return row.id


def lived(database: Database, beats: int) -> None:
    for _ in range(beats):
        demo.live_on(database, Remembering())


def external_ids(database: Database) -> list[str | None]:
    with database.session_scope(writes=False) as session:
        return list(session.exec(select(Job.external_id).order_by(col(Job.submitted_seconds))))


def test_every_gpu_type_has_a_price_from_the_first_day_on(
    database: Database, cluster_id: str
) -> None:
    with database.session_scope(writes=False) as session:
        cluster = session.get_one(Cluster, cluster_id)
        first_day = shown_day(cluster, 0.0)
        prices = session.exec(select(GpuPrice).where(GpuPrice.cluster_id == cluster_id)).all()
    assert {price.gpu_type for price in prices} == {"t4", "rtx", "a100"}
    assert {price.valid_from for price in prices} == {first_day}


def test_every_policy_of_the_example_can_run_every_job() -> None:
    body = COMPARISON.model_dump()
    [trace] = body["traces"]
    jobs = generate(
        trace["family"], jobs=trace["jobs"], hours=trace["hours"], seed=trace["seed"]
    ).jobs
    capacity = Shape.parse(body["cluster"]).capacity
    assert max(job.gpu_count for job in jobs) <= min(capacity)


def test_a_history_of_real_rounds_ends_at_the_clusters_present(
    database: Database, cluster_id: str
) -> None:
    assert demo.is_in_its_history(database, cluster_id)
    lived(database, 1)
    assert not demo.is_in_its_history(database, cluster_id)

    with database.session_scope(writes=False) as session:
        cluster = session.get_one(Cluster, cluster_id)
        rounds = session.exec(select(Round.number).order_by(col(Round.number))).all()
        states = dict(session.exec(select(Job.state, func.count()).group_by(Job.state)).all())
        tenants = session.exec(select(Tenant.name)).all()
    assert cluster_seconds(cluster, this_moment()) == pytest.approx(HISTORY_SECONDS, abs=1.0)
    assert list(rounds) == list(range(1, len(rounds) + 1))
    assert len(rounds) >= HISTORY_SECONDS / demo.FINE_SECONDS - 1
    came = arrivals(
        cluster_id, after=0.0, until=HISTORY_SECONDS, begins_at=hour_of_week(cluster.epoch)
    )
    assert sum(states.values()) == len(list(came))
    assert set(tenants) >= {team.name for team in TEAMS}


def test_a_beat_ends_in_the_midst_of_the_history_once_its_time_is_up(
    database: Database, cluster_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "AT_ONCE_SECONDS", 0.0)
    lived(database, 2)
    assert demo.is_in_its_history(database, cluster_id)
    with database.session_scope(writes=False) as session:
        assert list(session.exec(select(Round.number).order_by(col(Round.number)))) == [1, 2]


def test_no_history_passes_while_a_worker_that_died_has_the_cluster(
    database: Database, cluster_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def present() -> float:
        with database.session_scope(writes=False) as session:
            return cluster_seconds(session.get_one(Cluster, cluster_id), this_moment())

    monkeypatch.setattr(demo, "AT_ONCE_SECONDS", 0.0)
    lived(database, 2)
    with leased(database, cluster_id):
        before = present()
        lived(database, 3)
        assert present() - before <= demo.COARSE_SECONDS + 1.0
    lived(database, 1)
    with database.session_scope(writes=False) as session:
        assert list(session.exec(select(Round.number).order_by(col(Round.number)))) == [1, 2, 3]


def test_no_job_comes_twice_however_often_it_is_asked_for(
    database: Database, cluster_id: str
) -> None:
    lived(database, 1)
    once = external_ids(database)

    demo.submit_arrivals(database, cluster_id)
    lived(database, 1)

    assert external_ids(database) == once
    assert len(set(once)) == len(once)


def test_jobs_go_on_arriving_after_the_history(database: Database, cluster_id: str) -> None:
    lived(database, 1)
    later = 6 * 3600.0
    with database.session_scope() as session:
        row = session.get_one(Cluster, cluster_id)
        row.speed = 30.0
        wind_to(row, this_moment(), later)
        session.add(row)

    demo.submit_arrivals(database, cluster_id)

    came = arrivals(cluster_id, after=later - 600.0, until=later, begins_at=hour_of_week(row.epoch))
    wanted = {job.body.external_id for job in came}
    assert wanted
    assert wanted <= set(external_ids(database))


def test_the_laboratory_has_its_examples_once(database: Database, cluster_id: str) -> None:
    queue = Remembering()
    demo.live_on(database, queue)
    demo.live_on(database, queue)

    with database.session_scope(writes=False) as session:
        assert session.exec(select(func.count()).select_from(Simulation)).one() == 1
        assert session.exec(select(func.count()).select_from(Sweep)).one() == 1
    assert queue.sent == [PLAY_NEXT_RUN, PLAY_NEXT_RUN]  # the rows are the queue


def test_a_demo_cluster_that_was_made_without_a_history_gets_none(
    database: Database, database_url: str, tmp_path: Path
) -> None:
    ensure_defaults(
        database, Settings(_env_file=None, data_dir=tmp_path, database_url=database_url, demo=True)
    )
    with database.session_scope(writes=False) as session:
        cluster_id = session.exec(select(Cluster.id).where(Cluster.name == DEMO_CLUSTER.name)).one()

    assert demo.wind_forward(database, cluster_id) is False


def test_without_a_demo_cluster_nothing_happens(database: Database) -> None:
    demo.live_on(database, Remembering())

    with database.session_scope(writes=False) as session:
        assert session.exec(select(Tenant)).all() == []


@pytest.mark.parametrize(("asked", "beats"), [(True, True), (False, False)])
def test_the_beat_asks_for_it_only_where_the_settings_do(
    asked: bool, beats: bool, tmp_path: Path
) -> None:
    settings = Settings(
        _env_file=None, data_dir=tmp_path, database_url="", broker_url="", demo_jobs=asked
    )

    assert ("demo" in create_app(settings).conf.beat_schedule) is beats
