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
from backend.papers.service import REPRODUCTION
from backend.settings import Settings
from maat.papers.items import computed
from maat.scheduling.errors import MaatError
from maat.simulation.record import Cancelled, Position
from worker.laboratory.turn import Turn
from worker.laboratory.work import Work, work_of
from worker.operations import OPERATIONS
from worker.papers.failures import NO_ROOM, reason_of
from worker.papers.items import opened
from worker.papers.reproductions import advance_all_with
from worker.papers.wanting import RUNS, drop_unwanted, is_wanted, waiting, wanting, with_runs
from worker.simulations.progress import PROGRESS_SECONDS, Progress
from worker.work_queue import Claim

_OTHER_RUNS = "It was opened by another version of Maat, or with other published data. Ask again."


def work(session: Session) -> list[Work]:
    """Return the reproductions that have runs to play."""
    runs = sa.join(with_runs(), PaperRun, col(PaperRun.key) == col(ReproducedRun.run_key))
    return work_of(session, REPRODUCTION, RUNS, runs, *waiting())


def play(database: Database, settings: Settings, operation_id: str, turn: Turn) -> None:
    """Play the first run of a reproduction that has no worker, and show the items it was for."""
    waits, _, _ = RUNS.standings(utc_now())
    first = (
        wanting(col(PaperRun.key))
        .join(PaperRun, col(PaperRun.key) == col(ReproducedRun.run_key))
        .where(col(Operation.id) == operation_id, waits)
        .order_by(col(ReproducedItem.position), col(PaperRun.key))
    )
    with database.session_scope(writes=False) as session:
        key = session.exec(first.limit(1)).first()
    if key is not None and play_run(database, settings, key, turn) is not None:
        advance_all_with(database, settings, key)


def queue_wanted_again(database: Database) -> None:
    """Queue runs that were dropped before they were wanted again."""
    dropped = (
        col(PaperRun.state) == OperationState.CANCELLED,
        col(PaperRun.key).in_(wanting(col(ReproducedRun.run_key))),
    )
    with database.session_scope(writes=False) as session:
        if session.exec(select(PaperRun.key).where(*dropped).limit(1)).first() is None:
            return
    again = sa.update(PaperRun).where(*dropped)
    with database.session_scope() as session:
        session.connection().execute(
            again.values(state=OperationState.QUEUED, heartbeat_at=None, finished_at=None)
        )


def play_run(
    database: Database, settings: Settings, key: str, turn: Turn | None = None
) -> OperationState | None:
    """Play a run and store its result.

    Returns None if another worker has claimed it, it has ended, or nobody wants it any more.
    """
    taken = _claim(database, key)
    if taken is None:
        return None
    claim, item, reproduction = taken
    with database.session_scope(writes=False) as session:
        published = data_of(session, settings, reproduction)
    turn = Turn() if turn is None else turn
    values: dict[str, object] = {}
    with RUNS.working_on(database, claim, also=_shown_life(key)), turn.taken():
        try:
            result = _played(database, key, item, reproduction, published, turn)
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
    turn: Turn,
) -> Mapping[str, Any]:
    """Compute a run. Raises Cancelled once nobody wants it, MaatError if it cannot be computed."""
    found = opened(reproduction.paper, item.item, reproduction.size, published)
    run = found.runs_by_key.get(key)
    if run is None:
        raise MaatError(_OTHER_RUNS)
    progress = Progress(lambda: not is_wanted(database, key), seconds=PROGRESS_SECONDS)

    def on_progress(position: Position) -> None:
        turn.look()
        progress.report(position.finished)

    return computed(run, on_progress=on_progress)


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
