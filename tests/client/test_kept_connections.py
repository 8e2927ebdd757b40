"""A client keeps a connection for its next call, and lets go of it before the service does."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
import uvicorn

from maat.client import Client, calls, clients


class Counting(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    connections = 0

    def setup(self) -> None:
        type(self).connections += 1
        super().setup()

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: Any) -> None:
        """Nothing is told of a request."""


@pytest.fixture
def url() -> Iterator[str]:
    Counting.connections = 0
    server = ThreadingHTTPServer(("127.0.0.1", 0), Counting)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_calls_that_follow_each_other_share_a_connection(url: str) -> None:
    with Client(url) as maat:
        maat.send(calls.health())
        maat.send(calls.health())
    assert Counting.connections == 1


def test_an_idle_connection_is_left(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "KEPT_SECONDS", 0.0)
    with Client(url) as maat:
        maat.send(calls.health())
        maat.send(calls.health())
    assert Counting.connections == 2


def test_a_client_leaves_an_idle_connection_before_the_service_does() -> None:
    assert uvicorn.Config("").timeout_keep_alive > clients.KEPT_SECONDS
