"""A server that receives webhooks, in a thread: it notes what comes and answers as it is told."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Receiver:
    """`answers`: statuses for the next messages, then 204. `hold`: answers wait for it."""

    port: int = 0
    answers: list[int] = field(default_factory=list)
    received: list[tuple[dict[str, str], bytes, str]] = field(default_factory=list)
    hold: threading.Event = field(default_factory=threading.Event)
    arrived: threading.Event = field(default_factory=threading.Event)

    def url(self, host: str = "127.0.0.1", scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.port}/hook?x=1"

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body, _ in self.received]

    def ids(self) -> list[str]:
        return [headers["Maat-Event-Id"] for headers, _, _ in self.received]


@contextmanager
def receiving(*answers: int, tls: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    receiver = Receiver(answers=list(answers))
    receiver.hold.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.received.append((dict(self.headers), body, self.path))
            receiver.arrived.set()
            receiver.hold.wait(30)
            status = receiver.answers.pop(0) if receiver.answers else 204
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    receiver.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.hold.set()
        server.shutdown()
        server.server_close()
        thread.join()
