"""Tests of the comparison on a simulation's page: unfinished jobs, and states without results."""

from __future__ import annotations

from typing import Any

import pytest

from frontend.figures.contest import ratio_figure
from frontend.pages.simulation.contest import differences, failed, means
from frontend.pages.simulation.verdict import sentences
from maat.client import ApiError


def contestant(name: str, unfinished: float) -> dict[str, Any]:
    figures = {"jobs": 10.0, "avg_jct_hours": 2.0, "unfinished": unfinished}
    return {
        "name": name,
        "figures": {
            field: {"mean": mean, "deviation": None, "runs": 1} for field, mean in figures.items()
        },
    }


def compared(*contestants: dict[str, Any], rule: str = "mean-of-ratios") -> dict[str, Any]:
    return {"fairness_rule": rule, "contestants": list(contestants)}


def texts(table: Any) -> list[list[str]]:
    head, body = table.children
    return [[cell.children for cell in row.children] for row in (head.children, *body.children)]


def test_jobs_that_did_not_finish_stand_after_the_runs_and_mark_the_mean_of_the_others() -> None:
    table, caption = means(compared(contestant("sia", 0.0), contestant("fifo", 3.0))).children

    assert texts(table) == [
        ["Policy + placer", "Runs", "Unfinished", "Mean JCT (h)"],
        ["sia", "1", "0.0", "2.000"],
        ["fifo", "1", "3.0", "2.000*"],
    ]
    assert caption.children == "* of the jobs that finished"


def test_where_every_job_finished_nothing_is_said_of_unfinished_ones() -> None:
    table = means(compared(contestant("sia", 0.0)))

    assert texts(table) == [["Policy + placer", "Runs", "Mean JCT (h)"], ["sia", "1", "2.000"]]


def test_the_worst_rho_stands_under_the_name_of_its_rule() -> None:
    sia = contestant("sia", 0.0)
    sia["figures"]["worst_rho"] = {"mean": 1.25, "deviation": None, "runs": 1}

    assert texts(means(compared(sia, rule="share-of-type")))[0][-1] == "Worst rho (share-of-type)"


def test_why_mean_and_ratio_differ_in_sign_stands_below_the_differences() -> None:
    interval = {"estimate": 1.1, "low": 0.9, "high": 1.3}
    row = {
        "difference_hours": interval,
        "ratio": interval,
        "sooner": 0.5,
        "jobs": 3,
        "runs": 1,
        "left_out": 0,
        "verdict": "not told apart",
        "basis": "jobs",
    }
    names = [{"name": "fifo"}, {"name": "sia"}, {"name": "sjf"}]
    paired = [
        row | {"contestant": 1, "note": "sia: both are true."},
        row | {"contestant": 2, "note": None},
    ]

    table, *notes = differences({"contestants": names, "paired": paired}).children

    assert "not certain on one seed" in str(table)
    assert [note.children for note in notes] == ["sia: both are true."]


@pytest.mark.parametrize("over", [False, True])
def test_a_comparison_of_nothing_is_no_error_and_promises_only_what_may_come(over: bool) -> None:
    changes = failed(ApiError(status=409, title="Conflict"), "light", over=over)
    shown: Any = changes["means"]
    figure: Any = changes["ratios"]
    broken: Any = failed(ApiError(status=500, title="Fault"), "light", over=over)["ratios"]

    first, second = (child.children for child in shown.children[:2])
    words = f"{first} {second} {figure.layout.annotations[0].text}"
    assert ("yet" in words, "shows when" in words) == (not over, not over)
    assert (figure.layout.meta["state"], broken.layout.meta["state"]) == ("empty", "error")


@pytest.mark.parametrize(
    ("low", "high"),
    [(0.97, 1.02), (0.999, 1.0005), (0.8, 1.3), (0.55, 0.9), (0.4, 3.0), (0.1, 90.0)],
)
def test_the_axis_of_ratios_has_some_numbers_1_among_them_however_near_they_are(
    low: float, high: float
) -> None:
    ratio = {"estimate": (low + high) / 2, "low": low, "high": high}
    row = {"contestant": 1, "ratio": ratio, "jobs": 9, "runs": 1, "sooner": 0.5}
    long = "sia with parameters that have a long name, and a placer"
    comparison = {
        **compared(contestant(long, 0.0), contestant("fifo", 0.0)),
        "paired": [row],
        "baseline": 0,
    }

    axis = ratio_figure(comparison, scheme="light").layout.xaxis

    seen = [tick for tick in axis.tickvals if min(low, 1) <= tick <= max(high, 1)]
    assert 1 in axis.tickvals
    assert 2 <= len(seen) <= 12
    assert list(axis.ticktext) == [f"{tick:g}" for tick in axis.tickvals]
    lines = axis.title.text.split("<br>")
    assert len(lines) == 4
    assert all(len(line) <= 32 for line in lines)


def test_a_policy_under_which_jobs_cannot_run_is_not_praised_for_the_mean_of_the_others() -> None:
    stuck = contestant("fifo", 4.0)
    stuck["figures"]["cannot_run"] = {"mean": 4.0, "deviation": None, "runs": 1}
    better = {"estimate": -1.0, "low": -1.5, "high": -0.5}
    row = {"difference_hours": better, "jobs": 6, "left_out": 4, "basis": "jobs"}
    rows = [
        row | {"contestant": 1, "verdict": "not all jobs can run"},
        row
        | {"contestant": 2, "verdict": "faster", "left_out": 0}
        | {"difference_hours": {"estimate": -0.2, "low": -0.3, "high": -0.1}},
    ]
    whole = compared(contestant("sia", 0.0), stuck, contestant("srtf", 0.0))

    first, second, third = sentences(whole | {"paired": rows, "baseline": 0})

    assert first == "4 of 10 jobs cannot run under fifo."
    assert second == "srtf: mean JCT 10 % lower than sia, on one seed."
    assert third == (
        "fifo: of the 6 jobs that ended under both, mean JCT 50 % lower than sia, on one seed."
    )
    assert "Cannot run" in str(means(whole))
