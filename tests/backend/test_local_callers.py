"""Tests of who counts as local: the same for the REST API and for a page's calls to it.

Some use real connections.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
import uvicorn
from fastapi import FastAPI, Request
from fastapi.testclient import TestClient

from backend.accounts import locality
from backend.accounts.peers import user_behind
from backend.accounts.permissions import Role
from frontend.api import Api
from maat.client import ApiError

ME = "/api/v1/me"
PASSED_ON = {
    "Via": "1.1 varnish",
    "Forwarded": "for=10.0.0.9",
    "X-Forwarded-For": "10.0.0.9",
    "X-Forwarded-Proto": "https",
    "X-Forwarded-Prefix": "/maat",
    "X-FORWARDED-ANYTHING": "1",
    "X-Real-IP": "8.8.8.8",
    "X-Client-IP": "8.8.8.8",
    "CF-Connecting-IP": "8.8.8.8",
    "True-Client-IP": "8.8.8.8",
    "X-Remote-Addr": "8.8.8.8",
    "X-Azure-ClientIP": "8.8.8.8",
    "X-Scheme": "https",
    "X_Forwarded_For": "8.8.8.8",
    "Forwarded-For": "8.8.8.8",
    "X-Nobody-Ever-Heard-Of": "1",
}
LOCAL = ("http://127.0.0.1:8000", "http://localhost", "http://[::1]:8000")
ELSEWHERE = (
    ("http://evil.example", "127.0.0.1"),
    ("http://127.0.0.1:8000", "10.0.0.9"),
    ("http://127.0.0.1.evil.example", "127.0.0.1"),
)


@pytest.fixture
def app(changeable_app: FastAPI) -> FastAPI:
    """Tests here add routes."""
    return changeable_app


def add_page_route(app: FastAPI) -> None:
    """A stand-in for a callback: asks the service as its visitor, as every page does."""

    async def as_page(request: Request) -> dict[str, Any]:
        try:
            async with Api(app).client_of(request.scope) as maat:
                await maat.clusters()
                return {"status": 200}
        except ApiError as error:
            return {"status": error.status}

    app.add_api_route("/as-page", as_page)
    app.router.routes.insert(0, app.router.routes.pop())


def both(
    app: FastAPI,
    *,
    host: str = "http://127.0.0.1:8000",
    address: str = "127.0.0.1",
    headers: dict[str, str] | None = None,
) -> set[int]:
    """The statuses that the REST API and a page give the same visitor."""
    client = TestClient(
        app, base_url=host, client=(address, 50000), headers=headers, raise_server_exceptions=False
    )
    return {client.get(ME).status_code, client.get("/as-page").json()["status"]}


def test_a_visitor_of_this_machine_is_the_local_admin_everywhere(app: FastAPI) -> None:
    assert {host: both(app, host=host) for host in LOCAL} == {key: {200} for key in LOCAL}


def test_any_mark_of_a_proxy_makes_a_visitor_not_local_everywhere(app: FastAPI) -> None:
    answers = {name: both(app, headers={name: value}) for name, value in PASSED_ON.items()}

    assert answers == {key: {401} for key in PASSED_ON}


def test_another_name_or_another_machine_is_not_local_anywhere(app: FastAPI) -> None:
    answers = {
        (host, address): both(app, host=host, address=address) for host, address in ELSEWHERE
    }

    assert answers == {key: {401} for key in ELSEWHERE}


def test_a_request_that_names_no_machine_or_two_is_not_local(app: FastAPI) -> None:
    async def status(hosts: list[bytes]) -> int:
        async def with_hosts(scope: Any, receive: Any, send: Any) -> None:
            others = [pair for pair in scope["headers"] if pair[0] != b"host"]
            await app(
                {**scope, "headers": [*others, *((b"host", host) for host in hosts)]}, receive, send
            )

        transport = httpx.ASGITransport(app=with_hosts, client=("127.0.0.1", 50000))
        async with httpx.AsyncClient(
            transport=transport, base_url="http://127.0.0.1:8000"
        ) as client:
            return (await client.get(ME)).status_code

    answers = {
        hosts: asyncio.run(status(list(hosts)))
        for hosts in ((b"localhost",), (), (b"",), (b"localhost", b"evil.com"))
    }

    assert list(answers.values()) == [200, 401, 401, 401]


def test_a_token_works_through_a_proxy_everywhere(app: FastAPI, client_as: Any) -> None:
    authorization = client_as(Role.VIEWER).headers["authorization"]

    assert both(app, headers={"Authorization": authorization, "X-Forwarded-For": "10.0.0.9"}) == {
        200
    }


def test_old_http_is_a_proxys(app: FastAPI) -> None:
    """By default nginx sends HTTP/1.0 to the service, with the upstream's name as the host."""

    async def statuses() -> set[int]:
        async def old(scope: Any, receive: Any, send: Any) -> None:
            await app({**scope, "http_version": "1.0"}, receive, send)

        transport = httpx.ASGITransport(app=old, client=("127.0.0.1", 50000))
        async with httpx.AsyncClient(
            transport=transport, base_url="http://127.0.0.1:8000"
        ) as client:
            return {
                (await client.get(ME)).status_code,
                (await client.get("/as-page")).json()["status"],
            }

    assert asyncio.run(statuses()) == {401}


