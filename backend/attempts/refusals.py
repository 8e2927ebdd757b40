"""A report that is refused, as an event of its job: one for each attempt and kind of refusal.

Only what comes with the attempt's own token makes one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import anyio.to_thread
from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import SQLAlchemyError
from sqlmodel import Session, col, select

from backend.attempts.reported import read_reported
from backend.attempts.tokens import reporting_attempt
from backend.clocktime import cluster_seconds, this_moment
from backend.database import Database
from backend.jobs.models import JobEvent
from backend.problems import Invalid, MalformedRequest, Problem
from backend.validation_errors import field_error
from backend.web.strict_json import StrictRoute
from maat.scheduling.events import EventKind

log = logging.getLogger(__name__)

IMPOSSIBLE = "impossible"
_MOST_WORDS = 500
_MOST_NOTED = 10_000
_noted: dict[tuple[str, str], None] = {}  # what this process need not look up again


class ReportRoute(StrictRoute):
    """A route of reports: notes what it refuses."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def noting(request: Request) -> Response:
            try:
                return await handle(request)
            except (MalformedRequest, Invalid, RequestValidationError) as error:
                with suppress(Problem):
                    await _note(request, await reporting_attempt(request), error)
                raise

        return noting


async def _note(request: Request, attempt_id: str, error: Exception) -> None:
    kind, words = _kind_and_message(error)
    if (attempt_id, kind) in _noted:
        return
    database: Database = request.app.state.database

    def write() -> None:
        with database.session_scope() as session:
            note_refusal(session, attempt_id, kind, words)

    try:
        await anyio.to_thread.run_sync(write)
    except SQLAlchemyError:
        log.warning("attempt %s: that a report was refused could not be noted", attempt_id)
        return
    _noted[attempt_id, kind] = None
    if len(_noted) > _MOST_NOTED:
        del _noted[next(iter(_noted))]


def note_refusal(session: Session, attempt_id: str, kind: str, words: str) -> None:
    """Store the event, unless the attempt has one of this kind. Commits nothing.

    Raises NotFound.
    """
    attempt = read_reported(session, attempt_id)  # locked: two at once are one
    known = select(JobEvent.data).where(
        JobEvent.job_id == attempt.job_id, col(JobEvent.kind) == EventKind.REPORT.value
    )
    told = {(one["attempt"], one["refused"]) for one in session.exec(known)}
    if (attempt.number, kind) in told:
        return
    session.add(
        JobEvent(
            job_id=attempt.job_id,
            cluster_id=attempt.cluster_id,
            cluster_seconds=cluster_seconds(attempt, this_moment(attempt.database_now)),
            kind=EventKind.REPORT.value,
            data={"attempt": attempt.number, "refused": kind, "reason": words[:_MOST_WORDS]},
        )
    )


def _kind_and_message(error: Exception) -> tuple[str, str]:
    """Return which kind of refusal it is, and its words: with the first field that was wrong."""
    if isinstance(error, RequestValidationError):
        found = field_error(error.errors()[0])
        return "invalid", f"{found.pointer}: {found.message} {found.remedy}"
    assert isinstance(error, Problem)  # noqa: S101  (what ReportRoute catches)
    codes = {one.code for one in error.errors}
    kind = IMPOSSIBLE if IMPOSSIBLE in codes else "invalid"
    return kind if isinstance(error, Invalid) else "unreadable", error.detail
