"""Requests per second and latencies of the service under load, on both databases.

The number of keep-alive clients grows. Every client asks again as soon as it has its answer, so the
number of clients is the number of requests that wait at any moment.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import psycopg

from benchmarks.service.http_client import Connection, Reply, request_bytes
from benchmarks.service.served import POSTGRESQL, SQLITE, Served, served
from benchmarks.table import Cell, Figures

COLUMNS = {
    "database": "database",
    "route": "route",
    "clients": "clients",
    "requests": "requests",
    "per_second": "answers/s",
    "p50": "p50 s",
    "p99": "p99 s",
    "times_40": "x p99 at 40",
    "worst": "worst s",
    "busy": "503",
    "failed": "other errors",
    "health": "/health worst s",
    "cpu": "CPU ms each",
}
NOTES = [
    "One process of the service without a worker, 1,000 jobs, every client on a keep-alive "
    "connection and asking again at once; client and service "
    "share the machine.",
    "answers/s, p50, p99: of what was answered with 2xx. 503: told to come again (Retry-After) "
    "because no place was free in time.",
    "other errors: any other status of 500 and more, a 503 without Retry-After, a broken "
    "connection. /health: asked five times a second meanwhile.",
]
STORED_JOBS = 1000
REFERENCE_CLIENTS = 40
_LEAST_EACH = 2
_HEALTH = request_bytes("GET", "/api/v1/health")


@dataclass(frozen=True)
class Settings:
    clients: Sequence[int] = (10, 40, 50, 100, 200, 400)
    seconds: float = 5.0
    databases: Sequence[str] = (SQLITE, POSTGRESQL)


@dataclass
class Tally:
    """The answers."""

    replies: list[Reply] = field(default_factory=list)
    broken: int = 0

    def seconds(self) -> list[float]:
        return sorted(reply.seconds for reply in self.replies if reply.status < 300)

    def busy(self) -> int:
        return sum(reply.status == 503 and reply.retry_after for reply in self.replies)

    def failed(self) -> int:
        return self.broken + sum(reply.status >= 500 for reply in self.replies) - self.busy()


def measure(settings: Settings) -> Figures:
    rows: list[dict[str, Cell]] = []
    notes = list(NOTES)
    for database in settings.databases:
        try:
            with served(database, jobs=STORED_JOBS) as service:
                rows += asyncio.run(_measured(service, database, settings))
        except psycopg.OperationalError:
            notes.append(f"No {database} answered: not measured.")
    return Figures("load", "The service under load", COLUMNS, rows, notes)


async def _measured(service: Served, database: str, settings: Settings) -> list[dict[str, Cell]]:
    rows: list[dict[str, Cell]] = []
    for route, request in (await _requests(service)).items():
        await _under_load(
            service, request, 10, seconds=1.0
        )  # what is loaded with the first request is not measured
        of_route = [
            await _row(service, database, route, request, clients, settings.seconds)
            for clients in settings.clients
        ]
        rows += _compared(of_route)
    return rows


def _compared(rows: list[dict[str, Cell]]) -> list[dict[str, Cell]]:
    reference = next((row["p99"] for row in rows if row["clients"] == REFERENCE_CLIENTS), None)
    for row in rows:
        if isinstance(reference, float) and isinstance(row["p99"], float):
            row["times_40"] = row["p99"] / reference
    return rows


async def _requests(service: Served) -> dict[str, bytes]:
    """Return the requests. Submitting is last: it lengthens the list."""
    job = json.dumps({"name": "train", "model": "bert"}).encode()
    return {
        "list jobs": request_bytes("GET", "/api/v1/jobs?limit=50", token=service.token),
        "page": request_bytes("GET", "/jobs"),
        "callback": request_bytes(
            "POST", "/_dash-update-component", token=service.token, body=await _callback(service)
        ),
        "submit": request_bytes("POST", "/api/v1/jobs", token=service.token, body=job),
    }


async def _callback(service: Served) -> bytes:
    """Return the shell's call for the clusters, as a browser makes it."""
    reply = await Connection(service.port).ask(request_bytes("GET", "/_dash-dependencies"))
    call = next(call for call in json.loads(reply.body) if "cluster-select.data" in call["output"])
    outputs = [
        dict(zip(("id", "property"), part.split("."), strict=True))
        for part in call["output"].strip(".").split("...")
    ]
    several = call["output"].startswith("..")
    body = {
        "output": call["output"],
        "outputs": outputs if several else outputs[0],
        "inputs": call["inputs"],
        "state": call["state"],
        "changedPropIds": [],
    }
    return json.dumps(body).encode()


async def _row(
    service: Served, database: str, route: str, request: bytes, clients: int, seconds: float
) -> dict[str, Cell]:
    cpu, begun = service.cpu_seconds(), time.perf_counter()
    tally, health = await _under_load(service, request, clients, seconds=seconds)
    passed, spent = time.perf_counter() - begun, service.cpu_seconds() - cpu
    good = tally.seconds()
    return {
        "database": database,
        "route": route,
        "clients": clients,
        "requests": len(tally.replies),
        "per_second": len(good) / passed,
        "p50": _quantile(good, 0.5),
        "p99": _quantile(good, 0.99),
        "worst": good[-1] if good else None,
        "busy": tally.busy(),
        "failed": tally.failed(),
        "health": max(health.seconds(), default=None),
        "cpu": 1000 * spent / max(len(tally.replies), 1),
    }


def _quantile(ascending: list[float], share: float) -> float | None:
    return ascending[math.ceil(share * len(ascending)) - 1] if ascending else None


async def _under_load(
    service: Served, request: bytes, clients: int, *, seconds: float
) -> tuple[Tally, Tally]:
    """Return what the clients got, and what /health answered meanwhile."""
    tally, health, over = Tally(), Tally(), asyncio.Event()
    until = time.perf_counter() + seconds
    watching = asyncio.create_task(_watch(service, health, over))
    await asyncio.gather(*(_client(service, request, tally, until) for _ in range(clients)))
    over.set()
    await watching
    return tally, health


async def _client(service: Served, request: bytes, tally: Tally, until: float) -> None:
    connection, asked = Connection(service.port), 0
    while time.perf_counter() < until or asked < _LEAST_EACH:
        asked += 1
        await _ask(connection, request, tally)
    connection.close()


async def _watch(service: Served, tally: Tally, over: asyncio.Event) -> None:
    connection = Connection(service.port)
    while not over.is_set():
        await _ask(connection, _HEALTH, tally)
        await asyncio.sleep(0.2)
    connection.close()


async def _ask(connection: Connection, request: bytes, tally: Tally) -> None:
    try:
        tally.replies.append(await connection.ask(request))
    except (OSError, EOFError):
        tally.broken += 1
        connection.close()
