"""Plays runs that items of papers need, one per task. Knows no broker.

A run is known by its content: it is played once, for all reproductions that want it, and its result
stays for later ones. If a worker dies, another one claims its run.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError
from sqlmodel import Session, col, select

from backend.clocktime import utc_now
from backend.database import Database, is_disk_full
from backend.models import (
    Operation,
    OperationState,
    PaperRun,
    ReproducedItem,
    ReproducedRun,
    Reproduction,
)
from backend.papers.data import PublishedData, data_of
from backend.settings import Settings
from maat.papers.items import computed
from maat.scheduling.errors import MaatError
from maat.simulation.record import Cancelled
from worker.operations import OPERATIONS
from worker.papers.failures import NO_ROOM, reason_of
from worker.papers.items import opened
from worker.papers.wanting import LIVE, RUNS, drop_unwanted, is_wanted, live, unsent, wanting
from worker.simulations.progress import PROGRESS_SECONDS, Progress
from worker.work_queue import Claim

_OTHER_RUNS = "It was opened by another version of Maat, or with other published data. Ask again."


def next_runs(database: Database, *, at_once: int) -> list[str]:
    """Return runs to send, and mark them as sent.

    Of each reproduction at most `at_once` are sent or played at a time, so that the simulations of
    others get their turn.
    """
    with database.session_scope(writes=False) as session:
        wanted = [
            key
            for found in session.exec(
                select(Reproduction.id)
                .join(Operation)
                .where(*live())
                .order_by(col(Reproduction.id))
            )
            for key in _next_of(session, found, at_once)
        ]
    if not wanted:
        return []
    again = sa.update(PaperRun).where(col(PaperRun.key).in_(wanted), unsent())
    with database.session_scope() as session:
        sent = session.connection().execute(
            again.values(
                state=OperationState.QUEUED, heartbeat_at=utc_now(), finished_at=None
            ).returning(col(PaperRun.key))
        )
        found = set(sent.scalars())
    return [key for key in dict.fromkeys(wanted) if key in found]


def _next_of(session: Session, reproduction_id: str, at_once: int) -> list[str]:
    """Return the first runs of a reproduction that have not been sent, as far as there is room."""
    mine = (
        wanting(col(PaperRun.key))
        .join(PaperRun, col(PaperRun.key) == col(ReproducedRun.run_key))
        .where(col(Reproduction.id) == reproduction_id)
    )
    under_way = mine.where(col(PaperRun.state).in_(LIVE), ~unsent()).distinct()
    room = at_once - len(session.exec(under_way).all())
    if room <= 0:
        return []
    first = sa.func.min(col(ReproducedItem.position))
    waiting = mine.where(unsent()).group_by(col(PaperRun.key)).order_by(first, col(PaperRun.key))
    return list(session.exec(waiting.limit(room)))


def waiting_runs(database: Database) -> list[str]:
    """Return runs that were sent and have no worker, and mark them as sent again."""
    return RUNS.send_again(database, RUNS.begun(), returning=col(PaperRun.key))


def play_run(database: Database, settings: Settings, key: str) -> OperationState | None:
    """Play a run and store its result.

    Returns None if another worker has claimed it, it has ended, or nobody wants it any more.
    """
    taken = _claim(database, key)
    if taken is None:
        return None
    claim, item, reproduction = taken
    with database.session_scope(writes=False) as session:
        published = data_of(session, settings, reproduction)
    values: dict[str, object] = {}
    with RUNS.working_on(database, claim, also=_shown_life(key)):
        try:
            result = _played(database, key, item, reproduction, published)
        except Cancelled:
            state = OperationState.CANCELLED
        except Exception as error:
            named = f"a run of {reproduction.paper} {item.item}"
            state = OperationState.FAILED
            values = {"failed": reason_of(error, published, of=named)}
        else:
            state, values = OperationState.SUCCEEDED, {"result": _packed(result)}
    return state if _keep(database, claim, state, values) else None


def _claim(database: Database, key: str) -> tuple[Claim, ReproducedItem, Reproduction] | None:
    """Claim a queued or abandoned run, for the first item that waits for it."""
    mine = col(ReproducedRun.run_key) == key
    with database.session_scope() as session:
        found = wanting(col(ReproducedItem.id)).where(mine).order_by(col(ReproducedItem.id))
        item_id = session.exec(found.limit(1)).first()
        if item_id is None:
            drop_unwanted(session)
            return None
        claim = RUNS.claim_next(session, col(PaperRun.key) == key)
        if claim is None:
            return None
        item = session.get_one(ReproducedItem, item_id)
        return claim, item, session.get_one(Reproduction, item.reproduction_id)


def _shown_life(key: str) -> Callable[[Session], None]:
    """Return what shows life of the reproductions that want a run."""

    def show(session: Session) -> None:
        mine = wanting(col(Operation.id)).where(col(ReproducedRun.run_key) == key)
        for operation_id in session.exec(mine.distinct()):
            OPERATIONS.join(session, operation_id)

    return show


def _played(
    database: Database,
    key: str,
    item: ReproducedItem,
    reproduction: Reproduction,
    published: PublishedData,
) -> Mapping[str, Any]:
    """Compute a run. Raises Cancelled once nobody wants it, MaatError if it cannot be computed."""
    found = opened(reproduction.paper, item.item, reproduction.size, published)
    run = found.runs_by_key.get(key)
    if run is None:
        raise MaatError(_OTHER_RUNS)
    progress = Progress(lambda: not is_wanted(database, key), seconds=PROGRESS_SECONDS)
    return computed(run, on_progress=lambda position: progress.report(position.finished))


def _packed(result: Mapping[str, Any]) -> bytes:
    """Return a result as its column stores it; unlike answers, it may hold infinity."""
    return zlib.compress(json.dumps(result, separators=(",", ":")).encode(), level=6)


def _keep(
    database: Database, claim: Claim, state: OperationState, values: Mapping[str, object]
) -> bool:
    """End the run; one whose result finds no room has failed. Returns whether it was ours."""
    try:
        with database.session_scope() as session:
            return RUNS.settle(session, claim, state, **values)
    except DBAPIError as error:
        if not is_disk_full(error.orig):
            raise
    with database.session_scope() as session:
        return RUNS.settle(session, claim, OperationState.FAILED, failed=NO_ROOM)
