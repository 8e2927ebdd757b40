"""Reports for managers over the API: made, kept, listed, deleted, and what they may name."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pypdf
import pytest
from fastapi.testclient import TestClient
from sqlmodel import col, delete, select
from usage_history import Held, cluster_at, lived_job, person, rounds_every, sum_up

from backend.accounts.permissions import Role
from backend.clocktime import utc_now
from backend.database import Database
from backend.models import (
    Cluster,
    Job,
    JobAllocation,
    JobFairness,
    MarginalValueDay,
    Report,
    Round,
    Tenant,
    User,
)

MakeClient = Callable[..., TestClient]
REPORT = "/api/v1/clusters/demo/report"
REPORTS = "/api/v1/reports"


@pytest.fixture
def history(client: TestClient, database: Database) -> None:
    """A cluster of two days, and a job of each of two tenants that ran on it."""
    with database.session_scope() as session:
        cluster = session.exec(select(Cluster)).one()
        cluster.epoch = utc_now() - timedelta(days=20)
        cluster.anchor_seconds = 20 * 86_400.0
        session.add(cluster)
        for number, name in enumerate(("default", "blue")):
            tenant = session.exec(select(Tenant).where(Tenant.name == name)).first()
            if tenant is None:
                tenant = Tenant(name=name)
                session.add(tenant)
                session.flush()
            owner = User(name=f"owner-{name}", tenant_id=tenant.id, role="submitter")
            session.add(owner)
            session.flush()
            add_job(session, cluster, tenant, owner, number)
        day = (cluster.epoch + timedelta(days=15)).date()
        session.add(
            MarginalValueDay(
                cluster_id=cluster.id,
                day=day,
                gpu_type="a100",
                policy="sia",
                policy_version="0123456789abcdef",
                placer="whole-node",
                first_seconds=15 * 86_400.0,
                last_seconds=16 * 86_400.0,
                rounds=1440,
                seconds=86_400.0,
                priced_seconds=86_400.0,
                positive_seconds=43_200.0,
                value_seconds=86_400.0 * 0.25,
                used_seconds=86_400.0 * 12,
                capacity_seconds=86_400.0 * 16,
            )
        )


def add_job(session: Any, cluster: Cluster, tenant: Tenant, owner: User, number: int) -> None:
    begin = 15 * 86_400.0 + 3600.0 * number
    job = Job(
        cluster_id=cluster.id,
        name=f"secret-{tenant.name}",
        owner_id=owner.id,
        tenant_id=tenant.id,
        model="bert",
        adaptivity="adaptive",
        state="succeeded",
        submitted_seconds=begin,
        started_seconds=begin + 600.0 * (number + 1),
        finished_seconds=begin + 10_000.0,
        remaining_work=0.0,
    )
    session.add(job)
    session.flush()
    session.add(
        JobAllocation(
            job_id=job.id,
            cluster_id=cluster.id,
            gpu_type="a100",
            gpu_count=4,
            node_count=1,
            round_number=1,
            gpus=list(range(48 + 4 * number, 52 + 4 * number)),
            from_seconds=begin + 600.0 * (number + 1),
            to_seconds=begin + 10_000.0,
        )
    )


def plain(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def asked() -> dict[str, str]:
    """The days of the history: from the 14th to the 18th of the cluster."""
    begin = utc_now() - timedelta(days=20)
    start, end = begin + timedelta(days=14), begin + timedelta(days=18)
    return {"from": start.strftime("%Y-%m-%dT00:00:00Z"), "to": end.strftime("%Y-%m-%dT00:00:00Z")}


@pytest.mark.usefixtures("history")
def test_a_report_tells_what_happened_and_is_the_same_in_every_form(client: TestClient) -> None:
    report = client.get(REPORT, params=asked()).json()
    figures = {one["key"]: one for one in report["figures"]}
    assert [one["question"] for one in report["figures"]] == [
        "Were we fair?",
        "Were we busy?",
        "Who waited?",
        "What did it cost?",
        "What should we buy?",
    ]
    held = {row[0]: row[1] for row in figures["cost"]["rows"]}
    assert held["default"] == pytest.approx(4 * 9400 / 3600, abs=1e-2)
    assert held["blue"] == pytest.approx(4 * 8800 / 3600, abs=1e-2)
    waited = {row[0]: row[2] for row in figures["waited"]["rows"]}
    assert waited["default"] == pytest.approx(600, rel=0.011)
    assert waited["blue"] == pytest.approx(1200, rel=0.011)
    (worth,) = figures["buy"]["rows"]
    assert worth[:4] == ["a100", "sia 01234567", 0.25, 0.5]
    assert "one more a100 was worth most (0.250 of the policy" in figures["buy"]["answer"]
    for figure in report["figures"]:
        assert figure["formula"]
        assert "cluster time" in figure["window"]
        assert figure["policy_versions"] == ["sia 01234567"]
    headline = {one["key"]: one for one in report["headlines"]}
    assert headline["finished"]["value"] == 2
    rows = list(csv.reader(io.StringIO(client.get(f"{REPORT}/csv", params=asked()).text)))
    (row,) = [row for row in rows if row[:2] == ["headlines", "finished"]]
    assert float(row[3]) == 2
    pdf = client.get(f"{REPORT}/pdf", params=asked() | {"paper": "letter"})
    assert pdf.headers["content-type"] == "application/pdf"
    assert ".pdf" in pdf.headers["content-disposition"]
    text = " ".join(page.extract_text() for page in pypdf.PdfReader(io.BytesIO(pdf.content)).pages)
    assert "What should we buy?" in text
    again = client.get(f"{REPORT}/json", params=asked()).json()
    assert again["headlines"] == report["headlines"]
    assert again["figures"] == report["figures"]


@pytest.mark.usefixtures("history")
@pytest.mark.parametrize("form", ["json", "csv", "pdf"])
def test_a_tenants_report_names_no_other_tenant(
    client_as: MakeClient, client: TestClient, form: str
) -> None:
    whole = client.get(f"{REPORT}/json", params=asked()).text
    assert "blue" in whole
    manager = client_as(Role.TENANT_MANAGER)
    answer = manager.get(f"{REPORT}/{form}", params=asked())
    assert answer.status_code == 200, answer.text
    told = (
        "".join(page.extract_text() for page in pypdf.PdfReader(io.BytesIO(answer.content)).pages)
        if form == "pdf"
        else answer.text
    )
    assert "blue" not in told
    assert "default" in told
    assert "other tenants" in told
    if form == "json":
        waited = {row[0]: row for row in answer.json()["figures"][2]["rows"]}
        own, rest, every = waited["default"], waited["other tenants"], waited["all tenants"]
        assert (rest[1], own[1] + rest[1]) == (1, every[1])
        assert rest[2:5] == [None] * 3
    answers = [manager.get(REPORT, params={"tenant": name}) for name in ("blue", "nobody")]
    assert [one.status_code for one in answers] == [404, 404]
    assert answers[1].json()["detail"] == answers[0].json()["detail"].replace("blue", "nobody")


def add_others_jobs(database: Database) -> None:
    """Add jobs of blue that never ran: cancelled, failed, without a rho yet, and waiting."""
    at = 15 * 86_400.0
    outcomes: list[tuple[str, dict[str, Any] | None]] = [
        ("cancelled", {"state": "succeeded", "reason": "not-succeeded"}),
        ("failed", {"state": "failed", "reason": "fault"}),
        ("failed", {"state": "queued"}),
        ("failed", {"state": "succeeded", "rho": 40.0, "formula_version": 0}),
        ("pending", None),
    ]
    with database.session_scope() as session:
        cluster = session.exec(select(Cluster)).one()
        owner = session.exec(select(User).where(User.name == "owner-blue")).one()
        for state, fairness in outcomes * 40:
            job = Job(
                cluster_id=cluster.id,
                name="secret",
                owner_id=owner.id,
                tenant_id=owner.tenant_id,
                model="bert",
                adaptivity="adaptive",
                state=state,
                submitted_seconds=at,
                finished_seconds=None if fairness is None else at + 60.0,
                remaining_work=1.0,
            )
            session.add(job)
            session.flush()
            if fairness is not None:
                session.add(
                    JobFairness(
                        job_id=job.id,
                        cluster_id=cluster.id,
                        tenant_id=owner.tenant_id,
                        finished_seconds=at + 60.0,
                        **fairness,
                    )
                )


@pytest.mark.usefixtures("history")
def test_a_tenants_report_is_the_same_whatever_became_of_the_jobs_of_others(
    client_as: MakeClient, database: Database
) -> None:
    manager = client_as(Role.TENANT_MANAGER)

    def told() -> dict[str, Any]:
        report: dict[str, Any] = manager.get(REPORT, params=asked()).json()
        del report["as_of"]
        for figure in report["figures"]:
            for rows in (figure["rows"], figure["shown"]):  # what is said to be of others, or all
                rows[:] = [row for row in rows if row[0] not in ("other tenants", "all tenants")]
            del figure["sum_rows"]
        fair = report["figures"][0]
        at = [one["key"] for one in fair["columns"]].index("deserved")
        for row in (*fair["rows"], *fair["shown"]):
            del row[at]  # what a tenant deserves follows from what others want
        fair["answer"] = re.sub(r"Its share of the GPUs was .*?deserved.*?\. ?", "", fair["answer"])
        return report

    with database.session_scope() as session:
        own = session.exec(select(Job).where(Job.name == "secret-default")).one()
        ended = {"finished_seconds": own.finished_seconds, "state": "succeeded", "rho": 1.2}
        of = {"job_id": own.id, "cluster_id": own.cluster_id, "tenant_id": own.tenant_id}
        session.add(JobFairness(**of, **ended, formula_version=1))
    before = told()
    add_others_jobs(database)
    assert told() == before


@pytest.mark.usefixtures("history")
def test_an_admin_may_have_a_tenants_report_which_is_what_its_manager_sees(
    client: TestClient, client_as: MakeClient
) -> None:
    by_admin = client.get(REPORT, params=asked() | {"tenant": "default"}).json()
    by_manager = client_as(Role.TENANT_MANAGER).get(REPORT, params=asked()).json()
    for document in (by_admin, by_manager):
        document.pop("as_of")
    assert by_admin == by_manager


@pytest.mark.usefixtures("history")
def test_a_kept_report_never_changes_and_has_a_checksum(
    client: TestClient, database: Database
) -> None:
    body = {"cluster": "demo", **asked()}
    made = client.post(REPORTS, json=body, headers={"Idempotency-Key": "once"})
    assert made.status_code == 201, made.text
    kept = made.json()
    again = client.post(REPORTS, json=body, headers={"Idempotency-Key": "once"}).json()
    assert again == kept
    with database.session_scope(writes=False) as session:
        assert len(session.exec(select(Report.id)).all()) == 1
    address = f"{REPORTS}/{kept['id']}"
    before = {form: client.get(f"{address}/{form}").content for form in ("json", "csv", "pdf")}
    assert hashlib.sha256(before["json"]).hexdigest() == kept["checksum"]
    assert json.loads(before["json"]) == kept["document"]
    with database.session_scope() as session:  # what is true later does not change it
        for row in session.exec(select(MarginalValueDay)):
            session.delete(row)
    after = {form: client.get(f"{address}/{form}").content for form in ("json", "csv", "pdf")}
    assert after == before
    (listed,) = client.get(REPORTS, params={"cluster": "demo"}).json()["items"]
    assert listed == {name: value for name, value in kept.items() if name != "document"}
    assert client.delete(address).status_code == 204
    assert client.get(address).status_code == 404
    assert client.get(REPORTS).json()["items"] == []


@pytest.mark.usefixtures("history")
def test_a_kept_report_names_its_schedule_as_long_as_there_is_one(
    client: TestClient, database: Database
) -> None:
    webhook = {"channel": "webhook", "url": "https://hooks.example.com/x", "secret": "s" * 16}
    body = {"name": "Mondays", "cluster": "demo", **webhook}
    schedule = client.post("/api/v1/report-schedules", json=body).json()["id"]
    kept = client.post(REPORTS, json={"cluster": "demo", **asked()}).json()
    assert (kept["schedule_id"], kept["schedule"]) == (None, None)
    with database.session_scope() as session:
        row = session.get_one(Report, kept["id"])
        row.schedule_id = schedule
        session.add(row)
    assert client.get(f"{REPORTS}/{kept['id']}").json()["schedule"] == "Mondays"
    client.delete(f"/api/v1/report-schedules/{schedule}")
    (listed,) = client.get(REPORTS).json()["items"]
    assert (listed["schedule_id"], listed["schedule"]) == (schedule, None)


@pytest.mark.usefixtures("history")
def test_kept_reports_are_seen_by_whom_they_are_for(
    client: TestClient, client_as: MakeClient
) -> None:
    whole = client.post(REPORTS, json={"cluster": "demo", **asked()}).json()
    manager, viewer = client_as(Role.TENANT_MANAGER), client_as(Role.VIEWER)
    own = manager.post(REPORTS, json={"cluster": "demo", **asked()}).json()
    stranger, auditor = client_as(Role.TENANT_MANAGER, tenant="blue"), client_as(Role.AUDITOR)
    assert own["tenant"] == "default"
    assert [one["id"] for one in viewer.get(REPORTS).json()["items"]] == [own["id"]]
    assert viewer.get(f"{REPORTS}/{whole['id']}").status_code == 404
    assert viewer.delete(f"{REPORTS}/{own['id']}").status_code == 403
    assert viewer.post(REPORTS, json={"cluster": "demo"}).status_code == 403
    assert stranger.get(f"{REPORTS}/{own['id']}/pdf").status_code == 404
    assert stranger.delete(f"{REPORTS}/{own['id']}").status_code == 404
    assert {one["id"] for one in auditor.get(REPORTS).json()["items"]} == {whole["id"], own["id"]}
    assert auditor.delete(f"{REPORTS}/{own['id']}").status_code == 403
    assert manager.delete(f"{REPORTS}/{own['id']}").status_code == 204


@pytest.mark.usefixtures("history")
def test_a_period_before_the_cluster_was_there_is_not_taken_for_a_quiet_one(
    client: TestClient,
) -> None:
    def caveats(first: int, last: int) -> str:
        begun = utc_now() - timedelta(days=20)
        days = (begun + timedelta(days=first), begun + timedelta(days=last))
        start, end = (f"{day:%Y-%m-%d}T00:00:00Z" for day in days)
        report = client.get(REPORT, params={"from": start, "to": end}).json()
        assert report["headlines"][0]["before"] is None
        return " ".join(report["caveats"])

    assert "within the period before" in caveats(2, 6)
    assert "nothing is known of what was before" in caveats(-3, 3)
    assert "time began" not in caveats(8, 12)


@pytest.mark.parametrize(
    ("asked", "counted"),
    [
        ({}, "2 Mar 2026 to 5 Mar 2026"),
        ({"period": "today"}, None),
        ({"from": "2026-03-08T12:00:00Z"}, "4 Mar 2026 to 7 Mar 2026"),
        ({"from": "2026-03-10T00:00:00Z"}, "7 Mar 2026 to 9 Mar 2026"),
    ],
)
def test_a_report_comes_where_of_the_period_before_only_whole_days_are_known(
    client: TestClient, database: Database, asked: dict[str, str], counted: str | None
) -> None:
    with database.session_scope() as session:
        cluster = cluster_at(session, 10 * 24 + 15)  # Thursday 12 March, 15:00
        owner = person(session, "default", "ann")
        lived_job(session, cluster, owner, Held(20, 200))
        rounds_every(session, cluster, 1.0, until=10 * 24 + 15)
    sum_up(database)
    with database.session_scope() as session:
        session.exec(select(Cluster)).one().keep_rounds = 100
        session.execute(delete(Round).where(col(Round.number) <= 255 - 100))

    answer = client.get(REPORT, params=asked)

    assert answer.status_code == 200, answer.text
    report = answer.json()
    noted = [one for one in report["caveats"] if "only whole days are still known" in one]
    changes = {one["key"]: one["change"] for one in report["headlines"]}
    if counted is None:
        assert noted == []
        return
    assert plain(noted[0]).count(counted) == 1
    assert plain(report["summary"]).startswith(f"Compared with {counted}.")
    assert "same part" not in " ".join(report["caveats"])
    assert changes["utilisation"] is not None
    assert (changes["held"], changes["finished"]) == (None, None)


def test_a_young_cluster_has_a_report(client: TestClient) -> None:
    report = client.get(REPORT).json()
    assert report["period"]["name"] == "this-week"
    assert all(figure["answer"] for figure in report["figures"])
    assert client.get(f"{REPORT}/pdf").status_code == 200


@pytest.mark.parametrize(
    ("params", "pointer"),
    [
        ({"period": "someday"}, "/period"),
        ({"to": "2026-01-01T00:00:00Z"}, "/from"),
        ({"from": "2026-02-01T00:00:00Z", "to": "2026-01-01T00:00:00Z"}, "/to"),
        ({"period": "this-week", "from": "2026-01-01T00:00:00Z"}, "/period"),
        ({"paper": "papyrus"}, "/paper"),
        ({"weeks": "1"}, "/weeks"),
    ],
)
def test_a_bad_request_names_the_field(
    client: TestClient, params: dict[str, str], pointer: str
) -> None:
    answer = client.get(f"{REPORT}/pdf", params=params)
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["pointer"] == pointer
    assert client.get("/api/v1/clusters/nowhere/report").status_code == 404
