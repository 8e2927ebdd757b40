"""What hostile bodies cost others.

Measures how long /health waits while one is sent, and how much memory the service keeps.
"""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.service.http_client import Connection, request_bytes
from benchmarks.service.served import SQLITE, Served, served
from benchmarks.table import Cell, Figures

COLUMNS = {
    "body": "body",
    "mib": "MiB",
    "sent_to": "sent to",
    "who": "by",
    "status": "answer",
    "seconds": "answered after s",
    "health": "/health worst s",
    "quiet": "without it s",
    "before": "MiB before",
    "after": "MiB after",
    "peak": "peak MiB",
}
NOTES = [
    "On SQLite, nothing else asked of the service; /health is asked again as soon as it has "
    "answered, over a connection of its own.",
    "/health worst: from the first byte of the body to the answer. without it: the worst of as "
    "many seconds before, nothing being sent.",
]
MIB = 1024 * 1024
_HEALTH = request_bytes("GET", "/api/v1/health")
_QUIET_SECONDS = 2.0


@dataclass(frozen=True)
class Hostile:
    """A body. `fill`: what it repeats until it has this size."""

    name: str
    fill: str
    head: str = "["
    tail: str = "]"

    def of(self, size: int) -> bytes:
        count = (size - len(self.head) - len(self.tail)) // len(self.fill)
        return f"{self.head}{(self.fill * count).rstrip(',')}{self.tail}".encode()


LISTS = Hostile("[],[],...", "[],")
ESCAPES = Hostile("\\u0041...", "\\u0041", '{"name": "', '"}')
STRINGS = Hostile('"","",...', '"",')
TRACE = Hostile(
    "a trace of one row", "1,2,3,abc\\n", '{"traces": [{"kind": "csv", "text": "', '"}]}'
)


def measure() -> Figures:
    with served(SQLITE, implicit_admin="false") as service:
        return Figures("bodies", "Hostile bodies", COLUMNS, asyncio.run(_measured(service)), NOTES)


async def _measured(service: Served) -> list[dict[str, Cell]]:
    return [await _row(service, *case) for case in _cases()]


def _cases() -> Iterator[tuple[str, bytes, str, bool]]:
    """Return (name, body, address, as administrator) of every body.

    First those beyond every limit, then those just below their route's limit.
    """
    jobs, simulations, call = "/api/v1/jobs", "/api/v1/simulations", "/_dash-update-component"
    batch, sweeps, nodes = "/api/v1/jobs:batch", "/api/v1/sweeps", "/api/v1/clusters/demo/nodes"
    for hostile in (LISTS, ESCAPES):
        for path in (jobs, simulations, call):
            yield hostile.name, hostile.of(31 * MIB), path, False
            yield hostile.name, hostile.of(31 * MIB), path, True
    for hostile in (LISTS, ESCAPES, STRINGS, TRACE):
        yield hostile.name, hostile.of(8 * MIB), simulations, True
        yield hostile.name, hostile.of(12 * MIB), call, True
    yield "100,000 unknown keys", _keys(100_000), simulations, True
    yield "100,000 unknown keys", _keys(100_000), jobs, True
    unknown = {f"key{index}": 1 for index in range(225)}
    yield "200 runs x 225 unknown keys", _simulation([unknown] * 200), simulations, True
    yield (
        "5,000 runs x 9 unknown keys",
        _simulation([{f"key{index}": 1 for index in range(9)}] * 5000),
        simulations,
        True,
    )
    yield "40,000 runs that are numbers", _simulation([1] * 40_000), simulations, True
    yield (
        "200 runs x 99 parameters",
        _simulation([{"policy_parameters": {f"key{index}": [] for index in range(99)}}] * 200),
        simulations,
        True,
    )
    yield "40,000 traces of no kind", _simulation([{}], [{"kind": "x"}] * 40_000), simulations, True
    yield (
        "2 axes x 20,000 lists",
        json.dumps({"name": "x", "vary": [{"name": "p", "values": [[]] * 20_000}] * 2}).encode(),
        sweeps,
        True,
    )
    yield "1,600 jobs x 30 unknown keys", _jobs(1_600, 30), batch, True
    yield "1,000 jobs x 45 unknown keys", _jobs(1_000, 45), batch, True
    yield "10,000 jobs x 30 unknown keys", _jobs(10_000, 30), batch, True
    yield (
        "20,000 nodes without a name",
        json.dumps({"nodes": [{"x": 1}] * 20_000}).encode(),
        nodes,
        True,
    )


def _keys(count: int) -> bytes:
    return json.dumps({f"key{index}": 1 for index in range(count)}).encode()


def _simulation(
    runs: Sequence[object], traces: Sequence[object] = ({"kind": "generated"},)
) -> bytes:
    return json.dumps(
        {"name": "x", "cluster": "t4=1x4", "traces": list(traces), "runs": list(runs)}
    ).encode()


def _jobs(count: int, keys: int) -> bytes:
    return json.dumps(
        {"jobs": [{f"key{index}": 1 for index in range(keys)}] * count, "mode": "partial"},
        separators=(",", ":"),
    ).encode()


async def _row(service: Served, name: str, body: bytes, path: str, known: bool) -> dict[str, Cell]:
    quiet = await _worst_health(service, asyncio.create_task(asyncio.sleep(_QUIET_SECONDS)))
    before = service.memory_mib()
    request = request_bytes("POST", path, token=service.token if known else "", body=body)
    sending = asyncio.create_task(asyncio.to_thread(_send, service.port, request))
    worst = await _worst_health(service, sending)
    status, seconds = await sending
    await asyncio.sleep(_QUIET_SECONDS)
    return {
        "body": name,
        "mib": len(body) / MIB,
        "sent_to": path,
        "who": "administrator" if known else "nobody",
        "status": status,
        "seconds": seconds,
        "health": worst,
        "quiet": quiet,
        "before": before,
        "after": service.memory_mib(),
        "peak": service.memory_mib("VmHWM"),
    }


def _send(port: int, request: bytes) -> tuple[int, float]:
    """Return status and seconds of an answer.

    Runs in a thread, so that sending does not delay what is measured meanwhile.
    """
    begun = time.perf_counter()
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(request)
        status = connection.makefile("rb").readline()
    return int(status[9:12]), time.perf_counter() - begun


async def _worst_health(service: Served, work: asyncio.Task[Any]) -> float:
    """Return the longest time of /health while `work` ran and just after it."""
    connection, worst = Connection(service.port), 0.0
    await connection.ask(_HEALTH)
    while True:
        last = work.done()
        begun = time.perf_counter()
        await connection.ask(_HEALTH)
        worst = max(worst, time.perf_counter() - begun)
        if last:
            connection.close()
            return worst
