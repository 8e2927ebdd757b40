"""Rows as a queue of work, on both databases.

Each row has one worker; none is lost, and none is settled by another worker.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import pytest
import sqlalchemy as sa
from live_samples import make_owner
from sqlmodel import col

from backend.clocktime import utc_now
from backend.database import Database
from backend.models import Operation, OperationState, SweepPoint
from worker import work_queue
from worker.work_queue import Claim, WorkQueue

pytestmark = pytest.mark.both_databases

POINTS = WorkQueue(SweepPoint, key=col(SweepPoint.key))
OPERATIONS = WorkQueue(Operation, key=col(Operation.id))
LONG_AGO = timedelta(minutes=5)


def test_each_row_is_claimed_once_in_order_until_none_is_left(database: Database) -> None:
    add_points(database, "b", "a", "c")
    assert [claim_of(database), claim_of(database), claim_of(database), claim_of(database)] == [
        "a",
        "b",
        "c",
        None,
    ]


def test_of_workers_that_ask_together_each_gets_another_row(database: Database) -> None:
    keys = [f"point-{number:02d}" for number in range(24)]
    add_points(database, *keys)
    meeting = threading.Barrier(4)

    def take_all() -> list[str]:
        meeting.wait(60)
        taken = []
        while (key := claim_of(database)) is not None:
            taken.append(key)
        return taken

    with ThreadPoolExecutor(4) as pool:
        found = [future.result() for future in [pool.submit(take_all) for _ in range(4)]]
    assert sorted(key for taken in found for key in taken) == keys


def test_a_claimed_row_is_settled_by_its_worker_and_by_no_second_call(database: Database) -> None:
    add_points(database, "a")
    with database.session_scope() as session:
        claim = POINTS.claim_next(session)
        assert claim is not None
        assert POINTS.settle(session, claim, OperationState.SUCCEEDED, figures={"n": 1})
        assert not POINTS.settle(session, claim, OperationState.FAILED, error={"status": 500})
    row = point(database, "a")
    assert (row.state, row.figures, row.error) == ("succeeded", {"n": 1}, None)
    assert row.finished_at is not None


def test_a_worker_that_stood_still_can_neither_settle_nor_keep_the_row_that_another_has(
    database: Database,
) -> None:
    add_points(database, "a")
    with database.session_scope() as session:
        first = POINTS.claim_next(session)
    set_points(database, heartbeat_at=utc_now() - LONG_AGO)
    with database.session_scope() as session:
        second = POINTS.claim_next(session)
    assert first is not None
    assert second is not None
    before = point(database, "a").heartbeat_at
    with database.session_scope() as session:
        assert not POINTS.beat(session, first)
        assert not POINTS.settle(session, first, OperationState.FAILED)
    assert (point(database, "a").state, point(database, "a").heartbeat_at) == ("running", before)
    with database.session_scope() as session:
        assert POINTS.beat(session, second)
        assert POINTS.settle(session, second, OperationState.SUCCEEDED)
    assert point(database, "a").state == "succeeded"


def test_a_row_is_shown_alive_while_it_is_worked_on_and_no_longer(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work_queue, "HEARTBEAT_SECONDS", 0.01)
    add_points(database, "a")
    with database.session_scope() as session:
        claim = POINTS.claim_next(session)
    assert claim is not None
    began, beaten = point(database, "a").heartbeat_at, threading.Event()
    with POINTS.working_on(database, claim, also=lambda _: beaten.set()):
        assert beaten.wait(60)
    ended = point(database, "a").heartbeat_at
    assert began is not None
    assert ended is not None
    assert ended > began
    assert not beaten_again(database, ended)


@pytest.mark.parametrize(
    ("state", "silent_seconds", "is_sent"),
    [
        ("queued", None, True),
        ("queued", 30.0, False),
        ("queued", 90.0, True),
        ("queued", -60.0, True),
        ("running", 10.0, False),
        ("running", 30.0, True),
        ("running", -60.0, True),
        ("succeeded", 90.0, False),
        ("failed", None, False),
        ("cancelled", 90.0, False),
    ],
)
def test_a_row_without_a_worker_is_sent_again_once(
    database: Database, state: str, silent_seconds: float | None, is_sent: bool
) -> None:
    """Silent for fewer than no seconds: its heartbeat is of a clock that was set back since."""
    add_points(database, "a")
    heard = None if silent_seconds is None else utc_now() - timedelta(seconds=silent_seconds)
    set_points(database, state=state, heartbeat_at=heard)
    key = col(SweepPoint.key)
    assert POINTS.send_again(database, returning=key) == (["a"] if is_sent else [])
    assert POINTS.send_again(database, returning=key) == [], "it counts as sent"
    assert point(database, "a").state == ("queued" if is_sent else state)


def test_dropping_leaves_rows_that_a_worker_has(database: Database) -> None:
    add_points(database, "a", "b")
    assert claim_of(database) == "a"
    with database.session_scope() as session:
        POINTS.drop(session)
    assert [point(database, key).state for key in "ab"] == ["running", "cancelled"]


def test_workers_share_an_operation_and_the_first_end_of_it_stays(database: Database) -> None:
    owner, tenant = make_owner(database)
    with database.session_scope() as session:
        operation = Operation(kind="simulation", owner_id=owner, tenant_id=tenant)
        session.add(operation)
    with database.session_scope() as session:
        assert OPERATIONS.join(session, operation.id) == Claim(operation.id)
    began = operation_of(database, operation.id).started_at
    with database.session_scope() as session:
        other = OPERATIONS.join(session, operation.id)
        assert other is not None
        assert OPERATIONS.settle(session, other, OperationState.FAILED, message="Runs: 1 failed.")
        assert not OPERATIONS.settle(session, other, OperationState.SUCCEEDED)
        assert OPERATIONS.join(session, operation.id) is None
    found = operation_of(database, operation.id)
    assert (found.state, found.message, found.started_at) == ("failed", "Runs: 1 failed.", began)


def add_points(database: Database, *keys: str) -> None:
    with database.session_scope() as session:
        session.add_all([SweepPoint(key=key) for key in keys])


def set_points(database: Database, **values: object) -> None:
    with database.session_scope() as session:
        session.connection().execute(sa.update(SweepPoint).values(**values))


def claim_of(database: Database) -> str | None:
    with database.session_scope() as session:
        claim = POINTS.claim_next(session, order=col(SweepPoint.key))
        return None if claim is None else claim.key


def point(database: Database, key: str) -> SweepPoint:
    with database.session_scope(writes=False) as session:
        return session.get_one(SweepPoint, key)


def operation_of(database: Database, operation_id: str) -> Operation:
    with database.session_scope(writes=False) as session:
        return session.get_one(Operation, operation_id)


def beaten_again(database: Database, since: datetime) -> bool:
    """Whether a heartbeat came in the time of a few."""
    threading.Event().wait(0.1)
    return point(database, "a").heartbeat_at != since
