"""Tests of reproductions of papers' items: each run is played once, and what is killed goes on."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from psycopg.errors import DiskFull
from reproduction_samples import ask, cancel, item_of, shown, states, waiting_keys
from sqlalchemy.exc import OperationalError
from sqlmodel import col, select

from backend.clocktime import utc_now
from backend.database import Database
from backend.models import (
    Operation,
    PaperRun,
    ReproducedItem,
    ReproducedRun,
    Reproduction,
)
from backend.settings import Settings
from maat.papers.reproducing import reproduce as reproduced_by_the_library
from maat.scheduling.errors import InputError
from worker.papers import pruning, reproductions, runs


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(_env_file=None, data_dir=tmp_path, data=None)


def play(database: Database, settings: Settings, key: str) -> Any:
    state = runs.play_run(database, settings, key)
    reproductions.advance_all_with(database, settings, key)
    return state


def operation_of(database: Database, found: str) -> Operation:
    with database.session_scope(writes=False) as session:
        return session.get_one(Operation, session.get_one(Reproduction, found).operation_id)


def test_an_item_shows_what_the_library_finds_and_ends_with_its_last_run(
    database: Database, settings: Settings
) -> None:
    found = ask(database, settings, "bsbf", "fig-1")
    assert (shown(database, found)["state"], shown(database, found)["total"]) == ("queued", 0)
    reproductions.reproduce(database, settings, found)
    opened = shown(database, found)
    assert (opened["state"], opened["done"], opened["total"]) == ("running", 0, 5)
    assert operation_of(database, found).message == "Items: 0 of 1. Runs: 0 of 5."
    keys = waiting_keys(database)
    assert len(keys) == 5
    for done, key in enumerate(keys, start=1):
        assert states(shown(database, found)) == {"fig-1": "running" if done > 1 else "queued"}
        assert play(database, settings, key) == "succeeded"
        assert shown(database, found)["done"] == done
    assert (shown(database, found)["state"], states(shown(database, found))) == (
        "succeeded",
        {"fig-1": "succeeded"},
    )
    item, alone = item_of(database, found, "fig-1"), reproduced_by_the_library("bsbf", "fig-1")
    assert item["labels"] == list(alone.labels)
    assert [(row["of"], row["ours"]) for row in item["rows"]] == [
        (list(row.of), row.mean) for row in alone.rows
    ]
    assert item["why"] == alone.why
    assert item["figure"] is not None
    assert item["figure"]["data"]


def test_items_without_runs_are_shown_at_once(database: Database, settings: Settings) -> None:
    found = ask(database, settings, "sia", "table-2")
    reproductions.reproduce(database, settings, found)
    work = shown(database, found)
    assert (work["state"], work["total"], states(work)) == (
        "succeeded",
        0,
        {"table-2": "succeeded"},
    )
    assert len(item_of(database, found, "table-2")["rows"]) > 5


def test_a_run_that_two_reproductions_want_is_played_once_and_serves_later_ones(
    database: Database, settings: Settings
) -> None:
    first, second = (ask(database, settings, "bsbf", "fig-1") for _ in range(2))
    for found in (first, second):
        reproductions.reproduce(database, settings, found)
    keys = waiting_keys(database)
    assert len(keys) == 5
    for key in keys:
        assert play(database, settings, key) == "succeeded"
        assert runs.play_run(database, settings, key) is None
    assert [shown(database, found)["state"] for found in (first, second)] == ["succeeded"] * 2
    third = ask(database, settings, "bsbf", "fig-1")
    reproductions.reproduce(database, settings, third)
    assert waiting_keys(database) == []
    assert (shown(database, third)["state"], shown(database, third)["done"]) == ("succeeded", 5)


def test_what_a_killed_worker_left_is_taken_up_by_another_and_nothing_is_played_twice(
    database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        """Ends a worker where nothing catches it."""

    def killed(*given: Any, **named: Any) -> Any:
        raise Killed

    found = ask(database, settings, "bsbf", "fig-1")
    with monkeypatch.context() as patch:
        patch.setattr(reproductions, "opened", killed)
        with pytest.raises(Killed):
            reproductions.reproduce(database, settings, found)
    reproductions.reproduce(database, settings, found)
    assert shown(database, found)["total"] == 0, "the item may still be worked on"
    silent = utc_now() - timedelta(seconds=30)
    with database.session_scope() as session:
        session.execute(sa.update(ReproducedItem).values(heartbeat_at=silent))
        session.execute(sa.update(Operation).values(heartbeat_at=silent))
    assert reproductions.waiting_reproductions(database) == [found]
    reproductions.reproduce(database, settings, found)
    keys = waiting_keys(database)
    assert play(database, settings, keys[0]) == "succeeded"
    with monkeypatch.context() as patch:
        patch.setattr(runs, "computed", killed)
        with pytest.raises(Killed):
            runs.play_run(database, settings, keys[1])
    assert runs.play_run(database, settings, keys[1]) is None, "it may still be played"
    with database.session_scope() as session:
        session.execute(
            sa.update(PaperRun).where(col(PaperRun.key) == keys[1]).values(heartbeat_at=silent)
        )
    assert keys[1] in waiting_keys(database)
    assert [play(database, settings, key) for key in keys[1:-1]] == ["succeeded"] * 3
    with monkeypatch.context() as patch:
        patch.setattr(reproductions, "result_of", killed)
        with pytest.raises(Killed):
            play(database, settings, keys[-1])
    with database.session_scope() as session:
        session.execute(sa.update(ReproducedItem).values(heartbeat_at=silent))
        session.execute(sa.update(Operation).values(heartbeat_at=silent))
    played = [runs.play_run(database, settings, key) for key in keys]
    assert played == [None] * 5
    assert reproductions.waiting_reproductions(database) == [found]
    reproductions.reproduce(database, settings, found)
    assert shown(database, found)["state"] == "succeeded"


def test_a_cancelled_one_keeps_what_was_played_and_the_next_goes_on_there(
    database: Database, settings: Settings
) -> None:
    found = ask(database, settings, "bsbf", "fig-1")
    reproductions.reproduce(database, settings, found)
    keys = waiting_keys(database)
    play(database, settings, keys[0])
    cancel(database, found)
    reproductions.end_cancelled(database)
    work = shown(database, found)
    assert (work["state"], work["done"], states(work)) == ("cancelled", 1, {"fig-1": "cancelled"})
    assert [runs.play_run(database, settings, key) for key in keys] == [None] * 5
    again = ask(database, settings, "bsbf", "fig-1")
    reproductions.reproduce(database, settings, again)
    assert shown(database, again)["done"] == 1
    runs.queue_wanted_again(database)
    left = waiting_keys(database)
    assert sorted(left) == sorted(keys[1:])
    assert {play(database, settings, key) for key in left} == {"succeeded"}
    assert shown(database, again)["state"] == "succeeded"


def test_a_run_in_play_stops_when_the_last_reproduction_that_wants_it_is_cancelled(
    database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "PROGRESS_SECONDS", 0.0)
    found = ask(database, settings, "bsbf", "fig-1")
    reproductions.reproduce(database, settings, found)
    key = waiting_keys(database)[0]
    looks, real = [], runs.is_wanted

    def cancelled_at_the_second(database: Database, key: str) -> bool:
        looks.append(key)
        if len(looks) == 2:
            cancel(database, found)
        return real(database, key)

    monkeypatch.setattr(runs, "is_wanted", cancelled_at_the_second)
    assert play(database, settings, key) == "cancelled"
    assert looks == [key, key]
    reproductions.end_cancelled(database)
    assert shown(database, found)["state"] == "cancelled"
    with database.session_scope(writes=False) as session:
        assert set(session.exec(select(PaperRun.state))) == {"cancelled"}


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (InputError("is too small", field="cluster", remedy="Add nodes."), "is too small"),
        (ZeroDivisionError("secret"), "A fault of Maat"),
    ],
)
def test_an_item_whose_run_fails_says_so_and_the_others_are_made(
    database: Database,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    told: str,
) -> None:
    def failing(*given: Any, **named: Any) -> Any:
        raise error

    found = ask(database, settings, "bsbf", "fig-1", "fig-3")
    reproductions.reproduce(database, settings, found)
    keys = waiting_keys(database)
    with monkeypatch.context() as patch:
        patch.setattr(runs, "computed", failing)
        assert play(database, settings, keys[0]) == "failed"
    for key in keys[1:]:
        play(database, settings, key)
    work = shown(database, found)
    assert (work["state"], states(work)) == ("failed", {"fig-1": "failed", "fig-3": "succeeded"})
    failed = item_of(database, found, "fig-1")["failed"]
    assert failed is not None
    assert told in failed
    assert "secret" not in failed
    problem = operation_of(database, found).error
    assert problem is not None
    assert "fig-1" in problem["detail"]
    again = ask(database, settings, "bsbf", "fig-1")
    reproductions.reproduce(database, settings, again)
    assert waiting_keys(database) == [keys[0]], "the others are kept"


def test_a_run_whose_result_finds_no_room_says_so_and_others_are_kept(
    database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = ask(database, settings, "bsbf", "fig-1")
    reproductions.reproduce(database, settings, found)
    keys = waiting_keys(database)
    real = runs.RUNS.settle

    def without_room(session: Any, claim: Any, state: Any, **values: Any) -> bool:
        if "result" in values:
            raise OperationalError("UPDATE", {}, DiskFull())
        return real(session, claim, state, **values)

    with monkeypatch.context() as patch:
        patch.setattr(runs.RUNS, "settle", without_room)
        play(database, settings, keys[0])
    for key in keys[1:]:
        play(database, settings, key)
    failed = item_of(database, found, "fig-1")["failed"]
    assert failed is not None
    assert "disk of Maat's database is full" in failed


def test_an_item_that_needs_other_runs_by_now_is_opened_again(
    database: Database, settings: Settings
) -> None:
    found = ask(database, settings, "bsbf", "fig-1")
    reproductions.reproduce(database, settings, found)
    keys = waiting_keys(database)
    with database.session_scope() as session:  # as another version of Maat would have left it
        other = col(ReproducedRun.run_key) == keys[0]
        session.execute(sa.delete(ReproducedRun).where(other))
    for key in keys[1:]:
        play(database, settings, key)
    assert shown(database, found)["state"] == "running"
    reproductions.reproduce(database, settings, found)
    assert play(database, settings, keys[0]) == "succeeded"
    assert shown(database, found)["state"] == "succeeded"


def test_old_reproductions_are_deleted_with_the_runs_that_no_other_needs(
    database: Database, settings: Settings
) -> None:
    old, kept, empty = (
        ask(database, settings, "bsbf", "fig-1"),
        ask(database, settings, "bsbf", "fig-1"),
        ask(database, settings, "sia", "table-2"),
    )
    for found in (old, kept, empty):
        reproductions.reproduce(database, settings, found)
    key = waiting_keys(database)[0]
    play(database, settings, key)
    cancel(database, old)
    reproductions.end_cancelled(database)
    ended = utc_now() - timedelta(days=3)
    with database.session_scope() as session:
        of_old = [session.get_one(Reproduction, found).operation_id for found in (old, empty)]
        mine = col(Operation.id).in_(of_old)
        session.execute(sa.update(Operation).where(mine).values(finished_at=ended))
    assert pruning.prune_reproductions(database, days=4) == 0
    assert pruning.prune_reproductions(database, days=2) == 2
    assert shown(database, kept)["total"] == 5
    cancel(database, kept)
    reproductions.end_cancelled(database)
    with database.session_scope() as session:
        assert session.exec(select(Reproduction.id)).all() == [kept]
        session.execute(sa.update(Operation).values(finished_at=ended))
    assert pruning.prune_reproductions(database, days=2) == 1
    assert pruning.prune_reproductions(database, days=2) == 0
    with database.session_scope(writes=False) as session:
        for table in (Reproduction, ReproducedItem, ReproducedRun, PaperRun, Operation):
            assert session.execute(sa.select(sa.func.count()).select_from(table)).scalar() == 0
