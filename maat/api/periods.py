"""Periods of cluster time that reports cover: named ones, and two moments."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from maat.api.fields import Timestamp

MOST_DAYS = 3 * 366
"""The longest period of a report, in days."""


class PeriodName(StrEnum):
    """A period of the cluster's calendar, in UTC. Weeks begin on Monday."""

    TODAY = "today"
    YESTERDAY = "yesterday"
    THIS_WEEK = "this-week"
    LAST_WEEK = "last-week"
    THIS_MONTH = "this-month"
    LAST_MONTH = "last-month"


PeriodOut = TypedDict(
    "PeriodOut",
    {
        "from": Timestamp,
        "to": Timestamp,
        "name": Annotated[PeriodName | None, Field(description="Null unless asked for by name.")],
        "is_partial": Annotated[bool, Field(description="It has not ended yet.")],
    },
)
"""The period of a report: from `from`, up to but without `to`. Cluster time."""


def days_named(period: PeriodOut) -> str:
    """Return its first and last day for a file's name: `2026-03-02-to-2026-03-08`, or one day."""
    first, end = (datetime.fromisoformat(period[edge]) for edge in ("from", "to"))
    last = max(end - timedelta(microseconds=1), first)
    days = dict.fromkeys(moment.date().isoformat() for moment in (first, last))
    return "-to-".join(days)
