"""Tests of the history that a demo cluster begins with: whole weeks, whole rows, once."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path

import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient
from hypothesis import example, given
from hypothesis import strategies as st
from sqlmodel import col, func, select

from backend.backups.invariants import broken
from backend.bootstrap_data import ensure_defaults
from backend.clocktime import cluster_seconds, this_moment
from backend.database import Database
from backend.demo import history as demo_history
from backend.demo.arrivals import TEAMS
from backend.demo.cluster import CURRENCY
from backend.demo.history import LEAST_PLAYED, TABLES, History, calendar_of
from backend.fairness import formula
from backend.models import (
    AuditRecord,
    Cluster,
    Job,
    JobAllocation,
    JobEvent,
    JobFairness,
    Round,
    Tenant,
    metadata,
)
from backend.periods import day_start
from backend.settings import Settings
from backend.usage import days as usage_days
from maat.simulation import job_snapshot
from maat.vocabulary import WithoutRho

AGAIN = "Play the history again: python -m worker.demo_history"
BEGINS_WITHOUT = {
    *("alembic_version", "clusters", "nodes", "tenants", "users", "gpu_prices"),  # made before it
    *("job_counts", "usage_months"),  # follow from rows of the file
    *("audit_records", "idempotency_keys", "operations", "outbox", "worker_heartbeats"),
    *("api_tokens", "browser_sessions", "sign_in_tries"),
    # of commands, which a simulated cluster has none of
    *("attempts", "gpu_holds", "gpu_scores", "job_commands", "job_secrets", "job_fits"),
    *("job_memory", "job_samples", "sharing_samples", "job_flags"),
    # what people make, and what is made when they ask
    *("cluster_forecasts", "forecast_interest", "forecasts", "job_forecasts", "round_previews"),
    *("gpu_quotas", "reservations", "weight_changes", "simulations", "simulation_runs"),
    *("sweeps", "sweep_points", "sweep_members", "measurements", "measurement_files"),
    *("measurement_uses", "reports", "report_deliveries", "report_schedules"),
    *("experiments", "reproductions", "reproduced_items", "reproduced_runs", "paper_runs"),
    *("webhooks", "webhook_deliveries", "webhook_notices", "laboratory_use"),
    *("shared_models", "forgotten_pasts"),
}


@lru_cache(maxsize=1)
def shipped() -> History:
    return History.shipped()


def demo_settings(folder: Path, url: str = "") -> Settings:
    return Settings(_env_file=None, data_dir=folder, database_url=url, demo=True, demo_jobs=True)


@pytest.fixture
def demo(database: Database, database_url: str, tmp_path: Path) -> str:
    """A demo cluster of the first start; the worker has played nothing yet."""
    ensure_defaults(database, demo_settings(tmp_path, database_url))
    with database.session_scope(writes=False) as session:
        return session.exec(select(Cluster.id)).one()


def columns_of_file() -> dict[str, set[str]]:
    """Return the columns of every table that has a row in the file."""
    last = shipped().at(shipped().beginnings[-1])
    return {name: set(rows[0]) for name, rows in last.tables.items() if rows}


def test_of_every_table_the_history_has_its_rows_or_is_said_to_begin_without() -> None:
    assert set(metadata.tables) | {"alembic_version"} == set(TABLES) | BEGINS_WITHOUT
    assert not set(TABLES) & BEGINS_WITHOUT


def test_the_file_fits_the_tables_of_this_version() -> None:
    for name, columns in columns_of_file().items():
        table = metadata.tables[name]
        assert columns <= set(table.columns.keys()), f"{name} has other columns. {AGAIN}"
        for column in table.columns:
            default = demo_history.model_of(name).model_fields[column.name]
            assert column.name in columns or not default.is_required(), f"{column}: {AGAIN}"


def test_the_file_is_of_the_formulas_of_this_version() -> None:
    last = shipped().at(shipped().beginnings[-1]).tables

    versions = {row["formula_version"] for row in last["job_fairness"]}
    assert versions == {formula.VERSION}, AGAIN
    assert {row["version"] for row in last["summed_days"]} == {usage_days.VERSION}, AGAIN
    standings = " ".join(row["standing"] for row in last["executor_jobs"])
    assert f'"version":{job_snapshot.VERSION},' in standings, AGAIN


def test_every_job_of_the_file_that_ended_has_its_rho_or_a_reason_of_its_own() -> None:
    last = shipped().at(shipped().beginnings[-1]).tables
    with_rho = [row for row in last["job_fairness"] if row["rho"] is not None]
    without = {row["reason"] for row in last["job_fairness"] if row["rho"] is None}

    assert not without & {WithoutRho.TIME_LIMIT, WithoutRho.FAULT, None}, AGAIN
    assert len(with_rho) > 0.95 * len(last["job_fairness"]) > 1000


@given(
    now=st.datetimes(datetime(2026, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)),
)
@example(now=datetime(2026, 11, 30, 4, 10, tzinfo=UTC))  # a Monday, before its half past midnight
def test_two_whole_weeks_lie_before_the_week_of_the_first_start(now: datetime) -> None:
    calendar = calendar_of(now, shipped().beginnings)

    this_monday = day_start(now.date() - timedelta(days=now.weekday()))
    assert calendar.epoch.weekday() == 0
    assert calendar.epoch == day_start(calendar.epoch.date())
    assert timedelta(days=14) <= this_monday - calendar.epoch <= timedelta(days=21)
    to_play = now - calendar.epoch - timedelta(seconds=calendar.begins)
    assert LEAST_PLAYED <= to_play <= LEAST_PLAYED + timedelta(days=1, hours=1)


def test_a_fresh_demo_has_jobs_on_every_day_of_two_whole_weeks(
    database: Database, demo: str
) -> None:
    with database.session_scope(writes=False) as session:
        cluster = session.get_one(Cluster, demo)
        submitted = session.exec(select(Job.submitted_seconds)).all()
        finished = session.exec(select(func.count(col(Job.finished_seconds)))).one()
        now = cluster_seconds(cluster, this_moment())

    by_day = Counter(int(seconds // 86_400) for seconds in submitted)
    assert cluster.epoch == day_start(cluster.epoch.date())
    assert cluster.epoch.weekday() == 0
    assert all(by_day[day] > 20 for day in range(14))
    weekday, weekend = (
        [by_day[day] for day in range(14) if (day % 7 >= 5) is is_weekend]
        for is_weekend in (False, True)
    )
    assert max(weekend) < min(weekday)
    assert finished > 0.97 * len(submitted)
    assert now >= 13.9 * 86_400


def test_what_must_hold_in_every_database_holds_with_the_history(
    database: Database, demo: str
) -> None:
    with database.session_scope(writes=False) as session:
        assert list(broken(session)) == []


def test_the_history_is_stored_as_it_was_played(database: Database, demo: str) -> None:
    with database.session_scope(writes=False) as session:
        cluster = session.get_one(Cluster, demo)
        stored = {
            name: session.execute(
                sa.select(func.count()).select_from(metadata.tables[name])
            ).scalar_one()
            for name in TABLES
        }
        seconds = cluster.anchor_seconds
    begins = min(shipped().beginnings, key=lambda begin: abs(begin - seconds))
    file = shipped().at(begins)

    assert stored == {name: len(rows) for name, rows in file.tables.items()}
    assert cluster.next_round_number == file.next_round_number


def test_no_row_names_what_is_not_there(database: Database, demo: str) -> None:
    with database.session_scope(writes=False) as session:
        jobs = set(session.exec(select(Job.id)))
        tenants = set(session.exec(select(Tenant.id)))
        texts = [
            str(row)
            for table in (metadata.tables[name] for name in TABLES)
            for row in session.execute(sa.select(table))
        ]
    named = {found.group(0) for text in texts for found in demo_history.ID.finditer(text)}

    assert not [text for text in texts if demo_history.PLACE.search(text)]
    assert {name for name in named if name.startswith("job_")} == jobs
    assert {name for name in named if name.startswith("ten_")} <= tenants


def test_a_second_start_adds_nothing(
    database: Database, database_url: str, tmp_path: Path, demo: str
) -> None:
    before = counts(database)

    ensure_defaults(database, demo_settings(tmp_path, database_url))

    assert counts(database) == before


def counts(database: Database) -> dict[str, int]:
    tables = (Cluster, Job, JobAllocation, JobEvent, JobFairness, Round, Tenant, AuditRecord)
    with database.session_scope(writes=False) as session:
        return {
            table.__name__: session.exec(select(func.count()).select_from(table)).one()
            for table in tables
        }


KILLED = """
import os, signal, sys
from pathlib import Path
from backend.bootstrap_data import ensure_defaults
from backend.database import Database
from backend.demo import history
from backend.settings import Settings

