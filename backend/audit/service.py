"""Reads what was changed: pages, and whole files. It changes nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlmodel import Session, col, func, select

from backend.accounts.models import Tenant
from backend.accounts.principals import Principal
from backend.accounts.tenants import find_tenant
from backend.answers import answer_of
from backend.audit.models import AuditRecord
from backend.pagination import Order, PageAsked, Rows, paginate
from backend.problems import FieldError, Invalid
from maat.api.audit import AuditForm, AuditRecordOut
from maat.csv_output import csv_text
from maat.vocabulary import ActorKind, TargetKind

MOST_EXPORTED = 50_000
"""Records of one file: what memory and a request's time allow."""
ADMINISTRATOR = "an administrator"
COLUMNS = tuple(AuditRecordOut.__annotations__)


@dataclass(frozen=True)
class AuditFilters:
    """Which records. `actor`: a name or an id; `target`: an id; `start`, `end`: wall time."""

    actor: str | None = None
    action: str | None = None
    target: str | None = None
    target_kind: TargetKind | None = None
    tenant: str | None = None
    start: datetime | None = None
    end: datetime | None = None


def list_records(
    session: Session, principal: Principal, asked: PageAsked, filters: AuditFilters
) -> Rows[AuditRecord]:
    """List records that the principal may read, newest first. Raises Invalid, NotFound."""
    described = {
        "list": "audit",
        "for": "all" if principal.sees_all_tenants else principal.tenant_id,
        **vars(filters),
    }
    return asked.linked(
        paginate(
            session,
            select(AuditRecord).where(*_conditions(session, principal, filters)),
            order=Order([col(AuditRecord.id)], descending=True),
            filters=described,
            limit=asked.limit,
            cursor=asked.cursor,
        )
    )


def export(session: Session, principal: Principal, filters: AuditFilters, form: AuditForm) -> bytes:
    """Return all records that match as a file, newest first.

    Raises Invalid if there are more than MOST_EXPORTED.
    """
    conditions = _conditions(session, principal, filters)
    some = select(col(AuditRecord.id)).where(*conditions).limit(MOST_EXPORTED + 1).subquery()
    if session.exec(select(func.count()).select_from(some)).one() > MOST_EXPORTED:
        message = f"More than {MOST_EXPORTED} records match."
        remedy = "Give a shorter period by from and to, or filter by actor, action or target."
        error = FieldError("/from", "too_many", message, remedy, filters.start)
        raise Invalid(f"{message} {remedy}", errors=[error])
    newest = select(AuditRecord).where(*conditions).order_by(col(AuditRecord.id).desc())
    shown = show_records(session, principal, session.exec(newest).all())
    if form is AuditForm.JSON:
        return json.dumps(shown, indent=1).encode()
    return csv_text(
        COLUMNS, [[_cell(one[name]) for name in COLUMNS] for one in _plain(shown)]
    ).encode()


def show_records(
    session: Session, principal: Principal, rows: Sequence[AuditRecord]
) -> list[AuditRecordOut]:
    """Show records; who acts from another tenant is `an administrator` to a tenant's manager."""
    ids = {row.tenant_id for row in rows if row.tenant_id is not None}
    tenants = dict(
        session.exec(select(Tenant.id, Tenant.name).where(col(Tenant.id).in_(ids))).all()
    )
    return [
        answer_of(
            AuditRecordOut,
            row,
            tenant=None if row.tenant_id is None else tenants.get(row.tenant_id, row.tenant_id),
            **_actor(principal, row),
        )
        for row in rows
    ]


def _actor(principal: Principal, row: AuditRecord) -> dict[str, object]:
    if row.actor_kind != ActorKind.USER or principal.may_see(row.actor_tenant_id or ""):
        return {"actor": row.actor_name}
    return {"actor": ADMINISTRATOR, "actor_id": None, "credential": None}


def _conditions(
    session: Session, principal: Principal, filters: AuditFilters
) -> list[sa.ColumnElement[bool]]:
    """Select what the filters name of what the principal may read. Raises Invalid, NotFound."""
    if filters.start is not None and filters.end is not None and filters.end <= filters.start:
        message, remedy = "The period ends before it begins.", "Give a later time, or none."
        error = FieldError("/to", "before_from", message, remedy, filters.end)
        raise Invalid(f"{message} {remedy}", errors=[error])
    found: list[sa.ColumnElement[bool]] = []
    if not principal.sees_all_tenants:
        found.append(col(AuditRecord.tenant_id) == principal.tenant_id)
    if filters.tenant is not None:
        tenant = find_tenant(session, principal, filters.tenant)
        found.append(col(AuditRecord.tenant_id) == tenant.id)
    if filters.actor is not None:
        found.append(_by(principal, filters.actor))
    wanted: tuple[tuple[Any, object], ...] = (
        (AuditRecord.action, filters.action),
        (AuditRecord.target_id, filters.target),
        (AuditRecord.target_kind, filters.target_kind),
    )
    found += [col(column) == value for column, value in wanted if value is not None]
    if filters.start is not None:
        found.append(col(AuditRecord.at) >= filters.start)
    if filters.end is not None:
        found.append(col(AuditRecord.at) < filters.end)
    return found


def _by(principal: Principal, actor: str) -> sa.ColumnElement[bool]:
    """Select by actor. One of another tenant cannot be found by a name that is not shown."""
    named = sa.or_(col(AuditRecord.actor_name) == actor, col(AuditRecord.actor_id) == actor)
    if principal.sees_all_tenants:
        return named
    own = col(AuditRecord.actor_tenant_id)
    return sa.and_(named, sa.or_(own.is_(None), own == principal.tenant_id))


def _plain(shown: Sequence[AuditRecordOut]) -> list[dict[str, Any]]:
    return [dict(one) for one in shown]


def _cell(value: Any) -> str | None:
    return json.dumps(value) if isinstance(value, dict) else value
