"""Routes of operations."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from sqlmodel import col, select

from backend.accounts.identity import Principal, require
from backend.accounts.permissions import Permission
from backend.operations.models import Operation, OperationState
from backend.operations.schemas import OperationOut
from backend.operations.service import cancel_operation, get_operation
from backend.pagination import Cursor, Limit, Order, Page, link_next, paginate
from backend.web.dependencies import SessionDep
from backend.web.strict_json import StrictRoute

router = APIRouter(prefix="/operations", tags=["operations"], route_class=StrictRoute)

Reader = Annotated[Principal, Depends(require(Permission.SIMULATIONS_READ))]
Runner = Annotated[Principal, Depends(require(Permission.SIMULATIONS_RUN))]


@router.get("", operation_id="listOperations")
def list_operations(
    request: Request,
    response: Response,
    session: SessionDep,
    principal: Reader,
    state: Annotated[list[OperationState], Query(max_length=10)] = [],  # noqa: B006  (FastAPI copies defaults)
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[OperationOut]:
    """Newest first."""
    statement = select(Operation)
    if not principal.sees_all_tenants:
        statement = statement.where(Operation.tenant_id == principal.tenant_id)
    if state:
        statement = statement.where(col(Operation.state).in_([s.value for s in state]))
    filters = {"list": "operations", "state": sorted(state), "for": "all" if principal.sees_all_tenants else principal.tenant_id}
    order = Order([col(Operation.id)], descending=True)
    found = paginate(session, statement, order=order, filters=filters, limit=limit, cursor=cursor)
    link_next(request, response, found.next_cursor)
    return found.shown(OperationOut.of)


@router.get("/{operation_id}", operation_id="getOperation")
def read_operation(session: SessionDep, principal: Reader, operation_id: str) -> OperationOut:
    return OperationOut.of(get_operation(session, principal, operation_id))


@router.post("/{operation_id}/actions/cancel", operation_id="cancelOperation")
def cancel(session: SessionDep, principal: Runner, operation_id: str) -> OperationOut:
    """Ask it to stop; what it has finished by then is kept."""
    return OperationOut.of(cancel_operation(session, principal, operation_id))
