"""Backups: made while rounds go on, checked, and restored by a worker that goes on from them."""

from __future__ import annotations

import hashlib
import json
import os
import random
import secrets
import shutil
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from damaged_files import damage_pages
from live_samples import jobs_of, make_cluster, round_numbers, set_time, submit
from sqlmodel import select

from backend.backups import postgres
from backend.backups.files import BackupError, Kind, Manifest, read_manifest
from backend.backups.service import backup, check_database, check_file, restore
from backend.clocktime import utc_now
from backend.damage import DamageNote, sqlite_faults
from backend.database import Database
from backend.migrations import upgrade
from backend.models import Cluster, Job, WorkerHeartbeat
from backend.secret_key import secret_key
from backend.settings import Settings
from worker.live import step as live
from worker.live.lease import LEASE_SECONDS

MINUTE = 60.0


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> Settings:
    made = Settings(_env_file=None, data_dir=tmp_path / "data", database_url=database_url)
    secret_key(made)  # as after a first start
    return made


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
    assert check_file(file, settings) == (made, [])
    assert file.stat().st_mode & 0o077 == 0
    assert list(tmp_path.glob("maat.backup?*")) == list(tmp_path.glob("maat-backup-*")) == []


def test_a_database_that_is_not_empty_is_replaced_only_by_force(
    database: Database, elsewhere: Database, settings: Settings, tmp_path: Path
) -> None:
    file = tmp_path / "maat.backup"
    submit(database, make_cluster(database, name="backed-up"))
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
    submit(database, make_cluster(database))
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
    made = backup(database, settings, file)
    kind: Kind = "postgresql" if database.is_sqlite else "sqlite"
    with zipfile.ZipFile(file) as archive:
        content = archive.read("database")
    garbage = random.Random(1).randbytes(5000)
    cases = (
        (signed(settings, made), content[:-1] + b"?", "is damaged: its checksum"),
        (signed(settings, made), content + b"\0", "is damaged: its checksum"),
        (signed(settings, made, bytes=made.bytes - 1), content, "is damaged: its checksum"),
        (signed(settings, made, bytes=2**62), content, "Make room there"),
        (signed(settings, made, revision="9999"), content, "newer one"),
        (signed(settings, made, kind=kind), content, "another kind"),
        (signed(settings, made, **of_content(garbage)), garbage, "damaged database|valid archive"),
        (replace(made, made_at="2020-01-01T00:00:00Z"), content, "was altered after the key"),
        (replace(made, signature=""), content, "is not signed"),
        (replace(made, signature="é"), content, "was altered after the key"),
    )
    for number, (manifest, given, words) in enumerate(cases):
        other = written(tmp_path / f"{number}.backup", asdict(manifest), given)
        with pytest.raises(BackupError, match=words):
            restore(elsewhere, settings, other, force=False)
    nothing = tmp_path / "no"
    nothing.write_text("no backup")
    with zipfile.ZipFile(tmp_path / "long", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", " " * 2**20 + json.dumps(asdict(made)))
    for other, words in (
        (nothing, "it is not one"),
        (tmp_path / "long", "it is not one"),
        (tmp_path / "absent", "No such file"),
    ):
        with pytest.raises(BackupError, match=words):
            restore(elsewhere, settings, other, force=False)
    assert sa.inspect(elsewhere.engine).get_table_names() == []


def encrypted(archive: bytes) -> bytes:
    """Return the archive with its members marked as encrypted."""
    marked = bytearray(archive)
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = marked.find(signature)
        while at >= 0:
            marked[at + offset] |= 1
            at = marked.find(signature, at + 1)
    return bytes(marked)


def test_a_hostile_archive_is_no_backup(settings: Settings, tmp_path: Path) -> None:
    file = tmp_path / "hostile.backup"
    deep = "[" * 30_000 + "]" * 30_000
    for manifest in (deep, "{}", json.dumps({"format": 10**30, "version": "\x1b[31m"})):
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("manifest.json", manifest)
        with pytest.raises(BackupError, match="it is not one, or damaged"):
            check_file(file, settings)
    for method in (zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2):
        with zipfile.ZipFile(file, "w", method) as archive:
            archive.writestr("manifest.json", "x" * 200)
        sound = file.read_bytes()
        file.write_bytes(sound[:60] + b"\xff" * 20 + sound[80:])
        with pytest.raises(BackupError, match="it is not one, or damaged"):
            check_file(file, settings)
        file.write_bytes(encrypted(sound))
        with pytest.raises(BackupError, match="it is not one, or damaged"):
            check_file(file, settings)


def signed(settings: Settings, manifest: Manifest, **changes: Any) -> Manifest:
    """Return a manifest with changes, as if the deployment itself had written it."""
    changed = replace(manifest, **changes)
    return replace(changed, signature=secret_key(settings).signature(changed.signed_text))


def of_content(content: bytes) -> dict[str, Any]:
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def written(to: Path, manifest: Mapping[str, Any], content: bytes) -> Path:
    with zipfile.ZipFile(to, "w") as archive:
        archive.writestr("manifest.json", json.dumps(manifest))
        archive.writestr("database", content)
    return to


@pytest.mark.both_databases
def test_a_backup_in_which_something_is_not_true_replaces_nothing_unless_asked(
    database: Database, elsewhere: Database, settings: Settings, tmp_path: Path
) -> None:
    file = tmp_path / "maat.backup"
    submit(database, make_cluster(database))
    with database.session_scope() as session:
        session.execute(sa.text("DELETE FROM job_counts"))
    backup(database, settings, file)
    upgrade(elsewhere)
    make_cluster(elsewhere, name="stays")
    with pytest.raises(BackupError, match="not true: jobs are counted as they are"):
        restore(elsewhere, settings, file, force=True)
    with elsewhere.session_scope(writes=False) as session:
        assert "stays" in session.exec(select(Cluster.name)).all()
    restore(elsewhere, settings, file, force=True, unverified=True)
    with elsewhere.session_scope(writes=False) as session:
        assert "stays" not in session.exec(select(Cluster.name)).all()


def test_a_backup_of_another_deployment_is_restored_only_unverified(
    database: Database, elsewhere: Database, settings: Settings, tmp_path: Path
) -> None:
    file = tmp_path / "maat.backup"
    submit(database, make_cluster(database))
    backup(database, settings, file)
    other = Settings(_env_file=None, data_dir=tmp_path / "other")
    secret_key(other)
    with pytest.raises(BackupError, match="signed by another secret key"):
        restore(elsewhere, other, file, force=False)
    (note,) = restore(elsewhere, other, file, force=False, unverified=True)
    assert "secret.key" in note
    assert check_file(file, other)[1][0].startswith("It was signed by another secret key.")


def test_a_damaged_database_is_not_backed_up_and_is_moved_aside_by_a_restore(
    migrated_sqlite: Path, settings: Settings, tmp_path: Path
) -> None:
    place = in_folder(settings, tmp_path / "data")
    file, good = tmp_path / "data" / "maat.db", tmp_path / "good.backup"
    shutil.copyfile(migrated_sqlite, file)
    database = Database(place.database_url)
    submit(database, make_cluster(database))
    backup(database, place, good)
    whole = good.read_bytes()
    database.dispose()
    damage_pages(file)
    try:
        with pytest.raises(BackupError, match=r"is damaged \(.*maat db restore FILE --force"):
            backup(database, place, good, force=True)
        assert good.read_bytes() == whole
        assert check_database(database) != []
        with pytest.raises(BackupError, match="Give --force to move it aside"):
            restore(database, place, good, force=False)
        *_, note = restore(database, place, good, force=True)
        assert check_database(database) != ["The database is empty."]
        assert sqlite_faults(file) == []
    finally:
        database.dispose()
    (aside,) = file.parent.glob("maat.db.damaged-*")
    assert note == f"The damaged database is kept as {aside}."
    assert sqlite_faults(aside) != []
    assert DamageNote(file).read() is None


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
    file = tmp_path / "maat.backup"
    backup(database, settings, file)
    other = Settings(_env_file=None, data_dir=tmp_path / "other")
    with pytest.raises(BackupError, match=r"Put secret\.key of that data folder"):
        restore(elsewhere, other, file, force=False)
    (note,) = restore(elsewhere, other, file, force=False, unverified=True)
    assert note.startswith("There is no secret key here yet.")
    assert not (tmp_path / "other" / "secret.key").exists()


def modes(*paths: Path) -> list[str]:
    return [oct(path.stat().st_mode & 0o777) for path in paths]


def test_what_is_restored_is_read_by_its_owner_only_and_no_key_is_made(
    migrated_sqlite: Path, settings: Settings, tmp_path: Path
) -> None:
    file, new = tmp_path / "maat.backup", tmp_path / "new"
    assert command(in_folder(settings, migrated_sqlite.parent), "backup", str(file)).returncode == 0
    refused = command(in_folder(settings, new), "restore", str(file))
    assert (refused.returncode, "is not signed" in refused.stderr) == (2, True)
    assert list(new.iterdir()) == []
    restored = command(in_folder(settings, new), "restore", str(file), "--unverified")
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


@pytest.mark.needs_postgres
def test_the_role_of_the_deployment_is_no_superuser_and_does_all_that_maat_needs(
    postgres_database_maker: Callable[[], str], tmp_path: Path
) -> None:
    server = sa.make_url(postgres_database_maker())
    role = f"maat_role_{secrets.token_hex(4)}"
    url = server.set(username=role, password="letters0and1digits", database=role)
    run_role_script(server, role, "letters0and1digits")
    text = url.render_as_string(hide_password=False)
    settings = Settings(_env_file=None, data_dir=tmp_path / "data", database_url=text)
    secret_key(settings)
    database = Database(text)
    administrator = sa.create_engine(server, isolation_level="AUTOCOMMIT")
    try:
        upgrade(database)
        submit(database, make_cluster(database))
        with database.engine.connect() as connection:
            rights = connection.execute(
                sa.text(
                    "SELECT rolsuper, rolcreaterole, rolcreatedb FROM pg_roles "
                    "WHERE rolname = current_user"
                )
            ).one()
        assert tuple(rights) == (False, False, False)
        backup(database, settings, tmp_path / "maat.backup")
        restore(database, settings, tmp_path / "maat.backup", force=True)
        assert check_database(database) == []
    finally:
        database.dispose()
        with administrator.connect() as connection:
            connection.execute(sa.text(f'DROP DATABASE "{role}" WITH (FORCE)'))
            connection.execute(sa.text(f'DROP ROLE "{role}"'))
        administrator.dispose()


def run_role_script(server: sa.URL, role: str, password: str) -> None:
    given = {
        "PGHOST": server.host,
        "PGPORT": server.port,
        "PGPASSWORD": server.password,
        "POSTGRES_USER": server.username,
        "ROLE": role,
        "ROLE_PASSWORD": password,
    }
    script = Path(__file__).resolve().parents[2] / "deploy" / "postgres" / "role.sh"
    environment = {name: str(value) for name, value in given.items() if value is not None}
    subprocess.run(["sh", str(script)], env=os.environ | environment, check=True)
