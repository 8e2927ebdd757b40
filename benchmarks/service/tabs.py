"""Fifty open pages beside one: what they cost the service, and how soon they show a round.

A page is opened once in Chromium, and the calls are noted with which it refreshes after a change.
Then open pages are played: each holds an event stream of its own, and sends these calls after a
change as assets/heartbeat.js does. So the service does all that it does for browsers, and no
browser takes its CPU.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from playwright.sync_api import Request, sync_playwright

from benchmarks.service.http_client import Connection
from benchmarks.service.running import Running, busy_cluster, running
from benchmarks.service.served import cpu_seconds_of
from benchmarks.table import Cell, Figures
from maat.client import calls

TITLE = "Open pages: what they cost the service, and how soon they show a round"
COLUMNS = {
    "page": "page",
    "pages": "pages open",
    "rounds": "rounds",
    "calls": "calls of a page for a round",
    "cpu": "CPU s of the service for a round",
    "more": "more than without",
    "ratio": "x one page",
    "shown": "commit to shown, p50 (s)",
    "late": "p95",
    "still": "CPU s a minute while nothing changes",
}
GPUS, JOBS, SPEED = 2048, 2000, 6.0  # a round each 10 s
WATCHED, STILL_SECONDS, SETTLE_SECONDS = 40.0, 20.0, 8.0
MOST_SETTLINGS = 5  # of a page on a busy machine
PAGES = {"/": "overview-", "/cluster": "cluster-drawing", "/jobs": ""}
"""Of each page, what the call of its own refresh sets; the jobs' grid asks by itself."""
MANY = 50
AT_ONCE = 6  # connections of a browser to one address
BETWEEN_SECONDS, REFRESH_SECONDS = 5.0, 30.0  # as in assets/heartbeat.js
STREAM = "/api/v1/events?topics=rounds,jobs,operations,health&brief=true"
_CALL = "/_dash-update-component"
_NOT_SENT_AGAIN = ("content-length", "host", "connection", "accept-encoding")
_DRAWING = "-drawing"
_GZIP = b"\x1f\x8b"  # short answers are not compressed


