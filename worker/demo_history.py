"""Plays the history that a demo cluster begins with, and writes it to a file.

    python -m worker.demo_history [--file FILE]

It takes minutes: some six thousand rounds, by the code that makes the rounds of a live cluster, in
a database of their own. Make the file again when the tests say that it lacks what the tables hold,
or when rounds, jobs or what is worked out from them have changed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import sqlalchemy as sa
from sqlmodel import Session

from backend.bootstrap_data import ensure_defaults
from backend.clocktime import cluster_seconds
from backend.clusters.service import create_cluster
from backend.database import Database
from backend.demo.beginning import begin_on
from backend.demo.cluster import DEMO_CLUSTER
from backend.demo.history import (
    FILE,
    TABLES,
    WHOLE_WEEKS,
    Beginning,
    Row,
    plain_row,
    text_of,
    write_history,
)
from backend.models import Cluster, Round, metadata
from backend.moments import moment_of
from backend.settings import Settings
from worker import demo, housekeeping
from worker.fairness import days
from worker.fairness.work import work_out_for
from worker.live.step import step_cluster
from worker.rounds import marginal_values

MONDAY = datetime(2026, 1, 5, tzinfo=UTC)
"""The first day: any Monday. The file knows days by their number only."""
HISTORY = timedelta(weeks=WHOLE_WEEKS + 1)
DAY_SECONDS = 86_400.0
AFTER_MIDNIGHT_SECONDS = 1800.0
"""A history begins when the day before it changes no more: then its sums are stored with it."""
KEPT_ROUNDS = 12
"""Rounds in the file before each beginning: those since midnight, and the one before it."""
SUMMED_ROUNDS = 800
"""Rounds that the database keeps meanwhile: more than of two days."""
SLOW = 1e-6
"""The cluster's clock moves by being wound alone."""
WITHOUT_END = 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_AsItIs)
    parser.add_argument("--file", type=Path, default=FILE)
    file: Path = parser.parse_args().file
    with tempfile.TemporaryDirectory() as folder:
        database = Database.of(Settings(_env_file=None, data_dir=Path(folder), demo=False))
        cluster_id = make_cluster(database)
        parts = list(play(database, cluster_id, beginnings=range(14, 21)))
        with database.session_scope(writes=False) as session:
            names = names_of(session)
        database.dispose()
    write_history(text_of(parts, names), file)
    print(f"{file}: {file.stat().st_size / 1e6:.2f} MB")


class _AsItIs(argparse.RawDescriptionHelpFormatter):
    pass


def make_cluster(database: Database) -> str:
    """Make a demo cluster whose whole history is still to be played; return its id."""
    ensure_defaults(database, Settings(_env_file=None, demo=False))
    with database.session_scope() as session:
        cluster = create_cluster(session, DEMO_CLUSTER)
        begin_on(session, cluster, MONDAY)
        cluster.created_at = MONDAY + HISTORY
        cluster.speed, cluster.keep_rounds = SLOW, SUMMED_ROUNDS
        session.add(cluster)
        return cluster.id


def play(database: Database, cluster_id: str, *, beginnings: Sequence[int]) -> Iterator[Beginning]:
    """Play rounds, and yield the rows shortly after the beginning of each of these days."""
    begun = time.monotonic()
    for day in beginnings:
        seconds = day * DAY_SECONDS + AFTER_MIDNIGHT_SECONDS
        while (now := _now(database, cluster_id)) < seconds:
            until = min(seconds, (now // DAY_SECONDS + 1) * DAY_SECONDS + AFTER_MIDNIGHT_SECONDS)
            play_until(database, cluster_id, until)
            keep_house(database)
            _say(f"day {until / DAY_SECONDS:.2f} after {time.monotonic() - begun:.0f} s")
        with database.session_scope(writes=False) as session:
            yield beginning(session, session.get_one(Cluster, cluster_id))


def play_until(database: Database, cluster_id: str, seconds: float) -> None:
    while _now(database, cluster_id) < seconds and demo.wind_forward(database, cluster_id):
        step_cluster(database, cluster_id)


def keep_house(database: Database) -> None:
    """Work out and sum up what a service does beside its rounds."""
    work_out_for(database, seconds=WITHOUT_END)
    days.keep_days(database)
    marginal_values.sum_prices(database)
    housekeeping.sum_days(database)
    days.sum_ended(database)
    housekeeping.prune_rounds(database)
    housekeeping.prune_outbox(database)
    housekeeping.fold_job_counts(database)


def beginning(session: Session, cluster: Cluster) -> Beginning:
    """Return the rows of a cluster as they are."""
    tables = {name: list(_rows(session, cluster, metadata.tables[name])) for name in TABLES}
    now = cluster_seconds(cluster, moment_of(session))
    return Beginning(now, cluster.next_round_number, tables)


def names_of(session: Session) -> dict[str, tuple[str, str]]:
    """Return what ids stand for: kind and name."""
    names: dict[str, tuple[str, str]] = {}
    for kind in ("cluster", "node", "tenant", "user"):
        table = metadata.tables[f"{kind}s"]
        for row in session.execute(sa.select(table.c.id, table.c.name)):
            names[row.id] = (kind, row.name)
    return names


def _rows(session: Session, cluster: Cluster, table: sa.Table) -> Iterator[Row]:
    statement = sa.select(table).order_by(*table.primary_key)
    if table.name == Round.__tablename__:
        statement = statement.where(table.c.number >= cluster.next_round_number - KEPT_ROUNDS)
    for row in session.connection().execute(statement):
        yield plain_row(table, row._asdict(), cluster.epoch.date())


def _now(database: Database, cluster_id: str) -> float:
    with database.session_scope(writes=False) as session:
        return cluster_seconds(session.get_one(Cluster, cluster_id), moment_of(session))


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
