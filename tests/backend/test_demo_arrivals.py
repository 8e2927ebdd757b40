"""Tests of the demo's jobs: reproducible, able to run, of several tenants, more by day."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from backend.demo.arrivals import (
    HOUR_SECONDS,
    LONG_MODELS,
    MOST_MOVES_OF_LONG_JOBS,
    TEAMS,
    arrivals,
    hour_of_week,
    rate,
)
from backend.demo.cluster import DEMO_CLUSTER
from backend.jobs.admission import objections
from maat.models.catalog import load_catalog

DAYS = 2
WHOLE = list(arrivals("clu_1", after=0.0, until=DAYS * 24 * HOUR_SECONDS))


@settings(max_examples=10, deadline=None)
@given(cuts=st.lists(st.floats(0.0, DAYS * 24 * HOUR_SECONDS), max_size=8))
def test_windows_that_touch_hold_every_job_once(cuts: list[float]) -> None:
    edges = [0.0, *sorted(cuts), DAYS * 24 * HOUR_SECONDS]
    pieces = [
        job
        for after, until in pairwise(edges)
        for job in arrivals("clu_1", after=after, until=until)
    ]

    assert pieces == WHOLE


def test_every_job_can_run_on_the_demo_cluster() -> None:
    capacity = {"t4": 24, "rtx": 24, "a100": 16}
    assert DEMO_CLUSTER.shape == "t4=6x4,rtx=3x8,a100=2x8"

    assert [objections(job.body, models=load_catalog(), capacity=capacity) for job in WHOLE] == [
        [] for _ in WHOLE
    ]


def test_several_tenants_submit_several_kinds_of_jobs_each_under_an_id_of_its_own() -> None:
    assert {job.team.name for job in WHOLE} == {team.name for team in TEAMS}
    assert {job.body.adaptivity for job in WHOLE} == {"adaptive", "strong-scaling", "rigid"}
    assert len({job.body.model for job in WHOLE}) > 3
    assert len({job.body.external_id for job in WHOLE}) == len(WHOLE)


def test_more_arrive_by_day_than_by_night() -> None:
    hours = sorted(range(24), key=rate)
    quiet, busy = set(hours[:8]), set(hours[-8:])
    of_hour = [int(job.seconds // HOUR_SECONDS) % 24 for job in WHOLE]

    assert sum(hour in busy for hour in of_hour) > 1.5 * sum(hour in quiet for hour in of_hour)


def test_fewer_arrive_at_weekends_wherever_in_the_week_the_cluster_begins() -> None:
    week, thursday = 168 * HOUR_SECONDS, hour_of_week(datetime(2026, 11, 26, 15, 30, tzinfo=UTC))
    assert thursday == 3 * 24 + 15

    by_day = Counter(
        int(job.seconds // HOUR_SECONDS + thursday) // 24 % 7
        for job in arrivals("clu_1", after=0.0, until=week, begins_at=thursday)
    )

    assert set(by_day) == set(range(7))
    assert max(by_day[5], by_day[6]) < min(by_day[day] for day in range(5))


def test_owners_of_long_jobs_ask_to_be_moved_once_an_hour_at_most() -> None:
    asks = {job.body.model: job.body.most_moves_per_hour for job in WHOLE}

    assert {model for model, most in asks.items() if most is not None} == LONG_MODELS
    assert {asks[model] for model in LONG_MODELS} == {MOST_MOVES_OF_LONG_JOBS}
