"""Tests of settings that cannot be read: every program ends with exit code 2 and says which."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 120.0
PROGRAMS = {
    "maat up": ["maat", "up"],
    "prepare": ["backend.bootstrap_data"],
    "api": ["uvicorn", "frontend.app:app", "--port", "0"],
    "worker": ["celery", "-A", "worker.app", "worker"],
    "beat": ["celery", "-A", "worker.app", "beat"],
    "health of the beat": ["worker.beat"],
    "token": ["backend.new_token"],
    "migrations": ["alembic", "current"],
}


def ended(program: list[str], folder: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    own = {f"MAAT_{name.upper()}": value for name, value in settings.items()}
    return subprocess.run(
        [sys.executable, "-m", *program],
        cwd=ROOT,
        env={**os.environ, "MAAT_DATA_DIR": str(folder / "data"), **own},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_every_program_refuses_a_setting_that_cannot_be_read(
    program: list[str], tmp_path: Path
) -> None:
    found = ended(program, tmp_path, lock_wait_seconds="abc")
    assert found.returncode == 2
    assert "Traceback" not in found.stderr + found.stdout
    assert "MAAT_LOCK_WAIT_SECONDS" in found.stderr
    assert "'abc'" in found.stderr
    assert "Give a number." in found.stderr
    assert not (tmp_path / "data").exists()


def test_each_setting_is_named_with_its_remedy(tmp_path: Path) -> None:
    found = ended(
        ["backend.settings"], tmp_path, request_threads="0", demo="perhaps", log_level="loud"
    )
    assert found.returncode == 2
    lines = {line.split(": ")[1]: line for line in found.stderr.splitlines()}
    assert set(lines) == {"MAAT_REQUEST_THREADS", "MAAT_DEMO", "MAAT_LOG_LEVEL"}
    assert "at least 1" in lines["MAAT_REQUEST_THREADS"]
    assert "true or false" in lines["MAAT_DEMO"]
    assert "'DEBUG', 'INFO', 'WARNING' or 'ERROR'" in lines["MAAT_LOG_LEVEL"]


@pytest.mark.parametrize("url", ["nonsense:secret", "mysql://maat:secret@there/maat"])
def test_an_address_of_no_database_is_refused_without_its_password(
    url: str, tmp_path: Path
) -> None:
    found = ended(["backend.settings"], tmp_path, database_url=url)
    assert found.returncode == 2
    assert "MAAT_DATABASE_URL" in found.stderr
    assert "postgresql://" in found.stderr
    assert "secret" not in found.stderr + found.stdout


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"session_days": "1e308"}, "MAAT_SESSION_DAYS: "),
        ({"oidc_tenants": "{bad"}, 'MAAT_OIDC_TENANTS: This is no JSON object (got "'),
        ({"oidc_roles": '{"a": "boss"}'}, "MAAT_OIDC_ROLES: a: There is no such value"),
        ({"oidc_issuer": "https://maat.example"}, "MAAT_OIDC_CLIENT_ID: "),
        ({"oidc_client_id": "maat"}, "MAAT_OIDC_ISSUER is missing"),
        ({"oidc_client_secret_file": "/no/such"}, "There is no such file"),
    ],
)
def test_what_would_fail_later_is_refused_at_the_start(
    settings: dict[str, str], told: str, tmp_path: Path
) -> None:
    found = ended(["backend.settings"], tmp_path, **settings)
    assert found.returncode == 2
    assert told.replace('"', "'") in found.stderr
    assert "Traceback" not in found.stderr


def test_settings_that_can_be_read_say_nothing(tmp_path: Path) -> None:
    found = ended(["backend.settings"], tmp_path, lock_wait_seconds="3")
    assert (found.returncode, found.stderr, found.stdout) == (0, "", "")
