"""Pausing, holding and resuming jobs by request: who may, what is told, what a repetition does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient

from backend.accounts.permissions import Role
from backend.database import Database
from backend.models import Job
from maat.vocabulary import JobState

JOBS = "/api/v1/jobs"
Submit = Callable[..., dict[str, Any]]
MakeClient = Callable[..., TestClient]


def act(client: TestClient, job_id: str, action: str, **more: Any) -> Any:
    return client.post(f"{JOBS}/{job_id}/actions/{action}", **more)


def set_columns(database: Database, job_id: str, **values: object) -> None:
    with database.session_scope() as session:
        row = session.get_one(Job, job_id)
        for name, value in values.items():
            setattr(row, name, value)
        session.add(row)


def asked(client: TestClient, job_id: str) -> list[tuple[str, str]]:
    events = client.get(f"{JOBS}/{job_id}/events").json()["items"]
    return [(e["data"]["action"], e["data"]["by"]) for e in events if e["kind"] == "asked"]


def test_a_pause_is_told_at_once_with_who_asked(client: TestClient, submit: Submit) -> None:
    job_id = submit()["id"]
    answer = act(client, job_id, "pause")
    job = answer.json()
    assert answer.status_code == 200
    assert (job["pause_requested"], job["paused_by"], job["paused_at"]) == (True, "local", None)
    assert job["reason"]["code"] == "PAUSING"
    assert answer.headers["ETag"] == f'"{job["version"]}"'
    assert asked(client, job_id) == [("pause", "local")]


def test_since_when_and_why_follow_once_a_round_has_paused_it(
    client: TestClient, submit: Submit, database: Database
) -> None:
    job = submit()
    act(client, job["id"], "pause")
    set_columns(
        database, job["id"], state="paused", reason_code="HELD_BY_USER", paused_since_seconds=50.0
    )
    shown = client.get(f"{JOBS}/{job['id']}").json()
    assert shown["paused_at"] is not None
    assert shown["reason"]["sentence"].startswith("It is paused")
    explained = client.get(f"{JOBS}/{job['id']}/explanation").json()
    assert [remedy["code"] for remedy in explained["remedies"]] == ["resume"]


def test_time_that_a_job_was_paused_is_no_wait(
    client: TestClient, submit: Submit, database: Database
) -> None:
    job_id = submit()["id"]
    set_columns(
        database, job_id, submitted_seconds=0.0, started_seconds=500.0, unwaited_seconds=200.0
    )
    assert client.get(f"{JOBS}/{job_id}").json()["wait_seconds"] == 300.0
    set_columns(
        database, job_id, started_seconds=None, paused_since_seconds=450.0, pause_requested=True
    )
    assert client.get(f"{JOBS}/{job_id}").json()["wait_seconds"] == 250.0


def test_asking_twice_changes_nothing(client: TestClient, submit: Submit) -> None:
    job_id = submit()["id"]
    first, again = act(client, job_id, "pause").json(), act(client, job_id, "pause").json()
    assert again["version"] == first["version"]
    back, twice = act(client, job_id, "resume").json(), act(client, job_id, "release").json()
    assert (back["pause_requested"], back["paused_by"]) == (False, None)
    assert twice["version"] == back["version"]
    assert asked(client, job_id) == [("pause", "local"), ("resume", "local")]


def test_a_job_that_has_ended_can_be_neither_paused_nor_resumed(
    client: TestClient, submit: Submit, database: Database
) -> None:
    job_id = submit()["id"]
    set_columns(database, job_id, state=JobState.SUCCEEDED.value, finished_seconds=9.0)
    for action in ("pause", "hold", "resume", "release"):
        answer = act(client, job_id, action)
        assert answer.status_code == 409
        assert "ended: succeeded" in answer.json()["detail"]


def test_a_hold_takes_no_gpus_away(client: TestClient, submit: Submit, database: Database) -> None:
    waits, runs = submit()["id"], submit()["id"]
    set_columns(database, runs, state="running", gpu_type="t4", gpus=[0])
    assert act(client, waits, "hold").json()["pause_requested"] is True
    answer = act(client, runs, "hold")
    assert answer.status_code == 409
    assert "Pause it instead" in answer.json()["detail"]


def test_an_old_version_is_refused(client: TestClient, submit: Submit) -> None:
    job_id = submit()["id"]
    assert act(client, job_id, "pause", headers={"If-Match": '"7"'}).status_code == 412
    assert act(client, job_id, "pause", headers={"If-Match": '"1"'}).status_code == 200
    assert act(client, job_id, "resume", headers={"If-Match": '"1"'}).status_code == 412


@pytest.mark.parametrize("action", ["pause", "hold", "resume", "release"])
def test_only_its_owner_and_managers_of_its_tenant_pause_a_job(
    client_as: MakeClient, action: str
) -> None:
    owner = client_as(Role.SUBMITTER, name="ann")
    job_id = owner.post(JOBS, json={"name": "mine", "model": "bert"}).json()["id"]
    assert act(client_as(Role.SUBMITTER, name="bob"), job_id, action).status_code == 403
    stranger = client_as(Role.TENANT_MANAGER, tenant="other")
    assert act(stranger, job_id, action).status_code == 404
    assert act(client_as(Role.TENANT_MANAGER), job_id, action).status_code == 200
    assert act(owner, job_id, action).status_code == 200


def test_an_administrator_of_another_tenant_is_not_named(client_as: MakeClient) -> None:
    owner = client_as(Role.SUBMITTER, tenant="vision")
    job_id = owner.post(JOBS, json={"name": "mine", "model": "bert"}).json()["id"]
    act(client_as(Role.CLUSTER_ADMIN, name="root"), job_id, "pause")
    assert owner.get(f"{JOBS}/{job_id}").json()["paused_by"] == "an administrator"
    assert asked(owner, job_id) == [("pause", "an administrator")]


def test_a_job_of_a_paused_cluster_is_not_told_that_rounds_consider_it(
    client: TestClient, submit: Submit
) -> None:
    job_id = submit()["id"]

    def remedies() -> list[str]:
        found = client.get(f"{JOBS}/{job_id}/explanation").json()["remedies"]
        return [one["code"] for one in found]

    assert remedies() == ["wait"]
    client.post("/api/v1/clusters/demo/actions/pause").raise_for_status()
    assert remedies() == ["cluster_paused"]
    client.post("/api/v1/clusters/demo/actions/resume").raise_for_status()
    assert remedies() == ["wait"]
