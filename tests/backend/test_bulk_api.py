"""One action on many jobs: the preview, the guard, who may, and all or nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlmodel import select

from backend.accounts.permissions import Permission, Role
from backend.database import Database
from backend.models import Job, JobEvent

BULK = "/api/v1/jobs:bulk"
JOBS = "/api/v1/jobs"
Submit = Callable[..., dict[str, Any]]
MakeClient = Callable[..., TestClient]


def act(client: TestClient, action: str, *, key: str | None = None, **body: Any) -> Any:
    headers = {} if key is None else {"Idempotency-Key": key}
    return client.post(BULK, json={"action": action, **body}, headers=headers)


def rows(database: Database) -> dict[str, Job]:
    with database.session_scope(writes=False) as session:
        return {row.id: row for row in session.exec(select(Job))}


def set_columns(database: Database, job_id: str, **values: object) -> None:
    with database.session_scope() as session:
        row = session.get_one(Job, job_id)
        for name, value in values.items():
            setattr(row, name, value)
        session.add(row)


def test_a_preview_counts_and_shows_and_changes_nothing(
    client: TestClient, submit: Submit, database: Database
) -> None:
    ids = [submit(labels={"team": "vision"})["id"] for _ in range(22)]
    submit(labels={"team": "speech"})
    set_columns(database, ids[0], state="running", gpu_type="t4", gpus=[0])
    found = act(client, "pause", filter={"label": ["team=vision"]}, dry_run=True).json()
    assert (found["count"], found["dry_run"]) == (22, True)
    assert found["by_state"] == {"running": 1, "submitted": 21}
    assert [job["id"] for job in found["preview"]] == ids[::-1][:20]
    assert not any(row.pause_requested for row in rows(database).values())
    held = act(client, "hold", filter={"label": ["team=vision"]}, dry_run=True).json()
    assert (held["count"], held["unchanged"]) == (21, 1)


@pytest.mark.parametrize(
    ("action", "more", "shows"),
    [
        ("cancel", {}, {"cancel_requested": True}),
        ("pause", {}, {"pause_requested": True, "paused_by": "local"}),
        ("hold", {}, {"pause_requested": True, "paused_by": "local"}),
        ("priority", {"priority": 7}, {"priority": 7, "declared_version": 2}),
        ("weight", {"weight": 1.5}, {"weight": 1.5, "declared_version": 2}),
        ("label", {"labels": {"team": "x", "old": None}}, {"labels": {"team": "x", "kept": "1"}}),
    ],
)
def test_all_jobs_that_match_change_and_no_other(
    client: TestClient,
    submit: Submit,
    database: Database,
    action: str,
    more: dict[str, Any],
    shows: dict[str, object],
) -> None:
    labels = {"kept": "1", "old": "1"}
    mine = [submit(model="cifar10", labels=labels)["id"] for _ in range(3)]
    other = submit(labels=labels)["id"]
    before = rows(database)[other]
    answer = act(client, action, filter={"model": ["cifar10"]}, expected_count=3, **more)
    assert (answer.status_code, answer.json()["count"]) == (200, 3)
    found = rows(database)
    for job_id in mine:
        assert {name: getattr(found[job_id], name) for name in shows} == shows
        assert found[job_id].version == 2
    assert found[other] == before
    again = act(client, action, filter={"model": ["cifar10"]}, **more).json()
    assert (again["count"], again["unchanged"]) == (0, 3)


def test_paused_jobs_are_resumed_and_their_histories_say_by_whom(
    client: TestClient, submit: Submit, database: Database
) -> None:
    ids = [submit()["id"] for _ in range(2)]
    act(client, "pause", filter={"ids": ids})
    assert act(client, "resume", filter={"ids": [*ids, "job_0"]}).json()["count"] == 2
    assert not any(row.pause_requested or row.paused_by for row in rows(database).values())
    with database.session_scope(writes=False) as session:
        events = session.exec(select(JobEvent).where(JobEvent.kind == "asked")).all()
    told = sorted((event.data["action"], event.data["by"]) for event in events)
    assert told == [("pause", "local")] * 2 + [("resume", "local")] * 2


def test_another_count_than_expected_changes_nothing(
    client: TestClient, submit: Submit, database: Database
) -> None:
    submit()
    submit()
    answer = act(client, "cancel", filter={"state": ["submitted"]}, expected_count=1)
    assert answer.status_code == 409
    assert answer.json()["detail"].startswith("2 jobs would change, and 1 were expected")
    assert not any(row.cancel_requested for row in rows(database).values())


def test_one_job_with_too_many_labels_keeps_all_as_they_are(
    client: TestClient, submit: Submit, database: Database
) -> None:
    submit()
    submit(labels={f"key{number}": "1" for number in range(20)})
    answer = act(client, "label", filter={"state": ["submitted"]}, labels={"one": "more"})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["code"] == "too_many"
    assert not any("one" in row.labels for row in rows(database).values())


def test_a_repeated_request_acts_once(client: TestClient, submit: Submit) -> None:
    submit()
    first = act(client, "pause", key="k", filter={"state": ["submitted"]})
    submit()
    again = act(client, "pause", key="k", filter={"state": ["submitted"]})
    assert (again.json(), again.headers["Idempotency-Replayed"]) == (first.json(), "true")


def test_others_jobs_are_counted_and_left_alone(client_as: MakeClient, database: Database) -> None:
    ann, bob = client_as(Role.SUBMITTER, name="ann"), client_as(Role.SUBMITTER, name="bob")
    stranger = client_as(Role.SUBMITTER, tenant="other")
    for client in (ann, bob, stranger):
        client.post(JOBS, json={"name": "mine", "model": "bert"})
    found = act(ann, "cancel", filter={"model": ["bert"]}).json()
    assert (found["count"], found["not_yours"]) == (1, 1)
    assert sum(row.cancel_requested for row in rows(database).values()) == 1
    manager = client_as(Role.TENANT_MANAGER)
    assert act(manager, "cancel", filter={"model": ["bert"]}).json()["count"] == 1


def test_who_may_not_cancel_may_not_cancel_many(client_as: MakeClient) -> None:
    restricted = client_as(
        Role.SUBMITTER, scopes=[Permission.JOBS_READ, Permission.JOBS_CHANGE], name="cat"
    )
    assert act(restricted, "cancel", filter={"model": ["bert"]}).status_code == 403
    assert act(restricted, "pause", filter={"model": ["bert"]}).status_code == 200


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"action": "cancel", "filter": {}}, "An empty filter would match every job"),
        ({"action": "priority", "filter": {"ids": ["x"]}}, "belongs to the action `priority`"),
        ({"action": "pause", "filter": {"ids": ["x"]}, "priority": 3}, "Give both, or neither"),
        ({"action": "label", "filter": {"ids": ["x"]}, "labels": {"a b": "c"}}, "A label's key"),
        ({"action": "end", "filter": {"ids": ["x"]}}, "cancel"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_remedy(
    refusing: TestClient, body: dict[str, Any], says: str
) -> None:
    answer = refusing.post(BULK, json=body)
    assert answer.status_code == 422
    assert says in answer.text
