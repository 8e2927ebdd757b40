"""Reads rounds.

A list never loads their records: `summaries` names the columns that it reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy.orm import defer
from sqlmodel import Session, col, func, select

from backend.accounts.identity import Principal
from backend.pagination import Order, Rows, paginate
from backend.problems import NotFound
from backend.rounds.models import Round
from backend.sight import Sight, jobs_named_in, sight_of


def list_rounds(
    session: Session,
    cluster_id: str,
    *,
    after: float | None,
    before: float | None,
    limit: int,
    cursor: str | None,
) -> Rows[Round]:
    """List rounds, newest first, without records. `after`, `before`: cluster seconds."""
    statement = _without_records().where(*_between(cluster_id, after, before))
    filters = {"list": "rounds", "cluster": cluster_id, "after": after, "before": before}
    order = Order([col(Round.number)], descending=True)
    return paginate(session, statement, order=order, filters=filters, limit=limit, cursor=cursor)


def get_round(session: Session, cluster_id: str, number: int | None) -> Round:
    """Find a round with its record. None: the latest. Raises NotFound."""
    statement = select(Round).where(Round.cluster_id == cluster_id)
    chosen = (
        statement.order_by(col(Round.number).desc()).limit(1)
        if number is None
        else statement.where(Round.number == number)
    )
    found = session.exec(chosen).first()
    if found is None:
        raise _no_round(number)
    return found


def _no_round(number: int | None) -> NotFound:
    wanted = "no round yet"
    if number is not None:
        wanted = f"no round {number}: it was pruned or is in the future"
    return NotFound(f"The cluster has {wanted}.")


def round_before(session: Session, cluster_id: str, at_seconds: float) -> Round | None:
    """Return the last round before this cluster time, with its record.

    Returns None if it was pruned or there was none.
    """
    statement = select(Round).where(Round.cluster_id == cluster_id, Round.at_seconds < at_seconds)
    return session.exec(statement.order_by(col(Round.at_seconds).desc()).limit(1)).first()


def thinned_rounds(
    session: Session, cluster_id: str, *, after: float | None, before: float | None, points: int
) -> Sequence[Round]:
    """Return at most `points` rounds without records, oldest first.

    They are evenly spaced by number and include the latest.
    """
    condition = _between(cluster_id, after, before)
    first, last = session.exec(
        select(func.min(Round.number), func.max(Round.number)).where(*condition)
    ).one()
    if first is None or last is None:
        return []
    every = max(-(-(last - first) // max(points - 1, 1)), 1)
    spread = (last - col(Round.number)) % every == 0
    found: Sequence[Round] = session.exec(
        _without_records().where(*condition, spread).order_by(col(Round.number))
    ).all()
    return found


def round_at(session: Session, cluster_id: str, number: int) -> float:
    """Return the cluster time of a round. Raises NotFound."""
    statement = select(Round.at_seconds).where(
        Round.cluster_id == cluster_id, Round.number == number
    )
    found = session.exec(statement).first()
    if found is None:
        raise _no_round(number)
    return found


def latest_at(session: Session, cluster_id: str) -> float | None:
    """Return the cluster time of the latest round."""
    statement = (
        select(Round.at_seconds)
        .where(Round.cluster_id == cluster_id)
        .order_by(col(Round.number).desc())
        .limit(1)
    )
    return session.exec(statement).first()


def rounds_sight(session: Session, principal: Principal, rounds: Sequence[Round]) -> Sight:
    """Return what a principal sees of the jobs in rounds without records."""
    return sight_of(
        session, principal, jobs_named_in([[found.message, found.prices] for found in rounds])
    )


def round_sight(session: Session, principal: Principal, found: Round) -> Sight:
    """Return what a principal sees of the jobs in a round and its record."""
    record = found.record or {}
    texts = [
        found.message,
        found.prices,
        record.get("reasons", {}),
        record.get("grants", {}),
        record.get("report", {}),
    ]
    return sight_of(session, principal, [*record.get("job_ids", ()), *jobs_named_in(texts)])


def _without_records() -> Any:
    return select(Round).options(defer(Round.record, raiseload=True))


def _between(cluster_id: str, after: float | None, before: float | None) -> list[Any]:
    conditions: list[Any] = [col(Round.cluster_id) == cluster_id]
    if after is not None:
        conditions.append(col(Round.at_seconds) > after)
    if before is not None:
        conditions.append(col(Round.at_seconds) < before)
    return conditions
