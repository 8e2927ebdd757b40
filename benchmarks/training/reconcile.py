"""How long one look at a cluster of many running commands takes, on the local engine.

Each command is a process of its own with its supervisor: `sleep`, which needs no processor. So what
is measured is Maat's own part.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psycopg
from sqlmodel import func, select

from backend.attempts.folders import cluster_folder
from backend.bootstrap_data import ensure_defaults
from backend.clusters.repository import nodes_of
from backend.database import Database
from backend.models import AttemptRow, Cluster
from backend.secret_key import secret_key
from backend.settings import Settings
from benchmarks.service.served import POSTGRESQL, SQLITE, empty_database
from benchmarks.table import Cell, Figures
from benchmarks.training.attempts import add_cluster, add_commands
from maat.garbage import collect_less_often
from maat.vocabulary import AttemptState
from worker.engines.local import LocalEngine
from worker.engines.protocol import EngineNode
from worker.live import step as live
from worker.live.commands import reconcile_cluster
from worker.live.memory import MEMORY
from worker.training.orders import Orders
from worker.training.reconcile import Reconciler

ATTEMPTS, TIMES = 500, 7
_PATIENCE_SECONDS = 400.0

COLUMNS = {
    "database": "database",
    "attempts": "running",
    "what": "what",
    "seconds": "s",
    "worst": "worst s",
    "cpu": "CPU s",
}
NOTES = [
    f"{ATTEMPTS} commands on {ATTEMPTS} slots, each a process and its supervisor. Wall and CPU "
    f"time of the worker's process, medians of {TIMES}.",
    "look: rows, nodes, the folder and the lock of every attempt, moves; nothing has changed. "
    "note: how the jobs stand, into the journal, every 5 s; from the rows: by a worker that has "
    "just started. strays: all processes of the machine, every 30 s.",
    "start: one command, from the order's row to the engine's answer; all of them, one after the "
    "other.",
]


def measure(databases: Sequence[str] = (POSTGRESQL, SQLITE)) -> Figures:
    collect_less_often()  # as the worker does
    rows: list[dict[str, Cell]] = []
    notes = list(NOTES)
    for kind in databases:
        try:
            with (
                tempfile.TemporaryDirectory(
                    prefix="maat-bench-", ignore_cleanup_errors=True
                ) as folder,
                empty_database(kind, Path(folder)) as url,
            ):
                rows += _rows(kind, url, Path(folder))
        except psycopg.OperationalError:
            notes.append(f"No {kind} answered: not measured.")
    title = f"One look at {ATTEMPTS} running commands"
    return Figures("training_reconcile", title, COLUMNS, rows, notes)


def _rows(kind: str, url: str, folder: Path) -> list[dict[str, Cell]]:
    settings = Settings(_env_file=None, data_dir=folder, database_url=url, allow_commands=True)
    database = Database.of(settings)
    ensure_defaults(database, settings)
    with database.session_scope() as session:
        cluster_id = add_cluster(session, gpus=ATTEMPTS).id
        cluster = session.get_one(Cluster, cluster_id)
        add_commands(
            session,
            cluster,
            ATTEMPTS,
            argv=["sleep", "infinity"],
            adaptivity="rigid",
            gpu_count=1,
        )
    cluster_of = _Measured(database, cluster_id, settings)
    try:
        rows = cluster_of.rows()
    finally:
        cluster_of.end_all()
        database.dispose()
    return [{"database": kind, "attempts": ATTEMPTS, **row} for row in rows]


class _Measured:
    """One cluster whose commands run."""

    def __init__(self, database: Database, cluster_id: str, settings: Settings) -> None:
        self._database, self._cluster_id, self._settings = database, cluster_id, settings
        with database.session_scope(writes=False) as session:
            cluster, nodes = session.get_one(Cluster, cluster_id), nodes_of(session, cluster_id)
        self._root = cluster_folder(settings, cluster)
        known = [EngineNode(one.name, one.gpu_type, one.gpu_count, True) for one in nodes]
        self._engine = LocalEngine(self._root, known)

    def rows(self) -> list[dict[str, Cell]]:
        started = self._start_all()
        found = [
            _row("look", [_timed(self._look) for _ in range(TIMES)]),
            _row("note", [_timed(self._note) for _ in range(TIMES)]),
            _row("note, from the rows", [self._noted_from_rows() for _ in range(TIMES)]),
            _row("strays", [_timed(self._strays) for _ in range(TIMES)]),
        ]
        return [*found, _row("start", [tuple(each / ATTEMPTS for each in started)])]

    def end_all(self) -> None:
        until = time.monotonic() + _PATIENCE_SECONDS
        while self._engine.strays([]) and time.monotonic() < until:
            time.sleep(0.2)

    def _start_all(self) -> tuple[float, float]:
        """Let a round order all commands, and start them; return what starting them took."""
        until = time.monotonic() + _PATIENCE_SECONDS
        while live.step_cluster(self._database, self._cluster_id) is None:
            _check(until)
            time.sleep(0.1)
        begun, cpu = time.perf_counter(), time.process_time()
        while self._running() < ATTEMPTS:
            _check(until)
            reconcile_cluster(self._database, self._cluster_id, self._settings)
        return time.perf_counter() - begun, time.process_time() - cpu

    def _running(self) -> int:
        with self._database.session_scope(writes=False) as session:
            running = AttemptRow.state == AttemptState.RUNNING.value
            return session.exec(select(func.count()).where(running)).one()

    def _look(self) -> None:
        if self._reconciler().run():
            raise RuntimeError("something changed, though nothing should have")

    def _strays(self) -> None:
        if self._reconciler().end_strays():
            raise RuntimeError("there are strays, though there should be none")

    def _reconciler(self) -> Reconciler:
        key = secret_key(self._settings)
        orders = Orders(self._root, self._settings.public_url, key, allowed=True)
        with self._database.session_scope(writes=False) as session:
            fencing = session.get_one(Cluster, self._cluster_id).fencing
        return Reconciler(self._database, self._cluster_id, self._engine, orders, fencing=fencing)

    def _noted_from_rows(self) -> tuple[float, float]:
        MEMORY.forget(self._database)
        return _timed(self._note)

    def _note(self) -> None:
        with live.leased(self._database, self._cluster_id) as fencing:
            if fencing is None:
                raise RuntimeError("another worker holds the lease")
            live.note_cluster(self._database, self._cluster_id, fencing)


def _check(until: float) -> None:
    """Raise RuntimeError if it takes too long, as it does when commands have ended."""
    if time.monotonic() > until:
        raise RuntimeError("the commands did not all start")


def _timed(what: Callable[[], object]) -> tuple[float, float]:
    """Return wall and CPU seconds."""
    begun, cpu = time.perf_counter(), time.process_time()
    what()
    return time.perf_counter() - begun, time.process_time() - cpu


def _row(what: str, measured: Sequence[tuple[float, ...]]) -> dict[str, Cell]:
    wall, cpu = zip(*measured, strict=True)
    return {
        "what": what,
        "seconds": statistics.median(wall),
        "worst": max(wall),
        "cpu": statistics.median(cpu),
    }
