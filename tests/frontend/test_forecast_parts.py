"""What pages say of forecasts: times in words, who is slowed, and the figures of calibration."""

from __future__ import annotations

import asyncio
from typing import Any

from frontend.components.forecast import (
    about,
    allocations,
    expected,
    expected_exact,
    slowed_lines,
    words,
)
from frontend.figures.calibration import promised_figure, reliability_figure
from frontend.pages.calibration import bins_table, near_table
from frontend.pages.calibration import show as show_calibration
from frontend.pages.calibration import verdict as calibration_verdict
from frontend.pages.job.forecast import parts_of as job_parts
from frontend.pages.submit.forecast import parts_of as submit_parts
from frontend.shell import NO_CLUSTER
from maat.vocabulary import ForecastBasis

OF_WORK = {"basis": ForecastBasis.WORK, "precedents": 12}


def when(p50: str | None, p90: str | None) -> Any:
    return {"p50_at": p50, "p90_at": p90, "p50_seconds": 1.0, "p90_seconds": 2.0}


EARLY, LATE, NEXT_DAY = (
    "2026-11-20T14:20:30Z",
    "2026-11-20T15:05:00Z",
    "2026-11-21T01:00:00Z",
)


def times(start: Any = None) -> Any:
    held = {"from_at": EARLY, "gpu_type": "a100", "gpu_count": 8}
    none = {"from_at": LATE, "gpu_type": None, "gpu_count": 0}
    end = when(EARLY, NEXT_DAY)
    return {"start": start, "end": end, "allocations": [held, none], **OF_WORK}


def test_a_time_names_its_day_once() -> None:
    assert about(when(EARLY, LATE), 9) == "about 20 Nov 14:20 (by 15:05 at P90)"
    assert about(when(EARLY, LATE), 3) == "about 20 Nov 14:20 (by 15:05 at P75)"
    assert about(when(EARLY, EARLY), 1) == "about 20 Nov 14:20 (a first guess)"
    assert about(when(EARLY, NEXT_DAY), 29) == "about 20 Nov 14:20 (by 21 Nov 01:00 at P90)"
    assert about(when(EARLY, None), 9) == "about 20 Nov 14:20 (later than in 14 days at P90)"
    assert about(when(None, None), 9) == "later than in 14 days"


def test_what_one_draw_held_does_not_stand_below_a_start_that_is_not_in_sight() -> None:
    assert "a100" in str(allocations(times(when(EARLY, None))))
    assert "a100" not in str(allocations(times(when(None, None))))


def test_a_row_has_p50_to_p90_and_names_days_that_are_not_the_forecasts() -> None:
    def brief(end: Any, start: Any = None) -> str:
        made: Any = {"made_at": EARLY, "draws": 29, "start": start, "end": end, **OF_WORK}
        return expected(made)

    assert brief(when(EARLY, LATE)) == "ends 14:20–15:05"
    assert brief(when(LATE, NEXT_DAY)) == "ends 15:05–21 Nov"
    assert brief(when(EARLY, EARLY)) == "ends 14:20"
    assert brief(when(LATE, None)) == "ends 15:05 or later"
    assert brief(when(None, None)) == "ends in > 14 d"
    assert brief(when(NEXT_DAY, None), when(EARLY, LATE)) == "starts 14:20–15:05"
    assert expected(None) == "–"
    made: Any = {"made_at": EARLY, "draws": 9, "start": None, "end": when(LATE, NEXT_DAY)}
    made |= OF_WORK
    exact = (
        "Ends about 20 Nov 15:05 (by 21 Nov 01:00 at P90). Its pace is that of 12 jobs that ended. "
        "From 9 draws, at 20 Nov"
    )
    assert str(expected_exact(made)).startswith(exact)
    first = {**made, "draws": 3}
    assert expected(first) == "ends 15:05–21 Nov (first)"
    assert "that ended. From 3 draws so far, too few for a P90, at" in str(expected_exact(first))


def test_an_end_that_rests_on_nothing_is_called_a_guess() -> None:
    guess = {"basis": ForecastBasis.GUESS, "precedents": 0}
    made: Any = {"made_at": EARLY, "draws": 29, "start": None, "end": when(EARLY, LATE), **guess}
    assert expected(made) == "ends 14:20–15:05 (guess)"
    assert "A guess: nobody said how much work it has" in str(expected_exact(made))

    card: Any = {"draws": 29, "made_at": EARLY, "round_number": 7}
    assert "A guess: " in str(job_parts({**card, "times": {**times(), **guess}}))
    known = {"basis": ForecastBasis.RUNS, "precedents": 1}
    assert "as 1 job like it did" in str(job_parts({**card, "times": {**times(), **known}}))
    new = {"basis": ForecastBasis.WORK, "precedents": 0}
    asked: Any = {"job": {**times(), **new}, "slowed": [], "draws": 9, "notes": []}
    assert "Its pace is assumed: no job has ended yet." in str(submit_parts(asked))


def test_a_job_that_runs_tells_its_end_alone() -> None:
    assert words(times(), 9).startswith("Ends about 20 Nov 14:20")
    assert words(times(when(EARLY, LATE)), 9).startswith("Starts about 20 Nov 14:20 (by 15:05")


