"""Workers that listen say so; those that have gone fall silent and are forgotten."""

from __future__ import annotations

from datetime import timedelta

from sqlmodel import select

from backend.clocktime import utc_now
from backend.database import Database
from backend.models import WorkerHeartbeat
from worker.heartbeats import show_life


def test_a_worker_has_one_row_which_says_when_it_last_listened(database: Database) -> None:
    show_life(database, "rounds@a", ["rounds"])
    with database.session_scope() as session:
        row = session.get_one(WorkerHeartbeat, "rounds@a")
        row.at -= timedelta(seconds=60)
        first = row.started_at
    show_life(database, "rounds@a", ["rounds", "simulations"])
    with database.session_scope(writes=False) as session:
        (row,) = session.exec(select(WorkerHeartbeat)).all()
    assert (row.queues, row.started_at) == (["rounds", "simulations"], first)
    assert abs((utc_now() - row.at).total_seconds()) < 30


def test_who_has_been_silent_for_a_day_is_forgotten(database: Database) -> None:
    with database.session_scope() as session:
        for name, hours in (("gone@a", 25), ("silent@a", 23)):
            at = utc_now() - timedelta(hours=hours)
            session.add(WorkerHeartbeat(name=name, version="1", at=at))
    show_life(database, "rounds@a", ["rounds"])
    with database.session_scope(writes=False) as session:
        assert set(session.exec(select(WorkerHeartbeat.name))) == {"silent@a", "rounds@a"}
