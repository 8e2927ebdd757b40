"""Jobs that are submitted to start after others: how those are named, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from sqlite3 import SQLITE_LIMIT_VARIABLE_NUMBER
from typing import Any

import pytest
import sqlalchemy as sa
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlmodel import select

from backend.accounts.permissions import Role
from backend.database import Database
from backend.models import Job, JobDependency

JOBS = "/api/v1/jobs"
Submit = Callable[..., dict[str, Any]]
MakeClient = Callable[..., TestClient]


def body(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "model": "bert", **fields}


def batch(client: TestClient, *bodies: dict[str, Any], mode: str = "atomic") -> Any:
    return client.post(f"{JOBS}:batch", json={"jobs": list(bodies), "mode": mode})


def set_columns(database: Database, job_id: str, **values: object) -> None:
    with database.session_scope() as session:
        row = session.get_one(Job, job_id)
        for name, value in values.items():
            setattr(row, name, value)
        session.add(row)


def needs(database: Database) -> set[tuple[str, str]]:
    with database.session_scope(writes=False) as session:
        return {(one.job_id, one.needed_id) for one in session.exec(select(JobDependency))}


def test_a_job_names_what_it_follows_by_id_or_external_id(
    client: TestClient, submit: Submit, database: Database
) -> None:
    first, second = submit(), submit(external_id="prepare")
    last = submit(after=[first["id"], "prepare", second["id"]])
    assert last["after"] == [first["id"], second["id"], second["id"]]
    assert needs(database) == {(last["id"], first["id"]), (last["id"], second["id"])}
    assert client.get(f"{JOBS}/{last['id']}").json()["after"] == last["after"]


def test_jobs_of_a_batch_follow_each_other_by_place_or_external_id(
    client: TestClient, database: Database
) -> None:
    answer = batch(
        client,
        body("last", after=["#1", "prep"]),
        body("middle", after=["prep"]),
        body("first", external_id="prep"),
    )
    last, middle, first = (item["job"]["id"] for item in answer.json()["items"])
    assert needs(database) == {(last, middle), (last, first), (middle, first)}
    assert answer.json()["items"][0]["job"]["after"] == [middle, first]


@pytest.mark.parametrize(
    ("bodies", "circle"),
    [
        (
            [body("a", after=["#1"]), body("b", after=["#2"]), body("c", after=["#0"])],
            "each other: #0 -> #1 -> #2 -> #0.",
        ),
        ([body("a"), body("b", after=["#1"])], "#1 waits for itself."),
        ([body("a", external_id="d1", after=["d1"])], "d1 waits for itself."),
        (
            [body("a", external_id="x", after=["y"]), body("b", external_id="y", after=["x"])],
            "each other: x -> y -> x.",
        ),
    ],
)
def test_a_circle_is_refused_and_named(
    refusing: TestClient, bodies: list[dict[str, Any]], circle: str
) -> None:
    answer = batch(refusing, *bodies)
    assert answer.status_code == 422
    found = answer.json()["errors"]
    assert {error["code"] for error in found} <= {"circle", "needs_refused"}
    assert circle in found[0]["message"]


def test_a_job_that_waits_for_itself_is_named_by_the_id_that_it_was_given(
    refusing: TestClient,
) -> None:
    answer = refusing.post(JOBS, json=body("train", external_id="d1", after=["d1"]))
    (error,) = answer.json()["errors"]
    assert (answer.status_code, error["pointer"]) == (422, "/after")
    assert (error["message"], error["value"]) == ("d1 waits for itself.", "d1")


def test_what_follows_a_refused_job_of_a_partial_batch_is_refused_too(client: TestClient) -> None:
    answer = batch(
        client,
        body("bad", model="gpt-9"),
        body("after", after=["#0"]),
        body("after that", after=["#1"]),
        body("good"),
        mode="partial",
    )
    assert answer.status_code == 207
    assert [item["status"] for item in answer.json()["items"]] == [422, 422, 422, 201]


@pytest.mark.both_databases
def test_a_batch_may_name_more_jobs_than_a_statement_takes_parameters(
    app: FastAPI, client: TestClient, submit: Submit
) -> None:
    database: Database = app.state.database
    if database.is_sqlite:  # as SQLite is built by default
        sa.event.listen(
            database.engine,
            "checkout",
            lambda connection, *_: connection.setlimit(SQLITE_LIMIT_VARIABLE_NUMBER, 32_766),
        )
    needed = submit()["id"]
    names = [[f"{job}-{place}" for place in range(32)] for job in range(600)]
    names[599][31] = needed
    answer = batch(client, *(body("follower", after=after) for after in names), mode="partial")
    assert answer.status_code == 207
    last = answer.json()["items"][599]["errors"]
    assert {error["pointer"] for error in last} == {f"/after/{place}" for place in range(31)}


def test_unknown_ended_and_strangers_jobs_are_refused(
    client: TestClient, client_as: MakeClient, submit: Submit, database: Database
) -> None:
    failed, done = submit()["id"], submit()["id"]
    set_columns(database, failed, state="failed", finished_seconds=5.0)
    set_columns(database, done, state="succeeded", finished_seconds=5.0)
    stranger = client_as(Role.SUBMITTER, tenant="other")
    hidden = stranger.post(JOBS, json=body("hidden")).json()["id"]
    answer = client.post(JOBS, json=body("x", after=["job_0", failed, done]))
    codes = {error["pointer"]: error["code"] for error in answer.json()["errors"]}
    assert codes == {"/after/0": "no_such_job", "/after/1": "never_succeeds"}
    mine = client_as(Role.SUBMITTER).post(JOBS, json=body("x", after=[hidden]))
    assert mine.json()["errors"][0]["code"] == "no_such_job"
    too_many = client.post(JOBS, json=body("x", after=[done] * 33))
    assert too_many.status_code == 422


def test_an_explanation_says_how_far_the_others_are(
    client: TestClient, submit: Submit, database: Database
) -> None:
    first = submit(name="prepare")
    last = submit(after=[first["id"]])["id"]
    set_columns(database, first["id"], state="running", progress=0.4)
    evidence = {"job": first["id"], "jobs": 1}
    set_columns(
        database, last, state="paused", reason_code="WAITING_DEPENDENCY", reason_evidence=evidence
    )
    shown = client.get(f"{JOBS}/{last}").json()["reason"]["sentence"]
    assert shown == f"It waits until {first['id']} has succeeded."
    explained = client.get(f"{JOBS}/{last}/explanation").json()["primary"]["sentence"]
    assert explained == "It waits for job prepare (running, 40%)."
    refused = client.post(f"{JOBS}/{last}/actions/release")
    assert refused.status_code == 409
    assert first["id"] in refused.json()["detail"]


def test_what_follows_others_says_so_before_any_round_has_seen_it(
    client: TestClient, submit: Submit
) -> None:
    first = submit(name="prepare")["id"]
    last = submit(after=[first])["id"]
    found = client.get(f"{JOBS}/{last}/explanation").json()
    assert found["primary"]["code"] == "WAITING_DEPENDENCY"
    assert found["primary"]["sentence"] == "It waits for job prepare (submitted)."
    assert found["remedies"] == []
    alone = client.get(f"{JOBS}/{first}/explanation").json()
    assert alone["primary"]["code"] == "NOT_YET_CONSIDERED"


def follower_of(client: TestClient, submit: Submit, database: Database, needed: str) -> str:
    """Submit a job that follows another, as a round leaves it."""
    job_id: str = submit(after=[needed])["id"]
    evidence = {"job": needed, "jobs": 1}
    set_columns(
        database, job_id, state="paused", reason_code="WAITING_DEPENDENCY", reason_evidence=evidence
    )
    return job_id


def test_a_job_that_follows_a_paused_one_is_helped_by_resuming_that(
    client: TestClient, submit: Submit, database: Database
) -> None:
    first = submit(name="prepare")["id"]
    second = follower_of(client, submit, database, first)
    set_columns(database, second, name="middle")
    last = follower_of(client, submit, database, second)
    assert client.get(f"{JOBS}/{last}/explanation").json()["remedies"] == []
    client.post(f"{JOBS}/{first}/actions/pause").raise_for_status()
    told = client.get(f"{JOBS}/{last}/explanation").json()["primary"]["sentence"]
    assert told == "It waits for job middle (follows others)."
    told = client.get(f"{JOBS}/{second}/explanation").json()["primary"]["sentence"]
    assert told == "It waits for job prepare (submitted)."
    set_columns(database, first, state="paused", reason_code="HELD_BY_USER")
    told = client.get(f"{JOBS}/{second}/explanation").json()["primary"]["sentence"]
    assert told == "It waits for job prepare (paused)."
    for waiting in (second, last):
        (remedy,) = client.get(f"{JOBS}/{waiting}/explanation").json()["remedies"]
        assert (remedy["action"], remedy["targets"]) == ("resume", [first])
        assert remedy["sentence"].startswith("Resume job prepare")
        assert remedy["permitted"] is True
    client.post(f"{JOBS}/{first}/actions/resume").raise_for_status()
    assert client.get(f"{JOBS}/{last}/explanation").json()["remedies"] == []


def test_who_may_not_resume_the_paused_job_cannot_press_the_remedy(
    client_as: MakeClient, database: Database
) -> None:
    ann, bob = (client_as(Role.SUBMITTER, tenant="vision", name=name) for name in ("ann", "bob"))
    first = ann.post(JOBS, json=body("prepare")).json()["id"]
    ann.post(f"{JOBS}/{first}/actions/pause").raise_for_status()
    last = bob.post(JOBS, json=body("train", after=[first])).json()["id"]
    set_columns(
        database, last, state="paused", reason_code="WAITING_DEPENDENCY",
        reason_evidence={"job": first, "jobs": 1},
    )  # fmt: skip
    for reader, may in ((bob, False), (ann, True)):
        (remedy,) = reader.get(f"{JOBS}/{last}/explanation").json()["remedies"]
        assert remedy["permitted"] is may


def test_a_job_that_follows_a_held_one_is_helped_by_releasing_that(
    client: TestClient, submit: Submit, database: Database
) -> None:
    first = submit()["id"]
    held = submit(name="middle", after=[first])["id"]
    last = follower_of(client, submit, database, held)
    set_columns(database, first, state="failed", finished_seconds=5.0)
    (remedy,) = client.get(f"{JOBS}/{last}/explanation").json()["remedies"]
    assert (remedy["action"], remedy["targets"]) == ("release", [held])
    assert client.post(f"{JOBS}/{held}/actions/release").status_code == 200
    assert client.get(f"{JOBS}/{last}/explanation").json()["remedies"] == []


def test_a_job_whose_forerunner_failed_is_released_alone_or_with_others(
    client: TestClient, submit: Submit, database: Database
) -> None:
    first = submit()["id"]
    one, two = submit(after=[first])["id"], submit(after=[first])["id"]
    set_columns(database, first, state="failed", finished_seconds=5.0)
    for job_id in (one, two):
        set_columns(
            database,
            job_id,
            state="paused",
            reason_code="DEPENDENCY_FAILED",
            reason_evidence={"job": first, "state": "failed"},
        )
    explained = client.get(f"{JOBS}/{one}/explanation").json()
    assert first in explained["primary"]["sentence"]
    assert [remedy["code"] for remedy in explained["remedies"]] == ["release"]
    assert client.post(f"{JOBS}/{one}/actions/release").status_code == 200
    released = client.post(
        f"{JOBS}:bulk", json={"action": "release", "filter": {"state": ["paused"]}}
    ).json()
    assert released["count"] == 1
    with database.session_scope(writes=False) as session:
        assert not session.exec(select(JobDependency).where(JobDependency.is_open)).all()


@pytest.mark.parametrize("in_bulk", [False, True])
def test_a_resumed_job_does_not_start_without_what_failed_before_it(
    client: TestClient, submit: Submit, database: Database, in_bulk: bool
) -> None:
    """To resume ends the pause; it is no consent to run without the other job."""
    first = submit(name="prepare")["id"]
    last = submit(name="train", after=[first])["id"]
    client.post(f"{JOBS}/{last}/actions/pause").raise_for_status()
    client.post(f"{JOBS}/{first}/actions/cancel").raise_for_status()
    set_columns(database, first, state="cancelled", finished_seconds=5.0)
    set_columns(database, last, state="paused", reason_code="HELD_BY_USER")
    explained = client.get(f"{JOBS}/{last}/explanation").json()
    assert [one["code"] for one in explained["reasons"]] == ["HELD_BY_USER", "DEPENDENCY_FAILED"]
    assert explained["reasons"][1]["sentence"].startswith(f"Job {first}, which it was to follow")

    def lift() -> None:
        if in_bulk:
            meant = {"action": "resume", "filter": {"state": ["paused"]}}
            assert client.post(f"{JOBS}:bulk", json=meant).json()["count"] == 1
        else:
            client.post(f"{JOBS}/{last}/actions/resume").raise_for_status()

    lift()
    assert needs(database) == {(last, first)}
    with database.session_scope(writes=False) as session:
        assert session.exec(select(JobDependency)).one().is_open
        assert not session.get_one(Job, last).pause_requested
    lift()
    with database.session_scope(writes=False) as session:
        assert not session.exec(select(JobDependency)).one().is_open
