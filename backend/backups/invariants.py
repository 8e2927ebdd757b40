"""What must hold in every database of Maat, as queries that find what breaks it. Reads only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import sqlalchemy as sa
from sqlmodel import Session

_SHOWN = 5


@dataclass(frozen=True)
class Invariant:
    """A rule, and the query that returns one text for each row that breaks it."""

    rule: str
    broken_by: str


INVARIANTS = (
    Invariant(
        "the rounds of a cluster are numbered without a gap",
        "SELECT cluster_id || ': ' || count(*) || ' rounds from ' || min(number) || ' to ' "
        "|| max(number) FROM rounds GROUP BY cluster_id "
        "HAVING max(number) - min(number) + 1 <> count(*)",
    ),
    Invariant(
        "the last round of a cluster is the one before its next",
        "SELECT clusters.id || ': next is ' || next_round_number || ', last is ' || max(number) "
        "FROM clusters JOIN rounds ON rounds.cluster_id = clusters.id "
        "GROUP BY clusters.id, next_round_number HAVING max(number) <> next_round_number - 1",
    ),
    Invariant(
        "a job has a time of its end exactly if it has ended",
        "SELECT id || ' is ' || state FROM jobs WHERE (state IN "
        "('succeeded', 'failed', 'cancelled')) <> (finished_seconds IS NOT NULL)",
    ),
    Invariant(
        "a job that has ended holds no GPUs",
        "SELECT id FROM jobs WHERE finished_seconds IS NOT NULL AND gpus IS NOT NULL "
        "AND CAST(gpus AS TEXT) NOT IN ('null', '[]')",
    ),
    Invariant(
        "jobs are counted as they are",
        "SELECT state || ': ' || sum(n) || ' more or fewer' FROM ("
        "SELECT state, cluster_id, 1 AS n FROM jobs UNION ALL "
        "SELECT state, cluster_id, -change AS n FROM job_counts) AS counted "
        "GROUP BY state, cluster_id HAVING sum(n) <> 0",
    ),
    Invariant(
        "a job has at most one allocation that lasts, and none once it has ended",
        "SELECT allocations.job_id || ' has ' || count(*) FROM allocations "
        "JOIN jobs ON jobs.id = allocations.job_id WHERE to_seconds IS NULL "
        "GROUP BY allocations.job_id HAVING count(*) > 1 OR max(finished_seconds) IS NOT NULL",
    ),
    Invariant(
        "the attempts of a job are numbered without a gap",
        "SELECT job_id || ': ' || count(*) || ' up to ' || max(number) FROM attempts "
        "GROUP BY job_id HAVING max(number) <> count(*) OR min(number) <> 1",
    ),
    Invariant(
        "a GPU is held by an attempt that has not ended",
        "SELECT node_id || ' ' || gpu_index FROM gpu_holds "
        "JOIN attempts ON attempts.id = gpu_holds.attempt_id WHERE state = 'ended'",
    ),
    Invariant(
        "changes that wait for the executor are those of a committed round",
        "SELECT outbox.cluster_id || ' round ' || outbox.round_number FROM outbox "
        "LEFT JOIN rounds ON rounds.cluster_id = outbox.cluster_id "
        "AND rounds.number = outbox.round_number "
        "WHERE outbox.applied_at IS NULL AND rounds.number IS NULL",
    ),
    Invariant(
        "an administrator is left",
        "SELECT 'no active cluster_admin in an open tenant' WHERE NOT EXISTS ("
        "SELECT 1 FROM users JOIN tenants ON tenants.id = users.tenant_id "
        "WHERE users.active AND users.role = 'cluster_admin' AND tenants.closed_at IS NULL)",
    ),
)


def failing_statements() -> list[str]:
    """Return a statement of PostgreSQL for each rule, which fails if the rule is broken."""
    return [
        # The queries are the program's own.
        f"""DO $check$
        DECLARE rows text;
        BEGIN
            SELECT string_agg(broken.row, ', ') INTO rows
            FROM (SELECT * FROM ({rule.broken_by}) AS queried(row) LIMIT {_SHOWN}) AS broken;
            IF rows IS NOT NULL THEN
                RAISE EXCEPTION '%', {_quoted(f"not true: {rule.rule}")} || ' (' || rows || ')';
            END IF;
        END $check$"""  # noqa: S608
        for rule in INVARIANTS
    ]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def broken(session: Session) -> Iterator[str]:
    """Yield a sentence for every rule that is broken, with the first rows that break it."""
    for one in INVARIANTS:
        rows = session.execute(sa.text(one.broken_by)).scalars().fetchmany(_SHOWN + 1)
        if rows:
            more = " and more" if len(rows) > _SHOWN else ""
            yield f"not true: {one.rule} ({', '.join(map(str, rows[:_SHOWN]))}{more})"
