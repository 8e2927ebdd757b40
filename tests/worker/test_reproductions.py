"""Tests of reproductions of papers' items: each run is played once, and what is killed goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from live_samples import make_owner
from remembering_queue import RememberingQueue

from backend.accounts.identity import Principal
from backend.accounts.permissions import PERMISSIONS, Role
from backend.database import Database
from backend.models import (
    Reproduction,
)
from backend.papers.resources import show_item_detail, show_reproductions
from backend.papers.service import check_reproduction, get_item, store_reproduction
from backend.settings import Settings
from maat.api.papers import ReproducedItemDetail, ReproductionBody, ReproductionOut
from maat.papers.reproducing import reproduce as reproduced_by_the_library
from worker.papers import reproductions, runs

AT_ONCE = 100


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(_env_file=None, data_dir=tmp_path, data=None)


@pytest.fixture
def asking(database: Database) -> Principal:
    user, tenant = make_owner(database)
    role = Role.CLUSTER_ADMIN
    return Principal(user, "owner", tenant, "tenant", role, PERMISSIONS[role])


def ask(database: Database, asking: Principal, settings: Settings, paper: str, *items: str) -> str:
    """Ask for items as the service does; return the reproduction's id."""
    body = ReproductionBody(paper=paper, items=list(items) or None)
    asked = check_reproduction(body, settings)
    queue = RememberingQueue()
    with database.session_scope() as session:
        found = store_reproduction(session, asking, asked, queue).id
    assert queue.sent == [("maat.reproduce", found)]
    return found


def play(database: Database, settings: Settings, key: str) -> Any:
    state = runs.play_run(database, settings, key)
    reproductions.advance_all_with(database, settings, key)
    return state


def shown(database: Database, found: str) -> ReproductionOut:
    with database.session_scope(writes=False) as session:
        return show_reproductions(session, [session.get_one(Reproduction, found)])[0]


def item_of(database: Database, found: str, key: str) -> ReproducedItemDetail:
    with database.session_scope(writes=False) as session:
        reproduction = session.get_one(Reproduction, found)
        return show_item_detail(session, reproduction, get_item(session, reproduction, key))


def states(work: ReproductionOut) -> dict[str, str]:
    return {item["key"]: item["state"] for item in work["items"]}


def test_an_item_shows_what_the_library_finds_and_ends_with_its_last_run(
    database: Database, settings: Settings, asking: Principal
) -> None:
    found = ask(database, asking, settings, "bsbf", "fig-1")
    assert (shown(database, found)["state"], shown(database, found)["total"]) == ("queued", 0)
    reproductions.reproduce(database, settings, found)
    opened = shown(database, found)
    assert (opened["state"], opened["done"], opened["total"]) == ("running", 0, 5)
    keys = runs.next_runs(database, at_once=AT_ONCE)
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


def test_items_without_runs_are_shown_at_once(
    database: Database, settings: Settings, asking: Principal
) -> None:
    found = ask(database, asking, settings, "sia", "table-2")
    reproductions.reproduce(database, settings, found)
    work = shown(database, found)
    assert (work["state"], work["total"], states(work)) == (
        "succeeded",
        0,
        {"table-2": "succeeded"},
    )
    assert len(item_of(database, found, "table-2")["rows"]) > 5
