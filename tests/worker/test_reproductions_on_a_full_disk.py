"""A run whose result finds no room, on a real disk that fills up while it is played."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from reproduction_samples import ask, shown, waiting_keys
from small_disk import SmallDisk
from sqlalchemy.exc import OperationalError
from sqlmodel import col, select

from backend.clocktime import utc_now
from backend.database import Database
from backend.models import PaperRun
from backend.settings import Settings
from worker.papers import reproductions, runs


@pytest.fixture
def database_url(small_disk: SmallDisk, migrated_sqlite: Path) -> str:
    shutil.copyfile(migrated_sqlite, small_disk.path / "maat.db")
    return f"sqlite:///{small_disk.path / 'maat.db'}"


def test_a_run_that_finds_no_room_is_played_again_when_there_is_and_others_are_kept(
    small_disk: SmallDisk, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(_env_file=None, data_dir=tmp_path, data=None)
    found = ask(database, settings, "bsbf", "fig-1")
    reproductions.reproduce(database, settings, found)
    keys = waiting_keys(database)
    assert runs.play_run(database, settings, keys[0]) == "succeeded"
    compute = runs.computed

    def filling(*given: Any, **named: Any) -> Mapping[str, Any]:
        result = compute(*given, **named)
        small_disk.fill()
        return {**result, "more": list(range(200_000))}

    with monkeypatch.context() as patch:
        patch.setattr(runs, "computed", filling)
        with pytest.raises(OperationalError):  # there is no room to say so either
            runs.play_run(database, settings, keys[1])
    small_disk.make_room()
    mine = col(PaperRun.key) == keys[1]
    with database.session_scope() as session:
        kept = session.exec(select(PaperRun.key).where(PaperRun.state == "succeeded")).all()
        assert kept == [keys[0]]
        silent = utc_now() - timedelta(seconds=30)
        session.execute(sa.update(PaperRun).where(mine).values(heartbeat_at=silent))
    assert waiting_keys(database) == keys[1:]
    for key in keys[1:]:
        assert runs.play_run(database, settings, key) == "succeeded"
        reproductions.advance_all_with(database, settings, key)
    assert shown(database, found)["state"] == "succeeded"
