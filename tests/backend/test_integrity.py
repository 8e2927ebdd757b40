"""A damaged SQLite file is said to be damaged, by health, by answers and by its note."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa
from damaged_files import damage_pages
from fastapi.testclient import TestClient
from sqlalchemy.exc import OperationalError

from backend.damage import DamageNote, is_damage, sqlite_faults
from backend.database import Database
from backend.health.integrity import Integrity
from backend.settings import Settings

HEALTH = "/api/v1/health"


@pytest.fixture
def file(migrated_sqlite: Path, tmp_path: Path) -> Path:
    return Path(shutil.copyfile(migrated_sqlite, tmp_path / "maat.db"))


@pytest.fixture
def database_url(file: Path) -> str:
    return f"sqlite:///{file}"


@pytest.fixture
def damaged_settings(file: Path, tmp_path: Path) -> Settings:
    damage_pages(file)
    return Settings(_env_file=None, data_dir=tmp_path, database_url=f"sqlite:///{file}")


def soon(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 20
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_the_first_check_finds_the_damage_and_tells_all_processes(
    damaged_settings: Settings, file: Path
) -> None:
    integrity = Integrity(damaged_settings)
    assert soon(lambda: integrity.fault() is not None)
    assert DamageNote(file).read() == integrity.fault()
    assert Integrity(damaged_settings).fault() == integrity.fault()  # of another process


def test_a_whole_file_has_no_fault_and_an_old_note_of_it_goes(file: Path, tmp_path: Path) -> None:
    settings = Settings(_env_file=None, data_dir=tmp_path, database_url=f"sqlite:///{file}")
    DamageNote(file).write("database disk image is malformed")
    integrity = Integrity(settings)
    assert integrity.fault() == "database disk image is malformed"  # until all is checked
    assert soon(lambda: integrity.fault() is None)


def test_an_index_that_lacks_a_row_is_found_once_a_reader_met_damage(file: Path) -> None:
    with closing(sqlite3.connect(file)) as opened:
        opened.execute("CREATE TABLE counted (number INTEGER)")
        opened.execute("CREATE INDEX by_number ON counted (number)")
        opened.execute("PRAGMA writable_schema = ON")
        opened.execute(
            "UPDATE sqlite_schema SET sql = 'CREATE INDEX by_number ON counted (-number)' "
            "WHERE name = 'by_number'"
        )
        opened.execute("INSERT INTO counted VALUES (1)")
        opened.commit()
    assert sqlite_faults(file, is_quick=True) == []
    assert "by_number" in sqlite_faults(file)[0]


def read_all(database: Database) -> None:
    with database.session_scope(writes=False) as session:
        for table in sa.inspect(session.connection()).get_table_names():
            session.execute(sa.text(f'SELECT * FROM "{table}"')).all()


def test_reading_a_damaged_page_raises_as_a_database_that_is_away_and_leaves_a_note(
    damaged_settings: Settings, file: Path
) -> None:
    database = Database(damaged_settings.database_url)
    try:
        with pytest.raises(OperationalError) as raised:
            read_all(database)
    finally:
        database.dispose()
    assert is_damage(raised.value.orig)
    assert "malformed" in str(DamageNote(file).read())


def test_only_damage_is_damage() -> None:
    assert is_damage(psycopg.errors.DataCorrupted())
    assert is_damage(psycopg.errors.IndexCorrupted())
    assert not is_damage(psycopg.errors.InternalError_())
    assert not is_damage(sqlite3.OperationalError("database is locked"))
    assert not is_damage(None)


def test_health_names_the_damage_and_what_helps_within_one_check(
    client: TestClient, database: Database, file: Path
) -> None:
    assert client.get(HEALTH).json()["database"] == "ok"
    database.dispose()
    damage_pages(file)
    answers = [client.get(path) for path in ("/api/v1/jobs", "/api/v1/clusters", "/api/v1/audit")]
    assert {answer.json()["type"] for answer in answers if answer.status_code != 200} == {
        "/problems/database-damaged"
    }
    assert {answer.status_code for answer in answers} <= {200, 503}
    found = client.get(HEALTH).json()
    assert (found["status"], found["database"]) == ("degraded", "damaged")
    (error,) = [e for e in client.get("/readyz").json()["errors"] if e["field"] == "database"]
    assert "The database is damaged (" in error["message"]
    assert "maat db restore FILE --force" in error["remedy"]


def test_a_start_on_a_damaged_database_says_so_and_writes_nothing(
    damaged_settings: Settings, file: Path
) -> None:
    before = file.read_bytes()
    done = subprocess.run(
        [sys.executable, "-m", "backend.bootstrap_data"],
        env={
            **os.environ,
            "MAAT_DATABASE_URL": damaged_settings.database_url,
            "MAAT_DATA_DIR": str(damaged_settings.data_dir),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith(f"The database {file} is damaged (")
    assert "maat db restore FILE --force" in done.stderr
    assert file.read_bytes() == before
