"""A year of a busy cluster: how large its days are, and how long a report over it takes.

On SQLite, and on PostgreSQL where one answers.

10,000 jobs a day of 200 tenants with five users each, 12 models, three GPU types, 2,048 GPUs. Raw
rows are written and summed up for a few days; the days of the rest of the year are copies of these.
"""

from __future__ import annotations

import heapq
import itertools
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import sqlalchemy as sa
from sqlmodel import Session, select

from backend.accounts.identity import Principal
from backend.accounts.permissions import PERMISSIONS, Role
from backend.bootstrap_data import ensure_defaults
from backend.clocktime import utc_now
from backend.database import Database
from backend.fairness.ended_reading import EndedJobs
from backend.fairness.service import fairness
from backend.models import (
    CapacityDay,
    Cluster,
    EndedDay,
    Job,
    JobAllocation,
    JobEvent,
    JobFairness,
    RhoDay,
    Round,
    ShareDay,
    SummedDay,
    Tenant,
    UsageDay,
    User,
    WaitDay,
)
from backend.periods import Period
from backend.reports.builder import build_report
from backend.reports.gathering import gather
from backend.reports.pdf.document import pdf_of
from backend.settings import Settings
from backend.usage.service import usage
from benchmarks.service.served import POSTGRESQL, SQLITE, cpu_seconds_of, empty_database
from benchmarks.service.usage_rows import (
    DAY,
    DAYS,
    EPOCH,
    RAW_DAYS,
    TYPES,
    Owner,
    copy_days,
    job_row,
    rho_row,
    round_rows,
    span_row,
)
from benchmarks.table import Cell, Figures
from maat.api.usage import UsageBy
from worker.fairness.days import keep_days, sum_ended
from worker.housekeeping import sum_days, sum_months

JOBS_A_DAY = 10_000
TENANTS, USERS_EACH, EVENTS_EACH = 200, 5, 8
MODELS = [f"model-{number}" for number in range(12)]
REPEATED = 5
COLUMNS = {
    "what": "what",
    "value": "measured",
    "unit": "unit",
    "cpu": "CPU s",
    "server": "CPU s, PostgreSQL",
}
NOTES = [
    "Wall seconds, medians of 5; a report is the service's function, all tenants' rows, days "
    "included, without HTTP and JSON. PostgreSQL's CPU seconds are those of the session's process, "
    "to which parallel workers are forbidden.",
    "A manager's report is all that its page, PDF and files tell: use, cost, waits, fairness and "
    "shares, of the period and of the one before. Before the year there were no jobs; the report "
    "over a half-year compares with the other half.",
    "Database sizes by the file, or as PostgreSQL tells them: raw rows are jobs, eight events "
    "each, spans and rounds of the days that were written; a year's worth is these times 365.",
    "The other days of the year are copies of those summed up, so their number and size are those "
    "of a real year.",
]


def measure() -> Iterator[Figures]:
    title = f"A year of {JOBS_A_DAY:,} jobs a day: its days, and reports over it"
    for kind in (SQLITE, POSTGRESQL):
        with suppress(psycopg.OperationalError), _lived(kind) as lived:
            rows = [*lived.raw(), *lived.year(), *lived.reports()]
            yield Figures(f"usage: {kind}", f"{title}, on {kind}", COLUMNS, rows, list(NOTES))


_Asked = Callable[[Session, Principal, Cluster], float]


@contextmanager
def _lived(kind: str) -> Iterator[_Lived]:
    with (
        tempfile.TemporaryDirectory() as folder,
        empty_database(kind, Path(folder)) as url,
    ):
        settings = Settings(_env_file=None, data_dir=Path(folder), database_url=url, demo=True)
        database = Database.of(settings)
        if kind == POSTGRESQL:
            sa.event.listen(database.engine, "connect", _forbid_parallel_workers)
        try:
            ensure_defaults(database, settings)
            yield _Lived(database, Path(folder) / "maat.db")
        finally:
            database.dispose()


def _forbid_parallel_workers(connection: psycopg.Connection, _: object) -> None:
    """Let the session's own process do all of its work, so that its CPU seconds are all."""
    connection.execute("SET max_parallel_workers_per_gather = 0")
    connection.commit()


@dataclass(frozen=True)
class _Spent:
    """Seconds since something began: of the wall, of this process, and of PostgreSQL's for it."""

    wall: float
    cpu: float
    server: float | None

    @classmethod
    def until_now(cls, server: int | None = None) -> _Spent:
        """Return the seconds so far. `server`: the process that PostgreSQL has for a session."""
        of_server = None if server is None else cpu_seconds_of(server)
        return cls(time.perf_counter(), time.process_time(), of_server)

    def since(self, start: _Spent) -> _Spent:
        known = self.server is not None and start.server is not None
        of_server = self.server - start.server if known else None
        return _Spent(self.wall - start.wall, self.cpu - start.cpu, of_server)


