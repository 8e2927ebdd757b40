"""Fixtures of an empty, migrated database for each test, on SQLite and on PostgreSQL.

A conftest takes them with `from database_fixtures import *`.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa
from postgres_server import NoPostgres, postgres_server, shared_url
from shared_statements import share
from sqlalchemy.engine import Connection

from backend.database import Database
from backend.migrations import upgrade
from backend.models import metadata

__all__ = [
    "database",
    "database_url",
    "empty_database_url",
    "migrated_sqlite",
    "module_database_url",
    "postgres_database_maker",
    "postgres_url",
]

MANY_ROWS = 1000
BOTH = ["sqlite", pytest.param("postgresql", marks=pytest.mark.needs_postgres)]


@pytest.fixture(scope="session")
def postgres_database_maker() -> Iterator[Callable[[], str]]:
    """Makes throwaway databases. At the end they are dropped, or go with their server."""
    try:
        server = postgres_server()
        url = server.__enter__()
    except NoPostgres as reason:
        pytest.skip(str(reason))
    made: list[str] = []
    with psycopg.connect(f"{url}/postgres", autocommit=True) as connection:

        def make() -> str:
            name = f"maat_test_{secrets.token_hex(6)}"
            connection.execute(f'CREATE DATABASE "{name}"')
            made.append(name)
            return f"{url.replace('postgresql://', 'postgresql+psycopg://')}/{name}"

        yield make
        for name in made if url == shared_url() else []:
            connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
    server.__exit__(None, None, None)


@pytest.fixture(scope="session")
def postgres_url(postgres_database_maker: Callable[[], str]) -> str:
    """A migrated database, shared by all tests of the session."""
    url = postgres_database_maker()
    _migrate(url)
    return url


@pytest.fixture(scope="session")
def migrated_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated file to copy."""
    path = tmp_path_factory.mktemp("migrated") / "maat.db"
    _migrate(f"sqlite:///{path}")
    return path


@pytest.fixture(params=BOTH)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A migrated database without rows."""
    return _without_rows(request, tmp_path)


@pytest.fixture(scope="module", params=BOTH)
def module_database_url(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> str:
    """The same, once for all tests of a module, which must then take no `database_url`."""
    return _without_rows(request, tmp_path_factory.mktemp("database"))


def _without_rows(request: pytest.FixtureRequest, folder: Path) -> str:
    if request.param == "sqlite":
        path = folder / "maat.db"
        shutil.copyfile(request.getfixturevalue("migrated_sqlite"), path)
        return f"sqlite:///{path}"
    url: str = request.getfixturevalue("postgres_url")
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        _empty(connection)
    engine.dispose()
    return url


@pytest.fixture(params=BOTH)
def empty_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database without any table."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'empty.db'}"
    make: Callable[[], str] = request.getfixturevalue("postgres_database_maker")
    return make()


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    opened = Database(database_url)
    yield opened
    opened.dispose()


def _empty(connection: Connection) -> None:
    """Take all rows out of PostgreSQL's tables.

    Few rows are deleted: TRUNCATE makes new files for a table and each of its indexes.
    """
    counted = " UNION ALL ".join(
        f"SELECT '{table}', count(*) FROM (SELECT FROM {table} LIMIT {MANY_ROWS}) AS first_rows"
        for table in metadata.tables
    )
    found = {table: rows for table, rows in connection.execute(sa.text(counted)) if rows}
    connection.execute(sa.text("SET LOCAL session_replication_role = replica"))  # no triggers
    for table, rows in found.items():
        few = rows < MANY_ROWS
        connection.execute(sa.text(f"DELETE FROM {table}" if few else f"TRUNCATE {table} CASCADE"))
    connection.execute(
        sa.text(
            "SELECT setval(format('%I.%I', schemaname, sequencename), start_value, false)"
            " FROM pg_sequences WHERE last_value IS NOT NULL"
        )
    )


def _migrate(url: str) -> None:
    database = Database(url)
    upgrade(database)
    with database.engine.connect() as connection:
        if database.is_sqlite:
            connection.exec_driver_sql("COMMIT")
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.exec_driver_sql("BEGIN")
    database.dispose()
    share(database.engine)
