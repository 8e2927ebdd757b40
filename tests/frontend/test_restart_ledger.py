"""What a job's restarts cost and whether they paid, and how its events are marked."""

from __future__ import annotations

from typing import Any

import pytest

from frontend.figures.job_marks import FAILED, MOVED, PREEMPTED, RESCALED, RESTARTED, mark_of
from frontend.figures.job_timeline import efficiency_of, job_timeline_figure
from frontend.pages.job.ledger import ledger, restarts_of
from maat.api.move_words import move_words, moves_verdict
from maat.scheduling.move_worth import BatchPace, move_worth

NOW = "2026-11-20T12:00:00Z"


def at(minute: int) -> str:
    return f"2026-11-20T{10 + minute // 60}:{minute % 60:02d}:00Z"


def span(begin: int, end: int | None, move: Any = None, **more: Any) -> Any:
    """GPUs held from one minute to another, after a restart of five minutes."""
    return {
        "round_number": begin,
        "from_at": at(begin),
        "to_at": None if end is None else at(end),
        "running_at": at(begin + 5),
        "gpu_type": "t4",
        "gpu_count": 4,
        "node_count": 1,
        "for_profile": False,
        "processed_samples": 2000.0,
        "effective_samples": 1000.0,
        "total_batch_size": 64,
        "per_gpu_batch_size": 16,
        "accumulation_steps": 0,
        "move": move,
        **more,
    }


def worth(before: float | None, after: float, *, ran: float = 1500.0, lasts: bool = False) -> Any:
    """What the service answers of a restart of five minutes between these throughputs."""
    paces = None if before is None else [BatchPace(64, before * 600, 600.0)]
    found = move_worth(
        paces,
        [BatchPace(64, after * ran, ran)],
        noise_scale=None,
        stood_seconds=300.0,
        ran_seconds=ran,
        lasts=lasts,
    )
    rates = found.rates
    return {
        "outcome": found.outcome.value,
        "unknown": None if found.unknown is None else found.unknown.value,
        "stood_seconds": found.stood_seconds,
        "ran_seconds": found.ran_seconds,
        "before_samples_per_second": None if rates is None else rates.before,
        "after_samples_per_second": None if rates is None else rates.after,
        "net_seconds": found.net_seconds,
        "pays_after_seconds": found.pays_after_seconds,
    }


def test_a_restart_that_paid_says_by_how_much() -> None:
    (restart,) = restarts_of([span(0, 30), span(30, 60, worth(100.0, 150.0))])

    assert restart.gpu_seconds == 1200.0
    assert move_words(restart.worth) == "✓ paid: 7 min 30 s ahead"
    assert moves_verdict([restart.after]).endswith("(0.3 GPU-hours). It has paid.")


def test_one_that_did_not_pay_says_why() -> None:
    assert move_words(worth(100.0, 150.0, ran=300.0)) == "✕ ended too early: 2 min 30 s behind"
    assert move_words(worth(100.0, 50.0)) == "✕ no faster than before: 17 min 30 s behind"
    assert move_words(worth(None, 150.0)) == "had no GPUs before"
    assert move_words(worth(100.0, 0.0)) == "not counted yet"
    assert move_words(worth(100.0, 110.0, ran=300.0, lasts=True)) == "◌ not yet: pays in 45 min"


def test_profiles_and_spans_without_a_restart_are_no_restarts() -> None:
    spans = [span(0, 5, for_profile=True), span(5, 30), span(30, 60)]
    assert restarts_of(spans) == []
    assert ledger([], "clu_1") == []


def test_the_table_begins_with_the_verdict_and_links_its_rounds() -> None:
    spans = [
        span(0, 30),
        span(30, 60, worth(100.0, 150.0)),
        span(60, 70, worth(150.0, 160.0, ran=300.0), gpu_type="<b>"),
    ]
    words, *table = ledger(restarts_of(spans), "clu_1")
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
    spans = [span(0, 30), span(30, 60, effective_samples=None)]
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
