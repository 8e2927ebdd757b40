"""Makes, changes and lists schedules of reports, and their deliveries. Commits nothing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import sqlalchemy as sa
from sqlmodel import Session, col, select

from backend.accounts.identity import Principal
from backend.accounts.models import Tenant
from backend.accounts.permissions import Permission
from backend.answers import answer_of
from backend.audit.changes import Change, Shown, asker, record
from backend.clocktime import utc_now
from backend.clusters.models import Cluster
from backend.clusters.repository import get_cluster
from backend.operations.models import OperationState
from backend.pagination import Order, PageAsked, Rows, paginate
from backend.problems import Conflict, FieldError, Invalid, NotFound
from backend.reports.due import next_due
from backend.reports.models import ReportDelivery, ReportSchedule
from backend.reports.scope import seen_by, tenant_of
from backend.reports.service import names_by_id
from backend.secret_key import secret_key
from backend.settings import Settings
from backend.web.conditional import check_version
from backend.webhooks.addresses import (
    RefusedAddress,
    checked_url,
    is_literal_private,
    without_path,
)
from maat.api.fields import rfc3339
from maat.api.reports import (
    Channel,
    DeliveryOut,
    ScheduleBody,
    ScheduleChanges,
    ScheduleEvery,
    ScheduleOut,
)

MOST_SCHEDULES = 100  # of a cluster: each costs work of every week


def add_schedule(
    session: Session, principal: Principal, body: ScheduleBody, settings: Settings
) -> ReportSchedule:
    """Store a schedule; its first report is due at the next Monday or first of a month.

    Raises Invalid naming the field, NotFound for an unknown cluster or tenant, Conflict for too
    many.
    """
    cluster = get_cluster(session, body.cluster, lock=True)
    tenant_id = tenant_of(seen_by(session, principal, body.tenant))
    _check_channel(body, settings)
    count = session.exec(
        select(sa.func.count())
        .select_from(ReportSchedule)
        .where(ReportSchedule.cluster_id == cluster.id)
    ).one()
    if count >= MOST_SCHEDULES:
        raise Conflict(
            f"The cluster has {count} schedules, the most it can have: delete one first."
        )
    secret = None if body.secret is None else secret_key(settings).encrypted(body.secret)
    row = ReportSchedule(
        cluster_id=cluster.id,
        tenant_id=tenant_id,
        owner_id=principal.user_id,
        name=body.name,
        every=body.every.value,
        hour=body.hour,
        channel=body.channel.value,
        url=body.url,
        secret=secret,
        forms=list(dict.fromkeys(form.value for form in body.forms)),
        paper=body.paper.value,
        next_due_at=next_due(body.every, body.hour, utc_now()),
    )
    session.add(row)
    session.flush()
    _record(session, "schedule report", row, {}, _written(row))
    return row


def change_schedule(
    session: Session,
    principal: Principal,
    schedule_id: str,
    changes: ScheduleChanges,
    if_match: str | None,
    settings: Settings,
) -> ReportSchedule:
    """Change a schedule, from its next report on. Raises NotFound, Invalid, PreconditionFailed."""
    row = get_schedule(session, principal, schedule_id, lock=True)
    check_version(if_match, row.version)
    before = _written(row)
    if row.channel == Channel.FOLDER:
        _check_no_address(changes.url, changes.secret)
    if changes.url is not None:
        _check_url(changes.url, settings)
        row.url = changes.url
    if changes.secret is not None:
        row.secret = secret_key(settings).encrypted(changes.secret)
    if changes.name is not None:
        row.name = changes.name
    is_back = changes.active is True and not row.active
    row.active = row.active if changes.active is None else changes.active
    if changes.hour is not None or is_back:
        row.hour = row.hour if changes.hour is None else changes.hour
        row.next_due_at = next_due(ScheduleEvery(row.every), row.hour, utc_now())
    row.version += 1
    session.add(row)
    session.flush()
    after = {**_written(row), "has_new_secret": changes.secret is not None}
    _record(session, "change schedule of reports", row, before, after)
    return row


def delete_schedule(session: Session, principal: Principal, schedule_id: str) -> None:
    """Delete a schedule with its deliveries; kept reports stay. Raises NotFound."""
    row = get_schedule(session, principal, schedule_id, lock=True)
    of_this = col(ReportDelivery.schedule_id) == row.id
    session.connection().execute(sa.delete(ReportDelivery).where(of_this))
    _record(session, "remove schedule of reports", row, _written(row), {})
    session.delete(row)
    session.flush()


def get_schedule(
    session: Session, principal: Principal, schedule_id: str, *, lock: bool = False
) -> ReportSchedule:
    """Find a schedule. Raises NotFound, for another tenant's schedule too."""
    found = session.get(ReportSchedule, schedule_id, with_for_update=lock or None)
    if found is None or not (principal.sees_all_tenants or found.tenant_id == principal.tenant_id):
        raise NotFound(f"There is no schedule {schedule_id!r}.")
    return found


def list_schedules(
    session: Session, principal: Principal, asked: PageAsked, *, cluster_id: str | None
) -> Rows[ReportSchedule]:
    """List schedules, oldest first."""
    statement = select(ReportSchedule)
    if not principal.sees_all_tenants:
        statement = statement.where(ReportSchedule.tenant_id == principal.tenant_id)
    if cluster_id is not None:
        statement = statement.where(ReportSchedule.cluster_id == cluster_id)
    filters = {
        "list": "report-schedules",
        "for": "all" if principal.sees_all_tenants else principal.tenant_id,
        "cluster": cluster_id,
    }
    return asked.linked(
        paginate(
            session,
            statement,
            order=Order([col(ReportSchedule.id)]),
            filters=filters,
            limit=asked.limit,
            cursor=asked.cursor,
        )
    )


