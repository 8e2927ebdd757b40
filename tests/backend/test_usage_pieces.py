"""What spans were used for: the formulas, and that parts of time add up to the whole."""

from __future__ import annotations

import itertools
import math
from datetime import date

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.usage import sketch
from backend.usage.costs import Cost, eras, price_text
from backend.usage.models import GpuPrice
from backend.usage.pieces import Reading, Span, pieces_of, sums_in
from backend.usage.tally import PARTS

HOUR_MS = 3_600_000


def span(
    *,
    begin: float = 0.0,
    end: float = 3600.0,
    running: float | None = 0.0,
    gpus: tuple[int, ...] = (0, 1),
    job: int = 0,
    readings: tuple[tuple[float, float, float, float], ...] | None = None,
    for_profile: bool = False,
) -> Span:
    read = ((begin, 0.0, 0.0, 0.0), (end, 1000.0, 500.0, 0.0)) if readings is None else readings
    return Span(
        job,
        "t4",
        gpus,
        begin,
        end,
        running,
        for_profile,
        tuple(Reading(*each) for each in read),
    )


def parts(*spans: Span, start: float = 0.0, end: float = 1e9) -> dict[str, int]:
    return dict(zip(PARTS, sums_in(pieces_of(spans), start, end).sum(axis=0).tolist(), strict=True))


def test_used_is_less_by_the_start_and_useful_is_used_times_efficiency() -> None:
    found = parts(span(running=900.0))

    assert found == {
        "allocated_ms": 2 * HOUR_MS,
        "profile_ms": 0,
        "restart_ms": HOUR_MS // 2,
        "lost_ms": 0,
        "useful_ms": 3 * HOUR_MS // 4,
        "unmeasured_ms": 0,
    }


def test_a_job_that_never_ran_on_its_gpus_used_none_of_them() -> None:
    found = parts(span(running=None))

    assert (found["allocated_ms"], found["restart_ms"]) == (2 * HOUR_MS, 2 * HOUR_MS)
    assert found["useful_ms"] == 0


def test_what_a_failure_undid_is_the_end_of_what_was_used_and_not_useful() -> None:
    lost = span(readings=((0.0, 0.0, 0.0, 0.0), (3600.0, 1000.0, 1000.0, 1800.0)))

    assert parts(lost)["lost_ms"] == HOUR_MS // 2
    assert parts(lost)["useful_ms"] == 2 * HOUR_MS - HOUR_MS // 2
    assert parts(lost, end=2700.0)["lost_ms"] == 0


def test_a_failure_undoes_no_more_than_the_span_used() -> None:
    lost = span(running=1800.0, readings=((0.0, 0.0, 0.0, 0.0), (3600.0, 10.0, 10.0, 1e6)))

    assert parts(lost)["lost_ms"] == HOUR_MS
    assert parts(lost)["useful_ms"] == 0


def test_where_nobody_measured_efficiency_it_counts_as_one_and_is_told_apart() -> None:
    blind = Span(
        0,
        "t4",
        (0,),
        0.0,
        3600.0,
        0.0,
        False,
        (Reading(0, None, None, None), Reading(3600, *[None] * 3)),
    )

    assert parts(blind)["useful_ms"] == parts(blind)["unmeasured_ms"] == HOUR_MS


def test_each_part_between_two_readings_has_its_own_efficiency() -> None:
    read = ((0.0, 0.0, 0.0, 0.0), (1800.0, 100.0, 100.0, 0.0), (3600.0, 200.0, 110.0, 0.0))
    two = span(readings=read, gpus=(0,))

    assert parts(two, end=1800.0)["useful_ms"] == HOUR_MS // 2
    assert parts(two, start=1800.0)["useful_ms"] == HOUR_MS // 20


def test_efficiency_is_at_most_one() -> None:
    small_batch = span(readings=((0.0, 0.0, 0.0, 0.0), (3600.0, 100.0, 130.0, 0.0)))

    assert parts(small_batch)["useful_ms"] == 2 * HOUR_MS


def test_a_profile_is_allocated_and_shown_apart() -> None:
    found = parts(span(for_profile=True))

    assert found["allocated_ms"] == found["profile_ms"] == 2 * HOUR_MS
    assert found["restart_ms"] == found["useful_ms"] == found["unmeasured_ms"] == 0


