"""Backups: made while rounds go on, checked, and restored by a worker that goes on from them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from live_samples import jobs_of, make_cluster, round_numbers, set_time, submit
from sqlmodel import select

from backend.backups import postgres
from backend.backups.files import BackupError, read_manifest
from backend.backups.service import backup, check_database, check_file, restore
from backend.clocktime import utc_now
from backend.database import Database
from backend.models import Cluster, Job, WorkerHeartbeat
from backend.secret_key import secret_key
from backend.settings import Settings
from worker.live import step as live
from worker.live.lease import LEASE_SECONDS

MINUTE = 60.0


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> Settings:
    return Settings(_env_file=None, data_dir=tmp_path / "data", database_url=database_url)


@pytest.fixture
def elsewhere(
    database_url: str, request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[Database]:
    """An empty database of the same kind."""
    if database_url.startswith("sqlite"):
        url = f"sqlite:///{tmp_path / 'elsewhere' / 'maat.db'}"
    else:
        make: Callable[[], str] = request.getfixturevalue("postgres_database_maker")
        url = make()
    opened = Database(url)
    yield opened
    opened.dispose()


def play(database: Database, cluster_id: str, *minutes: int) -> None:
    for minute in minutes:
        set_time(database, cluster_id, minute * MINUTE + 1.0)
        live.step_cluster(database, cluster_id)


def lives(database: Database, cluster_id: str) -> list[tuple[str, str, float, int]]:
    return [
        (row.id, row.state, row.progress, row.restarts) for row in jobs_of(database, cluster_id)
    ]


@pytest.mark.both_databases
def test_a_cluster_goes_on_from_its_backup_as_if_nothing_had_happened(
    database: Database, elsewhere: Database, settings: Settings, tmp_path: Path
) -> None:
    cluster_id = make_cluster(database)
    submit(database, cluster_id, count=6, work_scale=0.2)
    play(database, cluster_id, *range(4))
    before = lives(database, cluster_id)
    assert {state for _, state, _, _ in before} >= {"running"}
    file = tmp_path / "maat.backup"
    backup(database, settings, file)
    play(database, cluster_id, *range(4, 40))
    restore(elsewhere, settings, file, force=False)
    assert lives(elsewhere, cluster_id) == before
    assert check_database(elsewhere) == []
    play(elsewhere, cluster_id, *range(4, 40))
    assert lives(elsewhere, cluster_id) == lives(database, cluster_id)
    assert round_numbers(elsewhere, cluster_id) == round_numbers(database, cluster_id)
    assert {state for _, state, _, _ in lives(elsewhere, cluster_id)} == {"succeeded"}
    assert check_database(elsewhere) == []


@pytest.mark.both_databases
def test_a_backup_that_is_made_while_rounds_are_committed_is_of_one_moment(
    database: Database, elsewhere: Database, settings: Settings, tmp_path: Path
) -> None:
    cluster_id = make_cluster(database)
    submit(database, cluster_id, count=6)
    play(database, cluster_id, 0)
    done = threading.Event()

    def rounds() -> None:
        minute = 1
        while not done.is_set():
            play(database, cluster_id, minute)
            minute += 1

    going_on = threading.Thread(target=rounds)
    going_on.start()
    try:
        files = [tmp_path / f"{number}.backup" for number in range(3)]
        for file in files:
            backup(database, settings, file)
    finally:
        done.set()
        going_on.join()
    assert check_database(database) == []
    restore(elsewhere, settings, files[-1], force=False)
    assert check_database(elsewhere) == []
    last = round_numbers(elsewhere, cluster_id)[-1]
    assert last <= round_numbers(database, cluster_id)[-1]
    set_time(elsewhere, cluster_id, (last + 100) * MINUTE)
    deadline = time.monotonic() + 3 * LEASE_SECONDS
    while live.step_cluster(elsewhere, cluster_id) is None:  # the right of the backup's moment ends
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert round_numbers(elsewhere, cluster_id)[-1] == last + 1


def test_the_file_says_what_it_is_and_only_its_owner_reads_it(
    database: Database, settings: Settings, tmp_path: Path
) -> None:
    file = tmp_path / "maat.backup"
    made = backup(database, settings, file)
    assert read_manifest(file) == made
    assert made.kind == ("sqlite" if database.is_sqlite else "postgresql")
    assert check_file(file) == (made, [])
    assert file.stat().st_mode & 0o077 == 0
    assert list(tmp_path.glob("maat.backup?*")) == list(tmp_path.glob("maat-backup-*")) == []


def test_a_database_that_is_not_empty_is_replaced_only_by_force(
    database: Database, elsewhere: Database, settings: Settings, tmp_path: Path
) -> None:
    file = tmp_path / "maat.backup"
    make_cluster(database, name="backed-up")
    backup(database, settings, file)
    restore(elsewhere, settings, file, force=False)
    make_cluster(elsewhere, name="made-later")
    with pytest.raises(BackupError, match="--force"):
        restore(elsewhere, settings, file, force=False)
    restore(elsewhere, settings, file, force=True)
    with elsewhere.session_scope(writes=False) as session:
        assert session.exec(select(Cluster.name)).all() == ["backed-up"]


def test_nothing_is_replaced_while_a_worker_lives(
    database: Database, settings: Settings, tmp_path: Path
) -> None:
    file = tmp_path / "maat.backup"
    backup(database, settings, file)
    with database.session_scope() as session:
        session.add(WorkerHeartbeat(name="rounds@a", version="1"))
    with pytest.raises(BackupError, match="Stop all processes"):
        restore(database, settings, file, force=True)
    with database.session_scope() as session:
        session.get_one(WorkerHeartbeat, "rounds@a").at = utc_now() - timedelta(minutes=1)
    restore(database, settings, file, force=True)


@pytest.mark.both_databases
def test_a_damaged_a_foreign_and_a_newer_file_change_nothing(
    database: Database, elsewhere: Database, settings: Settings, tmp_path: Path
) -> None:
    file = tmp_path / "maat.backup"
    backup(database, settings, file)
    damaged, newer, other, none = (tmp_path / name for name in ("damaged", "newer", "other", "no"))
    _rewritten(file, damaged, {}, spoil=True)
    _rewritten(file, newer, {"revision": "9999"})
    kind = "postgresql" if database.is_sqlite else "sqlite"
    _rewritten(file, other, {"kind": kind})
    none.write_text("no backup")
    for given, words in (
        (damaged, "damaged"),
        (newer, "newer one"),
        (other, "another kind"),
        (none, "it is not one"),
        (tmp_path / "absent", "No such file"),
    ):
        with pytest.raises(BackupError, match=words):
            restore(elsewhere, settings, given, force=False)
        assert sa.inspect(elsewhere.engine).get_table_names() == []


def _rewritten(file: Path, to: Path, changes: dict[str, str], *, spoil: bool = False) -> None:
    with zipfile.ZipFile(file) as source, zipfile.ZipFile(to, "w") as target:
        manifest = json.loads(source.read("manifest.json")) | changes
        content = source.read("database")
        target.writestr("manifest.json", json.dumps(manifest))
        target.writestr("database", content[:-1] + b"?" if spoil else content)


def test_another_secret_key_is_told(
    database: Database, elsewhere: Database, settings: Settings, tmp_path: Path
) -> None:
    file = tmp_path / "maat.backup"
    secret_key(settings)
    backup(database, settings, file)
    other = Settings(_env_file=None, data_dir=tmp_path / "other")
    secret_key(other)
    (note,) = restore(elsewhere, other, file, force=False)
    assert "secret.key" in note


@pytest.mark.parametrize(
    ("harm", "rule"),
    [
        ("UPDATE jobs SET finished_seconds = NULL", "exactly if it has ended"),
        ("DELETE FROM rounds WHERE number = 2", "without a gap"),
        ("UPDATE clusters SET next_round_number = 9", "the one before its next"),
        ("DELETE FROM job_counts", "counted as they are"),
        ("UPDATE allocations SET to_seconds = NULL", "at most one allocation"),
        ("UPDATE users SET active = false", "administrator is left"),
    ],
)
def test_a_check_says_what_is_not_true(database: Database, harm: str, rule: str) -> None:
    cluster_id = make_cluster(database)
    submit(database, cluster_id, count=2, work_scale=0.02)
    play(database, cluster_id, 0, 1, 2, 3, 20, 21)
    assert check_database(database) == []
    with database.session_scope() as session:
        session.execute(sa.text(harm))
    assert any(rule in line for line in check_database(database))


def test_a_damaged_page_is_found(tmp_path: Path, migrated_sqlite: Path) -> None:
    file = tmp_path / "maat.db"
    content = bytearray(migrated_sqlite.read_bytes())
    for offset in range(40 * 4096, 60 * 4096):
        content[offset] ^= 0xFF
    file.write_bytes(content)
    database = Database(f"sqlite:///{file}")
    assert check_database(database) != []
    database.dispose()


def test_a_server_without_programs_of_its_version_is_told_which_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(BackupError, match="postgresql-client-99"):
        postgres.program_of("pg_dump", 99)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(postgres, "DEBIAN", Path("/nowhere"))
    with pytest.raises(BackupError, match="found: none"):
        postgres.program_of("pg_dump", 15)


def command(settings: Settings, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "MAAT_DATABASE_URL": settings.database_url,
        "MAAT_DATA_DIR": str(settings.data_dir),
    }
    return subprocess.run(
        [sys.executable, "-m", "maat", "db", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command_line_backs_up_checks_and_refuses_with_2(
    database: Database, settings: Settings, tmp_path: Path
) -> None:
    with database.session_scope() as session:
        session.execute(sa.text("DELETE FROM users"))
    make_cluster(database)
    submit(database, make_cluster(database, name="other"))
    file = tmp_path / "maat.backup"
    done = command(settings, "backup", str(file))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"wrote {file}: ")
    assert command(settings, "check").stdout.startswith("the database is sound")
    assert command(settings, "check", str(file)).returncode == 0
    refused = command(settings, "restore", str(file))
    assert (refused.returncode, "--force" in refused.stderr) == (2, True)
    assert "Traceback" not in refused.stderr
    assert command(settings, "restore", str(file), "--force").stdout.endswith(f"{file}\n")
    with database.session_scope() as session:
        session.execute(sa.delete(Job))
        session.execute(sa.text("DELETE FROM job_counts"))
        session.execute(sa.text("UPDATE users SET active = false"))
    wrong = command(settings, "check")
    assert (wrong.returncode, "administrator" in wrong.stderr) == (1, True)


def in_folder(settings: Settings, folder: Path) -> Settings:
    """The settings of a SQLite database in a folder."""
    url = f"sqlite:///{folder / 'maat.db'}"
    return settings.model_copy(update={"data_dir": folder, "database_url": url})


def test_a_folder_without_a_key_is_told_to_get_the_one_of_the_backup(
    database: Database, elsewhere: Database, settings: Settings, tmp_path: Path
) -> None:
    secret_key(settings)
    file = tmp_path / "maat.backup"
    backup(database, settings, file)
    other = Settings(_env_file=None, data_dir=tmp_path / "other")
    (note,) = restore(elsewhere, other, file, force=False)
    assert note.startswith("There is no secret key here yet.")
    assert not (tmp_path / "other" / "secret.key").exists()


def modes(*paths: Path) -> list[str]:
    return [oct(path.stat().st_mode & 0o777) for path in paths]


def test_what_is_restored_is_read_by_its_owner_only_and_no_key_is_made(
    migrated_sqlite: Path, settings: Settings, tmp_path: Path
) -> None:
    file, new = tmp_path / "maat.backup", tmp_path / "new"
    assert command(in_folder(settings, migrated_sqlite.parent), "backup", str(file)).returncode == 0
    restored = command(in_folder(settings, new), "restore", str(file))
    assert restored.returncode == 0, restored.stderr
    assert not (migrated_sqlite.parent / "secret.key").exists()
    assert modes(new, new / "maat.db") == ["0o700", "0o600"]
    assert "made where no secret key was" in restored.stdout
    assert not (new / "secret.key").exists()


def test_a_database_that_is_not_there_is_not_made(settings: Settings, tmp_path: Path) -> None:
    folder = tmp_path / "typo"
    for arguments in (("check",), ("backup", str(tmp_path / "maat.backup"))):
        refused = command(in_folder(settings, folder), *arguments)
        assert refused.returncode == 2
        assert f"There is no database {folder / 'maat.db'}." in refused.stderr
    assert not folder.exists()


def test_a_backup_is_replaced_only_by_force(
    database: Database, settings: Settings, tmp_path: Path
) -> None:
    make_cluster(database)
    file = tmp_path / "maat.backup"
    file.write_text("yesterday's")
    refused = command(settings, "backup", str(file))
    assert (refused.returncode, file.read_text()) == (2, "yesterday's")
    assert "Name another file, or give --force to replace it." in refused.stderr
    written = command(settings, "backup", str(file), "--force")
    assert written.returncode == 0
    assert f"{file.stat().st_size} bytes (" in written.stdout
