"""Routes of schedules of reports, and of their deliveries."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response
from fastapi.responses import JSONResponse

from backend.accounts.identity import Principal, require
from backend.accounts.permissions import Permission
from backend.clocktime import utc_now
from backend.clusters.repository import get_cluster
from backend.idempotency import Answer, KeyHeader, Once, answer_once
from backend.pagination import PageAsked
from backend.reports import schedules
from backend.secret_key import secret_key
from backend.web.conditional import IfMatch, etag
from backend.web.dependencies import SessionDep, SettingsDep
from backend.web.strict_json import StrictRoute
from maat.api.fields import Name, Page
from maat.api.reports import DeliveryOut, ScheduleBody, ScheduleChanges, ScheduleOut

router = APIRouter(prefix="/report-schedules", tags=["reports"], route_class=StrictRoute)

Reader = Annotated[Principal, Depends(require(Permission.REPORTS_READ))]
Manager = Annotated[Principal, Depends(require(Permission.REPORTS_MANAGE))]


@router.post("", operation_id="createReportSchedule", status_code=201, response_model=ScheduleOut)
def create_schedule(
    session: SessionDep,
    settings: SettingsDep,
    principal: Manager,
    body: ScheduleBody,
    key: KeyHeader = None,
) -> JSONResponse:
    """Have a report made each week or month, and sent to a folder or a webhook."""

    def answer() -> Answer:
        row = schedules.add_schedule(session, principal, body, settings)
        (shown,) = schedules.show_schedules(session, principal, [row])
        headers = {"Location": f"/api/v1/report-schedules/{row.id}", "ETag": etag(row.version)}
        return Answer(201, shown, headers)

    def hidden(request: dict[str, Any]) -> dict[str, Any]:
        if request.get("secret") is None:
            return request
        return {**request, "secret": secret_key(settings).fingerprint(request["secret"])}

    once = Once(principal.user_id, "POST /report-schedules", key, body, hidden)
    return answer_once(session, once, settings, answer)


@router.get("", operation_id="listReportSchedules")
def read_schedules(
    session: SessionDep,
    principal: Reader,
    asked: PageAsked,
    cluster: Annotated[Name | None, Query(description="Id or name of a cluster.")] = None,
) -> Page[ScheduleOut]:
    """Oldest first."""
    cluster_id = None if cluster is None else get_cluster(session, cluster).id
    found = schedules.list_schedules(session, principal, asked, cluster_id=cluster_id)
    return Page(
        items=schedules.show_schedules(session, principal, found.items),
        next_cursor=found.next_cursor,
    )


@router.get("/{schedule_id}", operation_id="getReportSchedule")
def read_schedule(
    session: SessionDep, principal: Reader, schedule_id: str, response: Response
) -> ScheduleOut:
    row = schedules.get_schedule(session, principal, schedule_id)
    response.headers["ETag"] = etag(row.version)
    return schedules.show_schedules(session, principal, [row])[0]


@router.patch("/{schedule_id}", operation_id="changeReportSchedule")
def change_schedule(
    session: SessionDep,
    settings: SettingsDep,
    principal: Manager,
    schedule_id: str,
    body: ScheduleChanges,
    response: Response,
    if_match: IfMatch = None,
) -> ScheduleOut:
    """Change name, hour, address or secret, or stop it for a while. Needs If-Match."""
    row = schedules.change_schedule(session, principal, schedule_id, body, if_match, settings)
    response.headers["ETag"] = etag(row.version)
    return schedules.show_schedules(session, principal, [row])[0]


@router.delete("/{schedule_id}", operation_id="deleteReportSchedule", status_code=204)
def remove_schedule(session: SessionDep, principal: Manager, schedule_id: str) -> None:
    """Delete a schedule with its list of deliveries; kept reports stay."""
    schedules.delete_schedule(session, principal, schedule_id)


@router.get("/{schedule_id}/deliveries", operation_id="listReportDeliveries")
def read_deliveries(
    session: SessionDep, principal: Reader, schedule_id: str, asked: PageAsked
) -> Page[DeliveryOut]:
    """Newest first: when each was due, how often it was tried, and what was answered."""
    row = schedules.get_schedule(session, principal, schedule_id)
    return schedules.list_deliveries(session, row, asked).shown(schedules.show_delivery)


@router.post(
    "/{schedule_id}/actions/deliver",
    operation_id="deliverReportNow",
    status_code=202,
    response_model=DeliveryOut,
)
def deliver_now(
    session: SessionDep,
    settings: SettingsDep,
    principal: Manager,
    schedule_id: str,
    key: KeyHeader = None,
) -> JSONResponse:
    """Make the schedule's report and send it now, to see whether it arrives."""

    def answer() -> Answer:
        row = schedules.get_schedule(session, principal, schedule_id, lock=True)
        made = schedules.ask_delivery(session, row, utc_now())
        return Answer(202, schedules.show_delivery(made), {"Retry-After": "3"})

    route = f"POST /report-schedules/{schedule_id}/actions/deliver"
    return answer_once(session, Once(principal.user_id, route, key, {}), settings, answer)


@router.post(
    "/{schedule_id}/deliveries/{delivery_id}/actions/retry",
    operation_id="retryReportDelivery",
    status_code=202,
)
def retry_delivery(
    session: SessionDep, principal: Manager, schedule_id: str, delivery_id: str
) -> DeliveryOut:
    """Try a failed delivery again: the same report, under the same event id."""
    row = schedules.get_schedule(session, principal, schedule_id)
    return schedules.show_delivery(schedules.try_again(session, row, delivery_id, utc_now()))