@dataclass(frozen=True)
class Refresh:
    """One call of a page after a change: its address, headers and body, but for what changes."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]

    def request(self, at: str, state: Mapping[str, Any]) -> bytes:
        given = [
            {**entry, "value": {"at": at}} if entry.get("id") == "live" else entry
            for entry in self.body["inputs"]
        ]
        known = [
            {**one, "value": state.get(f"{one['id']}.{one['property']}", one.get("value"))}
            for one in self.body.get("state", [])
        ]
        body = json.dumps(self.body | {"inputs": given, "state": known}).encode()
        lines = [
            f"POST {self.path} HTTP/1.1",
            "Host: 127.0.0.1",
            "Accept-Encoding: gzip",
            f"Content-Length: {len(body)}",
            *(f"{name}: {value}" for name, value in self.headers.items()),
        ]
        return "\r\n".join([*lines, "", ""]).encode() + body


class Shown:
    """What all pages hold, since each was told the same: what an answer set is sent with the next.

    It changes with the version of a change, so that all pages send the same after it.
    """

    def __init__(self) -> None:
        self._version, self._sent, self._newest = "", dict[str, Any](), dict[str, Any]()

    def at(self, version: str) -> Mapping[str, Any]:
        if version != self._version:
            self._version, self._sent = version, dict(self._newest)
        return self._sent

    def learn(self, body: bytes) -> None:
        text = gzip.decompress(body) if body.startswith(_GZIP) else body
        for element, values in json.loads(text).get("response", {}).items():
            self._newest |= {f"{element}.{name}": value for name, value in values.items()}
            if element.endswith(_DRAWING) and "digests" in (drawn := values.get("data") or {}):
                self._draw(f"{element.removesuffix(_DRAWING)}-known.data", drawn)

    def know(self, refreshes: Sequence[Refresh]) -> None:
        """Take in what the pages had drawn when their refreshes were noted."""
        for one in refreshes:
            for entry in one.body.get("state", []):
                self._newest.setdefault(f"{entry['id']}.{entry['property']}", entry.get("value"))

    def _draw(self, known: str, drawn: Mapping[str, Any]) -> None:
        """Note what assets/cluster_map.js has drawn by then: the digest of each node."""
        before = (self._newest.get(known) or {}).get("digests", [])
        digests = [*before, *[""] * drawn["count"]][: drawn["count"]]
        for place, digest in drawn["digests"].items():
            digests[int(place)] = digest
        self._newest[known] = {"scheme": drawn["scheme"], "digests": digests}


@dataclass
class OpenPage:
    """One page that is open. `refreshed`: the wall time at which each refresh was whole.

    `learns`: it notes for all what the answers set.
    """

    port: int
    refreshes: list[Refresh]
    shown: Shown
    learns: bool
    refreshed: list[float] = field(default_factory=list)

    async def watch(self) -> None:
        """Follow the changes until it is cancelled."""
        due = asyncio.Queue[str]()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._hear(due))
            group.create_task(self._refresh(due))

    async def _hear(self, due: asyncio.Queue[str]) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            head = f"GET {STREAM} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n"
            writer.write(head.encode())
            kind = ""
            while line := (await reader.readline()).decode().strip():
                if line.startswith("HTTP/1.1 ") and " 200 " not in line:
                    raise RuntimeError(line)
            while raw := await reader.readline():
                line = raw.decode().strip()
                if line.startswith("event:"):
                    kind = line.removeprefix("event:").strip()
                elif line.startswith("data:") and kind == "caught-up":
                    due.put_nowait(json.loads(line.removeprefix("data:"))["version"])
        finally:
            writer.close()

    async def _refresh(self, due: asyncio.Queue[str]) -> None:
        connections = [Connection(self.port) for _ in range(AT_ONCE)]
        last = 0.0
        while True:
            version = await due.get()
            await asyncio.sleep(max(0.0, BETWEEN_SECONDS - (time.time() - last)))
            while not due.empty():
                version = due.get_nowait()
            last = time.time()
            at = f"{version}/{int(last // REFRESH_SECONDS)}"
            waiting = [one.request(at, self.shown.at(at)) for one in self.refreshes]
            await asyncio.gather(*(self._send(connection, waiting) for connection in connections))
            self.refreshed.append(time.time())

    async def _send(self, connection: Connection, waiting: list[bytes]) -> None:
        while waiting:
            request = waiting.pop()
            try:
                reply = await connection.ask(request)
            except (EOFError, OSError):  # the service has closed a connection that was long idle
                connection.close()
                reply = await connection.ask(request)
            if reply.status >= 300:
                raise RuntimeError(f"answered {reply.status}: {reply.body[:200]!r}")
            if self.learns and reply.status == 200:
                self.shown.learn(reply.body)


def measure() -> Figures:
    """Measure; skipped, with its name, if Chromium is missing."""
    chromium = shutil.which("chromium")
    if chromium is None:
        return Figures("tabs", TITLE, COLUMNS, [], ["skipped: needs the Debian package chromium"])
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as maat:
        cluster = busy_cluster(maat.client, GPUS, JOBS, speed=SPEED)
        noted = {
            page: _noted(maat, chromium, f"{page}?cluster={cluster}", sets=sets)
            for page, sets in PAGES.items()
        }
        base = _watched(maat, cluster, [], 0)
        rows: list[dict[str, Cell]] = [{"page": "none", **base}]
        for page, refreshes in noted.items():
            one, many = (_watched(maat, cluster, refreshes, count) for count in (1, MANY))
            for row in (one, many):
                row["more"] = _number(row["cpu"]) - _number(base["cpu"])
            many["ratio"] = _number(many["more"]) / _number(one["more"])
            rows += [{"page": page, **one}, {"page": page, **many}]
        maat.client.send(calls.act_on_cluster(cluster, "pause"))
        for row, refreshes, count in (
            (rows[0], [], 0),
            (rows[2], noted["/"], MANY),
        ):
            row["still"] = _still(maat, refreshes, count)
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    notes = [
        f"{GPUS:,} GPUs, {JOBS:,} jobs, a round each {60 / SPEED:.0f} s, SQLite, {WATCHED:.0f} s a "
        f"row; load average at the end: {load}",
        "One visitor has all pages, each with a stream of its own. Shown: the last answer of a "
        "page's first refresh after the commit has come; what Chromium then draws is not in it.",
    ]
    return Figures("tabs", TITLE, COLUMNS, rows, notes)


def _number(cell: Cell) -> float:
    assert isinstance(cell, float)
    return cell


def _noted(maat: Running, chromium: str, address: str, *, sets: str) -> list[Refresh]:
    """Open a page and return the calls of one refresh, that which `sets` its parts among them."""
    found: dict[str, Refresh] = {}

    def note(request: Request) -> None:
        if _CALL not in request.url:
            return
        body = request.post_data_json
        if body.get("changedPropIds") == ["live.data"]:
            headers = {
                name: value
                for name, value in request.headers.items()
                if name not in _NOT_SENT_AGAIN
            }
            path = request.url.removeprefix(maat.client.url)
            found[body["output"]] = Refresh(path, headers, body)

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.on("request", note)
        page.goto(maat.client.url + address)
        for _ in range(MOST_SETTLINGS):
            page.wait_for_timeout(1000 * (SETTLE_SECONDS + 3 * 60 / SPEED))
            if any(sets in output for output in found):
                break
        browser.close()
    if not any(sets in output for output in found):
        raise RuntimeError(f"{address} did not refresh")
    return list(found.values())


def _watched(maat: Running, cluster: str, refreshes: list[Refresh], count: int) -> dict[str, Cell]:
    """Let so many pages be open for a while."""
    pages = _pages(maat, refreshes, count)
    began, cpu = asyncio.run(_played(maat, pages, WATCHED))
    rounds = len(_commits(maat, cluster, since=began, until=began + WATCHED))
    commits = _commits(maat, cluster, since=began, until=began + WATCHED - BETWEEN_SECONDS)
    waits = [
        min(shown - commit for shown in page.refreshed if shown > commit)
        for page in pages
        for commit in commits
        if page.refreshed and page.refreshed[-1] > commit
    ]
    return {
        "pages": count,
        "rounds": rounds,
        "calls": len(refreshes) if count else None,
        "cpu": cpu / max(rounds, 1),
        "shown": median(waits) if waits else None,
        "late": quantiles(waits, n=20)[-1] if len(waits) > 1 else None,
    }


def _still(maat: Running, refreshes: list[Refresh], count: int) -> float:
    """Return the CPU seconds of the service in a minute in which nothing changes."""
    pages = _pages(maat, refreshes, count)
    return asyncio.run(_played(maat, pages, STILL_SECONDS))[1] / STILL_SECONDS * 60


def _pages(maat: Running, refreshes: list[Refresh], count: int) -> list[OpenPage]:
    port, shown = int(maat.client.url.rpartition(":")[2]), Shown()
    shown.know(refreshes)
    return [OpenPage(port, refreshes, shown, learns=index == 0) for index in range(count)]


async def _played(maat: Running, pages: list[OpenPage], seconds: float) -> tuple[float, float]:
    """Return when the measurement began, and the CPU seconds of the service in it."""
    watching = [asyncio.create_task(page.watch()) for page in pages]
    await asyncio.sleep(SETTLE_SECONDS)
    began, before = time.time(), cpu_seconds_of(maat.pid)
    await asyncio.sleep(seconds)
    spent = cpu_seconds_of(maat.pid) - before
    for task in watching:
        if task.done():
            task.result()
        task.cancel()
    await asyncio.gather(*watching, return_exceptions=True)
    return began, spent


def _commits(maat: Running, cluster: str, *, since: float, until: float) -> list[float]:
    """Return the wall times at which rounds were committed."""
    with closing(
        sqlite3.connect(f"file:{maat.data_dir / 'maat.db'}?mode=ro", uri=True)
    ) as database:
        rows = database.execute(
            "SELECT committed_at FROM rounds WHERE cluster_id = ?", (cluster,)
        ).fetchall()
    moments = (datetime.fromisoformat(row[0]).replace(tzinfo=UTC).timestamp() for row in rows)
    return sorted(moment for moment in moments if since <= moment <= until)
