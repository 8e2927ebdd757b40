"""Tests of `maat token create`: the token works in the service, and refusals are clear."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from backend.app import create_app
from backend.bootstrap_data import ensure_defaults
from backend.database import Database
from backend.settings import Settings

ROOT = Path(__file__).parents[2]


def create(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "MAAT_DATABASE_URL"}
    command = [sys.executable, "-m", "maat", "token", "create", *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    settings = Settings(_env_file=None, data_dir=tmp_path, database_url="", broker_url="")
    database = Database.of(settings)
    ensure_defaults(database, settings)
    database.dispose()
    return settings


def test_the_token_lets_its_user_in_from_elsewhere(settings: Settings) -> None:
    made = create("--data-dir", str(settings.data_path), "--name", "laptop", "--days", "1")

    assert (made.returncode, made.stderr) == (0, "")
    far_away = TestClient(
        create_app(settings), base_url="http://maat.example", client=("10.0.0.9", 50000)
    )
    assert (
        far_away.get(
            "/api/v1/me", headers={"Authorization": f"Bearer {made.stdout.strip()}"}
        ).json()["user"]
        == "local"
    )


def test_the_data_folder_of_the_environment_is_used(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAAT_DATA_DIR", str(settings.data_path))

    made = create("--name", "laptop")

    assert (made.returncode, made.stderr) == (0, "")


def test_a_user_that_is_not_there_is_refused_by_name(settings: Settings) -> None:
    refused = create("--data-dir", str(settings.data_path), "--user", "nobody")

    assert (refused.returncode, refused.stdout) == (2, "")
    assert "'nobody'" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.parametrize(
    "arguments", [("--data-dir", "/nowhere"), ("--days", "-1"), ("--days", "soon")]
)
def test_what_cannot_be_is_refused(arguments: tuple[str, ...]) -> None:
    refused = create(*arguments)

    assert refused.returncode == 2
    assert arguments[1] in refused.stderr
    assert "Traceback" not in refused.stderr
