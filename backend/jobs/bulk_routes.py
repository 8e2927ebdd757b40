"""The route of one action on many jobs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Response
from sqlmodel import Session

from backend.accounts.identity import Principal, require
from backend.accounts.permissions import Permission
from backend.idempotency import Answer, KeyHeader, Once, answer_prepared
from backend.jobs.bulk import BulkPlan, carry_out, check_allowed, check_count, plan_bulk
from backend.jobs.resources import show_jobs
from backend.web.bodies import JOB_BYTES, takes_bytes
from backend.web.dependencies import ReadingDep, SessionDep, SettingsDep
from backend.web.strict_json import StrictRoute
from maat.api.bulk import BulkBody, BulkOut

router = APIRouter(tags=["jobs"], route_class=StrictRoute)

Changer = Annotated[Principal, Depends(require(Permission.JOBS_CHANGE))]


@router.post("/jobs:bulk", operation_id="changeJobs", response_model=BulkOut)
@takes_bytes(JOB_BYTES)
def change_jobs(
    session: SessionDep,
    reading: ReadingDep,
    settings: SettingsDep,
    principal: Changer,
    body: BulkBody,
    key: KeyHeader = None,
) -> Response:
    """Cancel, pause, hold, resume, release, prioritise or label the jobs that a filter matches.

    Only jobs that live. `dry_run` says how many and which; give that as `expected_count`, and
    nothing is done (409) if it is another number by then. All jobs change, or none.
    """
    check_allowed(principal, body)

    def prepare(before: Session) -> BulkOut:
        plan = plan_bulk(before, principal, body)
        check_count(body, plan.count)
        return _shown(before, principal, body, plan)

    if body.dry_run:
        with reading() as before:
            return Answer(200, prepare(before)).response()

    def answer(planned: BulkOut) -> Answer:
        changed = carry_out(session, principal, body)
        return Answer(200, {**planned, "count": sum(changed.values()), "by_state": changed})

    once = Once(principal.user_id, "POST /jobs:bulk", key, body)
    return answer_prepared(reading, session, once, settings, prepare=prepare, answer=answer)


def _shown(session: Session, principal: Principal, body: BulkBody, plan: BulkPlan) -> BulkOut:
    return BulkOut(
        action=body.action,
        dry_run=body.dry_run,
        count=plan.count,
        by_state=dict(plan.by_state),
        unchanged=plan.unchanged,
        not_yours=plan.not_yours,
        preview=show_jobs(session, principal, plan.first),
    )
