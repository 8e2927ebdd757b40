"""Reproductions: opens their items, shows each once its runs have ended, and ends the whole.

Several workers share an item's runs (`runs.py`); one at a time works on an item itself. What a
killed worker leaves, another one takes up. Knows no broker.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlmodel import Session, col, select

from backend.clocktime import utc_now
from backend.database import Database
from backend.models import (
    Operation,
    OperationState,
    PaperRun,
    ReproducedItem,
    ReproducedRun,
    Reproduction,
)
from backend.operations.models import ENDED
from backend.papers.data import PublishedData, data_of
from backend.papers.service import PLAYED, REPRODUCTION, Progress, items_of, progress_of
from backend.problems import Conflict
from backend.settings import Settings
from maat.laboratory.results import Kept
from maat.scheduling.errors import MaatError
from worker.laboratory.work import LIVE
from worker.operations import (
    OPERATIONS,
    finish,
    is_cancel_requested,
    join,
    waiting_operations,
)
from worker.papers.failures import reason_of
from worker.papers.items import opened, result_of
from worker.papers.wanting import drop_unwanted, wanting
from worker.work_queue import Claim, WorkQueue

ITEMS = WorkQueue(ReproducedItem, key=col(ReproducedItem.id))
Work = Callable[[Database, PublishedData, Reproduction, ReproducedItem, Claim], None]


def waiting_reproductions(database: Database) -> list[str]:
    """Return reproductions that no worker shows life of, and mark them as sent."""
    operations = waiting_operations(database, kind=REPRODUCTION)
    with database.session_scope(writes=False) as session:
        wanted = col(Reproduction.operation_id).in_(operations)
        return list(session.exec(select(Reproduction.id).where(wanted)))


def reproduce(database: Database, settings: Settings, reproduction_id: str) -> None:
    """Open the items of a reproduction, show those whose runs have ended, and bring it up to date.

    It may be repeated: it takes up what nobody works on.
    """
    with database.session_scope(writes=False) as session:
        reproduction = session.get(Reproduction, reproduction_id)
    if reproduction is None or not join(database, reproduction.operation_id):
        return
    unopened = col(ReproducedItem.runs).is_(None)
    _each(database, settings, reproduction, unopened, _open)
    advance(database, settings, reproduction)


def advance_all_with(database: Database, settings: Settings, key: str) -> None:
    """Bring the reproductions that want a run up to date."""
    with database.session_scope(writes=False) as session:
        mine = wanting(Reproduction).where(col(ReproducedRun.run_key) == key).distinct()
        found = session.exec(mine).all()
    for reproduction in found:
        advance(database, settings, reproduction)


def end_cancelled(database: Database) -> None:
    """End the reproductions that were cancelled and whose runs wait for a worker."""
    with database.session_scope(writes=False) as session:
        cancelled = col(Operation.state).in_(LIVE), col(Operation.cancel_requested)
        found = session.exec(select(Reproduction).join(Operation).where(*cancelled)).all()
    for reproduction in found:
        _settle(database, reproduction)


def advance(database: Database, settings: Settings, reproduction: Reproduction) -> None:
    """Show the items whose runs have ended, and write how far the whole is."""
    left = (
        select(ReproducedRun.item_id)
        .join(PaperRun)
        .where(
            col(ReproducedRun.item_id) == col(ReproducedItem.id),
            col(PaperRun.state).not_in(PLAYED),
        )
    )
    complete = col(ReproducedItem.runs).is_not(None) & ~left.exists()
    _each(database, settings, reproduction, complete, _close)
    _settle(database, reproduction)


def _each(
    database: Database,
    settings: Settings,
    reproduction: Reproduction,
    which: sa.ColumnElement[bool],
    work: Work,
) -> None:
    """Claim these items one by one, and do the work on each, until they or the time are over."""
    with database.session_scope(writes=False) as session:
        published = data_of(session, settings, reproduction)
    mine = col(ReproducedItem.reproduction_id) == reproduction.id
    whole = Claim(reproduction.operation_id)
    while not is_cancel_requested(database, reproduction.operation_id):
        with database.session_scope() as session:
            claim = ITEMS.claim_next(session, mine, which, order=col(ReproducedItem.position))
            if claim is None:
                return
            item = session.get_one(ReproducedItem, claim.key)
        with ITEMS.working_on(database, claim, also=lambda at: OPERATIONS.beat(at, whole)):
            try:
                work(database, published, reproduction, item, claim)
            except Exception as error:
                named = f"{reproduction.paper} {item.item}"
                _fail(database, claim, reason_of(error, published, of=named))


def _open(
    database: Database,
    published: PublishedData,
    reproduction: Reproduction,
    item: ReproducedItem,
    claim: Claim,
) -> None:
    """Find out which runs an item needs, and have those played that are not there."""
    found = opened(reproduction.paper, item.item, reproduction.size, published)
    keys = sorted(found.needs)
    with database.session_scope() as session:
        if not ITEMS.give_back(session, claim, runs=len(keys)):
            return
        old = col(ReproducedRun.item_id) == item.id
        session.execute(sa.delete(ReproducedRun).where(old))
        if keys:
            _want(session, keys)
            rows = [{"item_id": item.id, "run_key": key} for key in keys]
            session.execute(sa.insert(ReproducedRun).values(rows))


def _want(session: Session, keys: list[str]) -> None:
    """Queue new runs, and those that failed or were dropped; others stay as they are."""
    ended = col(PaperRun.state).in_([OperationState.FAILED, OperationState.CANCELLED])
    again = sa.update(PaperRun).where(col(PaperRun.key).in_(keys), ended)
    session.execute(again.values(state="queued", failed=None, heartbeat_at=None, finished_at=None))
    insert = sqlite.insert if session.get_bind().dialect.name == "sqlite" else postgresql.insert
    rows = [{"key": key, "state": "queued"} for key in keys]
    session.execute(insert(PaperRun).values(rows).on_conflict_do_nothing(index_elements=["key"]))


def _close(
    database: Database,
    published: PublishedData,
    reproduction: Reproduction,
    item: ReproducedItem,
    claim: Claim,
) -> None:
    """Show an item from what came out of its runs.

    One that needs other runs by now is opened again.
    """
    found = opened(reproduction.paper, item.item, reproduction.size, published)
    results = _results(database, item)
    if found.needs != results.keys():
        with database.session_scope() as session:
            ITEMS.give_back(session, claim, runs=None)
        return
    result = result_of(found.closed(results), published)
    with database.session_scope() as session:
        ITEMS.settle(session, claim, OperationState.SUCCEEDED, result=result)


def _results(database: Database, item: ReproducedItem) -> dict[str, Kept | MaatError]:
    """Return the result of each run of an item, or why it has none."""
    mine = col(ReproducedRun.item_id) == item.id
    with database.session_scope(writes=False) as session:
        runs = session.exec(select(PaperRun).join(ReproducedRun).where(mine)).all()
        return {
            run.key: run.result if run.failed is None else MaatError(run.failed) for run in runs
        }


def _fail(database: Database, claim: Claim, why: str) -> None:
    with database.session_scope() as session:
        ITEMS.settle(session, claim, OperationState.FAILED, failed=why)


def _settle(database: Database, reproduction: Reproduction) -> None:
    """Write the progress of a reproduction; end it if all is done, or if it was cancelled."""
    with database.session_scope() as session:
        operation = session.get_one(Operation, reproduction.operation_id, with_for_update=True)
        if operation.state in ENDED:
            return
        items = items_of(session, [reproduction.id])[reproduction.id]
        runs = progress_of(session, [reproduction.id]).get(reproduction.id, Progress())
        ended = [item for item in items if item.state in ENDED]
        operation.state, operation.heartbeat_at = OperationState.RUNNING, utc_now()
        operation.done = float(len(ended) + runs.done)
        operation.total = float(len(items) + runs.total)
        operation.message = (
            f"Items: {len(ended)} of {len(items)}. Runs: {runs.done} of {runs.total}."
        )
        session.add(operation)
        session.flush()
        if operation.cancel_requested:
            _end(session, operation, OperationState.CANCELLED)
            ITEMS.drop(session, col(ReproducedItem.reproduction_id) == reproduction.id)
            drop_unwanted(session)
        elif len(ended) == len(items):
            failed = [item for item in items if item.state == OperationState.FAILED]
            state = OperationState.FAILED if failed else OperationState.SUCCEEDED
            _end(session, operation, state, error=_problem(operation, failed) if failed else None)


def _end(
    session: Session,
    operation: Operation,
    state: OperationState,
    error: dict[str, Any] | None = None,
) -> None:
    finish(session, operation.id, state, message=operation.message, error=error)


def _problem(operation: Operation, failed: list[ReproducedItem]) -> dict[str, Any]:
    first = failed[0]
    problem = Conflict(f"{first.item} was not made: {first.failed}")
    return problem.as_json(instance=f"/api/v1/operations/{operation.id}", request_id="")
