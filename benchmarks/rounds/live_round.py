"""A round of a live cluster as the service makes it, split into its parts.

Sia, whole nodes, 2,048 GPUs, from the rows to the committed round. "From memory": the worker made
the previous round too. "From the rows": it was just started, or another worker made that one.
"""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import sqlalchemy as sa
from sqlmodel import col

from backend.bootstrap_data import ensure_defaults
from backend.clocktime import utc_now
from backend.database import Database
from backend.models import Cluster, Job, Node, User
from backend.settings import Settings
from benchmarks.rounds.round import ROUND_SECONDS, SHARES, WARM_UP_ROUNDS
from benchmarks.table import Cell, Figures
from maat.garbage import collect_less_often
from maat.models.catalog import load_catalog
from maat.scheduling.cluster import Cluster as EngineCluster
from worker.live.memory import MEMORY
from worker.live.step import step_cluster
from worker.live.step_seconds import PARTS, StepSeconds

SHAPE = "t4=192x4,rtx=64x8,a100=96x8"
JOBS = (1_000, 10_000)
COLUMNS = {
    "database": "database",
    "jobs": "jobs",
    "start": "start",
    **{part: part for part in PARTS},
    "round_seconds": "round",
    "worst_round_seconds": "worst",
}
NOTES = [
    "CPU seconds of the worker's process, medians over the measured rounds after a warm-up; "
    "'round' is all of step_cluster, 'worst' the slowest.",
    "read: rows and JSON to objects. restore: the executor. observe: its jobs live up to now, and "
    "carry the round out. decide: plan_round and every",
    "reason, and the lease. journal: what is to be written, as JSON. commit: the two "
    "transactions. Models were fitted in the warm-up.",
]


def measure(database_url: str | None, *, jobs: Sequence[int] = JOBS, stored: int) -> Figures:
    """Measure.

    `database_url`: an empty PostgreSQL database to measure besides SQLite.
    """
    collect_less_often()  # as the worker does
    rows: list[dict[str, Cell]] = []
    for count in jobs:
        with sqlite_database() as database:
            rows += _rows(database, count, stored)
    if database_url is not None:
        rows += _rows(Database(database_url), jobs[0], stored)
    return Figures(
        "live_round",
        f"A live round in the service, Sia with whole-node placement, {SHAPE}",
        COLUMNS,
        rows,
        list(NOTES),
    )


def _rows(database: Database, count: int, stored: int) -> list[dict[str, Cell]]:
    cluster_id = filled_cluster(database, count)
    rounds = _Rounds(database, cluster_id)
    for _ in range(WARM_UP_ROUNDS):
        rounds.make()
    from_memory = [rounds.make() for _ in range(stored)]
    from_rows = [rounds.make(forget=True) for _ in range(stored)]
    name = "SQLite" if database.is_sqlite else "PostgreSQL"
    return [
        {"database": name, "jobs": count, "start": start, **_figures(measured)}
        for start, measured in (("memory", from_memory), ("rows", from_rows))
    ]


def _figures(measured: Sequence[StepSeconds]) -> dict[str, Cell]:
    parts = {part: float(np.median([one.by_part[part] for one in measured])) for part in PARTS}
    totals = [one.total for one in measured]
    return {**parts, "round_seconds": float(np.median(totals)), "worst_round_seconds": max(totals)}


class _Rounds:
    """Make the rounds one after the other, each when it is due."""

    def __init__(self, database: Database, cluster_id: str) -> None:
        self._database, self._cluster_id, self._now = database, cluster_id, ROUND_SECONDS / 2

    def make(self, *, forget: bool = False) -> StepSeconds:
        with self._database.session_scope() as session:
            due = sa.update(Cluster).where(col(Cluster.id) == self._cluster_id)
            session.connection().execute(
                due.values(anchor_seconds=self._now, anchor_wall=utc_now())
            )
        self._now += ROUND_SECONDS
        if forget:
            MEMORY.forget(self._database)
        gc.collect()
        spent = StepSeconds()
        if step_cluster(self._database, self._cluster_id, seconds=spent) is None:
            raise RuntimeError("a round that was due was not made")
        return spent


def filled_cluster(database: Database, count: int) -> str:
    """Return a cluster with a nearly stopped clock and jobs that do not end."""
    ensure_defaults(database, Settings(_env_file=None))
    rng, names = np.random.default_rng(count), [name for name in SHARES if name in load_catalog()]
    shares = np.array([SHARES[name] for name in names])
    with database.session_scope() as session:
        owner = session.connection().execute(sa.select(col(User.id), col(User.tenant_id))).one()
        cluster = Cluster(
            name="measured",
            policy="sia",
            placer="whole-node",
            round_seconds=ROUND_SECONDS,
            speed=1e-9,
        )
        session.add(cluster)
        session.flush()
        session.add_all(nodes_of(cluster.id, SHAPE))
        session.add_all(
            Job(
                cluster_id=cluster.id,
                name=f"job-{number}",
                owner_id=owner.id,
                tenant_id=owner.tenant_id,
                model=model,
                adaptivity="adaptive",
                work_scale=100.0,
                submitted_seconds=0.0,
                remaining_work=1.0,
                max_gpus=most,
            )
            for number, (model, most) in enumerate(
                zip(
                    rng.choice(names, count, p=shares / shares.sum()).tolist(),
                    rng.choice([4, 16, 64], count).tolist(),
                    strict=True,
                )
            )
        )
    return cluster.id


def nodes_of(cluster_id: str, shape: str) -> list[Node]:
    """Return the rows of the nodes of a shape such as "t4=6x4"."""
    return [
        Node(
            cluster_id=cluster_id,
            name=node.id,
            gpu_type=node.gpu_type,
            gpu_count=node.gpu_count,
            position=place,
        )
        for place, node in enumerate(EngineCluster.parse(shape).nodes)
    ]


@contextmanager
def sqlite_database() -> Iterator[Database]:
    """Open an empty database in a folder that is deleted afterwards."""
    with tempfile.TemporaryDirectory(prefix="maat-bench-") as folder:
        database = Database(f"sqlite:///{Path(folder, 'maat.db')}")
        try:
            yield database
        finally:
            database.dispose()
