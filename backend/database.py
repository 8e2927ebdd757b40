"""Connections and transactions on SQLite and PostgreSQL.

The only place that begins, commits and rolls back. It knows no table.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import OperationalError
from sqlmodel import Session

from backend.columns import to_json
from backend.damage import DamageNote, is_damage, sqlite_file
from backend.settings import Settings

log = logging.getLogger(__name__)

_FIRST_START_LOCK = 7_240_104
_CONNECT_SECONDS = 5
_HASTY_MILLISECONDS = 50
_MOST_TRIES, _SECONDS_BETWEEN_TRIES = 100, 0.05
_POSTGRES_DISK_FULL = "53100"
_AFTER_COMMIT = "maat_after_commit"
_DATABASE = "maat_database"
_WAITS = "maat_waits"


class Database:
    """An engine and its sessions; each session is one transaction."""

    def __init__(
        self,
        url: str,
        *,
        busy_seconds: float = 20.0,
        connections: int = 15,
        wait_seconds: float = 5.0,
    ) -> None:
        """Open a database; connections are made when they are needed.

        `busy_seconds`: how long a transaction waits for a lock before it fails with sqlalchemy's
        OperationalError. `connections`: the most at once; without a free one within `wait_seconds`
        a caller gets sqlalchemy's TimeoutError.
        """
        parsed = sa.engine.make_url(url)
        self.is_sqlite = parsed.get_backend_name() == "sqlite"
        pool: dict[str, Any] = {
            "poolclass": sa.QueuePool,
            "pool_size": connections,
            "max_overflow": 0,
            "pool_timeout": wait_seconds,
            "json_serializer": to_json,
        }
        self.engine = (
            _sqlite_engine(parsed, busy_seconds, pool)
            if self.is_sqlite
            else _postgres_engine(parsed, busy_seconds, pool)
        )
        _watch_for_damage(self.engine, sqlite_file(parsed))
        self.engine.hide_parameters = True  # error messages must not hold user data
        # A SQLite transaction that reads first and writes later can fail half-way: writers declare
        # it at the start.
        self._writer = self.engine.execution_options(maat_begin="BEGIN IMMEDIATE")
        self._hasty = self._writer.execution_options(maat_wait_milliseconds=_HASTY_MILLISECONDS)

    @classmethod
    def of(cls, settings: Settings, *, connections: int | None = None) -> Database:
        return cls(
            settings.sqlalchemy_url,
            busy_seconds=settings.lock_wait_seconds,
            connections=settings.database_connections if connections is None else connections,
            wait_seconds=settings.request_wait_seconds,
        )

    @contextmanager
    def session_scope(self, *, writes: bool = True, hasty: bool = False) -> Iterator[Session]:
        """Open one transaction: commit at the end, roll back on an exception.

        Callbacks of `after_commit` run once the commit has succeeded. The transaction begins with
        its first statement: before that it holds no connection and, if it writes, no writer's lock
        of SQLite. `hasty`: it fails instead of waiting for a lock.
        """
        with whole(self.session(writes=writes, hasty=hasty)) as session:
            yield session

    def session(self, *, writes: bool = True, hasty: bool = False) -> Session:
        """Return a session whose transaction `whole` ends: what `session_scope` opens."""
        engine = self._hasty if hasty else self._writer if writes else self.engine
        return Session(engine, expire_on_commit=False, info={_DATABASE: self})

    @contextmanager
    def migration(self) -> Iterator[Connection]:
        """Open a connection for migrations.

        If two processes start together, one migrates and the other waits.
        """
        with self._writer.begin() as connection:
            self._lock(connection)
            yield connection

    def lock_alone(self, session: Session) -> None:
        """Wait until no other migration or first start runs.

        Blocks others until the transaction ends.
        """
        self._lock(session.connection())

    def _lock(self, connection: Connection) -> None:
        if not self.is_sqlite:  # on SQLite, BEGIN IMMEDIATE has locked already
            connection.execute(sa.text("SET LOCAL lock_timeout = 0"))  # migrations take their time
            connection.execute(sa.text(f"SELECT pg_advisory_xact_lock({_FIRST_START_LOCK})"))

    def dispose(self) -> None:
        self.engine.dispose()


def after_commit(session: Session, callback: Callable[[], object]) -> None:
    """Run `callback` after the transaction of `session` is committed.

    After a rollback it never runs.
    """
    session.info.setdefault(_AFTER_COMMIT, []).append(callback)


def database_of(session: Session) -> Database:
    """Return the database that opened a session: for a transaction beside its own."""
    database: Database = session.info[_DATABASE]
    return database


@contextmanager
def whole(session: Session) -> Iterator[Session]:
    """Commit a session's transaction at the end, or roll it back, and run what waits for that.

    The session is closed afterwards.
    """
    with session:
        try:
            yield session
            session.commit()
        except BaseException:
            session.rollback()
            raise
        _run_callbacks(session)


def _run_callbacks(session: Session) -> None:
    for callback in session.info.pop(_AFTER_COMMIT, ()):
        try:
            callback()
        except Exception:
            # The committed row says what is to be done, and housekeeping finds it. The caller's
            # answer stays true.
            log.exception("a callback after a commit failed")


def _sqlite_engine(url: sa.URL, busy_seconds: float, pool: dict[str, Any]) -> Engine:
    if url.database:
        Path(url.database).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    engine = sa.create_engine(
        url, connect_args={"timeout": busy_seconds, "check_same_thread": False}, **pool
    )
    patient = round(busy_seconds * 1000)
    sa.event.listen(engine, "connect", _prepare_sqlite)
    sa.event.listen(engine, "begin", lambda connection: _begin_sqlite(connection, patient))
    return engine


def _watch_for_damage(engine: Engine, file: Path | None) -> None:
    """Raise OperationalError for damage, as for all that keeps the database from answering.

    `file`: of SQLite, which gets a note of it.
    """
    note = None if file is None else DamageNote(file)

    def of_damage(context: sa.engine.ExceptionContext) -> OperationalError | None:
        driver_error = context.original_exception
        if not is_damage(driver_error):
            return None
        if note is not None:
            note.write(str(driver_error))
        return OperationalError(context.statement, None, driver_error, hide_parameters=True)

    sa.event.listen(engine, "handle_error", of_damage, retval=True)


def _prepare_sqlite(connection: Any, _record: object) -> None:
    # This listener is attached to SQLite engines only.
    assert isinstance(connection, sqlite3.Connection)  # noqa: S101
    connection.isolation_level = None  # the driver would begin by itself, and never immediately
    _write_ahead(connection)
    for pragma in ("synchronous=NORMAL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def is_disk_full(error: BaseException | None) -> bool:
    """Return whether a driver's error says that the database's disk has no room."""
    if isinstance(error, sqlite3.Error):
        # The second: the index of its log, which is a file that grows too.
        return getattr(error, "sqlite_errorcode", None) in (
            sqlite3.SQLITE_FULL,
            sqlite3.SQLITE_IOERR_SHMSIZE,
        )
    return getattr(error, "sqlstate", None) == _POSTGRES_DISK_FULL


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Let readers go on beside the writer.

    While processes open a new database at once, SQLite refuses this without waiting.
    """
    for _ in range(_MOST_TRIES):
        with suppress(sqlite3.OperationalError):
            connection.execute("PRAGMA journal_mode=WAL")
            return
        time.sleep(_SECONDS_BETWEEN_TRIES)
    connection.execute("PRAGMA journal_mode=WAL")


def _begin_sqlite(connection: Connection, patient_milliseconds: int) -> None:
    options = connection.get_execution_options()
    wait = options.get("maat_wait_milliseconds", patient_milliseconds)
    if connection.info.get(_WAITS) != wait:  # it stays set as long as the connection
        connection.exec_driver_sql(f"PRAGMA busy_timeout={wait}")
        connection.info[_WAITS] = wait
    connection.exec_driver_sql(options.get("maat_begin", "BEGIN"))


def _postgres_engine(url: sa.URL, busy_seconds: float, pool: dict[str, Any]) -> Engine:
    settings = {
        "connect_timeout": _CONNECT_SECONDS,
        # Without compiling statements: it takes 0.2 s for each that reads a year, and saves less.
        "options": f"-c lock_timeout={round(busy_seconds * 1000)} -c jit=off",
    }
    engine = sa.create_engine(url, pool_pre_ping=True, connect_args=settings, **pool)
    sa.event.listen(engine, "begin", _begin_postgres)
    return engine


def _begin_postgres(connection: Connection) -> None:
    wait = connection.get_execution_options().get("maat_wait_milliseconds")
    if wait is not None:
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{wait}ms'")