@pytest.fixture(autouse=True)
def page_route(app: FastAPI) -> None:
    add_page_route(app)


@contextmanager
def served(app: FastAPI) -> Iterator[str]:
    """The application on a real socket."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
        thread = threading.Thread(target=lambda: server.run(sockets=[listener]), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        thread.join()


@pytest.fixture
def telling_app(app: FastAPI) -> FastAPI:
    app.state.user_behind = locality.asking_the_system()
    return app


@pytest.mark.skipif(
    locality.asking_the_system() is None, reason="this system does not tell whose a connection is"
)
@pytest.mark.parametrize(("ours", "status"), [(True, 200), (False, 401)])
def test_a_connection_of_another_user_of_this_machine_is_not_local(
    telling_app: FastAPI, monkeypatch: pytest.MonkeyPatch, ours: bool, status: int
) -> None:
    """A proxy of another user is recognised, even without headers and with a local host name."""
    me = os.geteuid()
    monkeypatch.setattr(locality, "trusted_users", lambda: frozenset({me if ours else me + 1}))
    with served(telling_app) as url, httpx.Client(base_url=url, trust_env=False) as client:
        assert {client.get(ME).status_code, client.get("/as-page").json()["status"]} == {status}


@pytest.mark.skipif(
    locality.asking_the_system() is None, reason="this system does not tell whose a connection is"
)
def test_the_system_tells_whose_an_open_connection_is_and_nothing_of_a_closed_one() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as client,
    ):
        accepted, address = listener.accept()
        with accepted:
            assert user_behind(address, listener.getsockname()) == os.geteuid()
            client.close()
            assert user_behind(address, listener.getsockname()) is None
    assert user_behind(("127.0.0.1", 1), ("127.0.0.1", 2)) is None


@pytest.mark.parametrize(
    ("effective", "sudo", "trusted"),
    [
        (1000, None, {0, 1000}),
        (1000, "1001", {0, 1000}),
        (0, "1001", {0, 1001}),
        (0, None, {0}),
        (0, "x", {0}),
    ],
)
def test_the_user_who_called_sudo_counts_as_who_runs_maat(
    monkeypatch: pytest.MonkeyPatch, effective: int, sudo: str | None, trusted: set[int]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: effective)
    monkeypatch.delenv("SUDO_UID", raising=False)
    if sudo is not None:
        monkeypatch.setenv("SUDO_UID", sudo)

    assert locality.trusted_users.__wrapped__() == trusted
