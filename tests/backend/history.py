"""A long history of jobs, which one SQL statement writes.

It has two clusters, three tenants, many owners, and a few unfinished jobs.
"""

from __future__ import annotations

import sqlalchemy as sa
from sqlmodel import Session, select

from backend.jobs.counting import fold_counts
from backend.models import Cluster, Job, Tenant, User

MODELS = ("bert", "cifar10", "deepspeech2", "imagenet", "ncf", "yolov3")
ENDED = ("succeeded", "succeeded", "succeeded", "succeeded", "cancelled", "failed")
OWNERS = 4
UNDER_WAY = 40


def fill(
    session: Session, jobs: int, *, under_way: int = UNDER_WAY, other_tenants: int = 2
) -> None:
    """Insert `jobs` jobs, of which `under_way` are unfinished.

    Values repeat by different primes, so that no two columns rise together.
    """
    tenants = _tenants(session, other_tenants)
    cluster, owners = _cluster(session), _owners(session)
    sqlite = session.get_bind().dialect.name == "sqlite"
    numbers = (
        "WITH RECURSIVE numbers(n) AS "
        f"(SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < {jobs})"
        if sqlite
        else f"WITH numbers AS (SELECT n FROM generate_series(0, {jobs - 1}) AS n)"
    )
    ended = f"n >= {under_way}"
    unfinished = _one_of(("pending", "running"), "n")
    columns = {
        "id": f"'job_' || {_padded('n', sqlite)}",
        "cluster_id": _one_of(cluster, "n / 7"),
        "name": f"'train-' || ((n * 7919) % {jobs})",
        "owner_id": _one_of(owners, "n / 5"),
        "tenant_id": _one_of(tenants, "n / 11"),
        "model": _one_of(MODELS, "n / 3"),
        "state": f"CASE WHEN {ended} THEN {_one_of(ENDED, 'n')} ELSE {unfinished} END",
        "submitted_seconds": "n * 60.0",
        "finished_seconds": f"CASE WHEN {ended} THEN n * 60.0 + 30 END",
        "gpu_type": f"CASE WHEN {ended} THEN NULL ELSE 't4' END",
        "gpu_seconds": f"((n * 10007) % {jobs}) * 10.0",
        "progress": f"CASE WHEN {ended} THEN 1.0 ELSE 0.5 END",
        "restarts": "n % 13",
        "adaptivity": "'adaptive'",
        "min_gpus": "1",
        "preemptible": "true",
        "work_scale": "1.0",
        "workload_kind": "'training'",
        "remaining_work": "0.0",
        "reason_code": "'NOT_YET_CONSIDERED'",
        "reason_evidence": "'{}'",
        "cancel_requested": "false",
        "version": "1",
        "created_at": "'2026-01-01 00:00:00'" if sqlite else "TIMESTAMPTZ '2026-01-01'",
    }
    insert, values = f"INSERT INTO jobs ({', '.join(columns)})", ", ".join(columns.values())
    statement = f"{numbers} {insert} SELECT {values} FROM numbers"
    if sqlite:  # there, WITH stands behind INSERT
        statement = f"{insert} {numbers} SELECT {values} FROM numbers"
    session.execute(sa.text(statement.replace(":", "\\:")))


def settle(session: Session) -> None:
    """What housekeeping does every half minute, and autovacuum in time on PostgreSQL."""
    fold_counts(session)
    if session.get_bind().dialect.name != "sqlite":
        session.execute(sa.text("ANALYZE"))


def _padded(number: str, sqlite: bool) -> str:
    return f"printf('%08d', {number})" if sqlite else f"lpad(({number})::text, 8, '0')"


def _one_of(values: tuple[str, ...], number: str) -> str:
    cases = " ".join(f"WHEN {index} THEN '{value}'" for index, value in enumerate(values))
    return f"CASE ({number}) % {len(values)} {cases} END"


def _cluster(session: Session) -> tuple[str, ...]:
    first = session.exec(select(Cluster).order_by(Cluster.id)).first()
    assert first is not None
    second = Cluster(name="second", policy="fifo", placer="packed", round_seconds=60.0)
    session.add(second)
    session.flush()
    return first.id, second.id


def _tenants(session: Session, others_wanted: int) -> tuple[str, ...]:
    names = ["blue", "red", *(f"tenant-{number}" for number in range(3, others_wanted + 1))]
    others = [Tenant(name=name) for name in names[:others_wanted]]
    session.add_all(others)
    session.flush()
    return (
        *session.exec(select(Tenant.id).where(Tenant.name == "default")),
        *(tenant.id for tenant in others),
    )


def _owners(session: Session) -> tuple[str, ...]:
    tenant_id = session.exec(select(Tenant.id).where(Tenant.name == "default")).one()
    others = [
        User(name=f"owner-{number}", tenant_id=tenant_id, role="submitter")
        for number in range(OWNERS)
    ]
    session.add_all(others)
    session.flush()
    return tuple(user.id for user in others)


def jobs_of(session: Session) -> int:
    return session.execute(sa.select(sa.func.count()).select_from(Job)).scalar_one()
