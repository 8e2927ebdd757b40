"""Sums up days that change no more, and keeps what deleted rounds found usable.

Commits nothing. Summing a day again gives the same rows, and the worker's housekeeping may be
killed at any moment: a day's rows are replaced in one transaction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any

import sqlalchemy as sa
from sqlmodel import Session, col, select

from backend.clocktime import shown_day
from backend.clusters.models import Cluster
from backend.jobs.models import JobAllocation
from backend.periods import DAY, period_of
from backend.rounds.models import Round
from backend.usage.models import CapacityDay, SummedDay, UsageDay, WaitDay
from backend.usage.raw import LATE_SECONDS, capacity_between, raw_tally
from backend.usage.repository import RoundRow, first_folded, round_span, summed_days
from backend.usage.tally import CAPACITY_PARTS, PARTS, Key, Sums, Tally, Waits

VERSION = 1
"""Of the formulas: stored with every day."""


def settled_days(session: Session, cluster: Cluster) -> list[date]:
    """Return the days that no later round can change and that were not summed up, in order."""
    kept = round_span(session, cluster.id)
    if kept is None:
        return []
    oldest, latest = kept
    seconds = [oldest, *_first_span(session, cluster.id)]
    begin = min(shown_day(cluster, min(seconds)), *first_folded(session, cluster.id), date.max)
    done = set(summed_days(session, cluster.id))
    settled_before = shown_day(cluster, latest - LATE_SECONDS)
    return [day for day in _from(begin, settled_before) if day not in done]


def tally_of_day(session: Session, cluster: Cluster, day: date) -> Tally:
    """Return what was used on a settled day, by its raw rows."""
    start, end = period_of(day).seconds(cluster)
    kept = round_span(session, cluster.id)
    # Spans that go on are read as of the latest round: their counters are.
    tally = raw_tally(session, cluster.id, start, end, now=end if kept is None else kept[1])
    add_folded(session, cluster.id, day, tally)
    return tally


def store_day(session: Session, cluster_id: str, day: date, tally: Tally) -> bool:
    """Replace a day's rows; return False if another process has summed it up meanwhile."""
    if session.get(SummedDay, (cluster_id, day)) is not None:
        return False
    connection = session.connection()
    for table in (UsageDay, WaitDay, CapacityDay):
        of_day = (col(table.cluster_id) == cluster_id, col(table.day) == day)
        connection.execute(sa.delete(table).where(*of_day))
    _insert(session, UsageDay, [_use_row(cluster_id, day, *one) for one in tally.used.items()])
    _insert(session, WaitDay, [_wait_row(cluster_id, day, *one) for one in tally.waits.items()])
    _insert(
        session,
        CapacityDay,
        [_capacity_row(cluster_id, day, *one) for one in tally.capacity.items()],
    )
    session.add(SummedDay(cluster_id=cluster_id, day=day, version=VERSION))
    session.flush()
    return True


def add_folded(session: Session, cluster_id: str, day: date, tally: Tally) -> None:
    """Add what rounds of a day found usable that were deleted before it was summed up."""
    statement = select(CapacityDay).where(
        CapacityDay.cluster_id == cluster_id, CapacityDay.day == day
    )
    for row in session.exec(statement):
        tally.capacity[row.gpu_type] += [getattr(row, part) for part in CAPACITY_PARTS]


def fold_rounds(session: Session, cluster: Cluster, rounds: Sequence[RoundRow]) -> None:
    """Keep what these rounds found usable; the last one only ends the one before it.

    The caller deletes all but the last in the same transaction.
    """
    if len(rounds) < 2:
        return
    begin, end = shown_day(cluster, rounds[0].at_seconds), shown_day(cluster, rounds[-1].at_seconds)
    for day in _from(begin, end + DAY):
        if session.get(SummedDay, (cluster.id, day)) is not None:
            continue
        start, until = period_of(day).seconds(cluster)
        found = capacity_between(rounds, start, min(until, rounds[-1].at_seconds))
        for gpu_type, sums in found.items():
            row = session.get(CapacityDay, (cluster.id, day, gpu_type), with_for_update=True)
            if row is None:
                values = dict.fromkeys(CAPACITY_PARTS, 0)
                row = CapacityDay(cluster_id=cluster.id, day=day, gpu_type=gpu_type, **values)
            for part, value in zip(CAPACITY_PARTS, sums.tolist(), strict=True):
                setattr(row, part, getattr(row, part) + value)
            session.add(row)
        session.flush()


def rounds_with_next(session: Session, cluster_id: str, numbers: Sequence[int]) -> list[RoundRow]:
    """Return the rounds with these numbers, which ascend, and the one that follows, in order."""
    columns = (col(Round.at_seconds), col(Round.gpus_by_type))
    mine = col(Round.cluster_id) == cluster_id
    first, last = numbers[0], numbers[-1]
    statement = sa.select(*columns).where(mine, col(Round.number).between(first, last))
    following = sa.select(*columns).where(mine, col(Round.number) > last)
    connection = session.connection()
    found = list(connection.execute(statement.order_by(col(Round.number))))
    found += connection.execute(following.order_by(col(Round.number)).limit(1))
    return [RoundRow(*row) for row in found]


def _first_span(session: Session, cluster_id: str) -> list[float]:
    began = sa.func.min(col(JobAllocation.from_seconds))
    found = session.exec(select(began).where(JobAllocation.cluster_id == cluster_id)).one()
    return [] if found is None else [float(found)]


def _from(begin: date, end: date) -> Iterator[date]:
    while begin < end:
        yield begin
        begin += DAY


def _insert(session: Session, table: Any, rows: list[dict[str, Any]]) -> None:
    """Insert rows in the order of their key: PostgreSQL keeps together what is read together."""
    if rows:
        key = [column.name for column in table.__table__.primary_key]
        rows.sort(key=lambda row: [row[name] for name in key])
        session.connection().execute(sa.insert(table), rows)


def _use_row(cluster_id: str, day: date, of: tuple[Key, str], sums: Sums) -> dict[str, Any]:
    key, gpu_type = of
    parts = dict(zip(PARTS, sums.tolist(), strict=True))
    return {"cluster_id": cluster_id, "day": day, **_named(key), "gpu_type": gpu_type, **parts}


def _wait_row(cluster_id: str, day: date, key: Key, waits: Waits) -> dict[str, Any]:
    return {
        "cluster_id": cluster_id,
        "day": day,
        **_named(key),
        "jobs": waits.jobs,
        "waited_ms": waits.waited_ms,
        "longest_ms": waits.longest_ms,
        "sketch": waits.sketch,
    }


def _named(key: Key) -> dict[str, str]:
    return {"dimension": key.dimension.value, "tenant_id": key.tenant_id, "name": key.name}


def _capacity_row(cluster_id: str, day: date, gpu_type: str, sums: Sums) -> dict[str, Any]:
    parts = dict(zip(CAPACITY_PARTS, sums.tolist(), strict=True))
    return {"cluster_id": cluster_id, "day": day, "gpu_type": gpu_type, **parts}
