"""A server that takes reports as Maat's does: each number once, and nothing that is malformed."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from pydantic import ValidationError

from maat.api.attempts import ReportBody, ReportOut

Answer = tuple[int, dict[str, Any]]


class Server:
    """Keeps what it takes in. `answer` may refuse a report: it returns status and body."""

    def __init__(self) -> None:
        self.taken: list[ReportBody] = []
        self.heard: list[dict[str, Any]] = []
        self.malformed: list[str] = []
        self.tokens: set[str] = set()
        self.paths: set[str] = set()
        self.answer: Callable[[ReportBody], Answer | None] = lambda _: None
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                data = self.rfile.read(int(self.headers["Content-Length"]))
                outer.tokens.add(self.headers["Authorization"])
                outer.paths.add(self.path)
                status, body = outer.take(data)
                self.send_response(status)
                self.end_headers()
                self.wfile.write(json.dumps(body).encode())

            def log_message(self, *_: object) -> None:
                return

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"

    def take(self, data: bytes) -> Answer:
        self.heard.append(json.loads(data))
        try:
            body = ReportBody.model_validate_json(data)
        except ValidationError as error:
            self.malformed.append(str(error))
            return 422, {"type": "invalid"}
        answer = self.answer(body)
        if answer is not None and answer[0] != 200:
            return answer
        if not self.taken or body.sequence > self.taken[-1].sequence:
            self.taken.append(body)
        out = ReportOut(accepted=body.sequence, plan=None, stop=False, report_seconds=0.1)
        return 200, {**out, **({} if answer is None else answer[1])}

    def __enter__(self) -> Server:
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
