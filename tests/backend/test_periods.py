from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.periods import Period, asked_period, named_period, period_of
from backend.problems import Invalid
from maat.api.periods import MOST_DAYS, PeriodName, days_named

NOW = datetime(2026, 3, 4, 15, 30, tzinfo=UTC)  # a Wednesday


def at(month: int, day: int, hour: int = 0) -> datetime:
    return datetime(2026, month, day, hour, tzinfo=UTC)


@pytest.mark.parametrize(
    ("name", "start", "end"),
    [
        (PeriodName.TODAY, at(3, 4), at(3, 5)),
        (PeriodName.YESTERDAY, at(3, 3), at(3, 4)),
        (PeriodName.THIS_WEEK, at(3, 2), at(3, 9)),
        (PeriodName.LAST_WEEK, at(2, 23), at(3, 2)),
        (PeriodName.THIS_MONTH, at(3, 1), at(4, 1)),
        (PeriodName.LAST_MONTH, at(2, 1), at(3, 1)),
    ],
)
def test_a_named_period_follows_the_calendar(
    name: PeriodName, start: datetime, end: datetime
) -> None:
    assert named_period(name, NOW) == Period(start, end, name)


@pytest.mark.parametrize(
    ("period", "before"),
    [
        (named_period(PeriodName.LAST_MONTH, NOW), (at(1, 1), at(2, 1))),
        (
            named_period(PeriodName.THIS_MONTH, NOW).until(NOW),
            (at(2, 1), at(2, 4) + (NOW - at(3, 4))),
        ),
        (named_period(PeriodName.THIS_WEEK, NOW).until(NOW), (at(2, 23), NOW - timedelta(days=7))),
        (Period(at(3, 1), at(5, 1)), (at(1, 1), at(3, 1))),
        (Period(at(3, 3, 6), at(3, 3, 12)), (at(3, 3, 0), at(3, 3, 6))),
    ],
)
def test_it_is_compared_with_the_same_part_of_the_one_before(
    period: Period, before: tuple[datetime, datetime]
) -> None:
    assert (period.before().start, period.before().end) == before


def test_a_part_of_a_long_month_is_compared_with_no_more_than_the_short_one_before() -> None:
    march = named_period(PeriodName.THIS_MONTH, NOW).until(at(3, 31, 5))

    assert march.before().end == at(3, 1)


@given(
    st.datetimes(datetime(2025, 1, 1), datetime(2026, 1, 1)),
    st.timedeltas(timedelta(seconds=1), timedelta(days=9)),
)
def test_its_parts_by_day_make_up_the_whole(start: datetime, length: timedelta) -> None:
    period = Period(start.replace(tzinfo=UTC), start.replace(tzinfo=UTC) + length)

    parts = list(period.parts())

    assert parts[0].start == period.start
    assert parts[-1].end == period.end
    assert all(one.end == after.start for one, after in itertools.pairwise(parts))
    assert all(part == period_of(part.start.date()) for part in parts[1:-1])
    assert [part.start.date() for part in parts] == list(period.days())


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"start": at(3, 2), "end": at(3, 2)}, "/to"),
        ({"start": NOW + timedelta(hours=1)}, "/from"),
        ({"end": at(3, 2)}, "/from"),
        ({"name": PeriodName.TODAY, "start": at(3, 2)}, "/period"),
        ({"start": NOW - timedelta(days=MOST_DAYS + 1)}, "/to"),
    ],
)
def test_what_is_no_period_is_refused_with_its_field(asked: dict[str, object], field: str) -> None:
    with pytest.raises(Invalid) as refused:
        asked_period(now=NOW, **asked)  # type: ignore[arg-type]

    assert refused.value.errors[0].pointer == field
    assert refused.value.errors[0].remedy


def test_without_an_end_it_lasts_until_now() -> None:
    assert asked_period(now=NOW, start=at(3, 2)) == Period(at(3, 2), NOW)
    assert asked_period(now=NOW) == named_period(PeriodName.THIS_WEEK, NOW)


@pytest.mark.parametrize(
    ("period", "before"),
    [
        (named_period(PeriodName.TODAY, NOW), (at(3, 3), NOW - timedelta(days=1))),
        (Period(at(3, 4), at(3, 5)), (at(3, 3), NOW - timedelta(days=1))),
        (Period(at(3, 1), at(4, 1)), (at(2, 1), NOW - timedelta(days=28))),
        (Period(at(3, 2), at(3, 4)), (at(2, 28), at(3, 2))),
        (Period(at(4, 4), at(4, 5)), (at(4, 3), at(4, 4))),
    ],
)
def test_what_has_passed_is_compared_with_as_much_of_the_one_before(
    period: Period, before: tuple[datetime, datetime]
) -> None:
    found = period.before_until(NOW)
    assert (found.start, found.end) == before


@pytest.mark.parametrize(
    ("period", "named"),
    [
        (Period(at(3, 2), at(3, 9)), "2026-03-02-to-2026-03-08"),
        (Period(at(3, 2, 6), at(3, 3, 1)), "2026-03-02-to-2026-03-03"),
        (Period(at(3, 2), at(3, 3)), "2026-03-02"),
        (Period(at(3, 2), at(3, 2)), "2026-03-02"),
    ],
)
def test_a_file_is_named_after_its_first_and_its_last_day(period: Period, named: str) -> None:
    assert days_named(period.show(NOW)) == named
