"""Counts of jobs by state, over everything that a list's filters match.

models.JobCount stores them. Commits nothing.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import sqlalchemy as sa
from sqlmodel import Session, col, func

from backend.jobs.models import Job, JobCount

Counting = sa.Select[str, int]

KIND = ("tenant_id", "cluster_id", "owner_id", "model", "state")


def kept_counts(predicate: sa.ColumnElement[bool]) -> Counting:
    """Select counts by the rows of JobCount that `predicate` selects.

    Their number depends on the kinds of jobs, not on the number of jobs.
    """
    total, state = func.sum(JobCount.change), col(JobCount.state)
    counts = sa.select(state, total).where(predicate).group_by(state)
    return counts.having(total > 0).order_by(state)


def matching_counts(predicate: sa.ColumnElement[bool]) -> Counting:
    """Select counts of the jobs themselves, one by one."""
    state = col(Job.state)
    return sa.select(state, func.count()).where(predicate).group_by(state).order_by(state)


def counted(session: Session, counts: Counting) -> dict[str, int]:
    return {state: int(count) for state, count in session.connection().execute(counts)}


def counts_have_gathered(session: Session) -> bool:
    """Return whether some kind of jobs has more than one row."""
    kinds = sa.select(*(getattr(JobCount, name) for name in KIND)).distinct().subquery()
    gathered, needed = (
        session.execute(sa.select(func.count()).select_from(table)).scalar_one()
        for table in (JobCount, kinds)
    )
    return int(gathered) > int(needed)


def fold_counts(session: Session) -> int:
    """Replace the gathered rows by one row per kind; return how many rows that saved.

    Of two concurrent calls each folds what the other does not.
    """
    gone = session.execute(
        sa.delete(JobCount).returning(*(getattr(JobCount, name) for name in (*KIND, "change")))
    ).all()
    sums: Counter[tuple[Any, ...]] = Counter()
    for *kind, change in gone:
        sums[tuple(kind)] += change
    kept = [
        dict(zip(KIND, kind, strict=True)) | {"change": change}
        for kind, change in sums.items()
        if change != 0
    ]
    if kept:
        session.execute(sa.insert(JobCount), kept)
    return len(gone) - len(kept)
