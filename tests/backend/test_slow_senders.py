"""Tests of requests that never end or have too large a head, on real connections of a real server.

Such a connection is closed, and those that send whole requests go on.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from backend.bootstrap_data import ensure_defaults
from backend.database import Database
from backend.settings import Settings
from benchmarks.service.real_server import PATIENCE_SECONDS, Server, serving
from maat.cli.up import HTTP_PROTOCOL

ROOT = Path(__file__).parents[2]
SECONDS = 2.0
HEAD = b"GET /api/v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\n"
POST = (
    b"POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    b"Content-Type: application/json\r\nContent-Length: 60000\r\n\r\n{"
)


@pytest.fixture(scope="module")
def server(module_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One for all tests, which leave nothing behind but closed connections."""
    folder, database = tmp_path_factory.mktemp("data"), Database(module_database_url)
    ensure_defaults(database, Settings(_env_file=None, data_dir=folder, demo=True))
    database.dispose()
    with serving(
        "frontend.app:create_app",
        module_database_url,
        folder,
        options=("--http", HTTP_PROTOCOL, "--log-level", "warning"),
        request_head_seconds=SECONDS,
        request_body_seconds=SECONDS,
        event_poll_seconds=0.05,
        event_heartbeat_seconds=0.1,
    ) as started:
        yield started


def connected(server: Server) -> socket.socket:
    address = urlsplit(server.url)
    return socket.create_connection((address.hostname, address.port), PATIENCE_SECONDS)


def until_closed(connection: socket.socket) -> bytes:
    """Return what arrives until the server closes; raise TimeoutError if it does not."""
    received = bytearray()
    while chunk := connection.recv(65536):
        received += chunk
    return bytes(received)


def dripping(connection: socket.socket, part: bytes) -> bytes:
    """Send a part again and again until the server closes; return what it answered."""
    received = bytearray()
    connection.settimeout(SECONDS / 10)
    for _ in range(round(PATIENCE_SECONDS / SECONDS * 10)):
        try:
            connection.sendall(part)
            chunk = connection.recv(65536)
        except TimeoutError:
            continue
        except ConnectionError:
            return bytes(received)
        if not chunk:
            return bytes(received)
        received += chunk
    raise TimeoutError("the server keeps the connection")


def ask(connection: socket.socket) -> socket.socket:
    connection.sendall(HEAD + b"\r\n")
    answer = HTTPResponse(connection)
    answer.begin()
    assert (answer.status, answer.will_close) == (200, False)
    answer.read()
    return connection


def problem_in(answer: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(answer.partition(b"\r\n\r\n")[2])
    return found


@pytest.mark.parametrize("sent", [b"", b"G", HEAD, HEAD + b"X-Long: "])
def test_a_head_that_does_not_end_closes_the_connection(server: Server, sent: bytes) -> None:
    with connected(server) as connection:
        connection.sendall(sent)
        assert until_closed(connection) == b""
    assert httpx.get(f"{server.url}/api/v1/health", timeout=PATIENCE_SECONDS).is_success


def test_a_head_that_drips_closes_the_connection_and_so_does_a_second_one(server: Server) -> None:
    with connected(server) as connection:
        connection.sendall(HEAD)
        assert dripping(connection, b"X: y\r\n") == b""
    with connected(server) as connection:
        connection.sendall(HEAD + b"\r\n" + HEAD)
        assert dripping(connection, b"X: y\r\n").count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize(
    "begun", [HEAD + b"X: ", HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: "]
)
def test_a_head_that_is_too_large_closes_the_connection(server: Server, begun: bytes) -> None:
    with connected(server) as connection:
        connection.sendall(begun)
        with pytest.raises(ConnectionError):
            connection.sendall(b"x" * 100_000_000)


@pytest.mark.parametrize("chunked", [False, True])
def test_a_large_body_is_no_head(server: Server, chunked: bool) -> None:
    text = "name,time,application,num_replicas,batch_size\n" + "#" * 4_000_000
    content = json.dumps({"traces": [{"kind": "csv", "text": text}]}).encode()
    parts = (content[at : at + 65536] for at in range(0, len(content), 65536))
    answer = httpx.post(
        f"{server.url}/api/v1/simulations",
        content=parts if chunked else content,
        headers={"Content-Type": "application/json"},
        timeout=PATIENCE_SECONDS,
    )
    assert answer.status_code == 422


@pytest.mark.parametrize("token", ["maat_unknown", None])
@pytest.mark.parametrize("chunked", [False, True])
def test_who_closes_after_a_body_that_is_too_large_is_answered(
    server: Server, token: str | None, chunked: bool
) -> None:
    address = urlsplit(server.url)
    assert address.hostname is not None
    connection = HTTPConnection(address.hostname, address.port, timeout=PATIENCE_SECONDS)
    headers = {"Content-Type": "application/json", "Connection": "close"}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    if chunked:
        headers["Transfer-Encoding"] = "chunked"
        parts = (b"x" * 65536 for _ in range(512))
        connection.request("POST", "/api/v1/jobs", parts, headers, encode_chunked=True)
    else:
        connection.request("POST", "/api/v1/jobs", b"x" * (32 << 20), headers)
    with connection.getresponse() as answer:
        assert (answer.status, answer.will_close) == (413 if token is None else 401, True)
        assert json.loads(answer.read())["status"] == answer.status


@pytest.mark.parametrize("path", [b"/api/v1/jobs", b"/_dash-update-component"])
def test_a_body_that_does_not_end_is_answered_408_and_the_connection_closed(
    server: Server, path: bytes
) -> None:
    with connected(server) as connection:
        connection.sendall(POST % path)
        answer = until_closed(connection)
    assert answer.startswith(b"HTTP/1.1 408 ")
    problem = problem_in(answer)
    assert problem["type"] == "/problems/body-too-slow"
    assert f"{SECONDS:g} s" in problem["detail"]
    with connected(server) as connection:
        connection.sendall(POST % path)
        assert dripping(connection, b" ").startswith(b"HTTP/1.1 408 ")


def test_a_body_that_nobody_reads_does_not_keep_the_connection(server: Server) -> None:
    with connected(server) as connection:
        connection.sendall(HEAD + b"Content-Length: 1000000\r\n\r\n")
        assert dripping(connection, b" ").startswith(b"HTTP/1.1 200 ")


def test_many_clients_that_keep_their_connection_and_a_long_answer_go_on(server: Server) -> None:
    with ExitStack() as stack:
        events = stack.enter_context(
            httpx.stream("GET", f"{server.url}/api/v1/events", timeout=PATIENCE_SECONDS)
        )
        beats = (line for line in events.iter_lines() if line.startswith(":"))
        with ThreadPoolExecutor(40) as pool:
            connections = list(pool.map(ask, [connected(server) for _ in range(400)]))
            assert list(pool.map(ask, connections)) == connections
        for _ in range(round(3 * SECONDS / 0.1)):
            next(beats)


def test_the_container_serves_as_maat_up_does() -> None:
    assert f'"--http", "{HTTP_PROTOCOL}"' in (ROOT / "Dockerfile").read_text()
