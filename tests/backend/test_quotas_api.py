"""Quotas of tenants: who sets and sees them, what is refused, what a round is given."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient
from sqlmodel import select

from backend.accounts.permissions import Role
from backend.database import Database
from backend.models import Cluster, Job
from backend.quotas.repository import engine_quotas
from maat.scheduling.quotas import TenantQuota

MakeClient = Callable[..., TestClient]
Submit = Callable[..., dict[str, Any]]

QUOTAS = "/api/v1/clusters/demo/quotas"
TENANTS = "/api/v1/tenants"
A100 = f"{QUOTAS}/default/a100"  # the demo cluster has 16 of them


def give(client: TestClient, path: str, version: int | None = None, **body: Any) -> Any:
    headers = {} if version is None else {"If-Match": f'"{version}"'}
    return client.put(path, json=body, headers=headers)


def code_of(answer: Any) -> tuple[int, str, str]:
    (error,) = answer.json()["errors"]
    return answer.status_code, error["field"], error["code"]


def hold(database: Database, job_id: str, gpu_type: str, *gpus: int) -> None:
    with database.session_scope() as session:
        job = session.get_one(Job, job_id)
        job.state, job.gpu_type, job.gpus = "running", gpu_type, list(gpus)


def quotas_of(database: Database) -> tuple[TenantQuota, ...]:
    with database.session_scope(writes=False) as session:
        return engine_quotas(session, session.exec(select(Cluster.id)).one())


@pytest.fixture
def vision(client: TestClient) -> str:
    assert client.post(TENANTS, json={"name": "vision"}).status_code == 201
    return f"{QUOTAS}/vision/a100"


def test_a_quota_is_set_seen_changed_and_removed(client: TestClient) -> None:
    made = give(client, A100, guaranteed=8, ceiling=12)
    assert made.status_code == 200, made.text
    shown = made.json()
    assert (shown["tenant"], shown["gpu_type"], shown["weight"]) == ("default", "a100", 1.0)
    assert (shown["guaranteed"], shown["ceiling"], shown["in_use"]) == (8, 12, 0)
    assert client.get(A100).json() == shown
    page = client.get(QUOTAS).json()
    assert page["items"] == [shown]
    assert page["gpu_types"][-1] == {
        "gpu_type": "a100", "gpus": 16, "in_service": 16, "in_use": 0, "guaranteed": 8,
    }  # fmt: skip
    changed = give(client, A100, 1, guaranteed=4)
    assert (changed.json()["guaranteed"], changed.json()["ceiling"]) == (4, None)
    assert changed.headers["ETag"] == '"2"'
    assert client.delete(A100).status_code == 428
    assert client.delete(A100, headers={"If-Match": '"1"'}).status_code == 412
    assert client.delete(A100, headers={"If-Match": '"2"'}).status_code == 204
    assert client.get(A100).status_code == 404
    assert client.get(QUOTAS).json()["items"] == []


def test_nobody_changes_what_another_has_changed(client: TestClient) -> None:
    assert give(client, A100, 1, guaranteed=1).status_code == 412  # there is none to change
    give(client, A100, guaranteed=8)
    assert give(client, A100, guaranteed=4).status_code == 428
    assert give(client, A100, 7, guaranteed=4).status_code == 412
    again = give(client, A100, guaranteed=8)  # a repeated request changes nothing
    assert (again.status_code, again.json()["version"]) == (200, 1)
    assert client.get(A100).json()["guaranteed"] == 8


@pytest.mark.parametrize(
    ("body", "refused"),
    [
        ({"guaranteed": -1}, (422, "guaranteed", "greater_than_equal")),
        ({"guaranteed": 1.5}, (422, "guaranteed", "int_type")),
        ({"guaranteed": "8"}, (422, "guaranteed", "int_type")),
        ({"ceiling": -1}, (422, "ceiling", "greater_than_equal")),
        ({"guaranteed": 8, "ceiling": 4}, (422, "ceiling", "below_guaranteed")),
        ({"guaranteed": 17}, (422, "guaranteed", "exceeds_cluster")),
        ({"cieling": 4}, (422, "cieling", "extra_forbidden")),
    ],
)
def test_a_quota_that_makes_no_sense_is_refused(
    refusing: TestClient, body: dict[str, Any], refused: tuple[int, str, str]
) -> None:
    assert code_of(give(refusing, A100, **body)) == refused


def test_a_type_or_a_tenant_that_is_not_there_has_no_quota(refusing: TestClient) -> None:
    unknown = give(refusing, f"{QUOTAS}/default/h100", guaranteed=1)
    assert code_of(unknown) == (422, "gpu_type", "no_such_gpu_type")
    assert "a100 (16 GPUs)" in unknown.json()["detail"]
    assert give(refusing, f"{QUOTAS}/nobody/a100", guaranteed=1).status_code == 404
    assert give(refusing, "/api/v1/clusters/nowhere/quotas/default/a100").status_code == 404


def test_no_more_is_guaranteed_than_there_is_and_the_refusal_says_to_whom(
    client: TestClient, vision: str
) -> None:
    give(client, A100, guaranteed=10)
    refused = give(client, vision, guaranteed=7)
    assert code_of(refused) == (422, "guaranteed", "exceeds_cluster")
    detail = refused.json()["detail"]
    assert "16 a100, of which 10 are guaranteed to others: default 10" in detail
    assert "at most 6" in detail
    assert give(client, vision, guaranteed=6).status_code == 200
    assert give(client, A100, 1, guaranteed=11).status_code == 422
    assert client.get(A100).json()["guaranteed"] == 10


def test_a_ceiling_below_what_jobs_hold_must_be_meant(
    client: TestClient, submit: Submit, database: Database
) -> None:
    big, small = submit(name="big"), submit(name="small", preemptible=False)
    hold(database, big["id"], "a100", 48, 49, 50)
    hold(database, small["id"], "a100", 51)
    refused = give(client, A100, ceiling=3)
    assert code_of(refused) == (409, "ceiling", "below_use")
    detail = refused.json()["detail"]
    assert f"hold 4 a100 now: big ({big['id']}) 3; small ({small['id']}) 1, not pree" in detail
    assert "accept_preemption" in detail
    assert client.get(QUOTAS).json()["items"] == []
    assert give(client, A100, ceiling=4).status_code == 200
    assert give(client, A100, 1, ceiling=3, accept_preemption=True).json()["ceiling"] == 3


def test_what_is_in_use_borrowed_and_lent_stands_beside_a_quota(
    client: TestClient, client_as: MakeClient, database: Database, vision: str
) -> None:
    give(client, A100, guaranteed=8)
    give(client, vision, guaranteed=4, ceiling=12)
    other = client_as(Role.SUBMITTER, tenant="vision")
    job = other.post("/api/v1/jobs", json={"name": "long", "model": "bert"}).json()
    hold(database, job["id"], "a100", *range(48, 60))
    mine, theirs = client.get(QUOTAS).json()["items"]
    assert (mine["in_use"], mine["borrowed"], mine["lent"]) == (0, 0, 4)  # 4 of 16 are free
    assert (theirs["in_use"], theirs["borrowed"], theirs["lent"]) == (12, 8, 0)
    seen = other.get(QUOTAS).json()
    assert [one["tenant"] for one in seen["items"]] == ["vision"]
    assert seen["gpu_types"][-1]["guaranteed"] is None


def test_a_tenants_people_see_their_own_quotas_and_change_none(
    client: TestClient, client_as: MakeClient, vision: str
) -> None:
    give(client, A100, guaranteed=8)
    give(client, vision, guaranteed=4)
    manager, auditor = client_as(Role.TENANT_MANAGER), client_as(Role.AUDITOR)
    assert manager.get(A100).json()["guaranteed"] == 8
    assert manager.get(vision).status_code == 404
    assert [one["tenant"] for one in manager.get(QUOTAS).json()["items"]] == ["default"]
    assert [one["tenant"] for one in auditor.get(QUOTAS).json()["items"]] == ["default", "vision"]
    for reader in (manager, auditor):
        assert give(reader, A100, 1, guaranteed=16).status_code == 403
        assert reader.delete(A100, headers={"If-Match": "*"}).status_code == 403


def test_quotas_come_in_pages(client: TestClient, vision: str) -> None:
    paths = [A100, f"{QUOTAS}/default/t4", vision]
    for path in paths:
        give(client, path, guaranteed=1)
    first = client.get(QUOTAS, params={"limit": 2}).json()
    rest = client.get(QUOTAS, params={"limit": 2, "cursor": first["next_cursor"]}).json()
    assert [
        f"{QUOTAS}/{one['tenant']}/{one['gpu_type']}" for one in (*first["items"], *rest["items"])
    ] == paths
    assert rest["next_cursor"] is None


def test_a_weight_is_a_finite_number_between_its_bounds(client: TestClient) -> None:
    where, tag = f"{TENANTS}/default", {"If-Match": '"1"'}
    for weight in (0, -1, 1e-308, 0.0009, 1001):
        assert client.patch(where, json={"weight": weight}, headers=tag).status_code == 422
    raw = {"content": '{"weight": NaN}', "headers": {**tag, "Content-Type": "application/json"}}
    assert client.patch(where, **raw).status_code in (400, 422)
    changed = client.patch(where, json={"weight": 2.5}, headers=tag)
    assert (changed.json()["weight"], changed.json()["version"]) == (2.5, 2)
    assert (
        client.patch(where, json={"name": "default"}, headers={"If-Match": '"2"'}).json()["weight"]
        == 2.5
    )


@pytest.mark.parametrize("field", ["weight", "name", "closed"])
def test_null_changes_nothing_of_a_tenant_and_is_refused(client: TestClient, field: str) -> None:
    answer = client.patch(f"{TENANTS}/default", json={field: None}, headers={"If-Match": '"1"'})
    (error,) = answer.json()["errors"]
    assert (answer.status_code, error["pointer"]) == (422, f"/{field}")
    assert error["remedy"] == "Give a value, or leave the field out."
    assert client.get(f"{TENANTS}/default").json()["version"] == 1


def test_every_change_is_written_down_for_the_managers_of_the_tenant(
    client: TestClient, client_as: MakeClient, vision: str
) -> None:
    give(client, vision, guaranteed=8)
    give(client, vision, 1, guaranteed=4, ceiling=8)
    client.delete(vision, headers={"If-Match": '"2"'})
    give(client, vision, guaranteed=99)
    client.patch(f"{TENANTS}/vision", json={"weight": 2.0}, headers={"If-Match": '"1"'})

    read = client_as(Role.TENANT_MANAGER, tenant="vision").get("/api/v1/audit").json()["items"]
    told = [(one["action"], one["before"], one["after"]) for one in reversed(read)]
    assert [action for action, _, _ in told if "quota" in action] == [
        "set quota",
        "set quota",
        "remove quota",
    ]
    changed = next(one for one in told if one[0] == "set quota" and one[1])
    assert (changed[1]["guaranteed"], changed[1]["ceiling"]) == (8, None)
    assert (changed[2]["guaranteed"], changed[2]["ceiling"]) == (4, 8)
    assert changed[2]["gpu_type"] == "a100"
    weighed = told[-1]
    assert (weighed[1]["weight"], weighed[2]["weight"]) == (1.0, 2.0)
    others = client_as(Role.TENANT_MANAGER).get("/api/v1/audit").json()["items"]
    assert not [one for one in others if "quota" in one["action"]]


def test_a_round_is_given_all_quotas_and_weights_in_one_statement(
    client: TestClient, database: Database, vision: str
) -> None:
    assert quotas_of(database) == ()
    give(client, A100, guaranteed=8, ceiling=12)
    give(client, f"{QUOTAS}/default/t4", guaranteed=2)
    give(client, vision, ceiling=4)
    client.post(TENANTS, json={"name": "heavy"})
    client.patch(f"{TENANTS}/heavy", json={"weight": 3.0}, headers={"If-Match": '"1"'})
    client.post(TENANTS, json={"name": "plain"})
    asked: list[str] = []
    listen = sa.event.listens_for(database.engine, "before_cursor_execute")
    listen(lambda *given: asked.append(given[2]))
    with database.session_scope(writes=False) as session:
        cluster_id = session.exec(select(Cluster.id)).one()
        asked.clear()
        found = engine_quotas(session, cluster_id)
        assert len(asked) == 1
    assert found == (
        TenantQuota(tenant="default", guaranteed={"a100": 8, "t4": 2}, ceiling={"a100": 12}),
        TenantQuota(tenant="heavy", weight=3.0),
        TenantQuota(tenant="vision", ceiling={"a100": 4}),
    )


def test_a_tenant_that_has_a_quota_is_not_removed(client: TestClient, vision: str) -> None:
    give(client, vision, guaranteed=1)
    refused = client.delete(f"{TENANTS}/vision")
    assert refused.status_code == 409
    assert "quotas" in refused.json()["detail"]
    client.delete(vision, headers={"If-Match": "*"})
    assert client.delete(f"{TENANTS}/vision").status_code == 204


# ---- what may be submitted


def submitted(client: TestClient, **fields: Any) -> Any:
    return client.post("/api/v1/jobs", json={"name": "train", "model": "cifar10", **fields})


@pytest.fixture
def bounded(client: TestClient) -> TestClient:
    """Of its tenant's jobs, at most 4 a100 and 2 t4 may be held, and no rtx."""
    for gpu_type, ceiling in (("a100", 4), ("t4", 2), ("rtx", 0)):
        assert give(client, f"{QUOTAS}/default/{gpu_type}", ceiling=ceiling).status_code == 200
    return client


