"""Routes of what was changed. They read; none changes or deletes a record."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response

from backend.accounts.identity import Principal, require
from backend.accounts.permissions import Permission
from backend.audit.service import AuditFilters, export, list_records, show_records
from backend.pagination import PageAsked
from backend.web.dependencies import SessionDep
from backend.web.strict_json import StrictRoute
from maat.api.audit import AuditForm, AuditRecordOut
from maat.api.fields import Moment, Name, Page
from maat.vocabulary import TargetKind

router = APIRouter(prefix="/audit", tags=["audit"], route_class=StrictRoute)

Reader = Annotated[Principal, Depends(require(Permission.AUDIT_READ))]
MEDIA = {AuditForm.CSV: "text/csv; charset=utf-8", AuditForm.JSON: "application/json"}
FILES: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {
            "text/csv": {"schema": {"type": "string", "format": "binary"}},
            "application/json": {"schema": {"type": "array", "items": {"type": "object"}}},
        },
        "description": "The records as a file.",
    }
}


async def asked_filters(
    actor: Annotated[Name | None, Query(description="Name or id of who did it.")] = None,
    action: Annotated[Name | None, Query(description="Such as `change user`.")] = None,
    target: Annotated[Name | None, Query(description="Id of what was changed.")] = None,
    target_kind: TargetKind | None = None,
    tenant: Annotated[Name | None, Query(description="Whose affair: name or id.")] = None,
    from_: Annotated[Moment | None, Query(alias="from", description="Wall time.")] = None,
    to: Annotated[Moment | None, Query(description="Wall time, which is not included.")] = None,
) -> AuditFilters:
    return AuditFilters(actor, action, target, target_kind, tenant, from_, to)


Asked = Annotated[AuditFilters, Depends(asked_filters)]


@router.get("", operation_id="listAudit")
def list_audit(
    session: SessionDep, principal: Reader, asked: PageAsked, filters: Asked
) -> Page[AuditRecordOut]:
    """What was changed, newest first. A tenant's manager reads what concerns the tenant."""
    found = list_records(session, principal, asked, filters)
    shown = show_records(session, principal, found.items)
    return Page(items=shown, next_cursor=found.next_cursor)


@router.get("/export/{form}", operation_id="exportAudit", response_class=Response, responses=FILES)
def export_audit(
    session: SessionDep, principal: Reader, form: AuditForm, filters: Asked
) -> Response:
    """The same as a file, with all records that match: 50,000 at most."""
    headers = {"Content-Disposition": f'attachment; filename="maat-audit.{form.value}"'}
    content = export(session, principal, filters, form)
    return Response(content, media_type=MEDIA[form], headers=headers)
