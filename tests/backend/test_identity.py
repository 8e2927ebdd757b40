"""Tests of access: tokens, the local admin, permissions, tenants, and requests of other sites."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from sqlmodel import select

from backend.accounts.identity import principal_of
from backend.accounts.models import ApiToken
from backend.accounts.permissions import Permission, Role
from backend.app import PREFIX, ROUTERS
from backend.bootstrap_data import first_token
from backend.clocktime import utc_now
from backend.database import Database
from backend.new_token import new_token
from backend.problems import NotFound
from backend.settings import Settings

MakeClient = Callable[..., TestClient]
ME, JOBS = "/api/v1/me", "/api/v1/jobs"
OPEN_TO_ALL = {"getHealth", "getSignInWays", "signIn", "beginOidc", "finishOidc"}


def routes() -> Iterator[APIRoute]:
    for router in ROUTERS:
        yield from (route for route in router.routes if isinstance(route, APIRoute))


def dependencies(dependant: Any) -> Iterator[Any]:
    yield dependant.call
    for inner in dependant.dependencies:
        yield from dependencies(inner)


@pytest.mark.parametrize("route", list(routes()), ids=lambda route: route.operation_id)
def test_every_route_asks_for_one_permission_through_one_dependency(route: APIRoute) -> None:
    calls = list(dependencies(route.dependant))
    asked = [call.permission for call in calls if hasattr(call, "permission")]
    if route.operation_id in OPEN_TO_ALL:
        assert asked == []
    elif route.operation_id == "getMe":
        assert principal_of in calls
    else:
        assert len(asked) == 1


def test_operation_ids_are_given_and_differ(app: FastAPI) -> None:
    ids = [route.operation_id for route in routes()]
    assert len(set(ids)) == len(ids)
    assert None not in ids
    documented = {
        o["operationId"] for path in app.openapi()["paths"].values() for o in path.values()
    }
    assert documented == set(ids)


def visitor(
    app: FastAPI, *, host: str = "http://127.0.0.1:8000", address: str = "127.0.0.1"
) -> TestClient:
    return TestClient(app, base_url=host, client=(address, 50000), raise_server_exceptions=False)


@pytest.mark.parametrize(
    "host",
    ["http://127.0.0.1:8000", "http://localhost:8000", "http://[::1]:8000", "http://127.0.0.9"],
)
def test_a_request_of_the_same_machine_is_the_local_admin(app: FastAPI, host: str) -> None:
    me = visitor(app, host=host).get(ME).json()
    assert (me["user"], me["role"]) == ("local", "cluster_admin")
    everything = {permission.value for permission in Permission}
    assert set(me["permissions"]) == everything - {Permission.JOBS_RUN_COMMANDS}


@pytest.mark.parametrize(
    ("host", "address", "headers"),
    [
        ("http://127.0.0.1:8000", "10.0.0.9", {}),
        ("http://evil.example", "127.0.0.1", {}),
        ("http://127.0.0.1.evil.example", "127.0.0.1", {}),
        ("http://127.0.0.1:8000", "127.0.0.1", {"X-Forwarded-For": "10.0.0.9"}),
        ("http://127.0.0.1:8000", "127.0.0.1", {"Forwarded": "for=10.0.0.9"}),
    ],
    ids=[
        "from far away",
        "a rebound name",
        "a name that looks like loopback",
        "through a proxy",
        "through a proxy, the new header",
    ],
)
def test_nobody_else_is_let_in_without_a_token(
    app: FastAPI, host: str, address: str, headers: dict[str, str]
) -> None:
    answer = visitor(app, host=host, address=address).get(ME, headers=headers)
    assert answer.status_code == 401
    assert answer.json()["type"] == "/problems/unauthenticated"
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")


def test_the_local_admin_can_be_turned_off(app: FastAPI, settings: Settings) -> None:
    told = visitor(app, address="10.0.0.9").get(ME).json()["detail"]
    assert told.endswith(
        "Only the user who runs Maat needs neither, on the same machine and with no proxy between."
    )
    app.state.settings = settings.model_copy(update={"implicit_admin": False})
    refused = visitor(app).get(ME)
    assert refused.status_code == 401
    assert refused.json()["detail"] == (
        "Sign in at /sign-in, or send a token as `Authorization: Bearer maat_...`."
    )
    assert visitor(app).get("/api/v1/health").status_code == 200


@pytest.mark.parametrize(
    "header",
    ["Bearer nonsense", "Bearer maat_unknown", "Basic bG9jYWw6", "Bearer ", "maat_unknown"],
)
def test_a_bad_token_is_not_replaced_by_the_local_admin(app: FastAPI, header: str) -> None:
    assert visitor(app).get(ME, headers={"Authorization": header}).status_code == 401


@pytest.mark.parametrize(
    "change",
    [{"revoked_at": timedelta(0)}, {"expires_at": timedelta(seconds=-1)}],
    ids=["revoked", "expired"],
)
def test_a_token_that_is_over_lets_nobody_in(
    client_as: MakeClient, database: Database, change: dict[str, timedelta]
) -> None:
    viewer = client_as(Role.VIEWER)
    assert viewer.get(ME).status_code == 200
    with database.session_scope() as session:
        token = session.exec(select(ApiToken)).one()
        for name, offset in change.items():
            setattr(token, name, utc_now() + offset)
    assert viewer.get(ME).status_code == 401


def test_a_tokens_secret_is_stored_nowhere_and_its_use_is_noted(
    client_as: MakeClient, database: Database
) -> None:
    viewer = client_as(Role.VIEWER)
    secret = viewer.headers["Authorization"].removeprefix("Bearer ")
    viewer.get(ME)
    with database.session_scope(writes=False) as session:
        token = session.exec(select(ApiToken)).one()
    assert token.last_used_at is not None
    assert secret not in str(token.model_dump())
    assert secret.startswith(token.prefix)


def test_a_role_may_what_its_permissions_say(client_as: MakeClient) -> None:
    viewer, submitter = client_as(Role.VIEWER), client_as(Role.SUBMITTER)
    body = {"name": "train", "model": "bert"}
    refused = viewer.post(JOBS, json=body)
    assert refused.status_code == 403
    assert "jobs:submit" in refused.json()["detail"]
    assert viewer.get(JOBS).status_code == 200
    assert submitter.post(JOBS, json=body).status_code == 201
    assert (
        submitter.post("/api/v1/clusters", json={"name": "mine", "shape": "t4=1x4"}).status_code
        == 403
    )


def test_who_may_not_send_a_request_is_refused_before_its_body_is_read(
    client_as: MakeClient,
) -> None:
    answer = client_as(Role.VIEWER).post(
        JOBS, content=b"{", headers={"Content-Type": "application/json"}
    )

    assert answer.status_code == 403


def test_a_tokens_scopes_hold_it_to_less_than_its_user_may(client_as: MakeClient) -> None:
    narrow = client_as(Role.SUBMITTER, scopes=[Permission.JOBS_READ])
    assert narrow.get(ME).json()["permissions"] == ["jobs:read"]
    refused = narrow.post(JOBS, json={"name": "train", "model": "bert"})
    assert (refused.status_code, refused.json()["type"]) == (403, "/problems/out-of-scope")
    assert "does not have the scope jobs:submit" in refused.json()["detail"]
    above = narrow.post("/api/v1/clusters", json={"name": "mine", "shape": "t4=1x4"})
    assert (above.status_code, above.json()["type"]) == (403, "/problems/forbidden")


def test_another_tenants_things_are_not_there(client: TestClient, client_as: MakeClient) -> None:
    job = client.post(JOBS, json={"name": "secret", "model": "bert"}).json()
    body = {
        "name": "s",
        "traces": [{"kind": "generated", "jobs": 2, "hours": 1}],
        "cluster": "t4=1x4",
        "runs": [{}],
    }
    simulation = client.post("/api/v1/simulations", json=body).json()
    other = client_as(Role.TENANT_MANAGER, tenant="other")
    for path in (
        f"{JOBS}/{job['id']}",
        f"{JOBS}/{job['id']}/events",
        f"{JOBS}/{job['id']}/allocations",
        f"{JOBS}/{job['id']}/explanation",
        f"/api/v1/simulations/{simulation['id']}",
        f"/api/v1/simulations/{simulation['id']}/runs/{simulation['runs'][0]['id']}/result",
        f"/api/v1/operations/{simulation['operation_id']}",
    ):
        assert client.get(path).status_code in (200, 409)
        assert other.get(path).status_code == 404, path
    assert other.post(f"{JOBS}/{job['id']}/actions/cancel").status_code == 404
    assert (
        other.post(f"/api/v1/operations/{simulation['operation_id']}/actions/cancel").status_code
        == 404
    )
    listed = other.get(JOBS, params={"count": "exact"}).json()
    assert (listed["items"], listed["state_counts"], listed["total"]) == ([], {}, 0)
    assert other.get("/api/v1/simulations").json()["items"] == []
    assert other.get("/api/v1/operations").json()["items"] == []


def test_an_auditor_sees_all_tenants_and_changes_nothing(
    client: TestClient, client_as: MakeClient
) -> None:
    job = client.post(JOBS, json={"name": "secret", "model": "bert"}).json()
    auditor = client_as(Role.AUDITOR, tenant="other")
    assert auditor.get(f"{JOBS}/{job['id']}").status_code == 200
    assert auditor.post(f"{JOBS}/{job['id']}/actions/cancel").status_code == 403


def test_a_colleagues_job_is_for_its_owner_or_the_tenants_manager_to_cancel(
    client_as: MakeClient,
) -> None:
    owner, colleague = client_as(Role.SUBMITTER, name="ann"), client_as(Role.SUBMITTER, name="bob")
    manager = client_as(Role.TENANT_MANAGER)
    job = owner.post(JOBS, json={"name": "train", "model": "bert"}).json()["id"]
    cancel = f"{JOBS}/{job}/actions/cancel"
    assert colleague.post(cancel).status_code == 403
    assert owner.post(cancel).status_code == 200
    assert manager.post(cancel).status_code == 200


CROSS_SITE = [
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1:9999"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
]


@pytest.mark.parametrize("headers", CROSS_SITE, ids=str)
def test_a_request_that_another_site_made_is_refused(
    refusing: TestClient, headers: dict[str, str]
) -> None:
    answer = refusing.post(JOBS, json={"name": "train", "model": "bert"}, headers=headers)
    assert answer.status_code == 403
    assert answer.json()["type"] == "/problems/cross-site-request"
    assert refusing.get(JOBS).json()["items"] == []


def test_the_services_own_pages_may_post(client: TestClient) -> None:
    own = {"Origin": "http://127.0.0.1:8000", "Sec-Fetch-Site": "same-origin"}
    assert (
        client.post(JOBS, json={"name": "train", "model": "bert"}, headers=own).status_code == 201
    )


def test_the_routes_stand_below_the_version() -> None:
    assert PREFIX == "/api/v1"


def test_a_token_made_on_the_command_line_lets_its_user_in(
    app: FastAPI, database: Database
) -> None:
    secret = new_token(database, user_name="local", name="laptop", days=1)
    far_away = visitor(app, host="http://maat.example", address="10.0.0.9")
    assert far_away.get(ME, headers={"Authorization": f"Bearer {secret}"}).json()["user"] == "local"
    with pytest.raises(NotFound):
        new_token(database, user_name="nobody", name="laptop", days=None)


def test_the_first_token_is_given_once(
    database: Database, settings: Settings, app: FastAPI
) -> None:
    secret = first_token(database)

    assert secret is not None
    assert (
        visitor(app, host="http://maat.example", address="10.0.0.9")
        .get(ME, headers={"Authorization": f"Bearer {secret}"})
        .json()["user"]
        == "local"
    )
    assert first_token(database) is None
