"""Routes of sweeps."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Response

from backend.accounts.identity import Principal, a_simulation, require
from backend.accounts.permissions import Permission
from backend.idempotency import Answer, KeyHeader, Once, answer_prepared
from backend.laboratory.budget import within_budget
from backend.operations.service import operations_of
from backend.pagination import PageAsked
from backend.simulations.fairness_rule import AskedRule
from backend.sweeps.models import Sweep
from backend.sweeps.resources import show_sweep, show_whole_sweep
from backend.sweeps.service import PreparedSweep, get_sweep, prepare_sweep, store_sweep, whole_of
from backend.tenancy import newest_owned
from backend.web.bodies import TRACE_BYTES, takes_bytes
from backend.web.dependencies import QueueDep, ReadingDep, SessionDep, SettingsDep
from backend.web.still_there import StillThere
from backend.web.strict_json import StrictRoute
from maat.api.fields import Page
from maat.api.sweeps import SweepBody, SweepDetail, SweepOut
from maat.laboratory.figures import DEFAULT_RULE

router = APIRouter(prefix="/sweeps", tags=["simulations"], route_class=StrictRoute)

Reader = Annotated[Principal, Depends(require(Permission.SIMULATIONS_READ))]
Runner = Annotated[Principal, Depends(require(Permission.SIMULATIONS_RUN))]


@router.post(
    "",
    operation_id="requestSweep",
    status_code=202,
    response_model=SweepDetail,
    dependencies=[Depends(a_simulation)],
)
@takes_bytes(TRACE_BYTES)
def create_sweep(
    session: SessionDep,
    reading: ReadingDep,
    settings: SettingsDep,
    queue: QueueDep,
    look: StillThere,
    principal: Runner,
    body: SweepBody,
    key: KeyHeader = None,
) -> Response:
    """Vary one or two settings of a simulation. Follow the operation in Location.

    Points that were simulated before are available at once.
    """

    def answer(prepared: PreparedSweep) -> Answer:
        sweep = store_sweep(session, principal, prepared, queue)
        shown = show_whole_sweep(whole_of(session, principal, sweep))
        return Answer(
            202, shown, {"Location": f"/api/v1/operations/{sweep.operation_id}", "Retry-After": "1"}
        )

    once = Once(principal.user_id, "POST /sweeps", key, body)
    return answer_prepared(
        reading,
        session,
        once,
        settings,
        prepare=within_budget(
            principal,
            settings,
            lambda before: prepare_sweep(before, principal, body, look),
        ),
        answer=answer,
    )


@router.get("", operation_id="listSweeps")
def list_sweeps(session: SessionDep, principal: Reader, asked: PageAsked) -> Page[SweepOut]:
    """Newest first, without their points."""
    found = newest_owned(session, principal, Sweep, asked)
    operations = operations_of(session, list(found.items))
    return found.shown(lambda sweep: show_sweep(sweep, operations[sweep.id]))


@router.get("/{sweep_id}", operation_id="getSweep")
def read_sweep(
    session: SessionDep, principal: Reader, sweep_id: str, fairness_rule: AskedRule = DEFAULT_RULE
) -> SweepDetail:
    """A sweep with its points, and the mean and spread of those that have ended."""
    return show_whole_sweep(
        whole_of(session, principal, get_sweep(session, principal, sweep_id)), fairness_rule
    )
