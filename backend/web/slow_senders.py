"""The server's HTTP protocol with limits of time and size, which uvicorn does not offer.

    uvicorn frontend.app:app --http backend.web.slow_senders:HttpProtocol

Bodies have their own limit (bodies.py), since only a request whose head is known can be answered.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from backend.settings import get_settings
from backend.web.bodies import KIB

MOST_HEAD_BYTES = 256 * KIB


class _Lingering:
    """A transport whose connection stays open for what is left of a body, once it is answered.

    Closed at once, it would be reset, and the sender would never read that its body is too large.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.is_within_body = self.lingers = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def close(self) -> None:
        """End what is sent; close once the body has arrived, or when this is called again."""
        if self.is_within_body and not self.lingers and self._transport.can_write_eof():
            self.lingers = True
            self._transport.write_eof()
        else:
            self._transport.close()


class HttpProtocol(HttpToolsProtocol):
    """Closes a connection that begins a request and does not send its whole head in time.

    A connection begins one by being made, and by every byte after an answer. What is left of a
    body that nobody read counts as well. So does one whose head, or what else is no body, is too
    large: the parser would copy it again with every part that arrives.
    """

    _overdue: asyncio.TimerHandle | None = None
    _head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._lingering = _Lingering(transport)
        super().connection_made(self._lingering)  # type: ignore[arg-type]  # it passes all on
        self._expect_head()

    def data_received(self, data: bytes) -> None:
        known = self.cycle
        self._head_bytes += len(data)
        super().data_received(data)
        if self._lingering.lingers and self._head_bytes > MOST_HEAD_BYTES:
            self.transport.abort()
        elif self._head_bytes > MOST_HEAD_BYTES:
            self._lingering.is_within_body = False
            self.send_400_response(f"The head is larger than {MOST_HEAD_BYTES} bytes.")
        elif self.cycle is not known:
            self._expect_nothing()
        elif known is None or known.response_complete:
            self._expect_head()

    def on_headers_complete(self) -> None:
        self._lingering.is_within_body = True
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._head_bytes -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._head_bytes = 0
        self._lingering.is_within_body = False
        super().on_message_complete()
        if self._lingering.lingers:
            self.transport.close()

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
