"""Reports by schedule: finds those that are due, makes each once, and delivers it.

A delivery is a row of work. Its report is made once, in the transaction that names it in the row;
a file is written under the same name with the same bytes, and a webhook gets the same event id,
however often a worker is killed. Knows no broker.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import timedelta

from sqlmodel import Session, col, select

from backend.accounts.identity import Principal, principal_named
from backend.accounts.models import Tenant, User
from backend.clocktime import utc_now
from backend.clusters.models import Cluster
from backend.database import Database
from backend.models import OperationState, Report, ReportDelivery, ReportSchedule
from backend.periods import named_period
from backend.problems import Forbidden, Problem
from backend.reports.due import COVERS, next_due
from backend.reports.gathering import cluster_now
from backend.reports.service import keep_report, prepare_report
from backend.settings import Settings
from maat.api.reports import Channel, ScheduleEvery
from worker.reports.channels import Delivered, Undelivered, send_to_webhook, write_to_folder
from worker.work_queue import Claim, WorkQueue

log = logging.getLogger(__name__)

DELIVERIES = WorkQueue(ReportDelivery, key=col(ReportDelivery.id))
PAUSES_SECONDS = (60.0, 300.0, 1800.0, 7200.0, 21_600.0, 43_200.0)
"""How long to wait after each failed try; after the last one the delivery has failed."""
MOST_TRIES = len(PAUSES_SECONDS) + 1


@dataclass(frozen=True)
class _Parcel:
    """What is to be delivered: the schedule and the kept report."""

    schedule: ReportSchedule
    report: Report


def due_deliveries(database: Database) -> list[str]:
    """Queue a delivery for every schedule that is due, and return their ids.

    Of several that were missed, one is made: it covers the latest period.
    """
    due = (col(ReportSchedule.active), col(ReportSchedule.next_due_at) <= utc_now())
    with database.session_scope(writes=False) as session:
        found = list(session.exec(select(ReportSchedule.id).where(*due)))
    queued = [_queue(database, schedule_id) for schedule_id in found]
    return [delivery_id for delivery_id in queued if delivery_id is not None]


def _queue(database: Database, schedule_id: str) -> str | None:
    """Queue the delivery of a schedule if it is still due. Two workers queue it once."""
    now = utc_now()
    with database.session_scope() as session:
        row = session.get(ReportSchedule, schedule_id, with_for_update=True)
        if row is None or not row.active or row.next_due_at > now:
            return None
        delivery = ReportDelivery(schedule_id=row.id, due_at=row.next_due_at, heartbeat_at=now)
        row.next_due_at = next_due(ScheduleEvery(row.every), row.hour, now)
        session.add_all([delivery, row])
        return delivery.id


def waiting_deliveries(database: Database) -> list[str]:
    """Return deliveries without a worker whose time has come, and mark them as sent."""
    is_time = col(ReportDelivery.next_try_at) <= utc_now()
    return DELIVERIES.send_again(database, is_time, returning=col(ReportDelivery.id))


def deliver(database: Database, settings: Settings, delivery_id: str) -> str | None:
    """Make and deliver a report; return the delivery's state afterwards.

    Returns None if another worker has it, it has ended, or its time has not come.
    """
    with database.session_scope() as session:
        its = (col(ReportDelivery.id) == delivery_id, col(ReportDelivery.next_try_at) <= utc_now())
        claim = DELIVERIES.claim_next(session, *its, tries=ReportDelivery.tries + 1)
        tries = 0 if claim is None else session.get_one(ReportDelivery, delivery_id).tries
    if claim is None:
        return None
    if tries > MOST_TRIES:  # each worker that took it has died
        return _failed(database, claim, "It was given up after its last try.", final=True)
    with DELIVERIES.working_on(database, claim):
        try:
            parcel = _parcel(database, claim)
            told = _send(parcel, settings, delivery_id)
        except Undelivered as failed:
            return _failed(database, claim, str(failed), answered=failed.status, final=failed.final)
        except Problem as refused:
            return _failed(database, claim, refused.detail, final=True)
        except Exception as error:
            log.exception("a report by schedule could not be made or sent")
            return _failed(database, claim, f"An internal error: {type(error).__name__}.")
    with database.session_scope() as session:
        values = {"message": told.message, "answered": told.status, "files": told.files}
        DELIVERIES.settle(session, claim, OperationState.SUCCEEDED, **values)
    return OperationState.SUCCEEDED


def _parcel(database: Database, claim: Claim) -> _Parcel:
    """Return the report of a delivery; make it first if there is none yet.

    It is built without the writer's lock. Of two workers, the second finds the report of the first.
    """
    with database.session_scope(writes=False) as session:
        delivery = session.get_one(ReportDelivery, claim.key)
        schedule = session.get_one(ReportSchedule, delivery.schedule_id)
        known = None if delivery.report_id is None else session.get(Report, delivery.report_id)
        made = _made(session, schedule) if known is None else known
    if known is not None:
        return _Parcel(schedule, known)
    with database.session_scope() as session:
        delivery = session.get_one(ReportDelivery, claim.key, with_for_update=True)
        other = None if delivery.report_id is None else session.get(Report, delivery.report_id)
        if other is not None:
            return _Parcel(schedule, other)
        delivery.report_id = keep_report(session, made).id
        session.add(delivery)
    return _Parcel(schedule, made)


def _made(session: Session, schedule: ReportSchedule) -> Report:
    """Build the schedule's report with the rights that its owner has now; nothing is stored.

    Raises Forbidden if the owner may no longer see what the schedule tells of.
    """
    owner = _owner(session, schedule)
    cluster = session.get_one(Cluster, schedule.cluster_id)
    tenant = None if schedule.tenant_id is None else session.get_one(Tenant, schedule.tenant_id)
    if not owner.sees_all_tenants and schedule.tenant_id != owner.tenant_id:
        raise Forbidden(f"{owner.user_name} may no longer see what this schedule tells of.")
    period = named_period(COVERS[ScheduleEvery(schedule.every)], cluster_now(session, cluster))
    return prepare_report(
        session,
        owner,
        cluster,
        period,
        tenant=None if tenant is None else tenant.name,
        schedule_id=schedule.id,
    )


def _owner(session: Session, schedule: ReportSchedule) -> Principal:
    """Raises Unauthenticated if the owner is no longer active."""
    return principal_named(session, session.get_one(User, schedule.owner_id).name)


def _send(parcel: _Parcel, settings: Settings, delivery_id: str) -> Delivered:
    if parcel.schedule.channel == Channel.FOLDER:
        return write_to_folder(parcel.schedule, parcel.report, settings)
    return send_to_webhook(parcel.schedule, parcel.report, settings, event_id=delivery_id)


def _failed(
    database: Database,
    claim: Claim,
    message: str,
    *,
    answered: int | None = None,
    final: bool = False,
) -> str:
    """Queue a delivery again after a pause, or end it after its last try."""
    told = {"message": message[:1000], "answered": answered}
    with database.session_scope() as session:
        row = session.get(ReportDelivery, claim.key)
        if row is None:  # its schedule was deleted meanwhile
            return OperationState.CANCELLED
        if final or row.tries >= MOST_TRIES:
            DELIVERIES.settle(session, claim, OperationState.FAILED, **told)
            return OperationState.FAILED
        again = utc_now() + timedelta(seconds=PAUSES_SECONDS[row.tries - 1])
        DELIVERIES.beat(session, claim, state=OperationState.QUEUED, next_try_at=again, **told)
    return OperationState.QUEUED
