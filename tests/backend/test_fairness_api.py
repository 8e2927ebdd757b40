"""Tests of the routes of fairness: distributions, worst jobs, shares, and whose names are seen."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlmodel import Session, select

from backend.accounts.permissions import Role
from backend.clocktime import utc_now
from backend.database import Database
from backend.models import (
    Cluster,
    Job,
    JobAllocation,
    JobFairness,
    Round,
    Tenant,
    User,
)
from maat.vocabulary import FairnessState, WithoutRho

HOUR = 3600.0
FAIRNESS = "/api/v1/fairness"
WHY = {
    "waiting_seconds": 60.0,
    "profiling_seconds": 0.0,
    "starting_seconds": 10.0,
    "running_seconds": 30.0,
    "paused_seconds": 0.0,
    "preemptions": 1,
    "starts": 2,
    "reasons": [{"code": "WAITING_CAPACITY", "seconds": 60.0}],
}
MakeClient = Callable[..., TestClient]


class Rows:
    """Writes ended jobs of tenants, as the worker leaves them. The cluster began two days ago."""

    def __init__(self, database: Database) -> None:
        self.database = database
        with database.session_scope() as session:
            cluster = session.exec(select(Cluster)).one()
            midnight = utc_now().replace(hour=0, minute=0, second=0, microsecond=0)
            cluster.epoch = midnight - timedelta(days=2)
            cluster.anchor_wall, cluster.anchor_seconds = utc_now(), 47 * HOUR
            cluster.anchor_boot = None
            cluster.paused = True
            session.add(cluster)
            self.cluster = cluster

    def is_now(self, seconds: float) -> None:
        """Let the cluster, which stands still, be at this time."""
        with self.database.session_scope() as session:
            session.get_one(Cluster, self.cluster.id).anchor_seconds = seconds

    def begins_at(self, seconds: float) -> None:
        """Let the cluster begin so long after its first midnight."""
        with self.database.session_scope() as session:
            cluster = session.get_one(Cluster, self.cluster.id)
            cluster.epoch += timedelta(seconds=seconds)
            cluster.anchor_seconds = 47 * HOUR - seconds
            self.cluster = cluster

    def at(self, seconds: float) -> str:
        return (self.cluster.epoch + timedelta(seconds=seconds)).isoformat()

    def tenant(self, session: Session, name: str) -> tuple[str, str]:
        found = session.exec(select(Tenant).where(Tenant.name == name)).first()
        if found is None:
            found = Tenant(name=name)
            session.add(found)
            session.flush()
        user = session.exec(select(User).where(User.tenant_id == found.id)).first()
        if user is None:
            user = User(name=f"user of {name}", tenant_id=found.id, role="submitter")
            session.add(user)
            session.flush()
        return found.id, user.id

    def job(
        self,
        tenant: str,
        rho: float | None = None,
        *,
        at: float = HOUR,
        since: float = 0.0,
        name: str = "train",
        held: int = 0,
        **fields: Any,
    ) -> str:
        """A job from `since` that ended at `at`; with a row of fairness unless `at` is None."""
        with self.database.session_scope() as session:
            tenant_id, user_id = self.tenant(session, tenant)
            row = Job(
                cluster_id=self.cluster.id,
                name=name,
                owner_id=user_id,
                tenant_id=tenant_id,
                model="bert",
                adaptivity="adaptive",
                state="succeeded",
                submitted_seconds=since,
                finished_seconds=at,
                remaining_work=0.0,
                **{k: v for k, v in fields.items() if k == "max_gpus"},
            )
            session.add(row)
            session.flush()
            if held:
                session.add(
                    JobAllocation(
                        job_id=row.id,
                        cluster_id=self.cluster.id,
                        round_number=1,
                        from_seconds=since,
                        to_seconds=at,
                        gpu_type="t4",
                        gpu_count=held,
                        node_count=1,
                    )
                )
            given = {k: v for k, v in fields.items() if k != "max_gpus"}
            done = {
                "state": "succeeded",
                "rule": "mean-of-ratios",
                "formula_version": 1,
                "jct_seconds": 100.0,
                "contention": 2.0,
                "isolated_seconds": {"t4": 50.0},
                "why": WHY,
                "finished_at": utc_now(),
            }
            session.add(
                JobFairness(
                    job_id=row.id,
                    cluster_id=self.cluster.id,
                    tenant_id=tenant_id,
                    finished_seconds=at,
                    rho=rho,
                    **(({} if rho is None else done) | given),
                )
            )
            return row.id

    def capacity(self, gpus: int, *, at: float = 0.0, number: int = 1) -> None:
        with self.database.session_scope() as session:
            session.add(
                Round(
                    cluster_id=self.cluster.id,
                    number=number,
                    at_seconds=at,
                    active_jobs=0,
                    running_jobs=0,
                    pending_jobs=0,
                    gpus_used=0,
                    gpus_total=gpus,
                    changes=0,
                    policy="sia",
                    placer="whole-node",
                    status="optimal",
                    method="",
                    policy_seconds=0.0,
                    place_seconds=0.0,
                    record={},
                )
            )


@pytest.fixture
def rows(client: TestClient, database: Database) -> Rows:
    return Rows(database)


def period(rows: Rows, begin: float = 0.0, end: float = 24 * HOUR) -> dict[str, str]:
    return {"from": rows.at(begin), "to": rows.at(end)}


def read(client: TestClient, path: str, **params: Any) -> Any:
    answer = client.get(path, params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


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


# ---- shares over time


@pytest.mark.both_databases
def test_tenants_deserve_equal_shares_of_what_is_there_up_to_their_demand(
    client: TestClient, rows: Rows
) -> None:
    rows.capacity(8)
    rows.job("blue", at=2 * HOUR, held=6)
    rows.job("red", since=HOUR, at=2 * HOUR, held=2, max_gpus=3)
    found = read(client, f"{FAIRNESS}/shares", points=10, **period(rows, 0.0, 2 * HOUR))
    blue, red = found["whole"]["tenants"]
    # blue alone deserves 8 of 8 for an hour, then red has its 3 and blue the other 5.
    assert (blue["deserved"], red["deserved"]) == (6.5 / 8, 1.5 / 8)
    assert (blue["actual"], red["actual"]) == (6 / 8, 1 / 8)
    assert red["demanded"] == 1.5 / 8
    assert found["whole"]["gpus"] == 8.0
    ratios = [6 / 6.5, 1 / 1.5]
    assert found["whole"]["jain_index"] == pytest.approx(
        sum(ratios) ** 2 / (2 * sum(one**2 for one in ratios))
    )
    assert len(found["points"]) <= 10
    last = found["points"][-1]
    assert [one["deserved"] for one in last["tenants"]] == pytest.approx([5 / 8, 3 / 8])
    assert found["formula"]


def test_a_tenant_of_three_times_the_weight_deserves_three_times_as_much_from_then_on(
    client: TestClient, rows: Rows
) -> None:
    rows.capacity(8)
    rows.job("blue", at=3 * HOUR, held=4)
    rows.job("red", at=3 * HOUR, held=4)
    for number, (hour, weight) in enumerate(((1, 3.0), (2, 7.0), (47, 1.0)), start=1):
        rows.is_now(hour * HOUR)
        weighed = client.patch(
            "/api/v1/tenants/red", json={"weight": weight}, headers={"If-Match": f'"{number}"'}
        )
        assert weighed.status_code == 200

    def shown(first: float, last: float) -> tuple[float, float]:
        found = read(client, f"{FAIRNESS}/shares", **period(rows, first * HOUR, last * HOUR))
        blue, red = found["whole"]["tenants"]
        assert (blue["actual"], red["actual"]) == (4 / 8, 4 / 8)
        return blue["deserved"], red["deserved"]

    assert shown(0, 1) == (4 / 8, 4 / 8)
    assert shown(1, 2) == (2 / 8, 6 / 8)
    assert shown(2, 3) == (1 / 8, 7 / 8)
    assert shown(0, 2) == (3 / 8, 5 / 8)


def test_a_tenant_whose_weight_was_changed_can_be_removed(client: TestClient) -> None:
    client.post("/api/v1/tenants", json={"name": "brief"}).raise_for_status()
    one = "/api/v1/tenants/brief"
    client.patch(one, json={"weight": 2.0}, headers={"If-Match": '"1"'}).raise_for_status()
    assert client.delete(one, headers={"If-Match": '"2"'}).status_code == 204


def test_gpus_that_come_later_count_from_then_on(client: TestClient, rows: Rows) -> None:
    rows.capacity(4)
    rows.capacity(12, at=HOUR, number=2)
    rows.job("blue", at=2 * HOUR, held=4)
    found = read(client, f"{FAIRNESS}/shares", **period(rows, 0.0, 2 * HOUR))
    assert found["whole"]["gpus"] == 8.0
    assert found["whole"]["tenants"][0]["deserved"] == 1.0
    assert found["whole"]["tenants"][0]["actual"] == 0.5


def test_what_is_to_come_and_what_was_before_the_cluster_is_no_span(
    client: TestClient, rows: Rows
) -> None:
    rows.capacity(8)
    rows.job("blue", at=2 * HOUR, held=8)
    found = read(client, f"{FAIRNESS}/shares", **period(rows, -100 * HOUR, 100 * HOUR))
    assert found["points"][0]["from"] == found["whole"]["from"]
    assert found["whole"]["tenants"][0]["actual"] == pytest.approx(2 / 47, rel=1e-3)


def test_the_day_on_which_a_cluster_began_outlives_its_allocations(
    client: TestClient, rows: Rows, database: Database
) -> None:
    """It begins within a day; that day was kept, and its allocations are deleted."""
    from backend.models import ShareDay

    rows.begins_at(10 * HOUR)
    with database.session_scope() as session:
        tenant_id, _ = rows.tenant(session, "blue")
        session.add(
            ShareDay(
                cluster_id=rows.cluster.id,
                day=rows.cluster.epoch.date(),
                capacity_gpu_seconds=8 * 14 * HOUR,
                tenants={tenant_id: [4 * 14 * HOUR, 2 * 14 * HOUR, 14 * HOUR]},
            )
        )
    midnight = -10 * HOUR
    for start in (midnight - 24 * HOUR, midnight, 0.0):
        found = read(client, f"{FAIRNESS}/shares", **period(rows, start, 14 * HOUR))
        assert found["whole"]["tenants"][0]["actual"] == pytest.approx(2 / 8)
    for start, end, field in ((2 * HOUR, 14 * HOUR, "/from"), (midnight, 12 * HOUR, "/to")):
        refused = client.get(f"{FAIRNESS}/shares", params=period(rows, start, end))
        assert refused.status_code == 422
        (error,) = refused.json()["errors"]
        assert (error["pointer"], error["code"]) == (field, "whole_days_only")


def test_spans_of_days_come_from_the_days_that_are_kept(
    client: TestClient, rows: Rows, database: Database
) -> None:
    from backend.models import ShareDay

    with database.session_scope() as session:
        tenant_id, _ = rows.tenant(session, "blue")
        kept = {tenant_id: [0.5 * 86_400, 0.25 * 86_400, 86_400.0]}
        session.add(
            ShareDay(
                cluster_id=rows.cluster.id,
                day=rows.cluster.epoch.date(),
                capacity_gpu_seconds=86_400.0,
                tenants=kept,
            )
        )
    found = read(client, f"{FAIRNESS}/shares", points=2, **period(rows, 0.0, 47 * HOUR))
    first = found["points"][0]
    assert found["step_seconds"] >= 86_400
    assert first["gpus"] == pytest.approx(1.0, abs=70)
    shown = first["tenants"][0]
    assert shown["deserved"] == pytest.approx(2 * shown["actual"])
