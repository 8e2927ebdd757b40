"""Routes of the laboratory as a whole."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends

from backend.accounts.identity import Principal, require
from backend.accounts.permissions import Permission
from backend.laboratory.budget import shown_uses
from backend.web.dependencies import SessionDep, SettingsDep
from backend.web.strict_json import StrictRoute
from maat.api.fields import Page
from maat.api.laboratory import LaboratoryUseOut

router = APIRouter(prefix="/laboratory", tags=["simulations"], route_class=StrictRoute)

Reader = Annotated[Principal, Depends(require(Permission.SIMULATIONS_READ))]


@router.get("/use", operation_id="getLaboratoryUse")
def read_use(
    session: SessionDep, settings: SettingsDep, principal: Reader
) -> Page[LaboratoryUseOut]:
    """CPU time of simulations, sweeps, experiments, reproductions and questions in 24 hours.

    The caller's tenant comes first; who sees all tenants gets those that used any.
    """
    return Page(items=shown_uses(session, principal, settings), next_cursor=None)
