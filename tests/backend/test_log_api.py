"""The logs of attempts: read in parts, downloaded whole, for nobody but who may see the job."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given
from hypothesis import settings as tries
from hypothesis import strategies as st
from sqlmodel import select

from backend.accounts.permissions import Role
from backend.attempts.folders import attempt_folder, cluster_folder
from backend.attempts.logs import last_lines, open_log, read_part
from backend.clusters.repository import get_cluster
from backend.database import Database
from backend.models import AttemptRow, Cluster, Job, JobEvent
from backend.settings import Settings
from maat.launch.log_limit import keep_within
from maat.vocabulary import AttemptState, JobState, Outcome

TEXT = "step 1 · loss 0,5\nschön 数字 🎉\n"


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"allow_commands": True})


class Logged:
    """A command with one attempt of two ranks, of which rank 0 has written."""

    def __init__(self, client: TestClient, database: Database, settings: Settings) -> None:
        self.client, self.database = client, database
        shape = {"name": "here", "shape": "cpu=1x4", "executor": "local"}
        assert client.post("/api/v1/clusters", json=shape).status_code == 201
        run = {"argv": ["train"], "cwd": "/"}
        job = {"name": "mine", "model": "script", "cluster_id": "here", "batch_size": 64}
        self.job_id = client.post("/api/v1/jobs", json={**job, "run": run}).json()["id"]
        with database.session_scope() as session:
            cluster_id = get_cluster(session, "here").id
            row = AttemptRow(
                job_id=self.job_id,
                cluster_id=cluster_id,
                number=1,
                round_number=1,
                state=AttemptState.RUNNING.value,
                reports=True,
                gpu_type="cpu",
                gpus_by_node={"cpu-0": [0, 1]},
                gpu_count=2,
                ordered_seconds=0.0,
            )
            session.add(row)
        self.attempt_id = row.id
        self.cluster = cluster_folder(settings, Cluster(id=cluster_id))
        self.folder = attempt_folder(self.cluster, row.id)
        self.folder.mkdir(parents=True)
        self.log.write_text(TEXT, encoding="utf-8")

    @property
    def log(self) -> Path:
        return self.folder / "rank-0.log"

    def path(self, rank: object = 0, number: object = 1) -> str:
        return f"/api/v1/jobs/{self.job_id}/attempts/{number}/logs/{rank}"

    def get(self, rank: object = 0, number: object = 1, **query: object) -> Any:
        return self.client.get(self.path(rank, number), params=query)

    def end(self, **values: object) -> None:
        with self.database.session_scope() as session:
            row = session.get_one(AttemptRow, self.attempt_id)
            row.state = AttemptState.ENDED.value
            for name, value in values.items():
                setattr(row, name, value)
            session.add(row)


@pytest.fixture
def logged(client: TestClient, database: Database, settings: Settings) -> Logged:
    return Logged(client, database, settings)


def test_a_log_is_read_and_says_whether_more_will_come(logged: Logged) -> None:
    total = len(TEXT.encode())
    read = {"text": TEXT, "offset": 0, "next_offset": total, "total_bytes": total}
    assert logged.get().json() == {**read, "ended": False}
    logged.end()
    assert logged.get().json() == {**read, "ended": True}
    assert logged.get(limit=8).json()["ended"] is False
    beyond = logged.get(offset=10**12).json()
    assert (beyond["text"], beyond["next_offset"], beyond["ended"]) == ("", total, True)


def test_a_log_is_downloaded_as_a_file(logged: Logged) -> None:
    answer = logged.client.get(logged.path() + "/download")
    assert answer.content == TEXT.encode()
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    name = f"{logged.job_id}-attempt-1-rank-0.log"
    assert answer.headers["content-disposition"] == f'attachment; filename="{name}"'


def test_what_was_left_out_of_a_long_log_is_passed_over(logged: Logged) -> None:
    first, last = "ä" * 300_000 + "\n", "ö" * 300_000 + "\n"
    logged.log.write_text(first + "x" * 1_000_000 + last, encoding="utf-8")
    keep_within(str(logged.log), 1_000_000)
    assert logged.log.stat().st_blocks * 512 < 1_100_000
    read, offset = list[str](), 0
    for _ in range(40):
        part = logged.get(offset=offset).json()
        read.append(part["text"])
        offset = part["next_offset"]
        if not part["text"]:
            break
    text = "".join(read)
    assert offset == part["total_bytes"] == logged.log.stat().st_size
    assert "\0" not in text
    assert text.startswith("ä" * 200_000)
    assert text.endswith("ö" * 200_000 + "\n")
    assert "its middle is left out here]\n" in text
    assert "x" not in text.partition("left out here]\n")[2].lstrip("x")
    assert logged.client.get(logged.path() + "/download").text.strip("\ufffd") == text


@pytest.mark.parametrize(
    ("rank", "number", "status"),
    [
        (1, 1, 404),
        (2, 1, 404),
        (0, 2, 404),
        (-1, 1, 422),
        ("..%2F..", 1, 404),
        ("spec.json", 1, 422),
    ],
)
@pytest.mark.parametrize("end", ["", "/download"])
def test_what_is_not_there_is_not_found(
    logged: Logged, rank: object, number: int, status: int, end: str
) -> None:
    answer = logged.client.get(logged.path(rank, number) + end)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_nothing_but_a_file_is_read(logged: Logged, kind: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hush")
    logged.log.unlink()
    if kind == "link":
        logged.log.symlink_to(secret)
    else:
        os.mkfifo(logged.log)
    assert logged.get().status_code == 404


def test_others_do_not_see_that_there_is_a_log(
    logged: Logged, client_as: Callable[..., TestClient]
) -> None:
    other = client_as(Role.VIEWER, tenant="other")
    for path in (logged.path(), logged.path() + "/download"):
        assert other.get(path).status_code == 404


@pytest.mark.parametrize("query", [{"limit": 3}, {"limit": 65_537}, {"offset": -1}])
def test_impossible_parts_are_refused(logged: Logged, query: dict[str, int]) -> None:
    assert logged.get(**query).status_code == 422


characters = st.one_of(st.text(max_size=20).map(str.encode), st.binary(max_size=5))


@tries(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(characters, max_size=8).map(b"".join), st.integers(4, 9), st.integers(0, 60))
def test_parts_make_up_the_whole(tmp_path: Path, data: bytes, limit: int, start: int) -> None:
    """Read from any place on, a file that is still written; then what it ended with."""
    (folder := attempt_folder(tmp_path, "att")).mkdir(parents=True, exist_ok=True)
    (folder / "rank-0.log").write_bytes(data)
    with open_log(tmp_path, "att", 0) as file:
        texts, offset, ended = list[str](), 0, False
        while True:
            part = read_part(file, offset, limit, ended=ended)
            assert part["next_offset"] - offset <= limit
            texts.append(part["text"])
            if part["ended"]:
                break
            ended = ended or part["next_offset"] == offset
            offset = part["next_offset"]
        assert "".join(texts) == data.decode(errors="replace")


@tries(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(min_size=1, max_size=12), st.integers(4, 9))
def test_an_offset_inside_a_character_gives_the_character(
    tmp_path: Path, text: str, limit: int
) -> None:
    (folder := attempt_folder(tmp_path, "att")).mkdir(parents=True, exist_ok=True)
    data = text.encode()
    (folder / "rank-0.log").write_bytes(data)
    with open_log(tmp_path, "att", 0) as file:
        for offset in range(len(data)):
            part = read_part(file, offset, limit, ended=False)
            assert offset - 3 <= part["offset"] <= offset
            assert part["text"] == data[part["offset"] : part["next_offset"]].decode()
            assert part["next_offset"] > part["offset"]


def test_last_lines_are_few_short_and_whole(tmp_path: Path) -> None:
    assert last_lines(tmp_path, "att", 0) == []
    (folder := attempt_folder(tmp_path, "att")).mkdir(parents=True)
    log = folder / "rank-0.log"
    log.write_text("".join(f"line {i}\n" for i in range(100)))
    assert last_lines(tmp_path, "att", 0) == [f"line {i}" for i in range(80, 100)]
    log.write_text(("x" * 1000 + "\n") * 10)
    assert last_lines(tmp_path, "att", 0) == ["x" * 1000] * 4
    log.write_bytes(b"x" * 10_000 + b"\0")
    (only,) = last_lines(tmp_path, "att", 0)
    assert len(only) == 4096
    assert "\0" not in only


def test_a_failed_command_is_explained_by_its_failure(logged: Logged) -> None:
    told = {
        "attempt": 1,
        "outcome": Outcome.FAILED.value,
        "reason": "Rank 0 ended with exit code 7.",
        "last_lines": ["Traceback", "ValueError: no"],
    }
    with logged.database.session_scope() as session:
        job = session.exec(select(Job).where(Job.id == logged.job_id)).one()
        job.state, job.finished_seconds = JobState.FAILED.value, 1.0
        job.reason_code = "GRANTED"
        session.add(job)
        event = {"cluster_seconds": 1.0, "kind": "state", "state": "failed", "data": told}
        session.add(JobEvent(job_id=job.id, cluster_id=job.cluster_id, **event))
    told = logged.client.get(f"/api/v1/jobs/{logged.job_id}/explanation").json()
    assert told["primary"]["code"] == "FAILED"
    assert told["primary"]["sentence"] == "The job has failed: Rank 0 ended with exit code 7."
    shown = logged.client.get(f"/api/v1/jobs/{logged.job_id}").json()["reason"]
    assert (shown["code"], shown["sentence"]) == ("ENDED", "The job has ended: it failed.")
    assert told["last_lines"] == ["Traceback", "ValueError: no"]
