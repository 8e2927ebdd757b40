"""The route that says who asks."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends

from backend.accounts.identity import Principal, principal_of
from backend.web.strict_json import StrictRoute
from maat.api.service import MeOut

router = APIRouter(tags=["accounts"], route_class=StrictRoute)


@router.get("/me", operation_id="getMe")
def read_me(principal: Annotated[Principal, Depends(principal_of)]) -> MeOut:
    """Who you are to Maat, and what you may do."""
    permissions = sorted(permission.value for permission in principal.permissions)
    return MeOut(
        user=principal.user_name,
        tenant=principal.tenant_name,
        role=principal.role.value,
        permissions=permissions,
    )
