"""Changing a job that lives, and submitting another like it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlmodel import select

from backend.accounts.permissions import Role
from backend.clocktime import utc_now
from backend.database import Database
from backend.models import Job, JobCommand, JobSecret, OutboxMessage

JOBS = "/api/v1/jobs"
Submit = Callable[..., dict[str, Any]]
MakeClient = Callable[..., TestClient]


def change(client: TestClient, job_id: str, version: int | None = 1, **changes: Any) -> Any:
    headers = {} if version is None else {"If-Match": f'"{version}"'}
    return client.patch(f"{JOBS}/{job_id}", json=changes, headers=headers)


def clone(client: TestClient, job_id: str, *, key: str | None = None, **changes: Any) -> Any:
    headers = {} if key is None else {"Idempotency-Key": key}
    way = f"{JOBS}/{job_id}/actions/clone"
    return client.post(way, json={"changes": changes}, headers=headers)


def test_name_priority_and_labels_change_and_rounds_learn_of_the_priority(
    client: TestClient, submit: Submit, database: Database
) -> None:
    job_id = submit(labels={"a": "1"})["id"]
    answer = change(client, job_id, name="new", labels={"b": "2"})
    assert (answer.status_code, answer.headers["ETag"]) == (200, '"2"')
    assert (answer.json()["name"], answer.json()["labels"]) == ("new", {"b": "2"})
    with database.session_scope(writes=False) as session:
        assert session.get_one(Job, job_id).declared_version == 1
    assert change(client, job_id, 2, priority=4).json()["priority"] == 4
    with database.session_scope(writes=False) as session:
        assert session.get_one(Job, job_id).declared_version == 2
    assert change(client, job_id, 3, priority=4).json()["version"] == 3


def test_rounds_learn_of_another_weight(
    client: TestClient, submit: Submit, database: Database
) -> None:
    job_id = submit()["id"]
    assert change(client, job_id, weight=1.5).json()["weight"] == 1.5
    with database.session_scope(writes=False) as session:
        row = session.get_one(Job, job_id)
        assert (row.weight, row.declared_version) == (1.5, 2)
    assert change(client, job_id, 2, weight=1001).status_code == 422


def test_a_change_names_the_version_that_it_changes(client: TestClient, submit: Submit) -> None:
    job_id = submit()["id"]
    assert change(client, job_id, None, priority=1).status_code == 428
    assert change(client, job_id, 7, priority=1).status_code == 412


def test_what_a_job_asks_for_changes_while_it_holds_no_gpus(
    client: TestClient, submit: Submit, database: Database
) -> None:
    job_id = submit(model="cifar10", gpu_types=["a100"], min_gpus=4)["id"]
    changed = change(client, job_id, gpu_types=["a100", "t4"], min_gpus=2, max_gpus=8)
    assert changed.status_code == 200
    asked = {name: changed.json()[name] for name in ("gpu_types", "min_gpus", "max_gpus")}
    assert asked == {"gpu_types": ["a100", "t4"], "min_gpus": 2, "max_gpus": 8}
    assert change(client, job_id, 2, gpu_types=None).json()["gpu_types"] is None
    with database.session_scope() as session:
        row = session.get_one(Job, job_id)
        assert row.declared_version == 3
        row.started_seconds = 1.0
        session.add(OutboxMessage(cluster_id=row.cluster_id, round_number=1, payload={}))
    started = change(client, job_id, 3, batch_size=64)
    assert (started.status_code, "only before that" in started.text) == (409, True)
    being_started = change(client, job_id, 3, min_gpus=1)
    assert (being_started.status_code, "Try again" in being_started.text) == (409, True)
    with database.session_scope() as session:
        session.exec(select(OutboxMessage)).one().applied_at = utc_now()
        session.get_one(Job, job_id).gpus = [0]
    holding = change(client, job_id, 3, min_gpus=1)
    assert (holding.status_code, "Pause it first" in holding.text) == (409, True)
    assert change(client, job_id, 3, priority=1).status_code == 200


def test_a_request_with_which_a_job_could_never_run_is_refused_beside_its_field(
    client: TestClient, submit: Submit
) -> None:
    job_id = submit(model="cifar10")["id"]
    for field, value in (("min_gpus", 100_000), ("gpu_types", ["nope"])):
        refused = change(client, job_id, **{field: value})
        assert refused.status_code == 422
        assert refused.json()["errors"][0]["pointer"].startswith(f"/{field}")


@pytest.mark.parametrize("name", ["work_scale", "model", "cluster_id", "after", "run"])
def test_what_cannot_change_says_what_to_do_instead(
    client: TestClient, submit: Submit, name: str
) -> None:
    answer = change(client, submit()["id"], **{name: 4})
    assert answer.status_code == 422
    assert f"{name} cannot change after the submission" in answer.text
    assert "Clone the job" in answer.text


def test_a_job_that_has_ended_or_is_anothers_does_not_change(
    client: TestClient, client_as: MakeClient, submit: Submit, database: Database
) -> None:
    job_id = submit()["id"]
    assert change(client_as(Role.SUBMITTER), job_id, priority=1).status_code == 403
    assert change(client_as(Role.SUBMITTER, tenant="other"), job_id, priority=1).status_code == 404
    with database.session_scope() as session:
        row = session.get_one(Job, job_id)
        row.state, row.finished_seconds = "succeeded", 5.0
        session.add(row)
    assert change(client, job_id, priority=1).status_code == 409


def test_a_clone_is_the_same_job_but_for_what_is_changed(
    client: TestClient, submit: Submit
) -> None:
    first = submit(
        model="cifar10", gpu_types=["a100"], max_gpus=8, labels={"a": "1"}, external_id="mine"
    )
    answer = clone(client, first["id"], max_gpus=4, gpu_types=None, name="again")
    second = answer.json()
    assert answer.status_code == 201
    assert (second["name"], second["max_gpus"], second["gpu_types"]) == ("again", 4, None)
    same = ("model", "labels", "adaptivity", "min_gpus", "priority", "preemptible", "cluster_id")
    assert {name: second[name] for name in same} == {name: first[name] for name in same}
    assert second["external_id"] is None
    assert second["id"] != first["id"]


def test_a_clone_is_made_once_per_key(client: TestClient, submit: Submit) -> None:
    job_id = submit()["id"]
    first, again = (clone(client, job_id, key="k").json() for _ in range(2))
    assert again["id"] == first["id"]


def test_a_change_that_makes_no_job_is_refused_beside_its_field(
    client: TestClient, submit: Submit
) -> None:
    answer = clone(client, submit()["id"], gpu_count="four", colour="red")
    pointers = [error["pointer"] for error in answer.json()["errors"]]
    assert answer.status_code == 422
    assert pointers == ["/changes/gpu_count", "/changes/colour"]


def test_only_jobs_of_ones_own_tenant_are_cloned(client_as: MakeClient) -> None:
    owner = client_as(Role.SUBMITTER, tenant="vision")
    job_id = owner.post(JOBS, json={"name": "mine", "model": "bert"}).json()["id"]
    assert clone(client_as(Role.CLUSTER_ADMIN), job_id).status_code == 403
    assert clone(client_as(Role.SUBMITTER), job_id).status_code == 404
    assert clone(client_as(Role.SUBMITTER, tenant="vision", name="b"), job_id).status_code == 201


def test_secrets_are_not_copied_and_each_is_asked_for(
    client: TestClient, submit: Submit, database: Database
) -> None:
    job_id = submit()["id"]
    with database.session_scope() as session:
        command = {"argv": ["true"], "cwd": "/", "stop_seconds": 1.0, "max_retries": 0}
        session.add(JobCommand(job_id=job_id, **command))
        session.add(JobSecret(job_id=job_id, name="TOKEN", value=b"sealed"))
    answer = clone(client, job_id, run={"max_retries": 2})
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert (error["pointer"], error["code"]) == (
        "/changes/run/secret_env/TOKEN",
        "secret_not_copied",
    )
    with database.session_scope(writes=False) as session:
        assert len(session.exec(select(Job)).all()) == 1


def test_a_deadline_is_shown_changed_and_taken_away(client: TestClient, submit: Submit) -> None:
    job = submit(deadline="2030-01-01T00:00:00Z")
    assert (job["deadline"], job["deadline_outlook"]) == ("2030-01-01T00:00:00.000Z", "unknown")
    later = change(client, job["id"], deadline="2031-01-01T01:00:00+01:00").json()
    assert later["deadline"] == "2031-01-01T00:00:00.000Z"
    none = change(client, job["id"], 2, deadline=None).json()
    assert (none["deadline"], none["deadline_outlook"]) == (None, None)
    assert submit()["deadline"] is None


def test_a_deadline_that_has_passed_is_refused_but_one_that_passes_stays(
    client: TestClient, submit: Submit, database: Database
) -> None:
    job = submit(deadline="2030-01-01T00:00:00Z")
    past = {"deadline": "2001-01-01T01:00:00+01:00"}
    body = {"name": "late", "model": "cifar10", **past}
    for refused in (change(client, job["id"], **past), client.post("/api/v1/jobs", json=body)):
        assert refused.status_code == 422
        (error,) = refused.json()["errors"]
        assert (error["pointer"], error["code"]) == ("/deadline", "past")
        assert error["value"] == "2001-01-01T00:00:00.000Z"
        assert "give a later one" in error["remedy"]
    with database.session_scope() as session:
        session.get_one(Job, job["id"]).deadline_seconds = -1.0
    missed = client.get(f"/api/v1/jobs/{job['id']}").json()
    assert missed["deadline_outlook"] == "missed"
    assert missed["deadline_seconds_late"] > 0
    same = change(client, job["id"], deadline=missed["deadline"], priority=7)
    assert (same.status_code, same.json()["priority"]) == (200, 7)
