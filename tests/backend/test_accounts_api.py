"""Tenants and users: who may change whom, and what is refused."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlmodel import select

from backend.accounts.models import Tenant, User
from backend.accounts.permissions import Role
from backend.audit.changes import VISITOR
from backend.audit.service import ADMINISTRATOR
from backend.database import Database
from backend.fairness.words import OTHER_TENANTS
from backend.reports import facts
from backend.reports.use_facts import ALL

MakeClient = Callable[..., TestClient]
USERS, TENANTS = "/api/v1/users", "/api/v1/tenants"
PASSWORD = "a sentence to remember"


def make_user(client: TestClient, name: str, **fields: Any) -> dict[str, Any]:
    answer = client.post(USERS, json={"name": name, **fields})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


def change(client: TestClient, user: str, **fields: Any) -> Any:
    tag = client.get(f"{USERS}/{user}").headers["ETag"]
    return client.patch(f"{USERS}/{user}", json=fields, headers={"If-Match": tag})


def code_of(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["errors"][0]["code"]


def test_a_tenant_is_made_renamed_closed_opened_and_removed(client: TestClient) -> None:
    made = client.post(TENANTS, json={"name": "vision"})
    assert made.status_code == 201
    where = made.headers["Location"]
    assert client.get(where).json() == made.json()
    assert client.get(f"{TENANTS}/vision").json()["id"] == made.json()["id"]
    renamed = client.patch(where, json={"name": "sight"}, headers={"If-Match": '"1"'})
    assert (renamed.json()["name"], renamed.headers["ETag"]) == ("sight", '"2"')
    stale = client.patch(where, json={"closed": True}, headers={"If-Match": '"1"'})
    assert stale.status_code == 412
    assert client.patch(where, json={"closed": True}).status_code == 428
    closed = client.patch(where, json={"closed": True}, headers={"If-Match": '"2"'}).json()
    assert closed["state"] == "closed"
    opened = client.patch(where, json={"closed": False}, headers={"If-Match": '"3"'}).json()
    assert opened["state"] == "open"
    assert client.delete(where).status_code == 204
    assert client.get(where).status_code == 404


def test_two_names_that_differ_in_capitals_are_one(client: TestClient) -> None:
    client.post(TENANTS, json={"name": "Vision"})
    assert code_of(client.post(TENANTS, json={"name": "vision"})) == (422, "name_taken")
    make_user(client, "ann")
    assert code_of(client.post(USERS, json={"name": "Ann"})) == (422, "name_taken")


def test_a_repeated_request_makes_one_user_and_one_tenant(client: TestClient) -> None:
    for url, body in (
        (TENANTS, {"name": "vision"}),
        (USERS, {"name": "ann", "password": PASSWORD}),
    ):
        first, again = (
            client.post(url, json=body, headers={"Idempotency-Key": "one"}) for _ in range(2)
        )
        assert (first.status_code, again.status_code) == (201, 201)
        assert first.json() == again.json()
        other = client.post(url, json={**body, "name": "other"}, headers={"Idempotency-Key": "one"})
        assert other.status_code == 422
    another = {"name": "ann", "password": PASSWORD + "!"}
    answer = client.post(USERS, json=another, headers={"Idempotency-Key": "one"})
    assert answer.json()["type"] == "/problems/idempotency-key-reused"


def test_a_tenant_with_jobs_can_only_be_closed(
    client: TestClient, client_as: MakeClient, database: Database
) -> None:
    ann = client_as(Role.SUBMITTER, tenant="vision", name="ann")
    job = ann.post("/api/v1/jobs", json={"name": "train", "model": "bert"}).json()["id"]
    refused = client.delete(f"{TENANTS}/vision")
    assert refused.status_code == 409
    assert "close it" in refused.json()["detail"]
    assert client.delete(f"{USERS}/ann").status_code == 409
    assert ann.get("/api/v1/me").status_code == 200  # the refusal took nothing of hers
    tag = client.get(f"{TENANTS}/vision").headers["ETag"]
    closing = client.patch(f"{TENANTS}/vision", json={"closed": True}, headers={"If-Match": tag})
    assert closing.status_code == 200
    assert ann.get("/api/v1/me").status_code == 401
    assert client.get(f"/api/v1/jobs/{job}").status_code == 200


def test_the_last_administrator_stays(client: TestClient, database: Database) -> None:
    for fields in ({"role": "viewer"}, {"active": False}):
        answer = change(client, "local", **fields)
        assert (answer.status_code, answer.json()["type"]) == (
            409,
            "/problems/last-administrator",
        )
    tag = client.get(f"{TENANTS}/default").headers["ETag"]
    closing = client.patch(f"{TENANTS}/default", json={"closed": True}, headers={"If-Match": tag})
    assert closing.json()["type"] == "/problems/last-administrator"
    removing = client.delete(f"{USERS}/local").json()  # to deactivate it would be refused too
    assert removing["type"] == "/problems/last-administrator"
    assert "Give another active person the role cluster_admin" in removing["remedy"]
    # Neither a service account nor a person who is not active can take over.
    make_user(client, "robot", role="cluster_admin", kind="service")
    make_user(client, "gone", role="cluster_admin")
    assert change(client, "gone", active=False).status_code == 200
    assert change(client, "local", role="viewer").status_code == 409
    # Nor can a person who has no way to sign in.
    make_user(client, "ghost", role="cluster_admin")
    assert change(client, "local", active=False).status_code == 409
    with database.session_scope(writes=False) as session:
        local = session.exec(select(User).where(User.name == "local")).one()
    assert (local.role, local.active, local.version) == ("cluster_admin", True, 1)


def test_what_the_refusal_to_remove_a_user_says_instead_works(client: TestClient) -> None:
    make_user(client, "ada", role="cluster_admin", password=PASSWORD)
    refused = client.delete(f"{USERS}/local").json()["detail"]
    assert refused == "local comes back at each start: deactivate the user instead."
    assert change(client, "local", active=False).status_code == 200


def test_a_user_who_owns_something_and_is_not_active_need_not_be_deactivated(
    client: TestClient, client_as: MakeClient
) -> None:
    ann = client_as(Role.SUBMITTER, tenant="vision", name="ann")
    ann.post("/api/v1/jobs", json={"name": "train", "model": "bert"}).raise_for_status()
    assert "deactivate the user instead" in client.delete(f"{USERS}/ann").json()["detail"]
    assert change(client, "ann", active=False).status_code == 200
    assert "the user is not active" in client.delete(f"{USERS}/ann").json()["detail"]


def test_an_administrator_who_can_sign_in_takes_over(client: TestClient) -> None:
    make_user(client, "ada", role="cluster_admin", password=PASSWORD)
    assert change(client, "local", role="viewer").status_code == 200


@pytest.mark.parametrize(
    ("issuer", "status"), [("https://sso.example", 200), ("https://other.example", 409)]
)
def test_an_administrator_of_a_provider_counts_while_it_is_set(
    app: FastAPI, client: TestClient, database: Database, issuer: str, status: int
) -> None:
    settings = {"oidc_issuer": "https://sso.example", "oidc_client_id": "maat"}
    app.state.settings = app.state.settings.model_copy(update=settings)
    make_user(client, "ada", role="cluster_admin")
    with database.session_scope() as session:
        ada = session.exec(select(User).where(User.name == "ada")).one()
        ada.issuer, ada.subject = issuer, "sub-ada"
    assert change(client, "local", role="viewer").status_code == status


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("given", "other"),
    [
        ("\N{LATIN CAPITAL LETTER E WITH ACUTE}T", "\N{LATIN SMALL LETTER E WITH ACUTE}t"),
        ("\N{LATIN SMALL LETTER E WITH ACUTE}x", "e\N{COMBINING ACUTE ACCENT}x"),
        ("vision", "\N{FULLWIDTH LATIN SMALL LETTER V}ision"),
        ("vision", "\N{ROMAN NUMERAL FIVE}ision"),
    ],
)
def test_names_that_read_alike_are_one(client: TestClient, given: str, other: str) -> None:
    assert client.post(TENANTS, json={"name": given}).status_code == 201
    assert code_of(client.post(TENANTS, json={"name": other})) == (422, "name_taken")
    make_user(client, given)
    assert code_of(client.post(USERS, json={"name": other})) == (422, "name_taken")


def test_a_name_mixes_no_scripts_and_is_no_word_of_maat(client: TestClient) -> None:
    mixed = "visi\N{CYRILLIC SMALL LETTER O}n"
    assert code_of(client.post(TENANTS, json={"name": mixed})) == (422, "mixed_scripts")
    assert code_of(client.post(USERS, json={"name": mixed})) == (422, "mixed_scripts")
    for word in (facts.OTHERS, facts.NOBODY, ALL, OTHER_TENANTS, "Idle", "Total"):
        assert code_of(client.post(TENANTS, json={"name": word})) == (422, "reserved_name")
    for word in (ADMINISTRATOR, VISITOR.name, "me"):
        assert code_of(client.post(USERS, json={"name": word})) == (422, "reserved_name")
    assert client.post(TENANTS, json={"name": "研究 Lab ラボ 2"}).status_code == 201


@pytest.mark.both_databases
def test_two_administrators_who_demote_each_other_at_once_leave_one(
    client: TestClient, client_as: MakeClient
) -> None:
    change(client, "local", role="cluster_admin")
    ann = client_as(Role.CLUSTER_ADMIN, name="ann")
    bob = client_as(Role.CLUSTER_ADMIN, name="bob")
    for name in ("ann", "bob"):
        client.post(f"{USERS}/{name}/actions/set-password", json={"password": PASSWORD})
    assert change(client, "local", role="viewer").status_code == 200
    start, seen = threading.Barrier(2), []

    def demote(by: TestClient, whom: str) -> None:
        start.wait()
        answer = by.patch(f"{USERS}/{whom}", json={"role": "viewer"}, headers={"If-Match": "*"})
        seen.append(answer.status_code)

    threads = [
        threading.Thread(target=demote, args=(ann, "bob")),
        threading.Thread(target=demote, args=(bob, "ann")),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    left = [one.get("/api/v1/me").json()["role"] for one in (ann, bob)]
    assert left.count("cluster_admin") == 1
    assert sorted(seen)[0] == 200
    assert sorted(seen)[1] in (403, 409)


def test_a_manager_manages_the_tenants_own_users_only(
    client: TestClient, client_as: MakeClient
) -> None:
    client.post(TENANTS, json={"name": "speech"})
    stranger = make_user(client, "sue", tenant="speech")
    manager = client_as(Role.TENANT_MANAGER, tenant="vision", name="max")
    ann = make_user(manager, "ann", role="submitter")
    assert ann["tenant"] == "vision"
    assert [one["name"] for one in manager.get(USERS).json()["items"]] == ["max", "ann"]
    assert [one["name"] for one in manager.get(TENANTS).json()["items"]] == ["vision"]
    for named in ("sue", stranger["id"]):
        where = f"{USERS}/{named}"
        missing = [
            manager.get(where),
            manager.patch(where, json={"active": False}, headers={"If-Match": "*"}),
            manager.delete(where),
            manager.post(f"{where}/actions/set-password", json={"password": PASSWORD}),
            manager.post(f"{where}/actions/sign-out"),
            manager.get(USERS, params={"tenant": "speech"}),
            manager.get(f"{TENANTS}/speech"),
        ]
        assert [answer.status_code for answer in missing] == [404] * len(missing)
    unknown = manager.post(USERS, json={"name": "eve", "tenant": "speech"}).json()
    absent = manager.post(USERS, json={"name": "eve", "tenant": "no such"}).json()
    assert unknown["errors"][0]["code"] == absent["errors"][0]["code"] == "unknown_tenant"
    assert manager.post(TENANTS, json={"name": "mine"}).status_code == 403


@pytest.mark.parametrize("role", ["cluster_admin", "auditor"])
def test_a_manager_gives_no_role_above_the_own(client_as: MakeClient, role: str) -> None:
    manager = client_as(Role.TENANT_MANAGER, name="max")
    given = manager.post(USERS, json={"name": "eve", "role": role})
    assert code_of(given) == (422, "role_above_own")
    make_user(manager, "ann")
    for whom in ("ann", "max"):
        assert code_of(change(manager, whom, role=role)) == (422, "role_above_own")
    assert change(manager, "ann", role="tenant_manager").status_code == 200


def test_a_manager_does_not_touch_those_above(client: TestClient, client_as: MakeClient) -> None:
    manager = client_as(Role.TENANT_MANAGER, name="max")  # of the administrator's own tenant
    where = f"{USERS}/local"
    for answer in (
        manager.patch(where, json={"active": False}, headers={"If-Match": "*"}),
        manager.delete(where),
        manager.post(f"{where}/actions/set-password", json={"password": PASSWORD}),
        manager.post(f"{where}/actions/sign-out"),
    ):
        assert answer.status_code == 403


def test_a_restricted_token_of_an_administrator_makes_no_administrator(
    client_as: MakeClient,
) -> None:
    from backend.accounts.permissions import Permission

    narrow = client_as(
        Role.CLUSTER_ADMIN, scopes=[Permission.USERS_MANAGE, Permission.USERS_READ], name="narrow"
    )
    given = narrow.post(USERS, json={"name": "eve", "role": "cluster_admin"})
    assert code_of(given) == (422, "role_above_own")
    assert (
        narrow.post(f"{USERS}/local/actions/set-password", json={"password": PASSWORD}).status_code
        == 403
    )


@pytest.mark.parametrize(
    "extra",
    [
        {"tenant_id": "ten_x"},
        {"id": "usr_x"},
        {"version": 9},
        {"password_hash": "x"},
        {"issuer": "x", "subject": "y"},
        {"tenant": "default"},
        {"name": "root"},
        {"kind": "person"},
    ],
    ids=",".join,
)
def test_what_is_not_to_be_changed_cannot_be_sent_along(
    client: TestClient, extra: dict[str, Any]
) -> None:
    make_user(client, "ann")
    assert code_of(change(client, "ann", active=True, **extra)) == (422, "extra_forbidden")


def test_who_is_deactivated_is_let_in_no_more(client: TestClient, client_as: MakeClient) -> None:
    ann = client_as(Role.SUBMITTER, name="ann")
    assert ann.get("/api/v1/me").status_code == 200
    assert change(client, "ann", active=False).json()["active"] is False
    assert ann.get("/api/v1/me").status_code == 401
    assert change(client, "ann", active=True).json()["active"] is True
    assert ann.get("/api/v1/me").status_code == 200


def test_a_service_account_has_no_password(client: TestClient) -> None:
    refused = client.post(USERS, json={"name": "ci", "kind": "service", "password": PASSWORD})
    assert code_of(refused) == (422, "no_password")
    made = make_user(client, "ci", kind="service", role="submitter")
    assert (made["kind"], made["signs_in_by"]) == ("service", [])
    setting = client.post(f"{USERS}/ci/actions/set-password", json={"password": PASSWORD})
    assert setting.status_code == 409


def test_a_user_who_owns_nothing_can_be_removed_with_tokens(
    client: TestClient, client_as: MakeClient
) -> None:
    ann = client_as(Role.VIEWER, name="ann")
    assert client.delete(f"{USERS}/ann", headers={"If-Match": '"7"'}).status_code == 412
    assert client.delete(f"{USERS}/ann").status_code == 204
    assert ann.get("/api/v1/me").status_code == 401
    assert client.get(f"{USERS}/ann").status_code == 404


def test_users_are_filtered_and_paged(client: TestClient) -> None:
    for name in ("ann", "bob", "cid%"):
        make_user(client, name, role="submitter")
    names = []
    params: dict[str, Any] = {"role": "submitter", "limit": 2}
    while True:
        page = client.get(USERS, params=params).json()
        names += [one["name"] for one in page["items"]]
        if page["next_cursor"] is None:
            break
        params["cursor"] = page["next_cursor"]
    assert names == ["ann", "bob", "cid%"]
    assert [o["name"] for o in client.get(USERS, params={"q": "D%"}).json()["items"]] == ["cid%"]
    assert client.get(USERS, params={"active": False}).json()["items"] == []
    assert client.get(USERS, params={"tenant": "none"}).status_code == 404


@pytest.mark.parametrize(
    ("password", "code"),
    [
        ("kurz", "value_error"),
        ("xyz4" * 51, "value_error"),
        ("aaaaaaaaaaaaaa", "weak_password"),
        ("password1234", "weak_password"),
        ("123456789012", "weak_password"),
        ("administrator", "weak_password"),
        ("qwertyuiop12", "weak_password"),
        ("Password1234!", "weak_password"),
        ("maatmaatmaat", "weak_password"),
        ("annabel-lee-12-annabel-lee-12", "weak_password"),
        ("Annabel-Lee-12", "weak_password"),
        (12345678901234, "string_type"),
    ],
)
def test_a_password_that_will_not_do_is_refused_and_not_repeated(
    client: TestClient, password: Any, code: str
) -> None:
    answer = client.post(USERS, json={"name": "annabel-lee-12", "password": password})
    assert code_of(answer) == (422, code)
    assert str(password) not in answer.text


def test_every_change_is_written_down_with_who_did_it_and_no_secret(
    client: TestClient, client_as: MakeClient, caplog: pytest.LogCaptureFixture
) -> None:
    logging.getLogger("backend").setLevel("INFO")
    manager = client_as(Role.TENANT_MANAGER, name="max")
    with caplog.at_level("INFO"):
        make_user(manager, "ann", password=PASSWORD)
        change(manager, "ann", role="submitter")
        manager.post(USERS, json={"name": "eve", "role": "cluster_admin"})
    written = [r.getMessage() for r in caplog.records if r.name == "backend.audit.changes"]
    assert len(written) == 2
    assert written[0].startswith("max (tok_")
    assert "create user usr_" in written[0]
    assert "'role': 'viewer'" in written[1].partition("after")[0]
    assert "'role': 'submitter'" in written[1].partition("after")[2]
    assert PASSWORD not in caplog.text
    assert "argon2" not in caplog.text


def test_a_renamed_default_tenant_stays_the_only_one(
    client: TestClient, database: Database, settings: Any
) -> None:
    from backend.bootstrap_data import add_defaults

    client.patch(f"{TENANTS}/default", json={"name": "main"}, headers={"If-Match": "*"})
    add_defaults(database, settings)
    with database.session_scope(writes=False) as session:
        assert session.exec(select(Tenant.name)).all() == ["main"]