history.fold_counts = lambda session: os.kill(os.getpid(), signal.SIGKILL)
url = sys.argv[1]
ensure_defaults(
    Database(url), Settings(_env_file=None, database_url=url, demo=True, demo_jobs=True)
)
"""


def test_a_start_that_is_killed_while_it_stores_the_history_leaves_nothing_of_it(
    database: Database, database_url: str, tmp_path: Path
) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, database_url], check=False)
    assert killed.returncode == -9
    assert counts(database)["Job"] == counts(database)["Cluster"] == 0

    ensure_defaults(database, demo_settings(tmp_path, database_url))

    with database.session_scope(writes=False) as session:
        names = session.exec(select(Job.external_id)).all()
        assert len(set(names)) == len(names) > 1000
        assert session.exec(select(func.count()).select_from(Cluster)).one() == 1
        assert list(broken(session)) == []


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> Settings:
    """Settings of the service that `client` asks."""
    return demo_settings(tmp_path, database_url)


def test_a_report_of_last_week_has_figures_of_the_period_before(client: TestClient) -> None:
    report = client.get("/api/v1/clusters/demo/report", params={"period": "last-week"}).json()

    assert {one["key"]: one["before"] for one in report["headlines"] if one["before"] is None} == {}
    assert {one["key"]: one["value"] for one in report["headlines"] if one["value"] is None} == {}


def test_use_of_last_week_has_every_day_every_team_and_its_cost(client: TestClient) -> None:
    asked = {"cluster": "demo", "period": "last-week", "by": "tenant", "per_day": True}
    usage = client.get("/api/v1/usage", params=asked).json()

    assert usage["currency"] == CURRENCY
    assert {row["name"] for row in usage["rows"]} >= {team.name for team in TEAMS}
    of_teams = [row for row in usage["rows"] if row["name"] in {team.name for team in TEAMS}]
    assert all(float(row["figures"]["cost"]) > 0 for row in of_teams)
    assert len(usage["days"]) == 7
