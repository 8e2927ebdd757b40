"""Flags of jobs: on the job, as a filter, and dismissed by who answers for the tenant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi.testclient import TestClient
from flagged_jobs import flag

from backend.accounts.permissions import Role
from backend.database import Database
from maat.vocabulary import Doubted

JOBS = "/api/v1/jobs"
Submit = Callable[..., dict[str, Any]]


def names(client: TestClient, **filters: Any) -> list[str]:
    page = client.get(JOBS, params=filters).json()
    assert sum(page["state_counts"].values()) == len(page["items"])
    return [job["name"] for job in page["items"]]


def test_a_flag_is_a_field_of_its_job_and_a_filter_of_the_list(
    client: TestClient, submit: Submit, database: Database
) -> None:
    submit(name="honest")
    liar = submit(name="liar")
    assert liar["flags"] == []
    flag(database, liar["id"])
    (shown,) = client.get(f"{JOBS}/{liar['id']}").json()["flags"]
    assert shown["sentence"] == "Its steps are said to take 0.001 s each, and one came every 0.1 s."
    assert (shown["kind"], shown["said"], shown["dismissed_at"]) == ("speed", 0.001, None)
    assert names(client, flagged=True) == ["liar"]
    assert sorted(names(client)) == ["honest", "liar"]


def test_a_manager_of_the_tenant_dismisses_a_flag_and_no_other_does(
    client: TestClient,
    client_as: Callable[..., TestClient],
    submit: Submit,
    database: Database,
) -> None:
    job_id = submit(name="liar")["id"]
    flag(database, job_id)
    way = f"{JOBS}/{job_id}/flags/speed/actions/dismiss"
    assert client_as(Role.SUBMITTER).post(way).status_code == 403
    stranger = client_as(Role.TENANT_MANAGER, tenant="other")
    assert stranger.post(way).status_code == 404
    assert names(stranger, flagged=True) == []
    manager = client_as(Role.TENANT_MANAGER)
    for _ in range(2):
        answer = manager.post(way)
        assert answer.status_code == 200, answer.text
    (shown,) = answer.json()["flags"]
    assert shown["dismissed_by"] == "default-tenant_manager"
    assert names(client, flagged=True) == []
    written = client.get("/api/v1/audit", params={"action": "dismiss flag"}).json()["items"]
    assert [one["target_id"] for one in written] == [job_id]
    other = f"{JOBS}/{job_id}/flags/{Doubted.PACE.value}/actions/dismiss"
    assert manager.post(other).status_code == 404
    assert manager.post(f"{JOBS}/{job_id}/flags/no-kind/actions/dismiss").status_code == 422
