"""What a job's restarts cost and whether they paid, and how its events are marked."""

from __future__ import annotations

from typing import Any

import pytest

from frontend.figures.job_marks import FAILED, MOVED, PREEMPTED, RESCALED, RESTARTED, mark_of
from frontend.figures.job_timeline import efficiency_of, job_timeline_figure
from frontend.pages.job.ledger import ledger, restarts_of, verdict, words_of

NOW = "2026-11-20T12:00:00Z"


def at(minute: int) -> str:
    return f"2026-11-20T{10 + minute // 60}:{minute % 60:02d}:00Z"


def span(begin: int, end: int | None, rate: float | None, *, stood: int = 5, **more: Any) -> Any:
    """GPUs held from one minute to another, standing still at first, at `rate` samples/s."""
    ran = (120 if end is None else end) - begin - stood
    effective = None if rate is None else rate * 60 * ran
    return {
        "round_number": begin,
        "from_at": at(begin),
        "to_at": None if end is None else at(end),
        "running_at": at(begin + stood),
        "gpu_type": "t4",
        "gpu_count": 4,
        "node_count": 1,
        "for_profile": False,
        "processed_samples": None if effective is None else effective * 2,
        "effective_samples": effective,
        "total_batch_size": 64,
        "per_gpu_batch_size": 16,
        "accumulation_steps": 0,
        **more,
    }


def test_a_restart_pays_once_its_extra_work_makes_up_for_the_time_it_stood_still() -> None:
    (one,) = restarts_of([span(0, 30, 100.0), span(30, 60, 150.0)], now=NOW)

    assert (one.stood, one.ran, one.rate_before, one.rate_after) == (300.0, 1500.0, 100.0, 150.0)
    assert one.gpu_seconds == 1200.0
    assert one.break_even_seconds == pytest.approx(600.0)  # 100 x 300 / (150 - 100)
    assert one.net_seconds == pytest.approx(450.0)  # 150 x 1500 / 100 - 300 - 1500
    assert words_of(one) == "✓ paid: 7 min 30 s ahead"
    assert verdict([one]).endswith("(0.3 GPU-hours). It has paid.")


def test_one_that_did_not_pay_says_why() -> None:
    def told(second: Any) -> str:
        return words_of(restarts_of([span(0, 30, 100.0), second], now=NOW)[0])

    assert told(span(30, 40, 150.0)) == "✕ ended too early: 2 min 30 s behind"
    assert told(span(30, 60, 50.0)) == "✕ slower than before: 17 min 30 s behind"
    assert told(span(110, None, 150.0)) == "had no GPUs before"
    assert told(span(30, 60, None)) == "not counted yet"
    lasting = [span(0, 110, 100.0), span(110, None, 110.0)]
    assert words_of(restarts_of(lasting, now=NOW)[0]) == "◌ not yet: pays in 45 min"


def test_profiles_and_other_batch_sizes_are_no_restarts() -> None:
    spans = [
        span(0, 5, 10.0, for_profile=True),
        span(5, 30, 100.0),
        span(30, 60, 100.0, stood=0),
    ]
    assert restarts_of(spans, now=NOW) == []
    assert ledger([], "clu_1") == []


def test_the_table_begins_with_the_verdict_and_links_its_rounds() -> None:
    spans = [span(0, 30, 100.0), span(30, 60, 150.0), span(60, 70, 160.0, gpu_type="<b>")]
    words, *table = ledger(restarts_of(spans, now=NOW), "clu_1")
    assert "2 restarts: it stood still for 10 min" in str(words)
    assert "1 of 2 have paid; those that have not cost" in str(words)
    assert "/rounds/60?cluster=clu_1" in str(table)


@pytest.mark.parametrize(
    ("event", "mark"),
    [
        ({"kind": "state", "state": "restarting", "data": {"change": "rescale"}}, RESCALED),
        ({"kind": "state", "state": "restarting", "data": {"change": "migrate"}}, MOVED),
        ({"kind": "state", "state": "restarting", "data": {}}, RESTARTED),
        ({"kind": "state", "state": "preempted", "data": {"change": "preempt"}}, PREEMPTED),
        ({"kind": "state", "state": "restarting", "data": {"cause": "crash"}}, FAILED),
        ({"kind": "node-failed", "state": None, "data": {}}, FAILED),
        ({"kind": "state", "state": "running", "data": {}}, None),
        ({"kind": "asked", "state": None, "data": {"action": "pause"}}, None),
    ],
)
def test_events_that_change_its_course_are_marked(event: Any, mark: object) -> None:
    assert mark_of(event) == mark


def test_marks_efficiency_and_batch_size_share_the_axis_of_the_gpus() -> None:
    event: Any = {"kind": "state", "state": "restarting", "data": {"change": "migrate"}}
    spans = [span(0, 30, 100.0), span(30, 60, None)]
    drawn = job_timeline_figure(
        spans, events=[{**event, "at": at(30)}], now=NOW, submitted_at=at(0), scheme="light"
    )
    assert [trace.name for trace in drawn.data] == [
        "moved",
        "t4",
        "total batch size",
        "efficiency",
    ]
    assert drawn.layout.xaxis.matches == drawn.layout.xaxis2.matches == "x4"
    assert (efficiency_of(spans[0]), efficiency_of(spans[1])) == (0.5, None)
