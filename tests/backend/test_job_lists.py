"""Tests of lists of jobs: rows, totals and counts agree, and pages have no gaps or doubles.

A cursor works only for its own list.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlmodel import select

from backend.database import Database
from backend.models import Cluster, Job, User

JOBS = "/api/v1/jobs"
STATES = ("pending", "running", "succeeded")
MODELS = ("bert", "cifar10")


@pytest.fixture
def filled(client: TestClient, database: Database) -> list[str]:
    """Thirty jobs, ten submitted at the same second; ids in order of their making."""
    with database.session_scope() as session:
        cluster, user = session.exec(select(Cluster)).one(), session.exec(select(User)).one()
        cluster.anchor_seconds = (
            1000.0  # however fast the machine is, what is submitted now comes after them
        )
        jobs = [
            Job(
                cluster_id=cluster.id,
                name=f"job {i:02d} 100%" if i % 5 == 0 else f"job {i:02d}",
                owner_id=user.id,
                tenant_id=user.tenant_id,
                model=MODELS[i % 2],
                adaptivity="adaptive",
                state=STATES[i % 3],
                submitted_seconds=float(max(i, 10)),
                remaining_work=1.0,
                gpu_type="t4" if i % 3 == 1 else None,
                progress=i / 30,
            )
            for i in range(30)
        ]
        session.add_all(jobs)
    return [job.id for job in jobs]


def pages(client: TestClient, **query: Any) -> list[dict[str, Any]]:
    """All pages of a list, following `next_cursor`."""
    found = [client.get(JOBS, params=query).json()]
    while found[-1]["next_cursor"] is not None:
        found.append(client.get(JOBS, params={**query, "cursor": found[-1]["next_cursor"]}).json())
    return found


@pytest.mark.parametrize(
    "sort",
    [
        "submitted_at",
        "-submitted_at",
        "name",
        "-model",
        "state",
        "-progress",
        "gpu_hours",
        "-restarts",
    ],
)
def test_pages_together_are_the_whole_list_in_order(
    client: TestClient, filled: list[str], sort: str
) -> None:
    whole = [
        job["id"] for job in client.get(JOBS, params={"sort": sort, "limit": 500}).json()["items"]
    ]
    assert sorted(whole) == sorted(filled)
    for limit in (1, 7, 30):
        found = pages(client, sort=sort, limit=limit)
        assert [job["id"] for page in found for job in page["items"]] == whole, limit


def test_rows_that_come_while_one_pages_do_not_move_the_pages(
    client: TestClient, filled: list[str]
) -> None:
    first = client.get(JOBS, params={"limit": 10}).json()
    client.post(JOBS, json={"name": "newest", "model": "bert"})
    second = client.get(JOBS, params={"limit": 10, "cursor": first["next_cursor"]}).json()
    assert not {job["id"] for job in first["items"]} & {job["id"] for job in second["items"]}
    assert "newest" not in {job["name"] for job in second["items"]}


def test_a_list_goes_on_after_a_name_with_marks_of_direction(client: TestClient) -> None:
    names = ["a", "\u202eb", "\u05d0\u200f", "\u2067d\u2069"]
    for name in names:
        client.post(JOBS, json={"name": name, "model": "bert"}).raise_for_status()
    found = pages(client, sort="name", limit=1)
    assert sorted(job["name"] for page in found for job in page["items"]) == sorted(names)


FILTERS: list[dict[str, Any]] = [
    {},
    {"state": ["pending"]},
    {"state": ["pending", "running"], "model": "bert"},
    {"gpu_type": "t4"},
    {"owner": "local", "tenant": "default"},
    {"tenant": "nobody"},
    {"q": "JOB 0"},
    {"q": "100%"},
    {"q": "_"},
    {"cluster": "demo", "q": "job"},
]


@pytest.mark.parametrize("query", FILTERS, ids=str)
def test_counts_and_total_are_those_of_the_rows(
    client: TestClient, filled: list[str], query: dict[str, Any]
) -> None:
    found = pages(client, **query, limit=7, count="exact")
    rows = [job for page in found for job in page["items"]]
    assert {page["total"] for page in found} == {len(rows)}
    assert all(
        page["state_counts"] == dict(Counter(job["state"] for job in rows)) for page in found
    )


def test_filters_choose_the_rows_that_they_name(client: TestClient, filled: list[str]) -> None:
    def names(**query: Any) -> list[str]:
        return sorted(
            job["name"] for job in client.get(JOBS, params={**query, "limit": 500}).json()["items"]
        )

    assert names(q="100%") == [f"job {i:02d} 100%" for i in range(0, 30, 5)]
    assert names(q="_") == []
    assert len(names(state="running", model="cifar10")) == 5
    assert len(names(tenant="nobody")) == 0


def test_submission_dates_compare_as_they_are_shown(
    client: TestClient, filled: list[str], database: Database
) -> None:
    with database.session_scope(writes=False) as session:
        cluster = session.exec(select(Cluster)).one()
    moment = cluster.epoch + timedelta(seconds=25.0)
    found = client.get(JOBS, params={"submitted_after": moment.isoformat()}).json()["items"]
    assert [job["name"] for job in found] == ["job 29", "job 28", "job 27", "job 26"]
    until = {"submitted_before": (cluster.epoch + timedelta(seconds=28.0)).isoformat()}
    both = client.get(JOBS, params={"submitted_after": moment.isoformat(), **until}).json()
    assert [job["name"] for job in both["items"]] == ["job 27", "job 26"]
    assert sum(both["state_counts"].values()) == 2
    within = {"submitted_after": moment.isoformat(), **until}
    bulk = {"action": "priority", "priority": 10, "filter": within, "dry_run": True}
    assert client.post("/api/v1/jobs:bulk", json=bulk).json()["count"] == 2
    later = client.get(
        JOBS, params={"submitted_after": (moment + timedelta(days=1)).isoformat()}
    ).json()
    assert later["items"] == []


def test_a_cursor_is_refused_with_other_filters_or_another_order(
    client: TestClient, filled: list[str]
) -> None:
    cursor = client.get(JOBS, params={"limit": 5, "state": "pending"}).json()["next_cursor"]
    for other in ({"state": "running"}, {}, {"state": "pending", "sort": "name"}):
        answer = client.get(JOBS, params={"limit": 5, "cursor": cursor, **other})
        assert answer.status_code == 400
        assert answer.json()["type"] == "/problems/bad-cursor"
    assert (
        client.get(JOBS, params={"limit": 9, "state": "pending", "cursor": cursor}).status_code
        == 200
    )


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cursor=st.text(min_size=1, max_size=60))
def test_a_made_up_cursor_is_a_problem_never_a_failure(refusing: TestClient, cursor: str) -> None:
    answer = refusing.get(JOBS, params={"cursor": cursor})
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/problem+json"


def test_the_link_header_leads_to_the_next_page(client: TestClient, filled: list[str]) -> None:
    first = client.get(JOBS, params={"limit": 10, "state": "pending"})
    assert 'rel="next"' not in first.headers.get("Link", "")
    first = client.get(JOBS, params={"limit": 4, "state": "pending"})
    path = first.headers["Link"].partition(">")[0].removeprefix("<")
    second = client.get(path).json()
    assert len(second["items"]) == 4
    assert {job["id"] for job in second["items"]}.isdisjoint(
        job["id"] for job in first.json()["items"]
    )


@pytest.mark.parametrize(
    "query",
    [{"limit": 0}, {"limit": 501}, {"sort": "salary"}, {"state": "asleep"}, {"count": "roughly"}],
)
def test_a_query_that_means_nothing_is_refused_by_name(
    refusing: TestClient, query: dict[str, Any]
) -> None:
    answer = refusing.get(JOBS, params=query)
    assert answer.status_code == 422
    ((name, value),) = query.items()
    (error,) = answer.json()["errors"]
    assert (error["pointer"], error["field"], error["value"]) == (f"/{name}", name, str(value))
