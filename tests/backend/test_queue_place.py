"""A job's place among those that wait, in its explanation and before it is submitted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi.testclient import TestClient

from backend.database import Database
from backend.models import Job

JOBS = "/api/v1/jobs"
Submit = Callable[..., dict[str, Any]]


def place(client: TestClient, job: dict[str, Any]) -> Any:
    return client.get(f"{JOBS}/{job['id']}/explanation").json()["queue"]


def test_a_job_that_waits_stands_by_priority_then_by_submission(
    client: TestClient, submit: Submit
) -> None:
    first, second, urgent = submit(), submit(), submit(priority=10)

    assert place(client, urgent) == {"waiting": 3, "position": 1}
    assert place(client, first) == {"waiting": 3, "position": 2}
    assert place(client, second) == {"waiting": 3, "position": 3}
    tried = client.post(
        JOBS, params={"dry_run": True}, json={"name": "new", "model": "bert", "priority": 0}
    ).json()
    assert (tried["waiting"], tried["position"]) == (3, 4)


def test_a_job_that_runs_is_paused_or_has_ended_has_no_place(
    client: TestClient, submit: Submit, database: Database
) -> None:
    waits, runs, pauses = submit(), submit(), submit()
    with database.session_scope() as session:
        row = session.get_one(Job, runs["id"])
        row.state = "running"
        session.add(row)
    client.post(f"{JOBS}/{pauses['id']}/actions/pause")

    assert place(client, runs) is None
    assert place(client, pauses) is None
    assert place(client, waits) == {"waiting": 1, "position": 1}
    client.post(f"{JOBS}/{waits['id']}/actions/cancel")
    assert place(client, waits) is None
