"""Connections and transactions on SQLite and PostgreSQL. The one place that begins, commits and rolls back; knows no table."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from sqlmodel import Session

from backend.settings import Settings

log = logging.getLogger(__name__)

_FIRST_START_LOCK = 7_240_104
_AFTER_COMMIT = "maat_after_commit"


class Database:
    """An engine, and sessions that are one transaction each."""

    def __init__(self, url: str, *, busy_seconds: float = 20.0) -> None:
        parsed = sa.engine.make_url(url)
        self.is_sqlite = parsed.get_backend_name() == "sqlite"
        self.engine = _sqlite_engine(parsed, busy_seconds) if self.is_sqlite else sa.create_engine(parsed, pool_pre_ping=True, pool_size=10)
        # A SQLite transaction that reads first and writes later can fail half-way: writers say so at the start.
        self._writer = self.engine.execution_options(maat_begin="BEGIN IMMEDIATE")

    @classmethod
    def of(cls, settings: Settings) -> Database:
        return cls(settings.sqlalchemy_url, busy_seconds=settings.sqlite_busy_seconds)

    @contextmanager
    def session_scope(self, *, writes: bool = True) -> Iterator[Session]:
        """One transaction: committed at the end, rolled back on an exception. What `after_commit` collected runs when it has held."""
        with Session(self._writer if writes else self.engine, expire_on_commit=False) as session:
            try:
                yield session
                session.commit()
            except BaseException:
                session.rollback()
                raise
            _run_callbacks(session)

    @contextmanager
    def migration(self) -> Iterator[Connection]:
        """A connection for migrations: of two processes that start together, one migrates and the other waits."""
        with self._writer.begin() as connection:
            self._lock(connection)
            yield connection

    def lock_alone(self, session: Session) -> None:
        """Wait until no other migration or first start is under way; held to the end of the transaction."""
        self._lock(session.connection())

    def _lock(self, connection: Connection) -> None:
        if not self.is_sqlite:  # there, BEGIN IMMEDIATE has done it
            connection.execute(sa.text(f"SELECT pg_advisory_xact_lock({_FIRST_START_LOCK})"))

    def dispose(self) -> None:
        self.engine.dispose()


def after_commit(session: Session, callback: Callable[[], object]) -> None:
    """Run `callback` once the transaction of `session` has been committed; never, where it was not."""
    session.info.setdefault(_AFTER_COMMIT, []).append(callback)


def _run_callbacks(session: Session) -> None:
    for callback in session.info.pop(_AFTER_COMMIT, ()):
        try:
            callback()
        except Exception:
            # The row is committed and says what is to be done: housekeeping finds it. The caller's answer stays true.
            log.exception("what was to follow a commit failed")


def _sqlite_engine(url: sa.URL, busy_seconds: float) -> Engine:
    if url.database and url.database != ":memory:":
        Path(url.database).parent.mkdir(parents=True, exist_ok=True)
    engine = sa.create_engine(url, connect_args={"timeout": busy_seconds, "check_same_thread": False})
    sa.event.listen(engine, "connect", _prepare_sqlite)
    sa.event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: Any, _record: object) -> None:
    assert isinstance(connection, sqlite3.Connection)  # noqa: S101  (this listener is attached to SQLite engines only)
    connection.isolation_level = None  # the driver would begin by itself, and never immediately
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get("maat_begin", "BEGIN"))