def test_a_job_without_a_forecast_says_why() -> None:
    found: Any = {"times": None, "sentence": "It is paused.", "draws": None, "made_at": None}
    assert "It is paused." in str(job_parts(found))
    made = {"times": times(), "draws": 29, "made_at": EARLY, "round_number": 7}
    shown = str(job_parts(made))  # type: ignore[arg-type]
    assert "From 29 draws" in shown
    assert "after round 7" in shown


def test_who_is_slowed_is_named_unless_another_tenants() -> None:
    slow: Any = {"job_id": "job_1", "name": "mine", "p50_seconds": 600.0, "p90_seconds": 1200.0}
    fast: Any = {"job_id": "other-1", "name": None, "p50_seconds": -60.0, "p90_seconds": -60.0}
    shown = str(slowed_lines([slow | {"share": 1.0}, fast | {"share": 0.0}], 9))
    assert "mine usually ends 10 min later, at P90 20 min later; later in 100 %" in shown
    assert "another tenant's job usually ends 1 min earlier; never later" in shown
    many = [slow | {"share": 1.0}] * 20
    assert "and 12 other jobs" in str(slowed_lines(many, 9))
    assert "and 1 other job'" in str(slowed_lines(many[:9], 9))
    assert "No other job" in str(slowed_lines([], 9))


def test_a_cancelled_question_has_no_times() -> None:
    found: Any = {"job": None, "slowed": None, "draws": None, "state": "cancelled"}
    assert "was cancelled" in str(submit_parts(found))
    assert "cannot be foretold" in str(submit_parts({**found, "state": "succeeded"}))
    whole: Any = {"job": times(when(EARLY, LATE)), "slowed": [], "draws": 9, "notes": None}
    assert "From 9 draws" in str(submit_parts(whole))
    note = "No job here can use h100: 1 job does not allow it."
    assert note in str(submit_parts({**whole, "notes": [note]}))
    assert "can use" not in str(submit_parts(whole))


def test_calibration_without_a_cluster_leads_to_making_one() -> None:
    api: Any = None  # nothing is asked
    asked = show_calibration(api, _often=0, cluster_id=NO_CLUSTER, scheme="light")

    shown: Any = asyncio.run(asked)

    assert "No cluster yet" in str(shown["bins"])
    assert "Make a cluster" in str(shown["bins"])
    assert shown["held"].layout.meta["state"] == "empty"


def test_calibration_without_a_promise_that_has_come_due_says_when_and_leads_to_the_jobs() -> None:
    none = {"quantity": "start", "quantile": 0.9, "promises": 0, "held": None}
    due = {"quantity": "end", "quantile": 0.9, "promises": 40, "held": 0.9}
    found: Any = {"bins": [none]}

    shown = str(bins_table(found))

    assert "No forecast has come due yet" in shown
    assert "href='/jobs'" in shown
    found = {"bins": [none, due]}
    assert "90 %" in str(bins_table(found))


def test_how_near_promises_came_is_a_table() -> None:
    near: Any = {
        "quantity": "start",
        "promises": 40,
        "within_1_minute": 0.25,
        "within_10_minutes": 0.8,
        "median_error_seconds": 240.0,
        "median_width_seconds": None,
    }
    shown = str(near_table([near]))

    for cell in ("start of a job", "'40'", "25 %", "80 %", "4 min", "–"):
        assert cell in shown
    assert "No forecast has come due yet" in str(near_table([{**near, "promises": 0}]))


def test_figures_of_calibration_have_an_empty_state_and_draw_what_is_known() -> None:
    due = {"quantity": "end", "quantile": 0.9, "promises": 40, "held": 0.9}
    none = {"quantity": "start", "quantile": 0.9, "promises": 0, "held": None}
    empty = reliability_figure([none], scheme="light")  # type: ignore[list-item]
    assert not empty.data
    drawn = reliability_figure([due, none], scheme="dark")  # type: ignore[list-item]
    assert [list(trace.y) for trace in drawn.data] == [[0.0, 1.0], [], [0.9]]

    promise: Any = {"job_id": "job_1", "end_p50_seconds": 3600.0, "end_seconds": 7200.0}
    unknown: Any = {"job_id": "job_2", "end_p50_seconds": None, "end_seconds": 1.0}
    ends = promised_figure([promise, unknown], scheme="light")
    assert (list(ends.data[1].x), list(ends.data[1].y)) == ([1.0], [2.0])
    assert not promised_figure([unknown], scheme="light").data
    assert list(ends.data[1].customdata) == ["/jobs/job_1"]


def test_of_few_draws_nothing_is_called_usual() -> None:
    slow: Any = {"name": "train-7", "p50_seconds": 120.0, "p90_seconds": 120.0, "share": 1.0}

    shown = str(slowed_lines([slow], 1))

    assert "train-7 ends 2 min later in 1 draw so far" in shown
    assert "usually" not in shown
    assert "100 %" not in shown
    assert "train-7 usually ends 2 min later" in str(slowed_lines([slow], 5))


def test_calibration_begins_with_how_many_ends_came_by_their_p90() -> None:
    p50: Any = {"quantity": "end", "quantile": 0.5, "promises": 53, "held": 0.4}
    p90: Any = {"quantity": "end", "quantile": 0.9, "promises": 53, "held": 0.92}

    assert calibration_verdict([p50, p90]) == (
        "92 % of 53 promised ends came by the P90; 90 % are to."
    )
    few = calibration_verdict([p50, {**p90, "promises": 3}])
    assert few.endswith("Of fewer than 20, that says little.")
    assert calibration_verdict([p50, {**p90, "promises": 0, "held": None}]) == ""