class _Lived:
    """A cluster whose past is written, summed up and asked for."""

    def __init__(self, database: Database, file: Path) -> None:
        self._database, self._file = database, file
        self._random = random.Random(7)
        with database.session_scope() as session:
            cluster = session.exec(select(Cluster)).one()
            cluster.epoch, cluster.speed = EPOCH, 1e-9
            cluster.anchor_seconds, cluster.anchor_wall = (RAW_DAYS + 1.1) * DAY, utc_now()
            cluster.anchor_boot = None
            self._cluster, self._owners = cluster.id, _owners(session)

    def raw(self) -> Iterator[dict[str, Cell]]:
        """Write the raw rows of some days, and sum these up."""
        before = self._bytes()
        for day in range(RAW_DAYS):
            with self._database.session_scope() as session:
                self._write_day(session, day)
        grown = self._bytes() - before
        yield _row("raw rows of a day", grown / RAW_DAYS / 1e6, "MB")
        yield _row("raw rows of a year, were they kept", grown / RAW_DAYS * DAYS / 1e9, "GB")
        for what, sum_up in (("a day", sum_days), ("rho of a day", sum_ended)):
            start = _Spent.until_now()
            found = _all(sum_up, self._database)
            spent = _Spent.until_now().since(start)
            yield _row(f"to sum up {what}", spent.wall / found, "s", cpu=spent.cpu / found)
        _all(keep_days, self._database)

    def year(self) -> Iterator[dict[str, Cell]]:
        """Copy the summed days until there is a year of them."""
        before = self._bytes()
        with self._database.session_scope() as session:
            for table in (UsageDay, WaitDay, CapacityDay, SummedDay, RhoDay, EndedDay, ShareDay):
                copy_days(session, table, list(range(RAW_DAYS, DAYS)))
            cluster = session.get_one(Cluster, self._cluster)
            cluster.anchor_seconds, cluster.anchor_wall = DAYS * DAY + 60.0, utc_now()
            count = session.connection().execute(
                sa.select(sa.func.count()).select_from(sa.table("usage_days"))
            )
            yield _row("rows of use in a year", count.scalar_one(), "rows")
        start = _Spent.until_now()
        spent_on = sum_months(self._database)
        spent = _Spent.until_now().since(start)
        yield _row("to sum up a month", spent.wall / spent_on, "s", cpu=spent.cpu / spent_on)
        self._settle()
        yield _row("summed days of a year", (self._bytes() - before) / 1e6, "MB")
        yield _row("the whole database", self._bytes() / 1e6, "MB")

    def reports(self) -> Iterator[dict[str, Cell]]:
        everything = Period(EPOCH, EPOCH + timedelta(days=DAYS))
        month = Period(EPOCH + timedelta(days=DAYS - 30), EPOCH + timedelta(days=DAYS))
        for role in (Role.CLUSTER_ADMIN, Role.VIEWER):
            for by in UsageBy:
                yield self._report(f"report over a year by {by}", role, everything, by)
        yield self._report("report over a month by tenant", Role.AUDITOR, month)
        for role in (Role.CLUSTER_ADMIN, Role.VIEWER):
            yield self._asked("fairness over a year", role, partial(_fairness, everything))
        half = Period(EPOCH + timedelta(days=DAYS - DAYS // 2), EPOCH + timedelta(days=DAYS))
        for name, period in (("a year", everything), ("a half-year", half)):
            what = f"a manager's report over {name}"
            yield self._asked(what, Role.CLUSTER_ADMIN, partial(_manager, period))
        yield self._asked(
            "a tenant's whole report over a year", Role.VIEWER, partial(_manager, everything)
        )
        yield self._asked(f"{what}, as PDF", Role.CLUSTER_ADMIN, partial(_printed, half))

    def _report(
        self, what: str, role: Role, period: Period, by: UsageBy = UsageBy.TENANT
    ) -> dict[str, Cell]:
        return self._asked(what, role, partial(_used, period, by))

    def _asked(self, what: str, role: Role, ask: _Asked) -> dict[str, Cell]:
        owner = self._owners[0]
        who = Principal(owner.user, "u", owner.tenant, "t", role, PERMISSIONS[role])
        spent = []
        for _ in range(REPEATED):
            with self._database.session_scope(writes=False) as session:
                server = self._process_of(session)
                start = _Spent.until_now(server)
                assert ask(session, who, session.get_one(Cluster, self._cluster)) > 0
                spent.append(_Spent.until_now(server).since(start))
        of_server = [one.server for one in spent if one.server is not None]
        return _row(
            f"{what}, for a {role.value.replace('_', ' ')}",
            statistics.median(one.wall for one in spent),
            "s",
            cpu=statistics.median(one.cpu for one in spent),
            server=statistics.median(of_server) if of_server else None,
        )

    def _process_of(self, session: Session) -> int | None:
        """Return the process that PostgreSQL has for a session, if it runs on this machine."""
        if self._database.is_sqlite:
            return None
        found: int = session.connection().exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
        return found if Path(f"/proc/{found}").exists() else None

    def _settle(self) -> None:
        """Do what PostgreSQL's autovacuum does by itself within minutes."""
        if not self._database.is_sqlite:
            engine = self._database.engine.execution_options(isolation_level="AUTOCOMMIT")
            with engine.connect() as connection:
                connection.exec_driver_sql("VACUUM ANALYZE")

    def _write_day(self, session: Session, day: int) -> None:
        draw, connection = self._random, session.connection()
        free_at = {name: [day * DAY] * gpus for name, gpus in TYPES}
        jobs: list[dict[str, Any]] = []
        spans: list[dict[str, Any]] = []
        events: list[dict[str, Any]] = []
        for number in range(JOBS_A_DAY):
            owner, (kind, _) = draw.choice(self._owners), draw.choice(TYPES)
            job_id = f"job_{day:03d}{number:06d}"
            begin = (day + number / JOBS_A_DAY) * DAY
            length, count = draw.expovariate(1 / 5_000) + 60.0, draw.choice((1, 2, 4))
            free = free_at[kind]
            gpus = heapq.nsmallest(count, range(len(free)), free.__getitem__)
            started = max(begin, *(free[gpu] for gpu in gpus)) + draw.expovariate(1 / 300)
            for gpu in gpus:
                free[gpu] = started + length
            jobs.append(job_row(job_id, self._cluster, owner, draw.choice(MODELS), begin, started))
            cuts = sorted(draw.uniform(started, started + length) for _ in range(2))
            moments = [started, *cuts, started + length]
            for a, b in itertools.pairwise(moments):
                span = span_row(job_id, self._cluster, a, b, kind)
                spans.append(span | {"gpu_count": count, "gpus": gpus})
            events += [
                {
                    "job_id": job_id,
                    "cluster_id": self._cluster,
                    "cluster_seconds": begin + step,
                    "kind": "state",
                    "state": "running",
                    "data": {"gpu_type": kind, "gpu_count": count},
                }
                for step in range(EVENTS_EACH)
            ]
        rho = [rho_row(job, draw.lognormvariate(0.0, 0.4)) for job in jobs]
        written = ((Job, jobs), (JobAllocation, spans), (JobEvent, events), (JobFairness, rho))
        for table, rows in written:
            connection.execute(sa.insert(table), rows)
        connection.execute(sa.insert(Round), list(round_rows(self._cluster, day)))

    def _bytes(self) -> int:
        with self._database.engine.connect() as connection:
            if not self._database.is_sqlite:
                size = connection.exec_driver_sql("SELECT pg_database_size(current_database())")
                return int(size.scalar_one())
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        return self._file.stat().st_size


def _all(sum_up: Callable[[Database], int], database: Database) -> int:
    """Sum up until nothing is left: on a busy machine one run does not get through all days."""
    found = 0
    while some := sum_up(database):
        found += some
    assert found >= RAW_DAYS, f"{found} of {RAW_DAYS} days are summed up"
    return found


def _owners(session: Session) -> list[Owner]:
    owners = []
    for number in range(TENANTS):
        tenant = Tenant(name=f"tenant-{number}")
        session.add(tenant)
        session.flush()
        users = [
            User(name=f"user-{number}-{each}", tenant_id=tenant.id, role="submitter")
            for each in range(USERS_EACH)
        ]
        session.add_all(users)
        session.flush()
        owners += [Owner(user.id, tenant.id) for user in users]
    return owners


def _used(period: Period, by: UsageBy, session: Session, who: Principal, cluster: Cluster) -> float:
    found = usage(session, who, cluster=cluster, period=period, by=by, per_day=True)
    return found["total"]["allocated_gpu_hours"]


def _fairness(period: Period, session: Session, who: Principal, cluster: Cluster) -> float:
    return fairness(EndedJobs(session, cluster, period), who)["all"]["jobs"]


def _manager(period: Period, session: Session, who: Principal, cluster: Cluster) -> float:
    facts = gather(session, who, cluster, period)
    assert len(build_report(facts)["figures"]) == 5
    return float(facts.present.finished or 0)


def _printed(period: Period, session: Session, who: Principal, cluster: Cluster) -> float:
    return float(len(pdf_of(build_report(gather(session, who, cluster, period)))))


def _row(
    what: str, value: float, unit: str, *, cpu: float | None = None, server: float | None = None
) -> dict[str, Cell]:
    return {"what": what, "value": value, "unit": unit, "cpu": cpu, "server": server}
