"""Rows of the busy cluster whose year usage.py measures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlmodel import Session, col

from backend.fairness.formula import VERSION

DAYS, RAW_DAYS = 365, 3
TYPES = (("t4", 768), ("rtx", 512), ("a100", 768))
EPOCH = datetime(2025, 1, 6, tzinfo=UTC)
DAY = 86_400.0


@dataclass(frozen=True)
class Owner:
    user: str
    tenant: str


def job_row(
    job_id: str, cluster_id: str, owner: Owner, model: str, submitted: float, started: float
) -> dict[str, Any]:
    return {
        "id": job_id,
        "cluster_id": cluster_id,
        "name": job_id,
        "owner_id": owner.user,
        "tenant_id": owner.tenant,
        "model": model,
        "adaptivity": "adaptive",
        "labels": {"team": owner.tenant[-4:], "stage": "train"},
        "state": "succeeded",
        "submitted_seconds": submitted,
        "started_seconds": started,
        "finished_seconds": started,
        "remaining_work": 0.0,
    }


def rho_row(job: dict[str, Any], rho: float) -> dict[str, Any]:
    return {
        "job_id": job["id"],
        "cluster_id": job["cluster_id"],
        "tenant_id": job["tenant_id"],
        "finished_seconds": job["finished_seconds"],
        "state": "succeeded",
        "rho": rho,
        "formula_version": VERSION,
    }


def span_row(
    job_id: str, cluster_id: str, begin: float, end: float, gpu_type: str
) -> dict[str, Any]:
    return {
        "job_id": job_id,
        "cluster_id": cluster_id,
        "round_number": 1,
        "from_seconds": begin,
        "to_seconds": end,
        "gpu_type": gpu_type,
        "node_count": 1,
        "running_seconds": begin + 30.0,
        "processed_before": 0.0,
        "gained_before": 0.0,
        "lost_before": 0.0,
        "processed_after": 1000.0,
        "gained_after": 700.0,
        "lost_after": 0.0,
    }


def round_rows(cluster_id: str, day: int) -> Iterator[dict[str, Any]]:
    found = {name: {"used": 0, "capacity": gpus} for name, gpus in TYPES}
    for minute in range(1440 if day < RAW_DAYS - 1 else 1440 + 60):
        yield {
            "cluster_id": cluster_id,
            "number": day * 1440 + minute + 1,
            "at_seconds": day * DAY + minute * 60.0,
            "active_jobs": 0,
            "running_jobs": 0,
            "pending_jobs": 0,
            "gpus_used": 0,
            "gpus_total": 2048,
            "changes": 0,
            "policy": "sia",
            "placer": "whole-node",
            "status": "optimal",
            "method": "prices",
            "policy_seconds": 0.0,
            "place_seconds": 0.0,
            "gpus_by_type": found,
            "record": {},
        }


def copy_days(session: Session, table: Any, days: list[int]) -> None:
    """Copy the rows of the summed days onto later ones, in turn."""
    columns = [column.name for column in table.__table__.columns]
    first = EPOCH.date()
    begun = col(table.day) >= first + timedelta(days=days[0])
    session.connection().execute(sa.delete(table).where(begun))
    for day in days:
        source = first + timedelta(days=day % RAW_DAYS)
        values = [
            sa.literal(first + timedelta(days=day), table.__table__.c.day.type)
            if name == "day"
            else table.__table__.c[name]
            for name in columns
        ]
        key = [table.__table__.c[column.name] for column in table.__table__.primary_key]
        found = sa.select(*values).where(col(table.day) == source).order_by(*key)
        session.connection().execute(sa.insert(table).from_select(columns, found))
