"""The server's HTTP protocol with limits of time and size, which uvicorn does not offer.

    uvicorn frontend.app:app --http backend.web.slow_senders:HttpProtocol

Bodies have their own limit (bodies.py), since only a request whose head is known can be answered.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from backend.settings import get_settings
from backend.web.bodies import KIB

MOST_HEAD_BYTES = 256 * KIB


class HttpProtocol(HttpToolsProtocol):
    """Closes a connection that begins a request and does not send its whole head in time.

    A connection begins one by being made, and by every byte after an answer. What is left of a
    body that nobody read counts as well. So does one whose head, or what else is no body, is too
    large: the parser would copy it again with every part that arrives.
    """

    _overdue: asyncio.TimerHandle | None = None
    _head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_head()

    def data_received(self, data: bytes) -> None:
        known = self.cycle
        self._head_bytes += len(data)
        super().data_received(data)
        if self._head_bytes > MOST_HEAD_BYTES:
            self.send_400_response(f"The head is larger than {MOST_HEAD_BYTES} bytes.")
        elif self.cycle is not known:
            self._expect_nothing()
        elif known is None or known.response_complete:
            self._expect_head()

    def on_body(self, body: bytes) -> None:
        self._head_bytes -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._head_bytes = 0
        super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect_nothing()
        super().connection_lost(exc)

    def _expect_head(self) -> None:
        if self._overdue is None:
            seconds = get_settings().request_head_seconds
            self._overdue = self.loop.call_later(seconds, self._close)

    def _expect_nothing(self) -> None:
        if self._overdue is not None:
            self._overdue.cancel()
            self._overdue = None

    def _close(self) -> None:
        self._overdue = None
        if self in self.connections:  # a WebSocket takes its connection over
            self.transport.abort()
