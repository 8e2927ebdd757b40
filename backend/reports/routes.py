"""Routes of reports for managers: made and shown at once, or kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response
from fastapi.responses import JSONResponse
from sqlmodel import Session

from backend.accounts.identity import Principal, require
from backend.accounts.permissions import Permission
from backend.clusters.repository import get_cluster
from backend.idempotency import Answer, KeyHeader, Once, answer_prepared
from backend.pagination import PageAsked
from backend.periods import asked_period
from backend.reports.forms import ReportFile, archive_of, file_of, file_of_kept
from backend.reports.gathering import cluster_now
from backend.reports.models import Report
from backend.reports.service import (
    delete_report,
    get_report,
    keep_report,
    list_reports,
    prepare_report,
    report_of,
    show_reports,
    show_with_document,
)
from backend.web.conditional import etag
from backend.web.dependencies import ReadingDep, SessionDep, SettingsDep
from backend.web.strict_json import StrictRoute
from maat.api.fields import Moment, Name, Page
from maat.api.periods import PeriodName
from maat.api.reports import (
    KeptReportOut,
    KeptReportWithDocument,
    Paper,
    ReportBody,
    ReportForm,
    ReportOut,
)

router = APIRouter(tags=["reports"], route_class=StrictRoute)

Reader = Annotated[Principal, Depends(require(Permission.REPORTS_READ))]
Manager = Annotated[Principal, Depends(require(Permission.REPORTS_MANAGE))]
AskedPaper = Annotated[Paper, Query(description="Paper of the PDF.")]
FILES: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {
            media: {"schema": {"type": "string", "format": "binary"}}
            for media in ("application/pdf", "text/csv", "application/json")
        },
        "description": "The report as a file.",
    }
}


ARCHIVE: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {"application/zip": {"schema": {"type": "string", "format": "binary"}}},
        "description": "`report.pdf`, `report.csv` and `report.json`.",
    }
}


@dataclass(frozen=True)
class AskedReport:
    """Which report: its period and its tenant."""

    given: dict[str, Any]


async def asked_report(
    period: Annotated[PeriodName | None, Query(description="Default: this week.")] = None,
    from_: Annotated[Moment | None, Query(alias="from", description="Cluster time.")] = None,
    to: Annotated[Moment | None, Query(description="Cluster time; default: now.")] = None,
    tenant: Annotated[
        Name | None, Query(description="Only for who sees all tenants; default: all of them.")
    ] = None,
) -> AskedReport:
    return AskedReport({"period": period, "start": from_, "end": to, "tenant": tenant})


Asked = Annotated[AskedReport, Depends(asked_report)]


@router.get("/clusters/{cluster_id}/report", operation_id="getReportOfPeriod")
def read_report(session: SessionDep, principal: Reader, cluster_id: str, asked: Asked) -> ReportOut:
    """A report of a period, made now and not kept.

    It answers: were we fair, were we busy, who waited, what did it cost, what should we buy.
    """
    given: dict[str, Any] = asked.given
    return report_of(session, principal, cluster_id=cluster_id, **given)


@router.get(
    "/clusters/{cluster_id}/report/{form}",
    operation_id="getReportOfPeriodAs",
    response_class=Response,
    responses=FILES,
)
def read_report_as(
    session: SessionDep,
    principal: Reader,
    cluster_id: str,
    form: ReportForm,
    asked: Asked,
    paper: AskedPaper = Paper.A4,
) -> Response:
    """The same as PDF, CSV or JSON, to save."""
    given: dict[str, Any] = asked.given
    report = report_of(session, principal, cluster_id=cluster_id, **given)
    return _sent(file_of(report, form, paper=paper))


@router.get(
    "/clusters/{cluster_id}/report-files",
    operation_id="getReportOfPeriodInAllForms",
    response_class=Response,
    responses=ARCHIVE,
)
def read_report_in_all_forms(
    session: SessionDep,
    principal: Reader,
    cluster_id: str,
    asked: Asked,
    paper: AskedPaper = Paper.A4,
) -> Response:
    """The same as PDF, CSV and JSON at once, in a ZIP archive: all have the same figures.

    Two requests for two forms have those of two moments, where the period is not over.
    """
    given: dict[str, Any] = asked.given
    report = report_of(session, principal, cluster_id=cluster_id, **given)
    return _sent(archive_of(report, paper=paper))


@router.post(
    "/reports", operation_id="makeReport", status_code=201, response_model=KeptReportWithDocument
)
def create_report(
    session: SessionDep,
    reading: ReadingDep,
    settings: SettingsDep,
    principal: Manager,
    body: ReportBody,
    key: KeyHeader = None,
) -> JSONResponse:
    """Make a report and keep it: it never changes, and has a checksum."""

    def prepare(before: Session) -> Report:
        cluster = get_cluster(before, body.cluster)
        now = cluster_now(before, cluster)
        period = asked_period(now=now, name=body.period, start=body.from_, end=body.to)
        return prepare_report(before, principal, cluster, period, tenant=body.tenant)

    def answer(prepared: Report) -> Answer:
        row = keep_report(session, prepared)
        shown = show_with_document(session, row)
        return Answer(201, shown, {"Location": f"/api/v1/reports/{row.id}"})

    once = Once(principal.user_id, "POST /reports", key, body)
    return answer_prepared(reading, session, once, settings, prepare=prepare, answer=answer)


@router.get("/reports", operation_id="listReports")
def read_reports(
    session: SessionDep,
    principal: Reader,
    asked: PageAsked,
    cluster: Annotated[Name | None, Query(description="Id or name of a cluster.")] = None,
) -> Page[KeptReportOut]:
    """Kept reports, newest first."""
    cluster_id = None if cluster is None else get_cluster(session, cluster).id
    found = list_reports(session, principal, asked, cluster_id=cluster_id)
    return Page(items=show_reports(session, list(found.items)), next_cursor=found.next_cursor)


@router.get("/reports/{report_id}", operation_id="getReport")
def read_kept(
    session: SessionDep, principal: Reader, report_id: str, response: Response
) -> KeptReportWithDocument:
    """A kept report with its document."""
    row = get_report(session, principal, report_id)
    response.headers["ETag"] = etag(1, row.checksum)
    return show_with_document(session, row)


@router.get(
    "/reports/{report_id}/{form}",
    operation_id="getReportAs",
    response_class=Response,
    responses=FILES,
)
def read_kept_as(
    session: SessionDep,
    principal: Reader,
    report_id: str,
    form: ReportForm,
    paper: AskedPaper = Paper.A4,
) -> Response:
    """A kept report as PDF, CSV or JSON. The JSON is what its checksum is of."""
    return _sent(file_of_kept(get_report(session, principal, report_id), form, paper))


@router.delete("/reports/{report_id}", operation_id="deleteReport", status_code=204)
def remove_report(session: SessionDep, principal: Manager, report_id: str) -> None:
    """Delete a kept report. Files that were delivered stay where they are."""
    delete_report(session, principal, report_id)


def _sent(file: ReportFile) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{file.name}"'}
    return Response(file.content, media_type=file.media_type, headers=headers)