def test_two_jobs_that_share_a_gpu_have_half_of_it_each_while_they_share() -> None:
    first = span(gpus=(0, 1))
    second = span(job=1, gpus=(1, 2), begin=1800.0, end=3600.0)
    sums = sums_in(pieces_of([first, second]), 0.0, 1e9)
    jobs = [piece.job for piece in pieces_of([first, second])]
    by_job = [sum(row[0] for row, job in zip(sums, jobs, strict=True) if job == n) for n in (0, 1)]

    assert by_job == [HOUR_MS + HOUR_MS * 3 // 4, HOUR_MS * 3 // 4]
    assert sum(by_job) == int(2.5 * HOUR_MS)  # as long as anybody held a GPU


spans = st.builds(
    lambda begin, length, ran, gpus, job, rates, lost: span(
        begin=begin,
        end=begin + length,
        running=None if ran is None else begin + ran,
        gpus=tuple(sorted(gpus)),
        job=job,
        readings=tuple(
            (begin + length * at / (len(rates) - 1), 100.0 * at, sum(rates[:at]), lost * at)
            for at in range(len(rates))
        ),
    ),
    st.floats(0, 3e5),
    st.floats(0, 3e5),
    st.none() | st.floats(0, 1e4),
    st.sets(st.integers(0, 6), min_size=1, max_size=4),
    st.integers(0, 5),
    st.lists(st.floats(0, 150), min_size=2, max_size=4),
    st.floats(0, 1e4),
)


@given(st.lists(spans, max_size=6), st.lists(st.floats(0, 6e5), max_size=5))
def test_the_use_of_neighbouring_times_adds_up_to_that_of_the_whole(
    given_spans: list[Span], cuts: list[float]
) -> None:
    pieces = pieces_of(given_spans)
    moments = [0.0, *sorted(cuts), 1e6]

    whole = sums_in(pieces, 0.0, 1e6).sum(axis=0)
    split = sum(
        (sums_in(pieces, a, b).sum(axis=0) for a, b in itertools.pairwise(moments)),
        np.zeros(len(PARTS), dtype=np.int64),
    )

    # Every piece is rounded to whole milliseconds in every window.
    assert np.abs(whole - split).max(initial=0) <= 2 * len(pieces) * len(moments) + 1


@given(st.lists(spans, max_size=6))
def test_the_parts_of_use_make_up_what_was_allocated_and_no_gpu_counts_twice(
    given_spans: list[Span],
) -> None:
    pieces = pieces_of(given_spans)
    found = dict(zip(PARTS, sums_in(pieces, 0.0, 1e7).sum(axis=0).tolist(), strict=True))

    used = found["allocated_ms"] - found["profile_ms"] - found["restart_ms"]
    assert 0 <= found["lost_ms"] <= used
    assert 0 <= found["useful_ms"] <= used - found["lost_ms"]
    assert found["allocated_ms"] <= held_by_anyone(given_spans) * 1000 + len(pieces)
    assert found["allocated_ms"] >= held_by_anyone(given_spans) * 1000 - len(pieces)


def held_by_anyone(given_spans: list[Span]) -> float:
    """GPU seconds in which at least one span held each GPU: one GPU after the other."""
    total = 0.0
    for gpu in range(7):
        ends = [(one.begin, one.end) for one in given_spans if gpu in one.gpus]
        until = -math.inf
        for begin, end in sorted(ends):
            total += max(end - max(begin, until), 0.0)
            until = max(until, end)
    return total


@given(
    st.lists(st.lists(st.floats(0, 1e7), max_size=30), min_size=1, max_size=5),
    st.sampled_from([0.1, 0.5, 0.9, 0.99, 1.0]),
)
def test_a_quantile_of_merged_sketches_is_that_of_all_jobs_to_one_per_cent(
    days: list[list[float]], share: float
) -> None:
    merged = sketch.merged(sketch.packed(day) for day in days)
    every = sorted(itertools.chain(*days))

    found = sketch.quantiles(merged, [share])
    if not every:
        assert found == []
        return
    true = every[max(math.ceil(share * len(every)), 1) - 1]
    assert found == [pytest.approx(true, rel=sketch.ERROR * 1.0001, abs=0.5)]


def test_an_old_day_costs_what_was_valid_then_and_hours_without_a_price_are_told() -> None:
    def day(number: int) -> date:
        return date(2026, 3, number)

    prices = [
        GpuPrice(cluster_id="c", gpu_type="t4", valid_from=day(3), micros=350_000, currency="EUR"),
        GpuPrice(
            cluster_id="c", gpu_type="t4", valid_from=day(5), micros=2_500_000, currency="EUR"
        ),
    ]
    found = list(eras(prices, day(1), day(6)))

    assert [(era.first.day, era.last.day) for era in found] == [(1, 2), (3, 4), (5, 6)]
    costs = [era.cost("t4", HOUR_MS) for era in found]
    assert [cost.text for cost in costs] == [None, "0.35", "2.50"]
    total = sum(costs, Cost())
    assert (total.text, total.unpriced_ms) == ("2.85", HOUR_MS)


def test_many_small_amounts_add_up_without_drift() -> None:
    price = GpuPrice(
        cluster_id="c", gpu_type="t4", valid_from=date(2026, 1, 1), micros=100_000, currency="EUR"
    )
    (era,) = eras([price], date(2026, 1, 1), date(2026, 1, 1))

    total = sum((era.cost("t4", HOUR_MS // 1000) for _ in range(10_000)), Cost())

    assert total.text == "1.00"


@pytest.mark.parametrize(
    ("micros", "text"), [(350_000, "0.35"), (2_000_000, "2.00"), (1, "0.000001"), (0, "0.00")]
)
def test_a_price_is_shown_with_two_places_or_as_many_as_it_needs(micros: int, text: str) -> None:
    assert price_text(micros) == text
