"""Periods of cluster time, as a cluster shows it in UTC: what reports cover. Pure.

A period holds its start and not its end, so that neighbours share no moment.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import NoReturn

from backend.clocktime import ClusterTimes, seconds_at
from backend.problems import FieldError, Invalid
from maat.api.fields import rfc3339
from maat.api.periods import MOST_DAYS, PeriodName, PeriodOut

DAY = timedelta(days=1)
_DAYS_OF = {
    PeriodName.TODAY: 1,
    PeriodName.YESTERDAY: 1,
    PeriodName.THIS_WEEK: 7,
    PeriodName.LAST_WEEK: 7,
}


@dataclass(frozen=True)
class Period:
    """From `start` up to but without `end`, both UTC. `name`: what was asked for, if by name."""

    start: datetime
    end: datetime
    name: PeriodName | None = None

    @property
    def length(self) -> timedelta:
        return self.end - self.start

    @property
    def has_whole_days(self) -> bool:
        return self.start == day_start(self.start.date()) and self.end == day_start(self.end.date())

    def days(self) -> Iterator[date]:
        """Yield every day that it touches, in order."""
        day = self.start.date()
        while day_start(day) < self.end:
            yield day
            day += DAY

    def parts(self) -> Iterator[Period]:
        """Yield its parts by day, in order; all but the first and the last are whole days."""
        for day in self.days():
            whole = period_of(day)
            yield Period(max(whole.start, self.start), min(whole.end, self.end))

    def until(self, now: datetime) -> Period:
        """Return what of it has passed at `now`: nothing, where it lies in the future."""
        return replace(self, end=max(min(self.end, now), self.start))

    def before(self) -> Period:
        """Return the period to compare it with.

        It is the same part of the month, week or day before. Without a name it is as many calendar
        months before if it consists of whole ones, else as much time.
        """
        if self.name in (PeriodName.THIS_MONTH, PeriodName.LAST_MONTH) or self._months():
            start = month_start(self.start, -(self._months() or 1))
            if self._months():
                return Period(start, self.start)
            return Period(start, min(start + self.length, self.start))
        shift = self.length if self.name is None else timedelta(days=_DAYS_OF[self.name])
        return Period(self.start - shift, self.end - shift)

    def before_until(self, now: datetime) -> Period:
        """Return the part of the period before that matches what of this one has passed.

        The whole one if this one is over, or has not begun.
        """
        whole, passed = self.before(), now - self.start
        if self.end <= now or passed <= timedelta(0):
            return whole
        return replace(whole, end=min(whole.start + passed, whole.end))

    def widened(self, *, until: datetime) -> Period:
        """Return the whole days that it touches, as far as they end by `until`; one at least."""
        last = period_of((self.end - timedelta(microseconds=1)).date())
        end = min(last.end, day_start(until.date()))
        return replace(self, start=min(day_start(self.start.date()), end - DAY), end=end)

    def seconds(self, cluster: ClusterTimes) -> tuple[float, float]:
        """Return its start and end in cluster seconds."""
        return seconds_at(cluster, self.start), seconds_at(cluster, self.end)

    def show(self, now: datetime) -> PeriodOut:
        return PeriodOut(
            {
                "from": rfc3339(self.start),
                "to": rfc3339(self.end),
                "name": self.name,
                "is_partial": self.end > now,
            }
        )

    def _months(self) -> int:
        """Return of how many whole calendar months it consists; 0 if not of whole ones."""
        if not (self.has_whole_days and self.start.day == self.end.day == 1):
            return 0
        return (self.end.year - self.start.year) * 12 + self.end.month - self.start.month


def day_start(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def period_of(day: date) -> Period:
    return Period(day_start(day), day_start(day) + DAY)


def refuse_part(part: Period, period: Period) -> NoReturn:
    """Raise Invalid for a period of which a part of a day is no longer known by itself."""
    day, begins = period_of(part.start.date()), part.start == period.start
    name, moment, instead = (
        ("from", part.start, day.start)
        if begins and part.start != day.start
        else ("to", part.end, day.end)
    )
    message = f"Of {day.start.date().isoformat()} only the whole day is still known."
    remedy = f"Give {rfc3339(instead)} as {name}, or another time of 00:00 UTC."
    error = FieldError(f"/{name}", "whole_days_only", message, remedy, rfc3339(moment))
    raise Invalid(f"{message} {remedy}", errors=[error])


def runs_of(days: Sequence[date]) -> Iterator[tuple[date, date]]:
    """Yield the runs of neighbouring days, each as its first and its last. `days`: in order."""
    begin = 0
    for at in range(1, len(days) + 1):
        if at == len(days) or days[at] - days[at - 1] != DAY:
            yield days[begin], days[at - 1]
            begin = at


def month_start(moment: datetime, months: int = 0) -> datetime:
    """Return the start of the month that lies `months` after that of `moment`."""
    number = moment.year * 12 + moment.month - 1 + months
    return datetime(number // 12, number % 12 + 1, 1, tzinfo=UTC)


def named_period(name: PeriodName, now: datetime) -> Period:
    """Return the whole period of this name, which may end after `now`."""
    today = day_start(now.astimezone(UTC).date())
    monday = today - timedelta(days=today.weekday())
    start, end = {
        PeriodName.TODAY: (today, today + DAY),
        PeriodName.YESTERDAY: (today - DAY, today),
        PeriodName.THIS_WEEK: (monday, monday + 7 * DAY),
        PeriodName.LAST_WEEK: (monday - 7 * DAY, monday),
        PeriodName.THIS_MONTH: (month_start(today), month_start(today, 1)),
        PeriodName.LAST_MONTH: (month_start(today, -1), month_start(today)),
    }[name]
    return Period(start, end, name)


def asked_period(
    *,
    now: datetime,
    name: PeriodName | None = None,
    start: datetime | None = None,
    end: datetime | None = None,
    default: PeriodName = PeriodName.THIS_WEEK,
) -> Period:
    """Return the period that a request names by `period`, or by `from` and `to`.

    Without `to` it lasts until `now`; without anything it is `default`. `now`: of the cluster.
    Raises Invalid.
    """
    if name is not None and (start is not None or end is not None):
        raise _invalid(
            "/period",
            "either_or",
            "The request names a period and moments.",
            "Give either period, or from and to.",
            name.value,
        )
    if start is None and end is not None:
        raise _invalid(
            "/from",
            "missing",
            "The period has an end and no beginning.",
            "Give from as well, or a period by name.",
            None,
        )
    if start is None:
        return named_period(default if name is None else name, now)
    return _between(start, now if end is None else end, given_end=end)


def _between(start: datetime, end: datetime, *, given_end: datetime | None) -> Period:
    if end <= start:
        pointer, shown = ("/from", start) if given_end is None else ("/to", end)
        raise _invalid(
            pointer,
            "empty_period",
            "The period ends before it begins.",
            "Give a from that lies before to; without to the period ends now, in cluster time.",
            rfc3339(shown),
        )
    if end - start > timedelta(days=MOST_DAYS):
        raise _invalid(
            "/to",
            "too_long",
            f"The period is longer than {MOST_DAYS} days.",
            "Ask for shorter periods, one after the other.",
            rfc3339(end),
        )
    return Period(start.astimezone(UTC), end.astimezone(UTC))


def _invalid(pointer: str, code: str, message: str, remedy: str, value: object) -> Invalid:
    return Invalid(
        f"{message} {remedy}", errors=[FieldError(pointer, code, message, remedy, value)]
    )
