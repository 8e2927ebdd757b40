"""Adds finished rounds to the daily sums, and reads what one more GPU was worth.

Commits nothing. The worker calls `add_rounds` before it deletes old rounds.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlmodel import Session, col, func, select

from backend.clusters.models import Cluster
from backend.marginal_values.models import MarginalValueDay, SummedRounds
from backend.marginal_values.summing import DayKey, DaySums, RoundFacts, facts_of, sum_rounds
from backend.rounds.models import Round

AT_ONCE = 500  # rounds per transaction, to keep it short

_FACTS = tuple(getattr(Round, name) for name in RoundFacts._fields)


@dataclass(frozen=True)
class MarginalValue:
    """What one more GPU of a type was worth, under one policy, over some days.

    `mean_value`: the mean price by time, in units of the policy's objective; None if no round had a
    price. `positive_share`: the share of priced time with a price above zero. `mean_used`,
    `mean_capacity`: GPUs. `hours`: of cluster time that rounds stand for; `priced_hours`: with a
    price.
    """

    gpu_type: str
    policy: str
    policy_version: str
    mean_value: float | None
    positive_share: float | None
    mean_used: float
    mean_capacity: float
    hours: float
    priced_hours: float
    rounds: int


def unsummed(session: Session, cluster_id: str) -> int:
    """Return how many rounds can be added: all but the last, which is not over."""
    through = session.exec(
        select(SummedRounds.through).where(SummedRounds.cluster_id == cluster_id)
    ).first()
    after = (Round.cluster_id == cluster_id, col(Round.number) > (through or 0))
    found = session.exec(select(func.count()).select_from(Round).where(*after)).one()
    return max(found - 1, 0)


def add_rounds(session: Session, cluster_id: str) -> int:
    """Add the next rounds to the sums, at most AT_ONCE; returns their number.

    The sums and how far they count change in one transaction, so a repetition adds nothing twice.
    """
    mark = session.get(SummedRounds, cluster_id, with_for_update=True)
    if mark is None:
        mark = SummedRounds(cluster_id=cluster_id)
        session.add(mark)
        session.flush()
    rounds = _rounds_after(session, cluster_id, mark.through)
    if len(rounds) < 2:
        return 0
    cluster = session.get_one(Cluster, cluster_id)
    sums = sum_rounds(rounds, epoch=cluster.epoch, round_seconds=cluster.round_seconds)
    for key, added in sums.items():
        _add_to_row(session, cluster_id, key, added)
    mark.through = rounds[-2].number
    session.add(mark)
    session.flush()
    return len(rounds) - 1


def _rounds_after(session: Session, cluster_id: str, number: int) -> list[RoundFacts]:
    """Return the next rounds without their records, one more than AT_ONCE."""
    rows = session.exec(
        select(*_FACTS)
        .where(Round.cluster_id == cluster_id, col(Round.number) > number)
        .order_by(col(Round.number))
        .limit(AT_ONCE + 1)
    ).all()
    return facts_of(rows)


def _add_to_row(session: Session, cluster_id: str, key: DayKey, added: DaySums) -> None:
    row = session.get(MarginalValueDay, (cluster_id, *key))
    session.add(_with(row, cluster_id, key, added))


def _with(
    row: MarginalValueDay | None, cluster_id: str, key: DayKey, added: DaySums
) -> MarginalValueDay:
    """Return the row with these sums added, or a new one.

    A round that began the day before is counted on both days that it touches.
    """
    if row is None:
        given: dict[str, Any] = {**key._asdict(), **added.values()}
        return MarginalValueDay(cluster_id=cluster_id, rounds=len(added.numbers), **given)
    row.rounds += len(added.numbers)
    row.first_seconds = min(row.first_seconds, added.first_seconds)
    row.last_seconds = max(row.last_seconds, added.last_seconds)
    for name, value in added.values().items():
        if name not in ("first_seconds", "last_seconds"):
            setattr(row, name, getattr(row, name) + value)
    return row


def sums_of_days(
    session: Session, cluster_id: str, first: dt.date, last: dt.date
) -> list[MarginalValueDay]:
    """Return the sums of the days from `first` to `last`, in order, and of rounds not added yet.

    They are copies: nothing that is read here is written.
    """
    day, names = col(MarginalValueDay.day), tuple(MarginalValueDay.model_fields)
    statement = sa.select(*(col(getattr(MarginalValueDay, name)) for name in names)).where(
        col(MarginalValueDay.cluster_id) == cluster_id, day.between(first, last)
    )
    found = (
        MarginalValueDay(**dict(zip(names, row, strict=True)))
        for row in session.connection().execute(statement)
    )
    rows = {_key_of(row): row for row in found}
    for key, added in _sums_of_latest(session, cluster_id).items():
        if first <= key.day <= last:
            rows[key] = _with(rows.get(key), cluster_id, key, added)
    return [rows[key] for key in sorted(rows)]


def marginal_values(days: Iterable[MarginalValueDay]) -> list[MarginalValue]:
    """Return what one more GPU was worth over some days.

    By GPU type, and by policy with its parameters: prices of two policies have different units, so
    they are never averaged.
    """
    groups = defaultdict[tuple[str, str, str], list[MarginalValueDay]](list)
    for row in days:
        groups[row.gpu_type, row.policy, row.policy_version].append(row)
    return [_value_of(*key, rows) for key, rows in sorted(groups.items())]


def _key_of(row: MarginalValueDay) -> DayKey:
    return DayKey(*(getattr(row, name) for name in DayKey._fields))


def _sums_of_latest(session: Session, cluster_id: str) -> dict[DayKey, DaySums]:
    """Sum the next rounds that are not added yet, at most AT_ONCE."""
    mark = session.get(SummedRounds, cluster_id)
    rounds = _rounds_after(session, cluster_id, 0 if mark is None else mark.through)
    cluster = session.get_one(Cluster, cluster_id)
    return sum_rounds(rounds, epoch=cluster.epoch, round_seconds=cluster.round_seconds)


def _value_of(
    gpu_type: str, policy: str, version: str, rows: Iterable[MarginalValueDay]
) -> MarginalValue:
    rows = list(rows)
    seconds, priced = (sum(r.seconds for r in rows), sum(r.priced_seconds for r in rows))
    return MarginalValue(
        gpu_type,
        policy,
        version,
        mean_value=sum(r.value_seconds for r in rows) / priced if priced else None,
        positive_share=sum(r.positive_seconds for r in rows) / priced if priced else None,
        mean_used=sum(r.used_seconds for r in rows) / seconds if seconds else 0.0,
        mean_capacity=sum(r.capacity_seconds for r in rows) / seconds if seconds else 0.0,
        hours=seconds / 3600,
        priced_hours=priced / 3600,
        rounds=sum(r.rounds for r in rows),
    )
