"""The cost of a list of jobs with short and long histories.

Measures every order and every filter, rows and counts, on both databases.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlmodel import Session, select

from backend.accounts.identity import Principal
from backend.accounts.models import Tenant, User
from backend.accounts.permissions import PERMISSIONS, Role
from backend.bootstrap_data import ensure_defaults
from backend.clusters.repository import all_clusters
from backend.database import Database
from backend.jobs.repository import SORT_KEYS, FoundJobs, JobFilters, count_by_state, find_jobs
from backend.jobs.resources import show_jobs
from backend.settings import Settings
from benchmarks.table import Figures

sys.path.append(
    str(Path(__file__).resolve().parents[2] / "tests" / "backend")
)  # the history and the PostgreSQL of the tests

import history
from postgres_server import NoPostgres, postgres_server

SIZES = (4_000, 100_000)
REPEATED = 9
DEFAULT = "-submitted_at"
FILTERS: dict[str, JobFilters] = {
    "state=failed": JobFilters(states=("failed",)),
    "state=running": JobFilters(states=("running",)),
    "state=failed, cancelled": JobFilters(states=("cancelled", "failed")),
    "model": JobFilters(models=("ncf",)),
    "three models": JobFilters(models=("bert", "ncf", "yolov3")),
    "tenant": JobFilters(tenants=("blue",)),
    "owner": JobFilters(owner="owner-1"),
    "gpu_type": JobFilters(gpu_types=("t4",)),
    "q= that many jobs match": JobFilters(text="train-1"),
    "q= that none matches": JobFilters(text="nowhere"),
}


def measure() -> list[Figures]:
    return [
        _figures(kind, found) for kind in ("SQLite", "PostgreSQL") if (found := _measured(kind))
    ]


def _measured(kind: str) -> dict[str, list[float]]:
    """Return milliseconds by question, in order of SIZES; empty without a database."""
    found: dict[str, list[float]] = {}
    try:
        with _databases(kind) as databases:
            for database, jobs in zip(databases, SIZES, strict=True):
                for name, milliseconds in _questions(database, jobs):
                    found.setdefault(name, []).append(milliseconds)
    except NoPostgres:
        return {}
    return found


def _figures(kind: str, found: dict[str, list[float]]) -> Figures:
    columns = (
        {"question": f"{kind}: a list of 50"}
        | {f"{size}": f"{size:,} jobs, ms" for size in SIZES}
        | {"ratio": "ratio"}
    )
    rows = [
        {
            "question": name,
            **{f"{s}": ms for s, ms in zip(SIZES, times, strict=True)},
            "ratio": times[-1] / times[0],
        }
        for name, times in found.items()
    ]
    notes = [
        f"Median of {REPEATED}, in the process that asks, database included; 40 jobs have not "
        "ended, the rest is history.",
        "q= looks at the names of every job that may be seen: its cost is that of the history, "
        "unless a page is full before.",
    ]
    return Figures("lists", f"Lists of jobs on {kind}", columns, rows, notes)  # type: ignore[arg-type]


def _questions(database: Database, jobs: int) -> Iterator[tuple[str, float]]:
    ensure_defaults(database, Settings(_env_file=None, demo=True))  # type: ignore[call-arg]
    with database.session_scope() as session:
        history.fill(session, jobs)
    with database.session_scope() as session:
        history.settle(session)
    yield "rows, as the administrator", _time(database, JobFilters(), DEFAULT)
    yield "rows, as one tenant", _time(database, JobFilters(), DEFAULT, tenant="blue")
    yield "counts by state", _time_counts(database, JobFilters())
    yield "counts by state, as one tenant", _time_counts(database, JobFilters(), tenant="blue")
    for name in SORT_KEYS:
        for sort in (name, f"-{name}"):
            yield f"sort={sort}", _time(database, JobFilters(), sort)
    for name, filters in FILTERS.items():
        yield name, _time(database, filters, DEFAULT)
        yield f"{name}: counts", _time_counts(database, filters)


def _time(
    database: Database, filters: JobFilters, sort: str, *, tenant: str | None = None
) -> float:
    def ask(session: Session) -> None:
        found = find_jobs(session, _found(session, filters, tenant), sort, limit=50, cursor=None)
        show_jobs(session, found.items)

    return _milliseconds(database, ask)


def _time_counts(database: Database, filters: JobFilters, *, tenant: str | None = None) -> float:
    return _milliseconds(
        database, lambda session: count_by_state(session, _found(session, filters, tenant))
    )


def _milliseconds(database: Database, ask: Callable[[Session], object]) -> float:
    times = []
    for _ in range(REPEATED):
        with database.session_scope(writes=False) as session:
            begun = time.perf_counter()
            ask(session)
            times.append(1000 * (time.perf_counter() - begun))
    return sorted(times)[REPEATED // 2]


def _found(session: Session, filters: JobFilters, tenant: str | None) -> FoundJobs:
    role = Role.CLUSTER_ADMIN if tenant is None else Role.VIEWER
    home = session.exec(select(Tenant).where(Tenant.name == (tenant or "default"))).one()
    user = session.exec(select(User)).first()
    principal = Principal(
        "usr_x" if user is None else user.id, "x", home.id, home.name, role, PERMISSIONS[role]
    )
    return FoundJobs.of(session, filters, principal, all_clusters(session))


@contextmanager
def _databases(kind: str) -> Iterator[list[Database]]:
    """Yield one for each of SIZES. Raises NoPostgres."""
    with tempfile.TemporaryDirectory() as folder:
        if kind == "SQLite":
            made = [Database(f"sqlite:///{folder}/{size}.db") for size in SIZES]
            yield made
            _close(made)
            return
        with postgres_server() as url, _named(url) as urls:
            made = [Database(one) for one in urls]
            yield made
            _close(made)


@contextmanager
def _named(url: str) -> Iterator[list[str]]:
    import psycopg

    names = [f"maat_lists_{size}" for size in SIZES]
    with psycopg.connect(f"{url}/postgres", autocommit=True) as connection:
        for name in names:
            connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')  # type: ignore[arg-type]
            connection.execute(f'CREATE DATABASE "{name}"')  # type: ignore[arg-type]
        yield [f"{url.replace('postgresql://', 'postgresql+psycopg://')}/{name}" for name in names]
        for name in names:
            connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')  # type: ignore[arg-type]


def _close(databases: list[Database]) -> None:
    for database in databases:
        database.dispose()
