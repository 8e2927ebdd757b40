"""Figures of runs over time: GPUs in use, efficiency, nodes, waits, and single jobs."""

from __future__ import annotations

from typing import Any

import frontend_samples as samples
import pytest

from frontend.figures.over_time import (
    efficiency_figure,
    gpus_figure,
    job_series_figure,
    nodes_figure,
    slowdowns_figure,
    waits_figure,
)

DRAWN = samples.drawn({"sia": samples.result(0.0), "<b>": samples.result(5.0)})
ONE = {"sia": DRAWN["sia"]}
OLD = {
    "sia": {
        **DRAWN["sia"],
        "gpus_by_type": {},
        "efficiency": [],
        "nodes": [],
        "waited_hours": {"points": [], "known": 0, "jobs": 40},
        "placement_slowdown": {"points": [], "known": 0, "jobs": 0},
    }
}
FIGURES = (gpus_figure, efficiency_figure, nodes_figure, slowdowns_figure, waits_figure)


def test_gpus_of_one_run_are_areas_by_type_and_of_several_a_line_each() -> None:
    one = gpus_figure(ONE, scheme="light")
    assert [(area.name, list(area.y)) for area in one.data] == [
        ("t4", [2.0, 2.0, 4.0, 0.0]),
        ("a100", [0.0, 8.0, 8.0, 0.0]),
    ]
    several = gpus_figure(DRAWN, scheme="light")
    assert [line.name for line in several.data] == ["sia", "&lt;b&gt;"]
    assert list(several.data[0].x) == [0.0, 0.5, 1.0, 2.0]
    assert list(several.data[0].y) == [2.0, 10.0, 12.0, 0.0]
    assert several.layout.yaxis.title.text == "GPUs in use"


def test_efficiency_has_a_gap_where_no_job_trains() -> None:
    (line,) = efficiency_figure(ONE, scheme="light").data
    assert list(line.y) == [1.0, None, 0.5]
    assert (line.line.shape, line.connectgaps) == ("hv", False)


def test_nodes_that_never_change_are_words() -> None:
    assert len(nodes_figure(DRAWN, scheme="light").data) == 2
    same = {"sia": {**DRAWN["sia"], "nodes": [[0.0, 6.0], [60.0, 6.0]]}}
    words = nodes_figure(same, scheme="light").layout.annotations[0].text
    assert "All 6 nodes were in service throughout." in words


def test_waits_are_shares_of_all_jobs() -> None:
    (line, _) = waits_figure(DRAWN, scheme="light").data
    assert (line.x[-1], line.y[-1]) == (pytest.approx(3.9), 1.0)


@pytest.mark.parametrize("draw", FIGURES)
def test_a_run_of_an_earlier_version_says_what_to_do(draw: Any) -> None:
    figure = draw(OLD, scheme="dark")
    assert not figure.data
    assert figure.layout.meta["state"] == "empty"
    assert "Simulate again" in figure.layout.annotations[0].text.replace("<br>", " ")
    assert draw({}, scheme="dark").layout.meta["state"] == "empty"


def test_a_job_has_rows_of_gpus_batch_size_and_efficiency_with_a_line_for_each_run() -> None:
    life = {
        "time": [0.0, 3600.0, 3690.0],
        "end": 7200.0,
        "gpu_type": [None, "t4", "t4"],
        "gpu_count": [0, 4, 4],
        "total_batch_size": [None, None, 512],
        "efficiency": [None, None, 0.8],
        "locality": [None, 1.0, 1.0],
        "variability": [None, 1.0, 1.0],
    }
    results = {name: {"series": {"<job>": life}} for name in ("sia", "fifo")}
    figure = job_series_figure(results, ["<job>", "unknown"], scheme="light")
    assert len(figure.data) == 6
    assert [figure.layout[axis].title.text for axis in ("yaxis", "yaxis2", "yaxis3")] == [
        "GPUs held",
        "Batch size",
        "Efficiency",
    ]
    assert figure.layout.annotations[0].text == "&lt;job&gt;"
    batch = figure.data[1]
    assert list(batch.y) == [None, None, 512, 512]
    assert list(batch.x) == pytest.approx([0.0, 1.0, 1.025, 2.0])
    nothing = job_series_figure({"sia": {}}, ["<job>"], scheme="light")
    assert nothing.layout.meta["state"] == "empty"


def test_a_job_that_its_place_slowed_has_a_row_of_that() -> None:
    life = {
        "time": [0.0, 3600.0],
        "end": 7200.0,
        "gpu_type": [None, "t4"],
        "gpu_count": [0, 8],
        "total_batch_size": [None, 512],
        "efficiency": [None, 0.8],
        "locality": [None, 1.5],
        "variability": [None, 1.2],
    }
    plain = {**life, "locality": [None, 1.0], "variability": [None, 1.0]}
    results = {"sia": {"series": {"a": life, "b": plain}}, "fifo": {"series": {"a": plain}}}
    figure = job_series_figure(results, ["a", "b"], scheme="light")
    assert [figure.layout[f"yaxis{n}"].title.text for n in (4, 8)] == ["Slowdown", "Slowdown"]
    assert [figure.layout[f"yaxis{n}"].tickformat for n in (3, 7)] == [".0%", ".0%"]
    of_a = [line for line in figure.data if line.yaxis == "y4"]
    assert [(line.name, line.y[1]) for line in of_a] == [("sia", pytest.approx(1.8)), ("fifo", 1)]
    assert sum(line.showlegend for line in figure.data) == 2


def test_slowdowns_are_shares_of_the_jobs_that_trained_and_lead_to_their_run() -> None:
    known = samples.result(0.0)
    jobs = [{**job, "placement_slowdown": 1 + i / 40} for i, job in enumerate(known["jobs"])]
    jobs[0]["placement_slowdown"] = None
    drawn = samples.drawn({"<b>": {**known, "jobs": jobs}})
    (line,) = slowdowns_figure(drawn, scheme="light").data
    assert (line.x[0], line.x[-1], line.y[-1]) == (1.025, 1.975, 1.0)
    assert (line.name, line.customdata[0]) == ("&lt;b&gt;", "?first=%3Cb%3E#compare-pairs")
    assert drawn["<b>"]["placement_slowdown"]["jobs"] == 39