def test_a_job_that_no_ceiling_lets_run_is_refused(bounded: TestClient) -> None:
    refused = submitted(bounded, min_gpus=5)
    assert code_of(refused) == (422, "min_gpus", "exceeds_quota")
    assert "at most 4 a100" in refused.json()["detail"]
    assert "Give at most 4" in refused.json()["detail"]
    rigid = {"adaptivity": "rigid", "batch_size": 512, "gpu_count": 4}
    assert code_of(submitted(bounded, **rigid, gpu_types=["t4"])) == (
        422,
        "gpu_count",
        "exceeds_quota",
    )
    assert code_of(submitted(bounded, gpu_types=["rtx"]))[1:] == ("min_gpus", "exceeds_quota")


def test_a_job_that_one_type_lets_run_is_taken(bounded: TestClient) -> None:
    rigid = {"adaptivity": "rigid", "batch_size": 512, "gpu_count": 4}
    assert submitted(bounded, **rigid).status_code == 201
    assert submitted(bounded, min_gpus=4).status_code == 201


def test_the_ceilings_of_others_bound_nobody_else(
    bounded: TestClient, client_as: MakeClient
) -> None:
    other = client_as(Role.SUBMITTER, tenant="vision")
    assert submitted(other, min_gpus=16).status_code == 201


