"""How many reports of agents the service takes in, and how long an agent waits for the answer.

Every report is whole: steps of one configuration, a gradient, each rank's own part, the progress.
As the agent does, every report opens a connection of its own, with its attempt's token.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from backend.database import Database
from backend.secret_key import secret_key
from backend.settings import Settings
from benchmarks.service.http_client import Connection, request_bytes
from benchmarks.service.served import POSTGRESQL, SQLITE, Served, cpu_seconds_of, served
from benchmarks.table import Cell, Figures
from benchmarks.training.attempts import (
    GPU_TYPE,
    add_cluster,
    add_commands,
    add_running_attempts,
)

ATTEMPTS, GPUS_EACH = 500, 2
SECONDS = 10.0
ASKED_PER_SECOND = 200.0  # the goal
AT_ONCE = (4, 16, 64)
_WARM_UP_SECONDS = 3.0

COLUMNS = {
    "database": "database",
    "load": "load",
    "reports": "reports",
    "per_second": "reports/s",
    "p50": "p50 ms",
    "p95": "p95 ms",
    "worst": "worst ms",
    "refused": "not taken",
    "cpu": "CPU ms each, service",
    "database_cpu": "CPU ms each, PostgreSQL",
}
NOTES = [
    f"One process of the service, {ATTEMPTS} running attempts of {GPUS_EACH} GPUs, for "
    f"{SECONDS:.0f} s each; service, database and agents share the machine.",
    "at once: so many agents, each of which reports again as soon as it has its answer. evenly: "
    f"all {ATTEMPTS} in turn, {ASKED_PER_SECOND:.0f} reports a second in all; a wait counts from "
    "when the report was due.",
]


@dataclass
class _Agent:
    """An agent's reports, one after the other."""

    attempt_id: str
    token: str
    sequence: int = 0

    def next_report(self) -> bytes:
        self.sequence += 1
        body = {
            "sequence": self.sequence,
            "kind": "report",
            "incarnation": "one",
            "world_size": GPUS_EACH,
            "gpu_type": GPU_TYPE,
            "progress": {"effective_samples": 640.0 * self.sequence, "steps": 10 * self.sequence},
            "passes": [
                {
                    "per_gpu_batch_size": 32,
                    "node_count": 1,
                    "replica_count": GPUS_EACH,
                    "steps": 10,
                    "step_seconds": {"mean": 0.2, "m2": 0.001},
                    "sync_seconds": 0.02,
                }
            ],
            "gradient": {"square": 1.5, "variance": 3.0, "steps": 10, "at_batch_size": 64},
            "ranks": {"compute_seconds": [0.1, 0.11]},
            "plan_number": 1,
            "loss": 0.5,
        }
        path = f"/api/v1/attempts/{self.attempt_id}/reports"
        return request_bytes("POST", path, token=self.token, body=json.dumps(body).encode())


@dataclass
class _Tally:
    seconds: list[float] = field(default_factory=list)
    refused: int = 0


def measure(databases: Sequence[str] = (POSTGRESQL, SQLITE)) -> Figures:
    rows: list[dict[str, Cell]] = []
    notes = list(NOTES)
    for kind in databases:
        try:
            with served(kind, allow_commands=True) as service:
                rows += asyncio.run(_measured(service, kind, _agents(service)))
        except psycopg.OperationalError:
            notes.append(f"No {kind} answered: not measured.")
    return Figures("training_reports", "Reports of agents", COLUMNS, rows, notes)


def _agents(service: Served) -> list[_Agent]:
    settings = Settings(
        _env_file=None, data_dir=service.data_dir, database_url=service.database_url
    )
    database = Database.of(settings)
    with database.session_scope() as session:
        cluster = add_cluster(session, gpus=ATTEMPTS * GPUS_EACH)
        jobs = add_commands(
            session,
            cluster,
            ATTEMPTS,
            argv=["train"],
            adaptivity="adaptive",
            batch_size=64,
            max_batch_size=512,
        )
        attempts = add_running_attempts(session, cluster, jobs, gpus_each=GPUS_EACH)
    database.dispose()
    token_of = secret_key(settings).attempt_token
    return [_Agent(each, token_of(each)) for each in attempts]


