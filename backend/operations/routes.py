"""Routes of operations."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from sqlmodel import col

from backend.accounts.identity import Principal, require
from backend.accounts.permissions import Permission
from backend.operations.models import Operation, OperationState
from backend.operations.resources import show_operation
from backend.operations.service import cancel_operation, get_operation
from backend.pagination import PageAsked
from backend.tenancy import newest_owned
from backend.web.dependencies import SessionDep
from backend.web.strict_json import StrictRoute
from maat.api.fields import Page
from maat.api.operations import OperationOut

router = APIRouter(prefix="/operations", tags=["operations"], route_class=StrictRoute)

Reader = Annotated[Principal, Depends(require(Permission.SIMULATIONS_READ))]
Runner = Annotated[Principal, Depends(require(Permission.SIMULATIONS_RUN))]


@router.get("", operation_id="listOperations")
def list_operations(
    session: SessionDep,
    principal: Reader,
    asked: PageAsked,
    state: Annotated[list[OperationState], Query(max_length=10)] = [],  # noqa: B006  (FastAPI copies defaults)
) -> Page[OperationOut]:
    """Newest first."""
    conditions = [col(Operation.state).in_([s.value for s in state])] if state else []
    return newest_owned(
        session, principal, Operation, asked, *conditions, filters={"state": sorted(state)}
    ).shown(show_operation)


@router.get("/{operation_id}", operation_id="getOperation")
def read_operation(session: SessionDep, principal: Reader, operation_id: str) -> OperationOut:
    return show_operation(get_operation(session, principal, operation_id))


@router.post("/{operation_id}/actions/cancel", operation_id="cancelOperation")
def cancel(session: SessionDep, principal: Runner, operation_id: str) -> OperationOut:
    """Ask an operation to stop; it keeps what is finished by then."""
    return show_operation(cancel_operation(session, principal, operation_id))