def test_a_waiting_job_tells_how_full_its_teams_quota_is(
    client: TestClient, submit: Submit, database: Database
) -> None:
    job = submit()
    with database.session_scope() as session:
        row = session.get_one(Job, job["id"])
        row.state, row.reason_code = "pending", "WAITING_QUOTA"
        row.reason_evidence = {
            "binding_limit": "quota:a100:default", "quota_gpu_type": "a100", "quota_gpus": 16,
            "quota_used_gpus": 16, "quota_by_weight": 0,
        }  # fmt: skip
    reason = client.get(f"/api/v1/jobs/{job['id']}").json()["reason"]
    assert reason["sentence"] == "Held by your team's quota of 16 a100: 16 in use."
    told = client.get(f"/api/v1/jobs/{job['id']}/explanation").json()
    assert told["primary"]["sentence"] == reason["sentence"]


# ---- priorities


@pytest.mark.parametrize(
    ("given", "number", "kind"),
    [
        ("low", -10, "low"),
        ("high", 10, "high"),
        ("urgent", 20, "urgent"),
        (0, 0, "normal"),
        (7, 7, "normal"),
        (-1, -1, "low"),
        (1000, 1000, "urgent"),
    ],
)
def test_a_priority_is_a_class_or_a_number(
    client: TestClient, given: Any, number: int, kind: str
) -> None:
    job = submitted(client, priority=given).json()
    assert (job["priority"], job["priority_class"]) == (number, kind)