def list_deliveries(
    session: Session, schedule: ReportSchedule, asked: PageAsked
) -> Rows[ReportDelivery]:
    """List the deliveries of a schedule, newest first."""
    statement = select(ReportDelivery).where(ReportDelivery.schedule_id == schedule.id)
    return asked.linked(
        paginate(
            session,
            statement,
            order=Order([col(ReportDelivery.id)], descending=True),
            filters={"list": "report-deliveries", "schedule": schedule.id},
            limit=asked.limit,
            cursor=asked.cursor,
        )
    )


def ask_delivery(session: Session, schedule: ReportSchedule, at: datetime) -> ReportDelivery:
    """Queue a delivery of the schedule's report now, beside those that are due."""
    row = ReportDelivery(schedule_id=schedule.id, due_at=at, next_try_at=at)
    session.add(row)
    session.flush()
    return row


def try_again(
    session: Session, schedule: ReportSchedule, delivery_id: str, at: datetime
) -> ReportDelivery:
    """Queue a delivery that failed once more. It keeps its report and its event's id.

    Raises NotFound, Conflict if it has not failed.
    """
    row = session.get(ReportDelivery, delivery_id, with_for_update=True)
    if row is None or row.schedule_id != schedule.id:
        raise NotFound(f"The schedule has no delivery {delivery_id!r}.")
    if row.state != OperationState.FAILED:
        raise Conflict(f"Only a failed delivery can be tried again; this one is {row.state}.")
    row.state, row.tries, row.next_try_at = OperationState.QUEUED.value, 0, at
    row.heartbeat_at = row.finished_at = None
    session.add(row)
    session.flush()
    return row


def show_schedules(
    session: Session, principal: Principal, rows: Sequence[ReportSchedule]
) -> list[ScheduleOut]:
    clusters = names_by_id(session, Cluster, [row.cluster_id for row in rows])
    tenants = names_by_id(session, Tenant, [row.tenant_id for row in rows if row.tenant_id])
    whole = Permission.REPORTS_MANAGE in principal.permissions
    return [
        answer_of(
            ScheduleOut,
            row,
            cluster=clusters[row.cluster_id],
            tenant=None if row.tenant_id is None else tenants[row.tenant_id],
            url=row.url if whole or row.url is None else without_path(row.url),
            has_secret=row.secret is not None,
        )
        for row in rows
    ]


def show_delivery(row: ReportDelivery) -> DeliveryOut:
    queued = row.state == OperationState.QUEUED
    return answer_of(DeliveryOut, row, next_try_at=rfc3339(row.next_try_at) if queued else None)


def _written(row: ReportSchedule) -> Shown:
    """Return what is written down of a schedule: of its URL, only the host; of its secret, none."""
    names = ("name", "cluster_id", "every", "hour", "channel", "forms", "paper", "active")
    shown = {name: getattr(row, name) for name in names}
    return {**shown, "url": None if row.url is None else without_path(row.url)}


def _record(
    session: Session, action: str, row: ReportSchedule, before: Shown, after: Shown
) -> None:
    record(session, Change(asker(), action, row.id, before, after, row.tenant_id))


def _check_channel(body: ScheduleBody, settings: Settings) -> None:
    if body.channel is Channel.FOLDER:
        _check_no_address(body.url, body.secret)
        if settings.reports_path is None:
            raise _invalid(
                "/channel",
                "no_folder",
                "This service writes reports to no folder.",
                "Ask its operator to set MAAT_REPORTS_FOLDER, or use a webhook.",
                body.channel.value,
            )
        return
    if body.url is None:
        remedy = "Give url, such as https://host/path, or choose the channel folder."
        raise _invalid("/url", "missing", "A webhook needs a URL.", remedy)
    if body.secret is None:
        remedy = "Give secret: 16 characters or more that the receiver knows too."
        raise _invalid("/secret", "missing", "A webhook needs a secret that signs.", remedy)
    _check_url(body.url, settings)


def _check_no_address(url: str | None, secret: str | None) -> None:
    for name, given in (("url", url), ("secret", secret)):
        if given is not None:
            message = f"The channel is folder, which has no {name}."
            raise _invalid(f"/{name}", "either_or", message, f"Leave {name} out, or use a webhook.")


def _check_url(url: str, settings: Settings) -> None:
    try:
        checked_url(url)
    except RefusedAddress as refused:
        message, _, advice = str(refused).partition(". ")
        remedy = advice or "Give one such as https://host/path."
        raise _invalid("/url", "bad_url", f"{message.rstrip('.')}.", remedy) from None
    if not settings.webhooks_to_private_addresses and is_literal_private(url):
        raise _invalid(
            "/url",
            "private_address",
            "The URL leads to this machine or into a private network.",
            "Give a public one, or ask the operator to set MAAT_WEBHOOKS_TO_PRIVATE_ADDRESSES.",
            without_path(url),
        )


def _invalid(
    pointer: str, code: str, message: str, remedy: str, value: str | None = None
) -> Invalid:
    """Refuse a field. `value`: never a secret, nor the path of a URL."""
    return Invalid(
        f"{message} {remedy}", errors=[FieldError(pointer, code, message, remedy, value)]
    )
