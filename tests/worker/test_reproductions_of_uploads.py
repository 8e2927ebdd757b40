"""Tests of reproductions in which uploads stand in for published data."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from reproduction_samples import (
    ask,
    delete_upload,
    item_of,
    shown,
    states,
    upload_gpus,
    waiting_keys,
)
from sqlmodel import col, select

from backend.clocktime import utc_now
from backend.database import Database
from backend.models import MeasurementUse, Operation, PaperRun, ReproducedItem
from backend.settings import Settings
from worker.papers import pruning, reproductions, runs

QUEUE = "fig-4"  # six jobs on 16 GPUs of PAL


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(_env_file=None, data_dir=tmp_path, data=None)


def play(database: Database, settings: Settings, keys: list[str]) -> None:
    for key in keys:
        assert runs.play_run(database, settings, key) == "succeeded"
        reproductions.advance_all_with(database, settings, key)


def opened(database: Database, settings: Settings, found: str) -> list[str]:
    """Open a reproduction; return the runs that wait now."""
    reproductions.reproduce(database, settings, found)
    return waiting_keys(database)


def test_an_item_of_an_upload_says_so_and_shares_no_run_with_another(
    database: Database, settings: Settings
) -> None:
    upload_gpus(database, "lab")
    upload_gpus(database, "other", slowest=2.0)
    first = ask(database, settings, "pal", QUEUE, variability="lab")
    keys = opened(database, settings, first)
    play(database, settings, keys)
    assert states(shown(database, first)) == {QUEUE: "succeeded"}
    item = item_of(database, first, QUEUE)
    assert item["title"].endswith("(of the measured GPUs lab)")
    assert {row["of"][-1] for row in item["rows"]} == {"measured GPUs lab"}
    assert item["notes"][0].startswith(
        "Not of published data: of the measured GPUs lab (Our lab; licence: CC0; sha256 "
    )
    second = ask(database, settings, "pal", QUEUE, variability="other")
    others = opened(database, settings, second)
    assert len(others) == len(keys) > 0
    assert not set(others) & set(keys)
    again = ask(database, settings, "pal", QUEUE, variability="lab")
    assert opened(database, settings, again) == others, "its own runs are known"
    assert states(shown(database, again)) == {QUEUE: "succeeded"}


def test_one_goes_on_with_an_upload_that_is_deleted_meanwhile(
    database: Database, settings: Settings
) -> None:
    upload = upload_gpus(database, "lab")
    found = ask(database, settings, "pal", QUEUE, variability="lab")
    keys = opened(database, settings, found)
    play(database, settings, keys[:1])
    delete_upload(database, upload)
    assert [(each["name"], each["deleted"]) for each in shown(database, found)["measurements"]] == [
        ("lab", True)
    ]
    silent = utc_now() - timedelta(seconds=30)
    with database.session_scope() as session:  # a worker took the others, and was killed
        left = sa.update(PaperRun).where(col(PaperRun.key).in_(keys[1:]))
        session.execute(left.values(state="running", heartbeat_at=silent))
        session.execute(sa.update(ReproducedItem).values(heartbeat_at=silent))
    assert set(waiting_keys(database)) == set(keys[1:])
    play(database, settings, keys[1:])
    assert shown(database, found)["state"] == "succeeded"


def test_an_old_reproduction_is_deleted_with_its_use_of_an_upload(
    database: Database, settings: Settings
) -> None:
    upload_gpus(database, "lab")
    found = ask(database, settings, "pal", "table-1", variability="lab")
    reproductions.reproduce(database, settings, found)
    assert shown(database, found)["state"] == "succeeded"
    ended = utc_now() - timedelta(days=3)
    with database.session_scope() as session:
        assert session.exec(select(MeasurementUse.kind)).all() == ["variability"]
        session.execute(sa.update(Operation).values(finished_at=ended))
    assert pruning.prune_reproductions(database, days=2) == 1
    with database.session_scope(writes=False) as session:
        assert session.exec(select(MeasurementUse.kind)).all() == []