@pytest.mark.parametrize("given", [0.001, 1, 1.5, 1000])
def test_a_job_has_the_weight_that_was_asked_for(client: TestClient, given: float) -> None:
    assert submitted(client, weight=given).json()["weight"] == given
    assert submitted(client).json()["weight"] == 1.0


@pytest.mark.parametrize("given", ["2", True, 0, -1, 0.0009, 1000.1, None])
def test_what_is_no_weight_is_refused(refusing: TestClient, given: Any) -> None:
    answer = submitted(refusing, weight=given)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "weight", json.dumps(answer.json())


@pytest.mark.parametrize(
    ("role", "allowed"),
    [(Role.SUBMITTER, False), (Role.TENANT_MANAGER, True), (Role.CLUSTER_ADMIN, True)],
)
def test_heavy_jobs_are_for_managers(client_as: MakeClient, role: Role, allowed: bool) -> None:
    who = client_as(role)
    job = submitted(who, weight=2).json()
    many = {"mode": "partial", "jobs": [{"name": "a", "model": "bert", "weight": 2.5}]}
    bulk = {"action": "weight", "weight": 2.5, "filter": {"ids": [job["id"]]}}
    at, tag = f"/api/v1/jobs/{job['id']}", {"If-Match": '"1"'}
    for answer, made in (
        (submitted(who, weight=2.5), 201),
        (who.post("/api/v1/jobs:batch", json=many), 201),
        (who.post(f"{at}/actions/clone", json={"changes": {"weight": 2.5}}), 201),
        (who.patch(at, json={"weight": 2.5}, headers=tag), 200),
        (who.post("/api/v1/jobs:bulk", json=bulk), 200),
    ):
        assert answer.status_code == (made if allowed else 403), answer.text
        assert allowed or "2 or less" in answer.json()["detail"]


@pytest.mark.parametrize("given", ["hihg", "7", True, 1.5, 1001, None])
def test_what_is_no_priority_is_refused(refusing: TestClient, given: Any) -> None:
    answer = submitted(refusing, priority=given)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "priority", json.dumps(answer.json())


@pytest.mark.parametrize(
    ("role", "allowed"),
    [(Role.SUBMITTER, False), (Role.TENANT_MANAGER, True), (Role.CLUSTER_ADMIN, True)],
)
def test_urgent_jobs_are_for_managers(client_as: MakeClient, role: Role, allowed: bool) -> None:
    who = client_as(role)
    assert submitted(who, priority=19).status_code == 201
    answer = submitted(who, priority="urgent")
    assert answer.status_code == (201 if allowed else 403)
    if not allowed:
        assert "jobs:urgent" in answer.json()["detail"]
        many = who.post(
            "/api/v1/jobs:batch",
            json={"mode": "partial", "jobs": [{"name": "a", "model": "bert", "priority": 20}]},
        )
        assert many.status_code == 403
