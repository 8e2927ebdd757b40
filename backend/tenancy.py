"""Rows that belong to a tenant: found by id, listed newest first.

A principal does not learn that another tenant's rows exist.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.sql.base import ExecutableOption
from sqlmodel import Session, SQLModel, col, select

from backend.accounts.identity import Principal
from backend.pagination import Order, PageAsked, Rows, paginate
from backend.problems import NotFound

Owned = TypeVar("Owned", bound=SQLModel)


def find_owned(
    session: Session,
    principal: Principal,
    table: type[Owned],
    row_id: str,
    *,
    noun: str,
    lock: bool = False,
) -> Owned:
    """Find a row that the principal may see. Raises NotFound."""
    found = session.get(table, row_id, with_for_update=lock or None)
    tenant_id: str = getattr(found, "tenant_id", "")
    if found is None or not principal.may_see(tenant_id):
        raise NotFound(f"There is no {noun} {row_id!r}.")
    return found


def newest_owned(
    session: Session,
    principal: Principal,
    table: type[Owned],
    asked: PageAsked,
    *conditions: sa.ColumnElement[bool],
    filters: Mapping[str, Any] | None = None,
    options: Sequence[ExecutableOption] = (),
) -> Rows[Owned]:
    """List rows newest first (ids ascend).

    `filters`: the values behind `conditions`. `options`: which columns are loaded.
    """
    key: Any = table
    statement = select(table).where(*conditions).options(*options)
    if not principal.sees_all_tenants:
        statement = statement.where(col(key.tenant_id) == principal.tenant_id)
    described = {
        "list": table.__tablename__,
        "for": "all" if principal.sees_all_tenants else principal.tenant_id,
        **(filters or {}),
    }
    order = Order([col(key.id)], descending=True)
    return asked.linked(
        paginate(
            session,
            statement,
            order=order,
            filters=described,
            limit=asked.limit,
            cursor=asked.cursor,
        )
    )
