"""Calls about what managers read: fairness, use and cost, reports and their schedules."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TypedDict, Unpack

from maat.api.fairness import FairnessOut, JobFairnessOut, RecomputeBody, SharesOut
from maat.api.fields import Page
from maat.api.operations import OperationOut
from maat.api.periods import PeriodName
from maat.api.reports import (
    DeliveryOut,
    KeptReportOut,
    KeptReportWithDocument,
    Paper,
    ReportBody,
    ReportForm,
    ReportOut,
    ScheduleBody,
    ScheduleChanges,
    ScheduleOut,
)
from maat.api.usage import PriceBody, PriceChange, PriceOut, UsageOut
from maat.client.calls.core import (
    ANY_FORM,
    Call,
    Fields,
    as_json,
    given_of,
    keyed_by,
    path_of,
    version_of,
)


class ReportAsked(TypedDict, total=False):
    """Which report: a period by name, or from `start` to `end` (cluster time), of which tenant."""

    period: PeriodName | None
    start: str | None
    end: str | None
    tenant: str | None


class PeriodAsked(TypedDict, total=False):
    """The cluster and the period: a name of PeriodName, or from `start` to `end` (cluster time)."""

    cluster: str | None
    period: str | None
    start: str | None
    end: str | None


def period_fields(asked: Mapping[str, object]) -> dict[str, object]:
    """Return what is asked as the API names it: `start` and `end` are called `from` and `to`."""
    names = {"start": "from", "end": "to"}
    given = {names.get(name, name): value for name, value in asked.items()}
    return given_of(**{name: _word(value) for name, value in given.items()})


def fairness(
    *, points: int | None = None, most: int | None = None, **asked: Unpack[PeriodAsked]
) -> Call[FairnessOut]:
    """rho of the jobs that ended in a period, by tenant.

    `points`: most points of a distribution. `most`: tenants with a row of their own.
    """
    query = period_fields({**asked, "points": points, "most": most})
    return Call("GET", path_of("fairness"), query)


def worst_fairness(
    *, limit: int | None = None, cursor: str | None = None, **asked: Unpack[PeriodAsked]
) -> Call[Page[JobFairnessOut]]:
    """The jobs of the largest rho."""
    query = period_fields({**asked, "limit": limit, "cursor": cursor})
    return Call("GET", path_of("fairness", "worst"), query)


def shares(
    *, points: int | None = None, most: int | None = None, **asked: Unpack[PeriodAsked]
) -> Call[SharesOut]:
    """Shares of the tenants, deserved and actual, over a period.

    `points`: most spans. `most`: tenants with a share of their own.
    """
    query = period_fields({**asked, "points": points, "most": most})
    return Call("GET", path_of("fairness", "shares"), query)


def recompute_fairness(
    body: RecomputeBody | Fields, *, idempotency_key: str | None = None
) -> Call[OperationOut]:
    path = path_of("fairness", "actions", "recompute")
    return Call("POST", path, body=as_json(body), headers=keyed_by(idempotency_key))


def job_fairness(job_id: str) -> Call[JobFairnessOut]:
    return Call("GET", path_of("jobs", job_id, "fairness"))


def skip_fairness(job_id: str) -> Call[JobFairnessOut]:
    """Say that rho of a job need not be worked out."""
    return Call("POST", path_of("jobs", job_id, "fairness", "actions", "skip"))


def usage(
    *,
    by: str | None = None,
    per_day: bool | None = None,
    **asked: Unpack[PeriodAsked],
) -> Call[UsageOut]:
    """Get the use and cost of a period.

    `by`: what the rows are. `per_day`: also their allocated hours by day.
    """
    return Call("GET", path_of("usage"), period_fields({**asked, "by": by, "per_day": per_day}))


def prices(cluster_id: str) -> Call[Page[PriceOut]]:
    return Call("GET", path_of("clusters", cluster_id, "prices"), {"limit": 500})


def price(cluster_id: str, price_id: str) -> Call[PriceOut]:
    return Call("GET", path_of("clusters", cluster_id, "prices", price_id))


def add_price(
    cluster_id: str, body: PriceBody | Fields, *, idempotency_key: str | None = None
) -> Call[PriceOut]:
    path = path_of("clusters", cluster_id, "prices")
    return Call("POST", path, body=as_json(body), headers=keyed_by(idempotency_key))


def change_price(
    cluster_id: str, price_id: str, body: PriceChange | Fields, *, version: int
) -> Call[PriceOut]:
    path = path_of("clusters", cluster_id, "prices", price_id)
    return Call("PATCH", path, body=as_json(body), headers=version_of(version))


def remove_price(cluster_id: str, price_id: str, *, version: int) -> Call[None]:
    path = path_of("clusters", cluster_id, "prices", price_id)
    return Call("DELETE", path, headers=version_of(version))


def report(cluster_id: str, **asked: Unpack[ReportAsked]) -> Call[ReportOut]:
    """A report of a period, made now and not kept."""
    return Call("GET", path_of("clusters", cluster_id, "report"), period_fields(asked))


def report_file(
    cluster_id: str,
    form: ReportForm | str,
    *,
    paper: Paper | str | None = None,
    **asked: Unpack[ReportAsked],
) -> Call[bytes]:
    """The same as PDF, CSV or JSON."""
    query = period_fields({**asked, "paper": paper})
    return Call(
        "GET", path_of("clusters", cluster_id, "report", _word(form)), query, headers=ANY_FORM
    )


def report_files(
    cluster_id: str, *, paper: Paper | str | None = None, **asked: Unpack[ReportAsked]
) -> Call[bytes]:
    """The same in every form, of one set of figures: a ZIP archive.

    It has report.pdf, report.csv and report.json.
    """
    query = period_fields({**asked, "paper": paper})
    return Call("GET", path_of("clusters", cluster_id, "report-files"), query, headers=ANY_FORM)


def make_report(
    body: ReportBody | Fields, *, idempotency_key: str | None = None
) -> Call[KeptReportWithDocument]:
    return Call("POST", path_of("reports"), body=as_json(body), headers=keyed_by(idempotency_key))


def reports(
    *, cluster: str | None = None, limit: int | None = None, cursor: str | None = None
) -> Call[Page[KeptReportOut]]:
    return Call("GET", path_of("reports"), given_of(cluster=cluster, limit=limit, cursor=cursor))


def kept_report(report_id: str) -> Call[KeptReportWithDocument]:
    return Call("GET", path_of("reports", report_id))


def kept_report_file(
    report_id: str, form: ReportForm | str, *, paper: Paper | str | None = None
) -> Call[bytes]:
    query = given_of(paper=_word(paper))
    return Call("GET", path_of("reports", report_id, _word(form)), query, headers=ANY_FORM)


def delete_report(report_id: str) -> Call[None]:
    return Call("DELETE", path_of("reports", report_id))


def report_schedules(
    *, cluster: str | None = None, limit: int | None = None, cursor: str | None = None
) -> Call[Page[ScheduleOut]]:
    query = given_of(cluster=cluster, limit=limit, cursor=cursor)
    return Call("GET", path_of("report-schedules"), query)


def report_schedule(schedule_id: str) -> Call[ScheduleOut]:
    return Call("GET", path_of("report-schedules", schedule_id))


def schedule_report(
    body: ScheduleBody | Fields, *, idempotency_key: str | None = None
) -> Call[ScheduleOut]:
    path = path_of("report-schedules")
    return Call("POST", path, body=as_json(body), headers=keyed_by(idempotency_key))


def change_report_schedule(
    schedule_id: str, changes: ScheduleChanges | Fields, *, version: int
) -> Call[ScheduleOut]:
    path = path_of("report-schedules", schedule_id)
    return Call("PATCH", path, body=as_json(changes), headers=version_of(version))


def unschedule_report(schedule_id: str) -> Call[None]:
    return Call("DELETE", path_of("report-schedules", schedule_id))


def report_deliveries(
    schedule_id: str, *, limit: int | None = None, cursor: str | None = None
) -> Call[Page[DeliveryOut]]:
    path = path_of("report-schedules", schedule_id, "deliveries")
    return Call("GET", path, given_of(limit=limit, cursor=cursor))


def deliver_report(schedule_id: str, *, idempotency_key: str | None = None) -> Call[DeliveryOut]:
    path = path_of("report-schedules", schedule_id, "actions", "deliver")
    return Call("POST", path, headers=keyed_by(idempotency_key))


def retry_report_delivery(schedule_id: str, delivery_id: str) -> Call[DeliveryOut]:
    path = path_of("report-schedules", schedule_id, "deliveries", delivery_id, "actions", "retry")
    return Call("POST", path)


def _word(value: object) -> object:
    return value.value if isinstance(value, StrEnum) else value
