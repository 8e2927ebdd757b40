"""Tests of the demo's history: what was played is stored as it was, and goes on alike."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sqlmodel import Session, col, select

from backend.bootstrap_data import ensure_defaults
from backend.clusters.service import create_cluster
from backend.database import Database
from backend.demo import history
from backend.demo.beginning import begin_on
from backend.demo.cluster import DEMO_CLUSTER
from backend.demo.history import Beginning, History
from backend.models import Cluster, Round, metadata
from backend.settings import Settings
from worker import demo, demo_history
from worker.live.step import step_cluster

LATER = 5400.0


def played(database: Database) -> tuple[str, list[Beginning], dict[str, tuple[str, str]]]:
    """Play an hour and a half; return the rows after half an hour and at its end."""
    cluster_id = demo_history.make_cluster(database)
    parts = list(demo_history.play(database, cluster_id, beginnings=[0]))
    demo_history.play_until(database, cluster_id, LATER)
    demo_history.keep_house(database)
    with database.session_scope(writes=False) as session:
        parts.append(demo_history.beginning(session, session.get_one(Cluster, cluster_id)))
        return cluster_id, parts, demo_history.names_of(session)


def beginning_of(database: Database, stored: History, seconds: float) -> str:
    """Store a beginning in a cluster of its own; return its id."""
    ensure_defaults(database, Settings(_env_file=None, demo=False))
    with database.session_scope() as session:
        cluster = create_cluster(session, DEMO_CLUSTER)
        begin_on(session, cluster, demo_history.MONDAY)
        cluster.speed = demo_history.SLOW
        history.store_history(session, cluster, stored, seconds)
        return cluster.id


def without_ids(session: Session, cluster_id: str) -> str:
    """Return a cluster's rows as text, alike in every database that holds the same."""
    found = demo_history.beginning(session, session.get_one(Cluster, cluster_id))
    _, text = history.text_of([found], demo_history.names_of(session)).splitlines()
    tables = json.loads(text)
    for name, change in tables.items():
        if metadata.tables[name].autoincrement_column is not None:
            del change["rows"]["id"]  # each database numbers its rows itself
    return json.dumps(tables)


def rounds(database: Database, cluster_id: str, most: int) -> list[tuple[int, int, int]]:
    """Make some more rounds of the history; return their number, jobs and GPUs."""
    for _ in range(most):
        assert demo.wind_forward(database, cluster_id)
        assert step_cluster(database, cluster_id) is not None
    columns = (Round.number, Round.active_jobs, Round.gpus_used)
    with database.session_scope(writes=False) as session:
        mine = select(*columns).where(Round.cluster_id == cluster_id)
        return list(session.exec(mine.order_by(col(Round.number).desc()).limit(most)))


@pytest.fixture
def other(tmp_path: Path, migrated_sqlite: Path) -> Database:
    """Where the history is played."""
    file = tmp_path / "played.db"
    file.write_bytes(migrated_sqlite.read_bytes())
    return Database(f"sqlite:///{file}")


def test_what_was_played_is_stored_as_it_was_and_its_rounds_go_on_alike(
    database: Database, other: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster_id, parts, names = played(other)
    file = tmp_path / "history.jsonl.xz"
    history.write_history(history.text_of(parts, names), file)

    stored = History.shipped(file)
    copy = beginning_of(database, stored, stored.beginnings[-1])

    assert len(stored.beginnings) == 2
    assert any(parts[-1].tables[name] for name in ("jobs", "allocations", "job_fairness"))
    with (
        other.session_scope(writes=False) as original,
        database.session_scope(writes=False) as session,
    ):
        assert without_ids(session, copy) == without_ids(original, cluster_id)
    with database.session_scope() as session:
        row = session.get_one(Cluster, copy)
        row.created_at = row.epoch + demo_history.HISTORY
        session.add(row)
    assert rounds(database, copy, 5) == rounds(other, cluster_id, 5)


def test_each_beginning_of_the_file_has_the_rows_of_its_time(
    other: Database, tmp_path: Path
) -> None:
    _, parts, names = played(other)
    file = tmp_path / "history.jsonl.xz"
    history.write_history(history.text_of(parts, names), file)

    stored = History.shipped(file)

    for part in parts:
        again = stored.at(part.seconds)
        assert again.next_round_number == part.next_round_number
        assert {name: len(rows) for name, rows in again.tables.items()} == {
            name: len(rows) for name, rows in part.tables.items()
        }
    with pytest.raises(ValueError, match="no beginning"):
        stored.at(1.0)