async def _measured(service: Served, kind: str, agents: Sequence[_Agent]) -> list[dict[str, Cell]]:
    await _at_once(service, agents, 16, seconds=_WARM_UP_SECONDS)
    rows: list[dict[str, Cell]] = []
    for load in (*AT_ONCE, None):
        cpu, database_cpu = service.cpu_seconds(), _database_cpu(service, kind)
        begun = time.perf_counter()
        tally = await (
            _evenly(service, agents, seconds=SECONDS)
            if load is None
            else _at_once(service, agents, load, seconds=SECONDS)
        )
        passed, taken = time.perf_counter() - begun, max(len(tally.seconds), 1)
        after = _database_cpu(service, kind)
        rows.append(
            {
                "database": kind,
                "load": "evenly" if load is None else f"{load} at once",
                "reports": len(tally.seconds),
                "per_second": len(tally.seconds) / passed,
                **_waits(sorted(tally.seconds)),
                "refused": tally.refused,
                "cpu": 1000 * (service.cpu_seconds() - cpu) / taken,
                "database_cpu": None
                if after is None or database_cpu is None
                else 1000 * (after - database_cpu) / taken,
            }
        )
    return rows


def _waits(ascending: Sequence[float]) -> dict[str, Cell]:
    if not ascending:
        return {}
    p50, p95 = (ascending[math.ceil(share * len(ascending)) - 1] for share in (0.5, 0.95))
    return {"p50": 1000 * p50, "p95": 1000 * p95, "worst": 1000 * ascending[-1]}


async def _at_once(
    service: Served, agents: Sequence[_Agent], count: int, *, seconds: float
) -> _Tally:
    """Let so many agents report at any moment; all of them in turn."""
    tally, until = _Tally(), time.perf_counter() + seconds

    async def report_on(mine: Sequence[_Agent]) -> None:
        while True:
            for agent in mine:
                if time.perf_counter() >= until:
                    return
                await _report(service, agent, tally, since=time.perf_counter())

    await asyncio.gather(*(report_on(agents[first::count]) for first in range(count)))
    return tally


async def _evenly(service: Served, agents: Sequence[_Agent], *, seconds: float) -> _Tally:
    """Let every agent report as often as the others, each when it is due."""
    tally, begun, between = _Tally(), time.perf_counter(), len(agents) / ASKED_PER_SECOND

    async def report_on(number: int, agent: _Agent) -> None:
        due = begun + number / ASKED_PER_SECOND
        while due < begun + seconds:
            await asyncio.sleep(max(due - time.perf_counter(), 0.0))
            await _report(service, agent, tally, since=due)
            due += between

    await asyncio.gather(*(report_on(number, agent) for number, agent in enumerate(agents)))
    return tally


async def _report(service: Served, agent: _Agent, tally: _Tally, *, since: float) -> None:
    connection = Connection(service.port)
    try:
        reply = await connection.ask(agent.next_report())
    except (OSError, EOFError):
        tally.refused += 1
        return
    finally:
        connection.close()
    if reply.status == 200:
        tally.seconds.append(time.perf_counter() - since)
    else:
        tally.refused += 1


def _database_cpu(service: Served, kind: str) -> float | None:
    """Return the CPU seconds of PostgreSQL's processes that serve this database."""
    if kind != POSTGRESQL:
        return None
    asked = "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
    with psycopg.connect(service.database_url, connect_timeout=5) as connection:
        mine = connection.info.backend_pid
        pids = [row[0] for row in connection.execute(asked).fetchall() if row[0] != mine]
    return sum(cpu_seconds_of(pid) for pid in pids if Path(f"/proc/{pid}").exists())
