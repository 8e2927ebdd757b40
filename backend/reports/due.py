"""When reports by schedule are due, in wall time (UTC), and which period each covers."""

from __future__ import annotations

from datetime import datetime, timedelta

from backend.periods import DAY, day_start, month_start
from maat.api.periods import PeriodName
from maat.api.reports import ScheduleEvery

COVERS = {
    ScheduleEvery.WEEK: PeriodName.LAST_WEEK,
    ScheduleEvery.MONTH: PeriodName.LAST_MONTH,
}
"""The period of the cluster's calendar that a report by schedule covers."""


def next_due(every: ScheduleEvery, hour: int, after: datetime) -> datetime:
    """Return the first Monday, or first of a month, at this hour that lies after a moment."""
    at = timedelta(hours=hour)
    if every is ScheduleEvery.WEEK:
        today = day_start(after.date())
        due = today - today.weekday() * DAY + at
        return due if due > after else due + 7 * DAY
    due = month_start(after) + at
    return due if due > after else month_start(after, 1) + at
