"""Makes reports, keeps them, and finds kept ones. Commits nothing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any, cast

import sqlalchemy as sa
from sqlalchemy.orm import defer
from sqlmodel import Session, col, select

from backend.accounts.identity import Principal
from backend.accounts.models import Tenant
from backend.accounts.permissions import Permission
from backend.answers import answer_of
from backend.clusters.models import Cluster
from backend.clusters.repository import get_cluster
from backend.pagination import Order, PageAsked, Rows, paginate
from backend.periods import Period, asked_period
from backend.problems import Forbidden, NotFound
from backend.reports.builder import build_report
from backend.reports.gathering import cluster_now, gather
from backend.reports.models import Report, ReportDelivery, ReportSchedule
from backend.reports.scope import seen_by, tenant_of
from maat.api.fields import rfc3339
from maat.api.periods import PeriodName, PeriodOut
from maat.api.reports import KeptReportOut, KeptReportWithDocument, ReportOut


def report_of(
    session: Session,
    principal: Principal,
    *,
    cluster_id: str,
    tenant: str | None = None,
    period: PeriodName | None = None,
    start: datetime | None = None,
    end: datetime | None = None,
) -> ReportOut:
    """Build a report, without keeping it. Raises NotFound and Invalid."""
    seen = seen_by(session, principal, tenant)
    cluster = get_cluster(session, cluster_id)
    now = cluster_now(session, cluster)
    asked = asked_period(now=now, name=period, start=start, end=end)
    return build_report(gather(session, seen, cluster, asked))


def prepare_report(
    session: Session,
    principal: Principal,
    cluster: Cluster,
    asked: Period,
    *,
    tenant: str | None,
    schedule_id: str | None = None,
) -> Report:
    """Build a report that can be kept; it only reads, but takes time.

    Raises NotFound, Invalid, and Forbidden without the permission.
    """
    if Permission.REPORTS_MANAGE not in principal.permissions:
        raise Forbidden(
            f"{principal.user_name} does not have {Permission.REPORTS_MANAGE}, which keeps "
            "reports. Ask an admin for the role of a tenant manager."
        )
    seen = seen_by(session, principal, tenant)
    document = build_report(gather(session, seen, cluster, asked))
    return Report(
        cluster_id=cluster.id,
        tenant_id=tenant_of(seen),
        owner_id=principal.user_id,
        schedule_id=schedule_id,
        period_name=None if asked.name is None else asked.name.value,
        period_start=asked.start,
        period_end=asked.end,
        is_partial=document["period"]["is_partial"],
        title=document["title"],
        checksum=checksum_of(document),
        document=document,
    )


def keep_report(session: Session, prepared: Report) -> Report:
    session.add(prepared)
    session.flush()
    return prepared


def checksum_of(document: ReportOut) -> str:
    """Return the SHA-256 of a document: of its JSON with sorted keys and without white space."""
    return hashlib.sha256(canonical(document)).hexdigest()


def canonical(document: ReportOut) -> bytes:
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8")


def get_report(session: Session, principal: Principal, report_id: str) -> Report:
    """Find a kept report. Raises NotFound, for another tenant's report too."""
    found = session.get(Report, report_id)
    if found is None or not _may_see(principal, found.tenant_id):
        raise NotFound(f"There is no report {report_id!r}.")
    return found


def list_reports(
    session: Session, principal: Principal, asked: PageAsked, *, cluster_id: str | None
) -> Rows[Report]:
    """List kept reports, newest first, without their documents."""
    statement = select(Report).options(defer(cast(Any, Report.document), raiseload=True))
    if not principal.sees_all_tenants:
        statement = statement.where(Report.tenant_id == principal.tenant_id)
    if cluster_id is not None:
        statement = statement.where(Report.cluster_id == cluster_id)
    filters = {
        "list": "reports",
        "for": "all" if principal.sees_all_tenants else principal.tenant_id,
        "cluster": cluster_id,
    }
    order = Order([col(Report.id)], descending=True)
    return asked.linked(
        paginate(
            session,
            statement,
            order=order,
            filters=filters,
            limit=asked.limit,
            cursor=asked.cursor,
        )
    )


def delete_report(session: Session, principal: Principal, report_id: str) -> None:
    """Delete a kept report; its deliveries stay listed. Raises NotFound."""
    found = get_report(session, principal, report_id)
    forget(session, [found.id])


def forget(session: Session, report_ids: list[str]) -> None:
    """Delete reports and what points to them."""
    of_these = col(ReportDelivery.report_id).in_(report_ids)
    connection = session.connection()
    connection.execute(sa.update(ReportDelivery).where(of_these).values(report_id=None))
    connection.execute(sa.delete(Report).where(col(Report.id).in_(report_ids)))


def show_reports(session: Session, rows: list[Report]) -> list[KeptReportOut]:
    clusters = names_by_id(session, Cluster, [row.cluster_id for row in rows])
    tenants = names_by_id(session, Tenant, [row.tenant_id for row in rows])
    schedules = names_by_id(session, ReportSchedule, [row.schedule_id for row in rows])
    return [
        answer_of(
            KeptReportOut,
            row,
            cluster=clusters[row.cluster_id],
            tenant=None if row.tenant_id is None else tenants[row.tenant_id],
            period=_period(row),
            schedule=None if row.schedule_id is None else schedules.get(row.schedule_id),
        )
        for row in rows
    ]


def show_with_document(session: Session, row: Report) -> KeptReportWithDocument:
    (shown,) = show_reports(session, [row])
    return KeptReportWithDocument(**shown, document=row.document)


def _period(row: Report) -> PeriodOut:
    return PeriodOut(
        {
            "from": rfc3339(row.period_start),
            "to": rfc3339(row.period_end),
            "name": None if row.period_name is None else PeriodName(row.period_name),
            "is_partial": row.is_partial,
        }
    )


def _may_see(principal: Principal, tenant_id: str | None) -> bool:
    return principal.sees_all_tenants or tenant_id == principal.tenant_id


def names_by_id(
    session: Session,
    table: type[Cluster] | type[Tenant] | type[ReportSchedule],
    ids: Iterable[str | None],
) -> dict[str, str]:
    """Return the names of clusters, tenants or schedules by id."""
    wanted = {one for one in ids if one is not None}
    found = session.exec(select(table.id, table.name).where(col(table.id).in_(wanted))).all()
    return dict(found)
