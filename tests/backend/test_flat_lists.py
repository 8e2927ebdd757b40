"""Tests that lists and counts of jobs cost the same after a long history as after a short one.

They count work and measure no time.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import history
import pytest
import sqlalchemy as sa
from database_fixtures import BOTH
from fastapi.testclient import TestClient
from sqlmodel import Session, select

from backend.accounts.identity import LOCAL_USER, Principal
from backend.accounts.permissions import PERMISSIONS, Role
from backend.bootstrap_data import ensure_defaults
from backend.clusters.repository import all_clusters, get_cluster
from backend.database import Database
from backend.jobs.repository import SORT_KEYS, FoundJobs, JobFilters, count_by_state, find_jobs
from backend.metrics.snapshot import take_snapshot
from backend.models import Job, JobCount, Tenant, User
from backend.reports.jobs_facts import waiting_at
from backend.settings import Settings
from maat.vocabulary import JobState
from worker.housekeeping import fold_job_counts

SHORT, LONG = 3_000, 24_000
NOW = 1e12  # seconds: later than all that was written
SORTS = [f"{sign}{name}" for name in SORT_KEYS for sign in ("", "-")]
FLAT: dict[str, JobFilters] = {
    "cluster": JobFilters(cluster="second"),
    "one state": JobFilters(states=("failed",)),
    "a state under way": JobFilters(states=("running",)),
    "without a GPU so far": JobFilters(states=("pending", "submitted", "profiling")),
    "states": JobFilters(states=("cancelled", "failed", "pending")),
    "model": JobFilters(models=("ncf",)),
    "models": JobFilters(models=("bert", "ncf", "yolov3")),
    "tenant": JobFilters(tenants=("blue",)),
    "tenants": JobFilters(tenants=("blue", "red")),
    "owner": JobFilters(owner="owner-1"),
    "nobody": JobFilters(owner="nobody"),
    "gpu type": JobFilters(gpu_types=("t4",)),
    "no such gpu type": JobFilters(gpu_types=("none",)),
}


class Scale:
    """A database with a history, and how much work a question to it is."""

    def __init__(self, database: Database, jobs: int) -> None:
        self.database = database
        with database.session_scope() as session:
            history.fill(session, jobs)
        with database.session_scope() as session:
            history.settle(session)

    def principal(self, session: Session, tenant: str | None) -> Principal:
        """The administrator, or a viewer of one tenant."""
        role = Role.CLUSTER_ADMIN if tenant is None else Role.VIEWER
        home = session.exec(select(Tenant).where(Tenant.name == (tenant or "default"))).one()
        return Principal("usr_x", LOCAL_USER, home.id, home.name, role, PERMISSIONS[role])

    def found(self, session: Session, filters: JobFilters, tenant: str | None) -> FoundJobs:
        clusters = (
            all_clusters(session)
            if filters.cluster is None
            else [get_cluster(session, filters.cluster)]
        )
        return FoundJobs.of(session, filters, self.principal(session, tenant), clusters)

    def of_list(
        self, filters: JobFilters, sort: str, *, tenant: str | None = None, pages: int = 1
    ) -> int:
        """Work of the last of `pages` pages."""
        with self.database.session_scope(writes=False) as session:
            found, cursor = self.found(session, filters, tenant), None
            for _ in range(pages - 1):
                cursor = find_jobs(session, found, sort, limit=50, cursor=cursor).next_cursor
            with work_of(session) as spent:
                find_jobs(session, found, sort, limit=50, cursor=cursor)
        return sum(spent)

    def of_counts(self, filters: JobFilters, *, tenant: str | None = None) -> int:
        with self.database.session_scope(writes=False) as session:
            found = self.found(session, filters, tenant)
            with work_of(session) as spent:
                count_by_state(session, found)
        return sum(spent)

    def of_scrape(self) -> int:
        with self.database.session_scope(writes=False) as session, work_of(session) as spent:
            take_snapshot(session)
        return sum(spent)


@contextmanager
def work_of(session: Session) -> Iterator[list[int]]:
    """Count the work of a session's queries.

    On SQLite these are instructions of its virtual machine, on PostgreSQL the rows that the nodes
    of the plan looked at, by EXPLAIN.
    """
    spent: list[int] = []
    if session.get_bind().dialect.name == "sqlite":
        driver = session.connection().connection.driver_connection
        assert driver is not None
        driver.set_progress_handler(lambda: spent.append(100), 100)
        try:
            yield spent
        finally:
            driver.set_progress_handler(None, 0)
        return

    def explain(
        connection: Any,
        cursor: Any,
        statement: str,
        parameters: Any,
        context: Any,
        executemany: bool,
    ) -> None:
        if statement.startswith("SELECT"):
            with connection.connection.cursor() as beside:
                beside.execute(
                    f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {statement}", parameters
                )
                spent.append(_rows_looked_at(beside.fetchone()[0][0]["Plan"]))

    engine = session.get_bind().engine
    sa.event.listen(engine, "before_cursor_execute", explain)
    try:
        yield spent
    finally:
        sa.event.remove(engine, "before_cursor_execute", explain)


def _rows_looked_at(node: dict[str, Any]) -> int:
    removed = sum(
        node.get(f"Rows Removed by {why}", 0) for why in ("Filter", "Index Recheck", "Join Filter")
    )
    return int((node["Actual Rows"] + removed) * node["Actual Loops"]) + sum(
        _rows_looked_at(part) for part in node.get("Plans", ())
    )


@pytest.fixture(scope="module", params=BOTH)
def scales(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Scale, Scale]]:
    """A database with a short and one with a long history."""
    if request.param == "sqlite":
        urls = [f"sqlite:///{tmp_path_factory.mktemp('history') / 'maat.db'}" for _ in range(2)]
    else:
        urls = [request.getfixturevalue("postgres_database_maker")() for _ in range(2)]
    made = [Database(url) for url in urls]
    for database in made:
        ensure_defaults(
            database, Settings(_env_file=None, demo=True, data_dir=tmp_path_factory.mktemp("data"))
        )
    yield Scale(made[0], SHORT), Scale(made[1], LONG)
    for database in made:
        database.dispose()


def test_a_report_counts_the_jobs_that_wait_without_reading_the_past(
    scales: tuple[Scale, Scale],
) -> None:
    work = []
    for scale in scales:
        with scale.database.session_scope(writes=False) as session:
            cluster, admin = all_clusters(session)[0], scale.principal(session, None)
            with work_of(session) as spent:
                assert waiting_at(session, admin, cluster.id, NOW)
            work.append(sum(spent))
    short, long = work
    assert long <= 1.5 * short + 1000


def test_no_list_and_no_count_grows_with_history(scales: tuple[Scale, Scale]) -> None:
    short, long = scales
    grown = {}

    def compare(name: str, before: int, after: int) -> None:
        if after > 1.5 * before + 1000:
            grown[name] = (before, after)

    for tenant in (None, "blue"):
        for sort in SORTS:
            for pages in (1, 3):
                compare(
                    f"{sort} page {pages} for {tenant}",
                    short.of_list(JobFilters(), sort, tenant=tenant, pages=pages),
                    long.of_list(JobFilters(), sort, tenant=tenant, pages=pages),
                )
        for name, filters in FLAT.items():
            if tenant is None or not filters.tenants:
                compare(
                    f"{name} for {tenant}",
                    short.of_list(filters, "-submitted_at", tenant=tenant),
                    long.of_list(filters, "-submitted_at", tenant=tenant),
                )
                compare(
                    f"counts: {name} for {tenant}",
                    short.of_counts(filters, tenant=tenant),
                    long.of_counts(filters, tenant=tenant),
                )
        compare(
            f"counts for {tenant}",
            short.of_counts(JobFilters(), tenant=tenant),
            long.of_counts(JobFilters(), tenant=tenant),
        )
    compare("a scrape", short.of_scrape(), long.of_scrape())
    assert grown == {}
    # That the measure can tell: a search by a part of names does look at every job.
    assert (
        long.of_counts(JobFilters(text="nowhere"))
        > 6 * short.of_counts(JobFilters(text="nowhere"))
        > 0
    )


def test_pages_of_two_clusters_are_the_list_by_the_dates_shown(scales: tuple[Scale, Scale]) -> None:
    short, _ = scales
    with short.database.session_scope() as session:
        clusters = all_clusters(session)
        clusters[1].epoch = datetime(2026, 1, 1, 0, 0, 1, 333_333, tzinfo=UTC)
        clusters[0].epoch = datetime(2026, 1, 1, tzinfo=UTC)
    with short.database.session_scope(writes=False) as session:
        epochs = {cluster.id: cluster.epoch.timestamp() for cluster in all_clusters(session)}
        rows = session.exec(select(Job)).all()
        for sort, sign in (("submitted_at", 1), ("-submitted_at", -1)):
            wanted = sorted(
                rows,
                key=lambda job: (epochs[job.cluster_id] + job.submitted_seconds, job.id),
                reverse=sign < 0,
            )
            found, cursor = [], None
            while True:
                page = find_jobs(
                    session,
                    short.found(session, JobFilters(), None),
                    sort,
                    limit=300,
                    cursor=cursor,
                )
                found += [job.id for job in page.items]
                cursor = page.next_cursor
                if cursor is None:
                    break
            assert found == [job.id for job in wanted]
            all_jobs = short.found(session, JobFilters(), None)
            jump = find_jobs(session, all_jobs, sort, limit=9, cursor=None, skip=777)
            assert [job.id for job in jump.items] == found[777:786]


@pytest.mark.parametrize(
    "filters",
    [
        JobFilters(states=("failed", "running"), models=("bert", "ncf")),
        JobFilters(tenants=("blue", "red")),
    ],
)
def test_pages_that_are_read_in_parts_are_the_whole_list(
    scales: tuple[Scale, Scale], filters: JobFilters
) -> None:
    short, _ = scales
    with short.database.session_scope(writes=False) as session:
        wanted = short.found(session, filters, None)
        for sort in SORTS:
            whole = session.exec(select(Job.id).where(wanted.predicate(Job))).all()
            found, cursor = [], None
            while True:
                page = find_jobs(session, wanted, sort, limit=300, cursor=cursor)
                found += [job.id for job in page.items]
                cursor = page.next_cursor
                if cursor is None:
                    break
            assert sorted(found) == sorted(whole)
            for skip in (1, 299, len(found) - 1, len(found)):
                jump = find_jobs(session, wanted, sort, limit=40, cursor=None, skip=skip)
                assert [job.id for job in jump.items] == found[skip : skip + 40]
            first = find_jobs(session, wanted, sort, limit=5, cursor=None).next_cursor
            jump = find_jobs(session, wanted, sort, limit=5, cursor=first, skip=100)
            assert [job.id for job in jump.items] == found[105:110]
            if sort == "-gpu_hours":
                hours = dict(session.exec(select(Job.id, Job.gpu_seconds)).all())
                assert [hours[job] for job in found] == sorted(
                    (hours[job] for job in found), reverse=True
                )


# ---- counts


def counted(database: Database) -> dict[tuple[str, ...], int]:
    """By what is kept."""
    kind = (
        JobCount.tenant_id,
        JobCount.cluster_id,
        JobCount.owner_id,
        JobCount.model,
        JobCount.state,
    )
    with database.session_scope(writes=False) as session:
        rows = session.execute(sa.select(*kind, sa.func.sum(JobCount.change)).group_by(*kind)).all()
    return {tuple(row[:-1]): row[-1] for row in rows if row[-1] != 0}


def true_counts(database: Database) -> dict[tuple[str, ...], int]:
    with database.session_scope(writes=False) as session:
        rows = session.execute(
            sa.select(Job.tenant_id, Job.cluster_id, Job.owner_id, Job.model, Job.state)
        ).all()
    return dict(Counter(tuple(row) for row in rows))


def test_counts_are_exact_under_writers_at_once_and_while_they_are_folded(
    client: TestClient, database: Database
) -> None:
    def act(number: int) -> None:
        body = {"name": f"j{number}", "model": ("bert", "ncf")[number % 2]}
        made = [client.post("/api/v1/jobs", json=body).json()["id"] for _ in range(3)]
        with database.session_scope() as session:
            session.connection().execute(
                sa.update(Job)
                .where(sa.column("id") == made[0])
                .values(state=JobState.RUNNING.value)
            )
            session.connection().execute(
                sa.update(Job).where(sa.column("id") == made[1]).values(progress=0.5)
            )
        with Session(database.engine) as session:
            session.connection().execute(
                sa.update(Job).where(sa.column("id") == made[2]).values(state=JobState.FAILED.value)
            )
            session.rollback()
        fold_job_counts(database)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(act, range(8)))
    assert counted(database) == true_counts(database)
    assert sum(counted(database).values()) == 24
    fold_job_counts(database)
    assert counted(database) == true_counts(database)
    with database.session_scope(writes=False) as session:
        assert session.execute(
            sa.select(sa.func.count()).select_from(JobCount)
        ).scalar_one() == len(true_counts(database))
    assert client.get("/api/v1/jobs", params={"count": "exact"}).json()["state_counts"] == {
        "running": 8,
        "submitted": 16,
    }


def test_counts_follow_jobs_that_go_or_change_hands(client: TestClient, database: Database) -> None:
    made = [
        client.post("/api/v1/jobs", json={"name": "j", "model": "bert"}).json()["id"]
        for _ in range(3)
    ]
    with database.session_scope() as session:
        home = Tenant(name="other")
        session.add(home)
        session.flush()
        other = User(name="other", tenant_id=home.id, role="submitter")
        session.add(other)
        session.flush()
        moved, gone = session.get_one(Job, made[0]), session.get_one(Job, made[1])
        moved.tenant_id, moved.owner_id = home.id, other.id
        session.connection().execute(sa.text("DELETE FROM job_events"))
        session.delete(gone)
    assert counted(database) == true_counts(database)
    assert sum(counted(database).values()) == 2
    assert json.dumps(sorted(counted(database).values())) == "[1, 1]"
