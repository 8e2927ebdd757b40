"""Tests of the routes of fairness: distributions, worst jobs, and whose names are seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ended_jobs import FAIRNESS, HOUR, Rows, period, read
from fastapi.testclient import TestClient

from backend.accounts.permissions import Role
from backend.models import Job, JobFairness
from maat.vocabulary import FairnessState, WithoutRho

MakeClient = Callable[..., TestClient]


@pytest.mark.both_databases
def test_the_distribution_of_each_tenant_has_its_figures_and_points(
    client: TestClient, rows: Rows
) -> None:
    for rho in (0.5, 1.5, 1.0, 2.0):
        rows.job("blue", rho)
    rows.job("red", 3.0)
    found = read(client, FAIRNESS, **period(rows))
    blue, red = found["tenants"]
    assert (blue["tenant"], red["tenant"]) == ("blue", "red")
    assert blue["figures"] == {
        "jobs": 4,
        "mean": 1.25,
        "median": 1.25,
        "p90": 2.0,
        "worst": 2.0,
        "unfair_share": 0.5,
    }
    assert blue["is_few"]
    assert [(one["rho"], one["share"]) for one in blue["cdf"]] == [
        (0.5, 0.25),
        (1.0, 0.5),
        (1.5, 0.75),
        (2.0, 1.0),
    ]
    assert found["all"]["jobs"] == 5
    assert found["formula"]["version"] == 1
    assert found["formula"]["text"]
    assert found["formula"]["baseline"]


def test_many_jobs_are_few_points_that_keep_the_ends(client: TestClient, rows: Rows) -> None:
    with rows.database.session_scope() as session:
        tenant_id, user_id = rows.tenant(session, "blue")
        for number in range(500):
            job = Job(
                cluster_id=rows.cluster.id,
                name="train",
                owner_id=user_id,
                tenant_id=tenant_id,
                model="bert",
                adaptivity="adaptive",
                submitted_seconds=0.0,
                finished_seconds=HOUR,
                remaining_work=0.0,
            )
            session.add(job)
            session.flush()
            session.add(
                JobFairness(
                    job_id=job.id,
                    cluster_id=rows.cluster.id,
                    tenant_id=tenant_id,
                    finished_seconds=HOUR,
                    state="succeeded",
                    rho=number / 100,
                )
            )
    (blue,) = read(client, FAIRNESS, **period(rows), points=200)["tenants"]
    assert not blue["is_few"]
    assert blue["figures"]["p90"] == 4.49
    assert len(blue["cdf"]) == 200
    assert (blue["cdf"][0]["rho"], blue["cdf"][-1]) == (0.0, {"rho": 4.99, "share": 1.0})


def test_an_answer_grows_neither_with_jobs_nor_with_tenants(client: TestClient, rows: Rows) -> None:
    for tenant, many in (("blue", 3), ("green", 1), ("red", 2)):
        for number in range(many):
            rows.job(tenant, 1.0 + number, held=2 * many)
    rows.capacity(32)
    found = read(client, FAIRNESS, **period(rows), most=1, points=2)
    assert [(one["tenant"], one["figures"]["jobs"]) for one in found["tenants"]] == [
        ("blue", 3),
        (None, 3),
    ]
    assert found["tenants_together"] == 2
    assert [one["rho"] for one in found["tenants"][0]["cdf"]] == [1.0, 3.0]
    assert found["all"]["jobs"] == 6
    without_lines = read(client, FAIRNESS, **period(rows), points=0)["tenants"]
    assert [one["cdf"] for one in without_lines] == [[], [], []]
    shares = read(client, f"{FAIRNESS}/shares", **period(rows), most=2)
    assert [one["tenant"] for one in shares["whole"]["tenants"]] == ["blue", "red", None]
    assert shares["tenants_together"] == 1
    whole = read(client, f"{FAIRNESS}/shares", **period(rows))["whole"]
    assert shares["whole"]["jain_index"] == whole["jain_index"]


def test_a_tenant_is_told_the_progress_of_its_own_jobs(client_as: MakeClient, rows: Rows) -> None:
    viewer = client_as(Role.VIEWER, tenant="blue", name="vera")
    rows.job("blue", 1.0)
    rows.job("blue", state="succeeded", reason=WithoutRho.NOT_SUCCEEDED.value)
    own = [read(viewer, FAIRNESS, **period(rows))]
    rows.job("red")
    rows.job("red", state="succeeded", reason=WithoutRho.NOT_SUCCEEDED.value)
    rows.job("red", 2.0, formula_version=0)
    own.append(read(viewer, FAIRNESS, **period(rows)))
    for field in ("progress", "without_rho", "older_versions"):
        assert own[0][field] == own[1][field]
    assert own[1]["progress"]["total"] == 2


def test_progress_counts_every_job_that_ended_and_says_why_some_have_no_rho(
    client: TestClient, rows: Rows
) -> None:
    rows.job("blue", 1.0)
    rows.job("blue")
    rows.job("blue", state="running")
    rows.job("blue", state="succeeded", reason=WithoutRho.NOT_SUCCEEDED.value)
    rows.job("blue", state="succeeded", reason=WithoutRho.NOT_SUCCEEDED.value)
    rows.job("blue", state="failed", reason=WithoutRho.TIME_LIMIT.value)
    rows.job("blue", state="cancelled", reason=WithoutRho.SKIPPED.value)
    rows.job("blue", 9.0, at=30 * HOUR)
    found = read(client, FAIRNESS, **period(rows))
    assert found["progress"] == {
        "total": 7,
        "by_state": {
            FairnessState.WAITING: 1,
            FairnessState.WORKING: 1,
            FairnessState.DONE: 1,
            FairnessState.LEFT_OUT: 2,
            FairnessState.FAILED: 1,
            FairnessState.SKIPPED: 1,
        },
    }
    assert [(one["reason"], one["jobs"]) for one in found["without_rho"]] == [
        ("not-succeeded", 2),
        ("skipped", 1),
        ("time-limit", 1),
    ]
    assert all(one["sentence"].endswith(".") for one in found["without_rho"])


@pytest.mark.both_databases
def test_the_worst_come_first_page_by_page_with_how_they_lived(
    client: TestClient, rows: Rows
) -> None:
    ids = {rho: rows.job("blue", rho, name=f"job {rho}") for rho in (1.0, 3.0, 2.0)}
    rows.job("blue")
    first = read(client, f"{FAIRNESS}/worst", limit=2, **period(rows))
    rest = read(client, f"{FAIRNESS}/worst", limit=2, cursor=first["next_cursor"], **period(rows))
    found = [*first["items"], *rest["items"]]
    assert [one["job_id"] for one in found] == [ids[3.0], ids[2.0], ids[1.0]]
    worst = found[0]
    assert worst["baseline_seconds"] == pytest.approx(100.0 / 3)
    assert worst["why"]["sentence"] == (
        "Of its life: 60% waiting, 10% starting, 30% running; preempted 1 time."
    )
    assert worst["why"]["reasons"][0]["code"] == "WAITING_CAPACITY"
    assert worst["why"]["reasons"][0]["sentence"].endswith(".")
    assert worst["sentence"] == (
        "It took 3.00 times as long as it would have alone on an equal share."
    )


def test_other_tenants_are_one_and_have_no_name(
    rows: Rows, client: TestClient, client_as: MakeClient
) -> None:
    mine = rows.job("blue", 1.0, held=2)
    secret = rows.job("red secret", 2.0, name="secret plan", held=2)
    rows.job("green secret", 4.0, held=2)
    rows.capacity(8)
    for role in (Role.VIEWER, Role.SUBMITTER, Role.TENANT_MANAGER):
        viewer = client_as(role, tenant="blue", name=f"blue {role}")
        answers = [
            viewer.get(path, params=period(rows))
            for path in (FAIRNESS, f"{FAIRNESS}/worst", f"{FAIRNESS}/shares")
        ]
        assert [one.status_code for one in answers] == [200, 200, 200]
        assert not any("secret" in one.text for one in answers)
        assert not any(secret in one.text for one in answers)
        distribution, worst, shares = (one.json() for one in answers)
        assert [(one["tenant"], one["figures"]["jobs"]) for one in distribution["tenants"]] == [
            ("blue", 1),
            (None, 2),
        ]
        assert [one["job_id"] for one in worst["items"]] == [mine]
        own, others = shares["whole"]["tenants"]
        assert (own["tenant"], others["tenant"]) == ("blue", None)
        assert others["actual"] == pytest.approx(2 * own["actual"])
        assert viewer.get(f"/api/v1/jobs/{secret}/fairness").status_code == 404
    auditor = client_as(Role.AUDITOR, tenant="blue", name="auditor")
    seen = read(auditor, FAIRNESS, **period(rows))
    assert [one["tenant"] for one in seen["tenants"]] == ["blue", "green secret", "red secret"]


def test_a_job_says_its_rho_and_one_that_has_not_ended_has_none(
    client: TestClient, rows: Rows, submit: Callable[..., dict[str, Any]]
) -> None:
    job_id = rows.job("default", 1.5)
    found = read(client, f"/api/v1/jobs/{job_id}/fairness")
    assert (found["state"], found["rho"], found["formula_version"]) == ("done", 1.5, 1)
    assert found["isolated_seconds"] == {"t4": 50.0}
    unfinished = client.get(f"/api/v1/jobs/{submit()['id']}/fairness")
    assert unfinished.status_code == 404
    assert "has not ended" in unfinished.json()["detail"]


@pytest.mark.both_databases
def test_rho_is_asked_for_again_by_an_operator_alone(
    client: TestClient, rows: Rows, client_as: MakeClient
) -> None:
    job_id = rows.job("blue", 1.5)
    again = f"{FAIRNESS}/actions/recompute"
    refused = client_as(Role.TENANT_MANAGER, tenant="blue").post(again, json=period(rows))
    assert refused.status_code == 403
    asked = client.post(again, json=period(rows))
    assert asked.status_code == 202, asked.text
    assert (asked.json()["kind"], asked.json()["total"]) == ("fairness", 1.0)
    assert asked.headers["Location"] == f"/api/v1/operations/{asked.json()['id']}"
    waiting = read(client, f"/api/v1/jobs/{job_id}/fairness")
    assert (waiting["state"], waiting["rho"]) == ("waiting", 1.5)
    assert client.post(again, json=period(rows)).status_code == 409
    skipped = client.post(f"/api/v1/jobs/{job_id}/fairness/actions/skip")
    assert (skipped.status_code, skipped.json()["state"]) == (200, "done")
    assert client.post(f"/api/v1/jobs/{job_id}/fairness/actions/skip").status_code == 409


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"from": "2001-01-01T00:00:00Z", "to": "2001-01-02T00:00:00Z"}, "from"),
        ({"job_ids": ["job_nobody"]}, "job_ids/0"),
        ({"job_ids": []}, "job_ids"),
        ({"job_ids": ["job_1"], "period": "today"}, "job_ids"),
        ({"period": "this-year"}, "period"),
        ({"period": "today", "from": "2001-01-01T00:00:00Z"}, "period"),
        ({"from": "2001-01-02T00:00:00Z", "to": "2001-01-01T00:00:00Z"}, "to"),
        ({"to": "2001-01-02T00:00:00Z"}, "from"),
        ({"weeks": 1}, "weeks"),
    ],
)
def test_what_cannot_be_asked_for_again_names_field_value_and_remedy(
    refusing: TestClient, body: dict[str, Any], field: str
) -> None:
    answer = refusing.post(f"{FAIRNESS}/actions/recompute", json=body)
    assert answer.status_code == 422, answer.text
    (error,) = answer.json()["errors"]
    assert error["pointer"] == f"/{field}"
    assert error["remedy"]


@pytest.mark.parametrize("path", [FAIRNESS, f"{FAIRNESS}/worst", f"{FAIRNESS}/shares"])
@pytest.mark.parametrize(
    ("params", "status"),
    [
        ({"period": "this-year"}, 422),
        ({"to": "2001-01-02T00:00:00Z"}, 422),
        ({"from": "2001-01-02T00:00:00Z", "to": "2001-01-01T00:00:00Z"}, 422),
        ({"from": "1990-01-01T00:00:00Z", "to": "2001-01-01T00:00:00Z"}, 422),
        ({"week": "1"}, 422),
        ({"cluster_id": "demo"}, 422),
        ({"cluster": "mars"}, 404),
    ],
)
def test_a_period_that_cannot_be_is_refused_with_a_remedy(
    refusing: TestClient, path: str, params: dict[str, str], status: int
) -> None:
    answer = refusing.get(path, params=params)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"].startswith("application/problem+json")


def test_without_any_job_everything_is_empty_and_nothing_fails(refusing: TestClient) -> None:
    found = read(refusing, FAIRNESS)
    assert (found["tenants"], found["progress"]["total"], found["all"]["mean"]) == ([], 0, None)
    assert read(refusing, f"{FAIRNESS}/worst")["items"] == []
    shares = read(refusing, f"{FAIRNESS}/shares", period="last-month")
    assert (shares["points"], shares["whole"]) == ([], None)
