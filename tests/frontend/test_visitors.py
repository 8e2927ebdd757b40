"""Who may see which page, and what every callback of the pages does for every role.

A page calls the API as its visitor. So the walk looks at what the API answered, and at what was
written: nothing for those who may only read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import sqlalchemy as sa
from fastapi import FastAPI
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from sqlmodel import Session
from starlette.routing import Match
from two_tenants import World, make_world
from walking import Page, Seen

from backend.accounts.models import Tenant, User
from backend.accounts.permissions import PERMISSIONS, Permission, Role
from backend.accounts.tokens import create_token
from backend.app import PREFIX, ROUTERS
from frontend.shell import NAVIGATION

FAR = "http://maat.example"
TABS = ["/admin?tab=clusters", "/admin?tab=quotas", "/admin?tab=audit"]
PAGES = [path for _, path, _ in NAVIGATION] + [*TABS, "/account", "/sign-in"]
READERS = (Role.VIEWER, Role.AUDITOR)
# One that reads and one that also writes; `make test-long` walks as every role.
SAMPLED = (Role.VIEWER, Role.TENANT_MANAGER)
# Written by who reads: when a token was last used; that they signed out elsewhere.
OF_READING = {"api_tokens", "audit_records", "forecast_interest"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = make_world(tmp_path_factory.mktemp("maat"))
    yield made
    made.database.dispose()


@pytest.fixture(scope="module")
def started(world: World) -> Iterator[FastAPI]:
    with TestClient(world.app, base_url=FAR, client=("10.0.0.9", 1)) as local:
        assert local.get("/_dash-dependencies").status_code == 200
        yield world.app


@pytest.fixture(scope="module")
def headers(world: World) -> dict[Role, dict[str, str]]:
    """Of a user of each role, in a tenant of their own."""
    with world.database.session_scope() as session:
        tenant = Tenant(name="walkers")
        session.add(tenant)
        session.flush()
        return {role: _headers(session, tenant, role) for role in Role}


def _headers(session: Session, tenant: Tenant, role: Role) -> dict[str, str]:
    user = User(name=f"walking {role.value}", tenant_id=tenant.id, role=role.value)
    session.add(user)
    session.flush()
    return {"Authorization": f"Bearer {create_token(session, user, name='walk')}"}


def browser(app: FastAPI, headers: Mapping[str, str]) -> TestClient:
    return TestClient(
        app,
        base_url=FAR,
        client=("10.0.0.9", 1),
        headers=dict(headers),
        follow_redirects=False,
        raise_server_exceptions=False,
    )


class Calls:
    """What the pages asked the API, by looking at every answer that passes."""

    def __init__(self, app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[tuple[str, str, int]] = []
        inner = app.middleware_stack
        assert inner is not None

        async def watching(scope: Any, receive: Any, send: Any) -> None:
            async def told(message: Any) -> None:
                if message["type"] == "http.response.start" and scope["path"].startswith("/api/"):
                    self.seen.append((scope["method"], scope["path"], message["status"]))
                await send(message)

            await inner(scope, receive, told)

        monkeypatch.setattr(app, "middleware_stack", watching)


def rows(world: World) -> dict[str, str]:
    """What every table holds."""
    with world.database.session_scope(writes=False) as session:
        tables = sa.inspect(session.connection()).get_table_names()
        return {
            table: str(sorted(map(str, session.execute(sa.text(f'SELECT * FROM "{table}"')))))
            for table in tables
            if table not in OF_READING
        }


def pages_of(world: World) -> list[str]:
    whose = world.blue
    details = ("jobs", "simulations", "sweeps", "experiments")
    return [*PAGES, "/rounds/5", *(f"/{noun}/{whose[noun][0]}" for noun in details)]


def walk(world: World, client: TestClient) -> list[Seen]:
    """Every callback of every page with every button pressed, as a browser calls them."""
    settings = {"cluster-select.value": world.cluster_id, "scheme.data": "light", "live.data": 1}
    said = {
        "at": 1,
        "action": "drain",
        "node": "t4-0",
        "told": "x",
        "reservation": world.blue["reservations"][0],
        "id": world.blue["measurements"][0],
        "measurement": world.blue["measurements"][0],
        "operation": world.blue["operations"][0],
        "name": "x",
        "user": "blue viewer",
        "role": "submitter",
        "state": "off",
        "tenant": "blue tenant",
        "session": "ses_nothing",
        "token": "tok_nothing",
        "gpu_type": "t4",
        "guaranteed": "1",
        "ceiling": "",
        "version": "1",
        "gpus": "4",
        "cluster": world.cluster_id,
        "round_seconds": "60.0",
        "speed": "1.0",
        "keep_rounds": "100",
        "jobs_per_gpu": "1",
        "interference": "",
        "least_stay_seconds": "1800.0",
        "most_moves_per_hour": "",
        "paused": "",
        "paper": "pal",
        "item": "fig-13",
        "size": "quick",
        "kind": "speed",
        "cost": "x",
    }
    answers: dict[str, Any] = {}
    pages = (Page(client, path, settings, said, answers) for path in pages_of(world))
    return [one for page in pages for one in page.run()]


def permission_of(app: FastAPI, method: str, path: str) -> Permission | None:
    """What the route of this request asks for; None if it is for everybody."""
    for router in ROUTERS:
        for route in router.routes:
            scope = {"type": "http", "method": method, "path": path.removeprefix(PREFIX)}
            if route.matches(scope)[0] is Match.FULL:
                assert isinstance(route, APIRoute)
                return next(_permissions(route.dependant), None)
    raise AssertionError(f"no route for {method} {path}")


def _permissions(dependant: Any) -> Iterator[Permission]:
    if hasattr(dependant.call, "permission"):
        yield dependant.call.permission
    for inner in dependant.dependencies:
        yield from _permissions(inner)


@pytest.mark.parametrize(
    "role", [pytest.param(r, marks=() if r in SAMPLED else pytest.mark.long) for r in Role], ids=str
)
def test_no_callback_does_more_than_its_visitors_role_may(
    started: FastAPI,
    world: World,
    headers: dict[Role, dict[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    role: Role,
) -> None:
    calls, before = Calls(started, monkeypatch), rows(world)
    seen = walk(world, browser(started, headers[role]))
    assert {one.where: one.answer for one in seen if one.status not in (200, 204)} == {}
    done = {(method, path) for method, path, status in calls.seen if status < 300}
    asked = {permission_of(started, *one) for one in done} - {None}
    assert asked <= set(PERMISSIONS[role])
    assert Permission.JOBS_READ in asked
    if role in READERS:
        assert rows(world) == before


def test_a_stranger_gets_nothing_out_of_any_callback(
    started: FastAPI, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, before = Calls(started, monkeypatch), rows(world)
    walk(world, browser(started, {}))
    answered = {(method, path) for method, path, status in calls.seen if status != 401}
    assert answered == {("GET", f"{PREFIX}/sign-in-ways")}
    assert len(calls.seen) > 20
    assert rows(world) == before


@pytest.mark.parametrize("path", ["/", "/jobs?state=running&q=a%20b", "/admin", "/account"])
def test_who_is_not_signed_in_is_led_to_the_page_for_it_and_back(
    started: FastAPI, headers: dict[Role, dict[str, str]], path: str
) -> None:
    sent = browser(started, {}).get(path)
    assert sent.status_code == 303
    where = urlsplit(sent.headers["location"])
    assert (where.path, parse_qs(where.query)["next"]) == ("/sign-in", [path])
    assert browser(started, headers[Role.VIEWER]).get(path).status_code == 200
    assert browser(started, {}).get("/sign-in").status_code == 200
    assert browser(started, {}).get("/no/such/page").status_code == 404


@pytest.mark.parametrize("role", list(Role), ids=str)
def test_the_navigation_offers_what_the_role_may_open(
    started: FastAPI, headers: dict[Role, dict[str, str]], role: Role
) -> None:
    seen = Page(browser(started, headers[role]), "/", {}, None).run()
    (told,) = {one.answer for one in seen if "visitor.title" in one.where}
    response = json.loads(told[told.index('{"multi"') :])["response"]
    (link,) = [held for name, held in response.items() if '"nav":"admin"' in name]
    assert (link["style"]["display"] == "") is (Permission.USERS_READ in PERMISSIONS[role])
