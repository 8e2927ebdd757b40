"""Deletes old reproductions, and the results of runs that none of those left needs."""

from __future__ import annotations

from datetime import timedelta

import sqlalchemy as sa
from sqlmodel import col, select
from sqlmodel.sql.expression import SelectOfScalar

from backend.clocktime import utc_now
from backend.database import Database
from backend.models import (
    MeasurementUse,
    Operation,
    PaperRun,
    ReproducedItem,
    ReproducedRun,
    Reproduction,
)
from backend.operations.models import ENDED

AT_ONCE = 100


def prune_reproductions(database: Database, *, days: float) -> int:
    """Delete reproductions that ended longer ago than this, some at a time; return how many."""
    before = utc_now() - timedelta(days=days)
    old = (
        select(Reproduction.id, Reproduction.operation_id)
        .join(Operation)
        .where(col(Operation.state).in_(ENDED), col(Operation.finished_at) < before)
        .limit(AT_ONCE)
    )
    with database.session_scope(writes=False) as session:
        found = session.exec(old).all()
        runs = session.exec(_unneeded()).all()
    if found or runs:
        with database.session_scope() as session:
            ids, operations = [one for one, _ in found], [one for _, one in found]
            items = select(ReproducedItem.id).where(col(ReproducedItem.reproduction_id).in_(ids))
            for statement in (
                sa.delete(ReproducedRun).where(col(ReproducedRun.item_id).in_(items)),
                sa.delete(ReproducedItem).where(col(ReproducedItem.reproduction_id).in_(ids)),
                sa.delete(MeasurementUse).where(col(MeasurementUse.operation_id).in_(operations)),
                sa.delete(Reproduction).where(col(Reproduction.id).in_(ids)),
                sa.delete(Operation).where(col(Operation.id).in_(operations)),
                sa.delete(PaperRun).where(col(PaperRun.key).in_(runs), _no_item_needs()),
            ):
                session.execute(statement)
    return len(found)


def _unneeded() -> SelectOfScalar[str]:
    ended = col(PaperRun.state).in_(ENDED)
    return select(PaperRun.key).where(ended, _no_item_needs()).limit(AT_ONCE)


def _no_item_needs() -> sa.ColumnElement[bool]:
    mine = col(ReproducedRun.run_key) == col(PaperRun.key)
    return ~select(ReproducedRun.run_key).where(mine).exists()
