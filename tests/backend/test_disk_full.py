"""What a caller is told when the disk of the database is full."""

from __future__ import annotations

import shutil
from pathlib import Path

import psycopg
import pytest
from fastapi.testclient import TestClient
from small_disk import SmallDisk

from backend.database import is_disk_full


@pytest.fixture
def database_url(small_disk: SmallDisk, migrated_sqlite: Path) -> str:
    shutil.copyfile(migrated_sqlite, small_disk.path / "maat.db")
    return f"sqlite:///{small_disk.path / 'maat.db'}"


def test_a_submission_and_a_cancellation_name_the_disk_and_what_to_do(
    small_disk: SmallDisk, client: TestClient
) -> None:
    body = {"name": "train", "model": "bert"}
    job_id = client.post("/api/v1/jobs", json=body).json()["id"]
    small_disk.fill()
    # What the database's own log has room for is still taken.
    answers = [client.post("/api/v1/jobs", json={**body, "name": "x" * 200}) for _ in range(50)]
    answers.append(client.post(f"/api/v1/jobs/{job_id}/actions/cancel"))
    problem = answers[-1].json()
    assert {answer.status_code for answer in answers} <= {201, 507}
    assert (answers[-1].status_code, problem["type"]) == (507, "/problems/disk-full")
    assert problem["retryable"]
    assert "the disk that holds Maat's database (MAAT_DATA_DIR" in problem["detail"]
    assert "Make room there, then try again." in problem["detail"]
    assert str(small_disk.path) not in answers[-1].text
    small_disk.make_room()
    assert client.post("/api/v1/jobs", json=body).status_code == 201


def test_the_other_databases_full_disk_is_known_too() -> None:
    assert is_disk_full(psycopg.errors.DiskFull())
    assert not is_disk_full(psycopg.errors.LockNotAvailable())
