"""What was changed, by whom: everything that matters, once, without secrets, for those who may."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from fastapi import FastAPI
from fastapi.testclient import TestClient
from flagged_jobs import flag
from sqlmodel import select

from backend.accounts.permissions import Role
from backend.audit import service
from backend.database import Database
from backend.models import AuditRecord

API = "/api/v1"
AUDIT = f"{API}/audit"
PASSWORD = "a sentence to remember"
SECRET = "what-signs-the-webhook-sixteen"
MakeClient = Callable[..., TestClient]

pytestmark = pytest.mark.usefixtures("quick_hashes")

WRITTEN = {
    "signIn": "sign in",
    "signOut": "sign out",
    "endMySessions": "sign out elsewhere",
    "endMySession": "end session",
    "changeMyPassword": "change own password",
    "createToken": "create token",
    "revokeToken": "revoke token",
    "createTenant": "create tenant",
    "changeTenant": "change tenant",
    "removeTenant": "remove tenant",
    "createUser": "create user",
    "changeUser": "change user",
    "removeUser": "remove user",
    "setPassword": "set password of user",
    "signOutUser": "sign out user",
    "submitJob": "submit job",
    "submitJobs": "submit jobs",
    "addDemoJobs": "submit jobs",
    "submitArray": "submit jobs",
    "cloneJob": "submit job",
    "changeJob": "change job",
    "changeJobs": "label jobs",
    "cancelJob": "cancel job",
    "pauseJob": "pause job",
    "holdJob": "hold job",
    "resumeJob": "resume job",
    "releaseJob": "resume job",
    "createCluster": "create cluster",
    "changeCluster": "change cluster",
    "pauseCluster": "pause cluster",
    "resumeCluster": "resume cluster",
    "addNodes": "add nodes",
    "changeNode": "change node",
    "drainNode": "drain node",
    "restoreNode": "restore node",
    "deleteNode": "remove node",
    "resetGpuScores": "reset GPU scores",
    "resetSlowdowns": "reset slowdowns",
    "resetJobBelief": "reset belief",
    "resetModelEvidence": "reset beliefs",
    "shareModel": "share model",
    "unshareModel": "stop sharing model",
    "dismissJobFlag": "dismiss flag",
    "reserveGpus": "reserve GPUs",
    "deleteReservation": "remove reservation",
    "setQuota": "set quota",
    "removeQuota": "remove quota",
    "addPrice": "add price",
    "changePrice": "change price",
    "deletePrice": "remove price",
    "createReportSchedule": "schedule report",
    "changeReportSchedule": "change schedule of reports",
    "deleteReportSchedule": "remove schedule of reports",
    "createWebhook": "make webhook",
    "changeWebhook": "change webhook",
    "deleteWebhook": "remove webhook",
    "rotateWebhookSecret": "rotate secret of webhook",
    "testWebhook": "test webhook",
    "redeliverWebhookDelivery": "send message of webhook again",
}
HAS_ITS_OWN_ROW = "the row that it makes says who and when"
STORES_NOTHING = "it reads what it is sent, and answers it"
CHANGES_NO_ROW_OF_OTHERS = "it changes nothing but work that can be done again"
UNWRITTEN = {
    "report": "an attempt's own measurements",
    "makeReport": HAS_ITS_OWN_ROW,
    "deleteReport": CHANGES_NO_ROW_OF_OTHERS,
    "deliverReportNow": HAS_ITS_OWN_ROW,
    "retryReportDelivery": CHANGES_NO_ROW_OF_OTHERS,
    "uploadMeasurement": HAS_ITS_OWN_ROW,
    "deleteMeasurement": CHANGES_NO_ROW_OF_OTHERS,
    "requestSimulation": HAS_ITS_OWN_ROW,
    "importTrace": STORES_NOTHING,
    "readColumns": STORES_NOTHING,
    "importCluster": STORES_NOTHING,
    "requestSweep": HAS_ITS_OWN_ROW,
    "requestReproduction": HAS_ITS_OWN_ROW,
    "requestAutoscaling": HAS_ITS_OWN_ROW,
    "requestTuning": HAS_ITS_OWN_ROW,
    "previewRound": HAS_ITS_OWN_ROW,
    "askForecast": HAS_ITS_OWN_ROW,
    "cancelOperation": CHANGES_NO_ROW_OF_OTHERS,
    "recomputeFairness": CHANGES_NO_ROW_OF_OTHERS,
    "skipJobFairness": CHANGES_NO_ROW_OF_OTHERS,
}


def records(client: TestClient, **query: Any) -> list[dict[str, Any]]:
    answer = client.get(AUDIT, params={"limit": 500, **query})
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["items"]
    return found


def done(answer: Any) -> Any:
    assert answer.status_code in (200, 201, 204), answer.text
    return answer.json() if answer.content else None


def far_browser(app: FastAPI) -> TestClient:
    """A browser of another machine: nobody is the local administrator there."""
    return TestClient(app, base_url="https://maat.example", client=("10.0.0.9", 50000))


def browser_of(app: FastAPI, name: str, password: str) -> TestClient:
    browser = far_browser(app)
    signed = done(browser.post(f"{API}/sessions", json={"name": name, "password": password}))
    browser.headers["X-CSRF-Token"] = signed["csrf_token"]
    return browser


def test_every_route_that_changes_something_is_written_down_or_says_why_not(app: FastAPI) -> None:
    changing = {
        operation["operationId"]
        for methods in app.openapi()["paths"].values()
        for method, operation in methods.items()
        if method != "get"
    }
    assert changing == WRITTEN.keys() | UNWRITTEN.keys()
    assert WRITTEN.keys() & UNWRITTEN.keys() == set()


def change_accounts(client: TestClient, app: FastAPI) -> None:
    any_version = {"If-Match": "*"}
    done(client.post(f"{API}/tenants", json={"name": "vision"}))
    done(client.patch(f"{API}/tenants/vision", json={"name": "sight"}, headers=any_version))
    done(client.delete(f"{API}/tenants/sight"))
    done(client.post(f"{API}/users", json={"name": "ann", "password": PASSWORD}))
    done(client.patch(f"{API}/users/ann", json={"role": "submitter"}, headers=any_version))
    done(client.post(f"{API}/users/ann/actions/set-password", json={"password": PASSWORD * 2}))
    first, _, last = (browser_of(app, "ann", PASSWORD * 2) for _ in range(3))
    others = [
        one["id"] for one in done(first.get(f"{API}/me/sessions"))["items"] if not one["current"]
    ]
    done(first.delete(f"{API}/me/sessions/{others[0]}"))
    assert last.get(f"{API}/me").status_code == 401
    assert done(first.delete(f"{API}/me/sessions")) == {"ended": 1}
    assert done(first.delete(f"{API}/me/sessions")) == {"ended": 0}
    body = {"old_password": PASSWORD * 2, "new_password": PASSWORD * 3}
    done(first.post(f"{API}/me/password", json=body))
    third = browser_of(app, "ann", PASSWORD * 3)
    done(third.delete(f"{API}/sessions/current"))
    token = done(client.post(f"{API}/tokens", json={"name": "laptop"}))
    done(client.post(f"{API}/tokens/{token['id']}/actions/revoke"))
    done(client.post(f"{API}/users/ann/actions/sign-out"))
    done(client.delete(f"{API}/users/ann"))


def change_clusters(client: TestClient) -> None:
    here = f"{API}/clusters/lab"
    any_version = {"If-Match": "*"}
    done(client.post(f"{API}/clusters", json={"name": "lab", "shape": "t4=1x4"}))
    done(client.patch(here, json={"policy": "fifo"}, headers=any_version))
    done(client.put(f"{here}/quotas/default/t4", json={"ceiling": 4}))
    done(client.delete(f"{here}/quotas/default/t4", headers=any_version))
    done(client.post(f"{here}/actions/pause"))
    done(client.post(f"{here}/actions/resume"))
    done(client.post(f"{here}/nodes", json={"nodes": [{"gpu_type": "t4", "gpu_count": 4}]}))
    node = f"{here}/nodes/t4-1"
    done(client.patch(node, json={"drained_gpus": [0]}, headers=any_version))
    done(client.post(f"{node}/actions/restore"))
    done(client.post(f"{node}/actions/drain"))
    done(client.delete(node))
    done(client.delete(f"{here}/gpu-scores"))
    done(client.delete(f"{here}/slowdowns"))
    done(client.delete(f"{here}/evidence/beliefs"))
    done(client.put(f"{API}/shared-models/resnet"))
    done(client.delete(f"{API}/shared-models/resnet"))
    body = {"gpu_type": "t4", "gpu_count": 1, "tenant": "default"}
    reservation = done(client.post(f"{here}/reservations", json=body))
    done(client.delete(f"{here}/reservations/{reservation['id']}"))
    price = {"gpu_type": "t4", "price_per_gpu_hour": "1.25", "currency": "EUR"}
    made = done(client.post(f"{here}/prices", json=price))
    at = f"{here}/prices/{made['id']}"
    done(client.patch(at, json={"price_per_gpu_hour": "1.50"}, headers=any_version))
    done(client.delete(at, headers=any_version))
    schedule = {
        "cluster": "lab",
        "name": "weekly",
        "every": "week",
        "channel": "webhook",
        "url": "https://example.org/hook/path-with-a-key",
        "secret": SECRET,
        "forms": ["pdf"],
    }
    made = done(client.post(f"{API}/report-schedules", json=schedule))
    at = f"{API}/report-schedules/{made['id']}"
    done(client.patch(at, json={"secret": SECRET * 2}, headers=any_version))
    done(client.delete(at))


def change_webhooks(client: TestClient) -> None:
    body = {
        "name": "pager",
        "url": "https://93.184.216.34/hook/path-with-a-key",
        "events": ["job.failed"],
    }
    made = done(client.post(f"{API}/webhooks", json=body))
    at = f"{API}/webhooks/{made['id']}"
    done(client.patch(at, json={"events": ["job.failed"]}, headers={"If-Match": "*"}))
    done(client.post(f"{at}/actions/rotate-secret"))
    asked = client.post(f"{at}/actions/test")
    assert asked.status_code == 202, asked.text
    again = client.post(f"{at}/deliveries/{asked.json()['id']}/actions/redeliver")
    assert again.status_code == 202, again.text
    done(client.delete(at))


def change_jobs(client: TestClient, database: Database) -> None:
    body = {"name": "train", "model": "bert"}
    job = done(client.post(f"{API}/jobs", json=body))
    done(client.post(f"{API}/jobs:batch", json={"jobs": [body, body]}))
    at = f"{API}/jobs/{job['id']}"
    done(client.patch(at, json={"priority": "high"}, headers={"If-Match": "*"}))
    done(client.post(f"{at}/actions/pause"))
    done(client.post(f"{at}/actions/resume"))
    done(client.post(f"{at}/actions/hold"))
    done(client.post(f"{at}/actions/release"))
    labelled = {"action": "label", "labels": {"team": "a"}, "filter": {"model": ["bert"]}}
    done(client.post(f"{API}/jobs:bulk", json=labelled))
    done(client.post(f"{at}/actions/cancel"))
    done(client.post(f"{API}/jobs/{job['id']}/actions/cancel"))
    done(client.delete(f"{at}/belief"))
    flag(database, job["id"])
    done(client.post(f"{at}/flags/speed/actions/dismiss"))


def test_each_of_them_is_found_with_who_did_it_when_and_in_which_request(
    client: TestClient, app: FastAPI, database: Database
) -> None:
    change_accounts(client, app)
    change_clusters(client)
    change_webhooks(client)
    change_jobs(client, database)
    found = records(client)
    assert {one["action"] for one in found} >= set(WRITTEN.values())
    assert all(one["request_id"] for one in found if one["actor_kind"] == "user")
    assert {one["actor"] for one in found} == {"local", "ann", "maat"}  # maat: the first start
    actions = [one["action"] for one in found]
    assert actions.count("cancel job") == actions.count("sign out elsewhere") == 1
    assert [one["id"] for one in found] == sorted((one["id"] for one in found), reverse=True)


def test_no_record_holds_a_secret(client: TestClient, app: FastAPI, database: Database) -> None:
    change_accounts(client, app)
    change_clusters(client)
    with database.session_scope(writes=False) as session:
        rows = session.exec(select(AuditRecord)).all()
        stored = session.connection().execute(sa.text("SELECT token_hash FROM api_tokens")).all()
    written = " ".join(str(vars(row)) for row in rows)
    for secret in (PASSWORD, SECRET, "argon2", "path-with-a-key", "maat_", stored[0][0]):
        assert secret not in written
    assert "example.org" in written


def test_a_record_shows_before_and_after(client: TestClient) -> None:
    request = {"If-Match": "*", "X-Request-Id": "asked-42"}
    done(client.patch(f"{API}/clusters/demo", json={"policy": "fifo"}, headers=request))
    (one,) = records(client, action="change cluster")
    assert (one["before"]["policy"], one["after"]["policy"]) == ("sia", "fifo")
    assert (one["actor"], one["target_kind"], one["tenant"]) == ("local", "cluster", None)
    assert one["request_id"] == "asked-42"


def test_what_fails_leaves_no_record(client: TestClient) -> None:
    before = len(records(client))
    last = client.patch(f"{API}/users/local", json={"role": "viewer"}, headers={"If-Match": "*"})
    assert last.status_code == 409
    stale = client.patch(
        f"{API}/clusters/demo", json={"policy": "fifo"}, headers={"If-Match": '"9"'}
    )
    assert stale.status_code == 412
    assert client.post(f"{API}/users", json={"name": "local"}).status_code == 422
    assert len(records(client)) == before


def test_sign_ins_that_are_refused_are_written_down_without_the_name_that_was_typed(
    client: TestClient, app: FastAPI
) -> None:
    ann = done(client.post(f"{API}/users", json={"name": "ann", "password": PASSWORD}))
    browser = far_browser(app)
    for name in ("ann", "my-password-typed-as-a-name"):
        body = {"name": name, "password": "wrong"}
        assert browser.post(f"{API}/sessions", json=body).status_code == 401
    unknown, known = records(client, action="sign-in refused")
    assert (known["target_id"], known["tenant"]) == (ann["id"], "default")
    assert (unknown["target_id"], unknown["tenant"], unknown["target_kind"]) == ("", None, "none")
    assert {known["actor_kind"], unknown["actor_kind"]} == {"visitor"}
    assert "my-password" not in client.get(AUDIT).text


def test_a_flood_of_sign_ins_is_written_down_once(client: TestClient, app: FastAPI) -> None:
    browser = far_browser(app)
    body = {"name": "nobody", "password": "wrong"}
    statuses = [browser.post(f"{API}/sessions", json=body).status_code for _ in range(14)]
    assert statuses == [401] * 10 + [429] * 4
    assert len(records(client, action="sign-ins held back")) == 1


def test_a_manager_reads_what_concerns_the_tenant_and_no_name_of_another(
    client: TestClient, client_as: MakeClient
) -> None:
    manager = client_as(Role.TENANT_MANAGER, tenant="vision", name="max")
    other = client_as(Role.TENANT_MANAGER, tenant="speech", name="sue")
    auditor = client_as(Role.AUDITOR, tenant="watch")
    done(manager.post(f"{API}/users", json={"name": "ann"}))
    done(client.patch(f"{API}/users/ann", json={"role": "submitter"}, headers={"If-Match": "*"}))
    done(client.patch(f"{API}/clusters/demo", json={"policy": "fifo"}, headers={"If-Match": "*"}))
    seen = records(manager)
    assert [(one["actor"], one["action"]) for one in seen] == [
        ("an administrator", "change user"),
        ("max", "create user"),
    ]
    assert seen[0]["actor_id"] is seen[0]["credential"] is None
    assert records(manager, actor="local") == []
    assert len(records(manager, actor="max")) == 1
    assert records(other) == []
    assert manager.get(AUDIT, params={"tenant": "speech"}).status_code == 404
    assert {"change cluster", "change user"} <= {one["action"] for one in records(auditor)}
    for role in (Role.VIEWER, Role.SUBMITTER):
        assert client_as(role).get(AUDIT).status_code == 403
        assert client_as(role, name=f"{role}-2").get(f"{AUDIT}/export/csv").status_code == 403


def test_records_are_filtered_and_paged(client: TestClient) -> None:
    for name in ("one", "two", "three"):
        done(client.post(f"{API}/tenants", json={"name": name}))
    two = next(one for one in records(client) if one["after"].get("name") == "two")
    assert [one["id"] for one in records(client, target=two["target_id"])] == [two["id"]]
    assert len(records(client, target_kind="tenant", actor="local")) == 3
    assert len(records(client, actor=two["actor_id"], action="create tenant")) == 3
    assert records(client, **{"from": "2100-01-01T00:00:00Z"}) == []
    assert len(records(client, to=two["at"])) < len(records(client))
    names, cursor = [], None
    while True:
        query = {"limit": 1, "action": "create tenant", **({"cursor": cursor} if cursor else {})}
        page = done(client.get(AUDIT, params=query))
        names += [one["after"]["name"] for one in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert names == ["three", "two", "one"]
    other = client.get(AUDIT, params={"limit": 1, "cursor": "nonsense"})
    assert other.status_code == 400
    backwards = {"from": "2026-01-02T00:00:00Z", "to": "2026-01-01T00:00:00Z"}
    refused = client.get(AUDIT, params=backwards)
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "to")


def test_a_file_holds_all_that_match_and_a_spreadsheet_runs_nothing_of_it(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    done(client.post(f"{API}/jobs", json={"name": "=1+2", "model": "bert"}))
    done(client.post(f"{API}/users", json={"name": "@ann"}))
    done(client.patch(f"{API}/users/@ann", json={"role": "submitter"}, headers={"If-Match": "*"}))
    answer = client.get(f"{AUDIT}/export/csv")
    assert "maat-audit.csv" in answer.headers["Content-Disposition"]
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [row["id"] for row in rows] == [one["id"] for one in records(client)]
    assert not any(cell.startswith(("=", "+", "-", "@")) for row in rows for cell in row.values())
    whole = client.get(f"{AUDIT}/export/json", params={"action": "create user"}).json()
    assert [one["after"]["name"] for one in whole] == ["@ann"]
    monkeypatch.setattr(service, "MOST_EXPORTED", 2)
    refused = client.get(f"{AUDIT}/export/csv")
    assert refused.status_code == 422
    assert "shorter period" in refused.json()["errors"][0]["remedy"]


def test_nothing_changes_a_record(client: TestClient, app: FastAPI, database: Database) -> None:
    done(client.post(f"{API}/tenants", json={"name": "one"}))
    refused = pytest.raises(sa.exc.DBAPIError, match="records of changes are not changed")
    with refused, database.session_scope() as session:
        session.connection().execute(sa.text("UPDATE audit_records SET action = 'nothing'"))
    paths = {p: set(m) for p, m in app.openapi()["paths"].items() if p.startswith(AUDIT)}
    assert set().union(*paths.values()) == {"get"}


# Of SQLite alone: PostgreSQL reads a short table whole, whatever indexes it has.
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_no_list_of_records_reads_them_all(app: FastAPI, database: Database) -> None:
    wanted = {
        "tenant_id = 'ten_1'": "ix_audit_records_tenant",
        "action = 'change user'": "ix_audit_records_action",
        "target_id = 'usr_1'": "ix_audit_records_target",
        "(actor_name = 'ann' OR actor_id = 'ann')": "ix_audit_records_actor",
    }
    with database.session_scope(writes=False) as session:
        for condition, index in wanted.items():
            plan = session.execute(
                sa.text(
                    "EXPLAIN QUERY PLAN SELECT * FROM audit_records "
                    f"WHERE {condition} ORDER BY id DESC LIMIT 51"
                )
            ).all()
            assert index in str(plan), condition
            assert "SCAN audit_records" not in str(plan), condition
