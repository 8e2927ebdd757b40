"""A cheap keep-alive connection: sends bytes, returns status and duration."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Reply:
    status: int
    seconds: float
    retry_after: bool
    body: bytes


def request_bytes(method: str, path: str, *, token: str = "", body: bytes = b"") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", "Connection: keep-alive"]
    if token:
        lines.append(f"Authorization: Bearer {token}")
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode() + body


class Connection:
    """Connects on the first request, and again after the server closed it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def ask(self, request: bytes) -> Reply:
        """Send a request.

        Raises OSError or EOFError if the connection breaks before the answer.
        """
        begun = time.perf_counter()
        if self._reader is None or self._writer is None:
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        self._writer.write(request)
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        body = await _body(self._reader, head)
        if b"connection: close" in head:
            self.close()
        return Reply(
            int(head[9:12]), time.perf_counter() - begun, b"\r\nretry-after:" in head, body
        )

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._reader = self._writer = None


async def _body(reader: asyncio.StreamReader, head: bytes) -> bytes:
    _, said, rest = head.partition(b"\r\ncontent-length:")
    if said:
        return await reader.readexactly(int(rest.partition(b"\r\n")[0]))
    if b"transfer-encoding: chunked" not in head:
        return b""
    parts = []
    while size := int(await reader.readline(), 16):
        parts.append(await reader.readexactly(size))
        await reader.readexactly(2)
    await reader.readexactly(2)
    return b"".join(parts)
