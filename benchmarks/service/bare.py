"""A bare FastAPI application whose routes send given SQL, to compare Maat's routes with.

Its routes are as FastAPI's documentation writes them: a function that is no coroutine, a session as
a dependency with `yield`, and a body that is checked by its schema. They have no accounts, gates,
limits, problems or mapper: the statements are sent as text in the session's one transaction, and
the rows of one of them are the answer.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
import uvicorn
from fastapi import Depends, FastAPI
from sqlmodel import Session

from backend.database import Database
from backend.ids import new_id
from benchmarks.service.real_server import await_answer, free_port
from maat.api.jobs import JobBody

Statement = tuple[str, Any]
_NEW = ("job", "aud")  # what a submission makes


@dataclass
class Recorded:
    """The statements of one request, as the driver gets them."""

    statements: list[Statement] = field(default_factory=list)


@contextmanager
def recording(database: Database) -> Iterator[Recorded]:
    """Record what is sent to the database in this block, but for begin, commit and settings."""
    found, lock = Recorded(), threading.Lock()

    def note(_c: Any, _cursor: Any, sql: str, parameters: Any, _x: Any, _many: bool) -> None:
        if not sql.lstrip().startswith(("BEGIN", "PRAGMA", "SET ")):
            with lock:
                found.statements.append((sql, parameters))

    sa.event.listen(database.engine, "before_cursor_execute", note)
    try:
        yield found
    finally:
        sa.event.remove(database.engine, "before_cursor_execute", note)


@contextmanager
def bare_service(url: str, listing: Recorded, submitting: Recorded) -> Iterator[tuple[int, int]]:
    """Serve both in a process of their own; yield its port and its id."""
    port = free_port()
    context = multiprocessing.get_context("fork")
    process = context.Process(target=_serve, args=(url, listing, submitting, port), daemon=True)
    process.start()
    try:
        await_answer(f"http://127.0.0.1:{port}/health", Alive(process))
        yield port, process.pid or os.getpid()
    finally:
        process.kill()
        process.join()


class Alive:
    """What `await_answer` asks of a process."""

    def __init__(self, process: Any) -> None:
        self._process = process

    def poll(self) -> int | None:
        return None if self._process.is_alive() else 1

    @property
    def returncode(self) -> int | None:
        return self.poll()


def _serve(url: str, listing: Recorded, submitting: Recorded, port: int) -> None:
    application = bare_app(Database(url), listing, submitting)
    uvicorn.run(application, port=port, log_level="error", access_log=False, http="httptools")


def bare_app(database: Database, listing: Recorded, submitting: Recorded) -> FastAPI:
    app = FastAPI()

    def reading() -> Iterator[Session]:
        with database.session_scope(writes=False) as session:
            yield session

    def writing() -> Iterator[Session]:
        with database.session_scope() as session:
            yield session

    reads, writes = (Depends(one, scope="function") for one in (reading, writing))

    @app.get("/health")
    def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/jobs")
    def jobs(session: Session = reads, limit: int = 50) -> list[dict[str, Any]]:
        return _sent(session, listing.statements)[:limit]

    @app.post("/jobs", status_code=201)
    def submit(body: JobBody, session: Session = writes) -> dict[str, Any]:
        _sent(session, _of_new_job(submitting.statements))
        return body.model_dump(mode="json")

    return app


def _sent(session: Session, statements: Sequence[Statement]) -> list[dict[str, Any]]:
    """Send statements; return the rows of the longest answer."""
    longest: list[dict[str, Any]] = []
    connection = session.connection()
    for sql, parameters in statements:
        many = isinstance(parameters, list)
        found = connection.exec_driver_sql(sql, parameters)
        if not many and found.returns_rows:
            rows = [dict(row._mapping) for row in found]
            longest = max(longest, rows, key=len)
    return longest


def _of_new_job(statements: Sequence[Statement]) -> list[Statement]:
    """Return the statements of a submission with new ids in place of the recorded ones."""
    fresh = {prefix: new_id(prefix) for prefix in _NEW}

    def swapped(value: Any) -> Any:
        if isinstance(value, str):
            prefix, is_id, _ = value.partition("_")
            return fresh[prefix] if is_id and prefix in fresh else value
        if isinstance(value, dict):
            return {name: swapped(one) for name, one in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(swapped(one) for one in value)
        return value

    return [(sql, swapped(parameters)) for sql, parameters in statements]
