"""Reports for managers: one document, from which page, CSV, JSON, PDF and command line come."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field
from typing_extensions import TypedDict

from maat.api.fields import NEVER_NULL, Body, Moment, Name, Timestamp
from maat.api.periods import PeriodName, PeriodOut


class ReportForm(StrEnum):
    """How a report is written."""

    PDF = "pdf"
    CSV = "csv"
    JSON = "json"


class Paper(StrEnum):
    A4 = "a4"
    LETTER = "letter"


class ScheduleEvery(StrEnum):
    """When a report by schedule is due: each Monday, or on the first day of each month, UTC.

    It covers the week or month before, of the cluster's calendar.
    """

    WEEK = "week"
    MONTH = "month"


class Channel(StrEnum):
    """Where a report by schedule goes: a folder that the operator chose, or a webhook."""

    FOLDER = "folder"
    WEBHOOK = "webhook"


Cell = str | float | None
Chart = Literal["shares-and-rho", "hours", "waits", "costs", "values"]
Better = Literal["up", "down", "neither"]


class ColumnOut(TypedDict):
    """A column of a figure's table. `unit` is null for text and for numbers without one.

    `adds`: the cells of several tenants together are their sum.
    """

    key: str
    label: str
    unit: str | None
    is_text: bool
    adds: bool


class HeadlineOut(TypedDict):
    """A number with its change to the period before.

    `change`: the relative change of `value` for quantities, the difference for shares; null if
    either is unknown. `shown...`: the same as text. `better`: which direction is good news.
    """

    key: str
    label: str
    unit: str
    value: float | None
    before: float | None
    change: float | None
    shown: str
    shown_before: str
    shown_change: str
    better: Better
    formula: str


class FigureOut(TypedDict):
    """A figure: its question, the answer worked out from the numbers, and the numbers.

    `rows`: one list of cells per row, in the order of `columns`; `shown`: the same as text, as
    tables print it; the last `sum_rows` of them sum up others. `chart` says how they are drawn.
    `window`: of cluster time. `policy_versions`: which policies decided meanwhile. `caveats`: what
    a reader must know before using it.
    """

    key: str
    question: str
    answer: str
    chart: Chart
    columns: list[ColumnOut]
    rows: list[list[Cell]]
    shown: list[list[str]]
    sum_rows: int
    formula: str
    window: str
    policy_versions: list[str]
    caveats: list[str]


PolicySpanOut = TypedDict(
    "PolicySpanOut",
    {
        "policy": str,
        "version": Annotated[str, Field(description="Digest of the policy's parameters.")],
        "placer": str,
        "from": Timestamp,
        "to": Timestamp,
        "hours": Annotated[float, Field(description="Cluster time for which it decided.")],
        "rounds": int,
    },
)
"""A policy that decided within the period, and from when to when."""


class ReportOut(TypedDict):
    """A report. Times are cluster times.

    `tenant`: whose report it is; null for one of the whole cluster. `as_of`: the cluster's time
    when it was made. `currency`: of its costs; null where no price is known.
    """

    version: Annotated[int, Field(description="Of this document's form.")]
    maat_version: str
    cluster_id: str
    cluster: str
    tenant: str | None
    period: PeriodOut
    before: PeriodOut
    as_of: Timestamp
    title: str
    summary: str
    currency: str | None
    policies: list[PolicySpanOut]
    headlines: list[HeadlineOut]
    figures: list[FigureOut]
    caveats: list[str]


class KeptReportOut(TypedDict):
    """A report that was made and kept: it never changes.

    `checksum`: SHA-256 of the document, its JSON without white space and with sorted keys.
    `schedule`: the name of the schedule that made it; null of one made by hand, and once the
    schedule is deleted.
    """

    id: str
    cluster_id: str
    cluster: str
    tenant: str | None
    title: str
    period: PeriodOut
    made_at: Timestamp
    checksum: str
    schedule_id: str | None
    schedule: str | None


class KeptReportWithDocument(KeptReportOut):
    """The same, with the document."""

    document: Annotated[dict[str, Any], Field(description="A ReportOut.")]


class ReportBody(Body):
    """Which report to make: a period by name, or from one moment to another, of cluster time.

    Without a period it covers this week. `tenant`: only for who sees all tenants; others get their
    own tenant's report.
    """

    cluster: Name
    tenant: Name | None = None
    period: PeriodName | None = Field(default=None, strict=False)
    from_: Annotated[Moment | None, Field(alias="from")] = None
    to: Moment | None = None


Hour = Annotated[int, Field(ge=0, le=23, description="Hour of the day, UTC, wall time.")]
Secret = Annotated[
    str,
    Field(
        min_length=16,
        max_length=200,
        pattern=r"^[\x21-\x7e]+$",
        description="Signs what a webhook receives. It is never shown again.",
    ),
]


def _of_the_web(text: str) -> str:
    if not re.match(_WEB_URL, text):
        raise ValueError(
            "This is not an address of the web: give one such as https://example.org/hook"
        )
    return text


_WEB_URL = r"^https?://[^\s]+$"
WebUrl = Annotated[
    str,
    Field(max_length=2000, json_schema_extra={"pattern": _WEB_URL}),
    AfterValidator(_of_the_web),
]
Form = Annotated[ReportForm, Field(strict=False)]
Forms = Annotated[list[Form], Field(min_length=1, max_length=3)]


class ScheduleBody(Body):
    """A report each week or month, to a folder or a webhook; wall time decides when.

    A webhook needs `url` and `secret`; a folder has neither. `forms`: the files of a folder, and
    what a webhook receives beside the document. `tenant`: of whom it tells; a cluster admin may
    leave it out, for a report of the whole cluster.
    """

    name: Name
    cluster: Name
    tenant: Name | None = None
    every: ScheduleEvery = Field(default=ScheduleEvery.WEEK, strict=False)
    hour: Hour = 6
    channel: Channel = Field(strict=False)
    url: WebUrl | None = None
    secret: Secret | None = None
    forms: Forms = Field(default=[ReportForm.PDF])
    paper: Paper = Field(default=Paper.A4, strict=False)


class ScheduleChanges(Body):
    """What to change of a schedule; what is left out stays. The secret is replaced, never read."""

    name: Annotated[Name | None, NEVER_NULL] = None
    active: Annotated[bool | None, NEVER_NULL] = None
    hour: Annotated[Hour | None, NEVER_NULL] = None
    url: Annotated[WebUrl | None, NEVER_NULL] = None
    secret: Annotated[Secret | None, NEVER_NULL] = None


class ScheduleOut(TypedDict):
    """A schedule. The secret is never shown; of the address only who may change it sees the path.

    `next_due_at`: wall time.
    """

    id: str
    name: str
    cluster_id: str
    cluster: str
    tenant: str | None
    every: ScheduleEvery
    hour: int
    channel: Channel
    url: str | None
    has_secret: bool
    forms: list[ReportForm]
    paper: Paper
    active: bool
    next_due_at: Timestamp
    version: int
    created_at: Timestamp


class DeliveryOut(TypedDict):
    """One report on its way. `id` is also the id of the event that a webhook receives.

    `answered`: the HTTP status of the last answer. `files`: names below the folder of reports.
    """

    id: str
    schedule_id: str
    report_id: str | None
    due_at: Timestamp
    state: Literal["queued", "running", "succeeded", "failed", "cancelled"]
    tries: int
    next_try_at: Timestamp | None
    answered: int | None
    message: str
    files: list[str]
    created_at: Timestamp
    finished_at: Timestamp | None
