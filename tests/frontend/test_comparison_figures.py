"""Figures that compare runs of a simulation: job by job, and by what the policies spend."""

from __future__ import annotations

from itertools import pairwise

import frontend_samples as samples
import pytest

from frontend.figures.side_by_side import allocations_figure, paired_figure
from frontend.figures.spending import decision_time_figure, model_hours_figure
from maat.colours import gpu_colour
from maat.figures.base import MAX_POINTS

RESULTS = {"sia": samples.result(0.0), "fifo": samples.result(5.0)}
DRAWN = samples.drawn(RESULTS)
HOSTILE = "<script>alert(1)</script>"


def test_allocations_are_step_lines_in_the_colour_of_their_gpu_type() -> None:
    figure = allocations_figure(RESULTS, ["job 0", "job 3"], scheme="light")

    held = [trace for trace in figure.data if trace.name != "active jobs"]
    assert {trace.name: trace.line.color for trace in held} == {
        "t4": gpu_colour("t4"),
        "a100": gpu_colour("a100"),
    }
    assert {trace.line.shape for trace in figure.data} == {"hv"}
    assert sum(trace.showlegend for trace in held) == 2
    a100 = next(trace for trace in held if trace.name == "a100")
    assert all(trace.line.color == gpu_colour(trace.name) for trace in held)
    assert list(a100.y) == [4, 4, None, 8, 8, None]
    assert list(a100.x) == pytest.approx(
        [600 / 3600, 1200 / 3600, None, 1800 / 3600, 2400 / 3600, None]
    )


def test_allocations_have_a_row_for_every_job_a_column_for_every_run_and_the_active_jobs_below() -> (  # noqa: E501
    None
):
    figure = allocations_figure(RESULTS, ["job 0", "job 3"], scheme="light")

    assert [note.text for note in figure.layout.annotations] == [
        "sia: job 0 · JCT 1 h",
        "fifo: job 0 · JCT 6 h",
        "sia: job 3 · JCT 4 h",
        "fifo: job 3 · JCT 9 h",
        "sia: the whole cluster",
        "fifo: the whole cluster",
    ]
    assert [figure.layout[axis].title.text for axis in ("yaxis", "yaxis3", "yaxis5")] == [
        "GPUs held",
        "GPUs held",
        "Active jobs",
    ]
    assert figure.layout.xaxis5.title.text == figure.layout.xaxis6.title.text == "Time (hours)"


def test_the_area_under_an_allocation_falls_to_zero_where_the_job_holds_no_such_gpu() -> None:
    figure = allocations_figure({"sia": RESULTS["sia"]}, ["job 0"], scheme="light")

    area = next(trace for trace in figure.data if trace.name == "a100" and trace.fill == "tozeroy")
    assert list(area.y) == [4, 4, 0, 8, 8, 0]
    assert list(area.x) == pytest.approx(
        [600 / 3600, 1200 / 3600, 1200 / 3600, 1800 / 3600, 2400 / 3600, 2400 / 3600]
    )


def test_the_axis_of_active_jobs_reaches_the_highest_of_all_runs() -> None:
    figure = allocations_figure(RESULTS, ["job 0"], scheme="light")

    assert figure.layout.yaxis3.range[1] > 10


def test_allocations_of_a_restless_job_stay_within_the_point_limit() -> None:
    restless = {
        **samples.result(0.0),
        "allocations": {"job 0": [samples.stretch(600 * i, "t4", 1 + i % 4) for i in range(3000)]},
    }

    figure = allocations_figure({"sia": restless}, ["job 0"], scheme="light")

    assert max(len(trace.x) for trace in figure.data) <= MAX_POINTS


def test_pairs_stand_at_their_two_jcts_beside_the_line_of_equal_ones() -> None:
    figure = paired_figure(RESULTS, scheme="light")

    equal, jobs = figure.data
    assert list(equal.x) == list(equal.y)
    assert jobs.name == "cifar10"
    assert (jobs.x[0], jobs.y[0]) == pytest.approx((1.0, 6.0))
    assert figure.layout.xaxis.type == figure.layout.yaxis.type == "log"
    assert dict(figure.layout.meta) == {"sooner": 40, "later": 0, "jobs": 40}


def test_a_job_that_finished_in_one_run_only_is_no_pair() -> None:
    unfinished = samples.result(5.0)
    unfinished["jobs"][0]["finish"] = None

    figure = paired_figure({"sia": samples.result(0.0), "fifo": unfinished}, scheme="light")

    assert len(figure.data[1].x) == 39


def test_gpu_hours_of_a_model_are_means_over_its_jobs_stacked_by_type() -> None:
    figure = model_hours_figure(DRAWN, scheme="light")

    assert {trace.name: list(trace.x) for trace in figure.data} == {
        "t4": [1.0, 1.0],
        "a100": [2.0, 7.0],
    }
    assert {tuple(trace.y) for trace in figure.data} == {("sia", "fifo")}
    assert {trace.name: trace.marker.color for trace in figure.data} == {
        "t4": gpu_colour("t4"),
        "a100": gpu_colour("a100"),
    }
    assert figure.layout.barmode == "stack"
    assert [note.text for note in figure.layout.annotations] == ["cifar10 (40 jobs)"]


def test_models_that_one_policy_kept_off_a_type_still_stack_in_its_order() -> None:
    other = {
        **samples.result(0.0),
        "gpu_hours_by_model_type": {"cifar10": {"t4": 8.0}, "bert": {"a100": 3.0}},
    }

    figure = model_hours_figure(
        samples.drawn({"sia": samples.result(0.0), "fifo": other}), scheme="light"
    )

    cifar = [trace for trace in figure.data if trace.xaxis == "x2"]
    assert {trace.name: list(trace.x) for trace in cifar} == {"t4": [1.0, 0.2], "a100": [2.0, 0.0]}


@pytest.mark.parametrize("models", [1, 3, 4, 6, 8])
def test_however_many_models_the_runs_are_named_once_a_row_and_each_has_room_for_its_name(
    models: int,
) -> None:
    hours = {f"model {index}": {"t4": 1.0 + index} for index in range(models)}
    runs = {
        f"policy {index} + placer": {**samples.result(0.0), "gpu_hours_by_model_type": hours}
        for index in range(6)
    }

    layout = model_hours_figure(samples.drawn(runs), scheme="light").layout

    panels = [axis for axis in layout if axis.startswith("yaxis")]
    rows = {layout[axis].domain for axis in panels}
    assert len(panels) >= models
    assert sum(layout[axis].showticklabels is not False for axis in panels) == len(rows)
    height = layout.height - layout.margin.t - layout.margin.b
    assert all((top - bottom) * height / len(runs) >= 20 for bottom, top in rows)
    ends = sorted(rows)
    assert all(
        (above[0] - below[1]) * height >= 48 for below, above in pairwise(ends)
    )  # scale and title between them


def test_decision_times_are_medians_with_quartiles_on_a_logarithmic_axis() -> None:
    figure = decision_time_figure(DRAWN, scheme="light")

    sia = figure.data[0]
    assert (sia.x[0], sia.error_x.array[0], sia.error_x.arrayminus[0]) == pytest.approx(
        (4.0, 4.0, 2.0)
    )
    assert figure.layout.xaxis.type == "log"


def test_a_result_from_before_decision_times_were_kept_is_left_out() -> None:
    old = {name: value for name, value in samples.result(0.0).items() if name != "policy_seconds"}

    figure = decision_time_figure(
        samples.drawn({"sia": old, "fifo": samples.result(5.0)}), scheme="light"
    )

    assert {name for trace in figure.data for name in trace.y} == {"fifo"}


def test_names_of_users_are_escaped() -> None:
    hostile = samples.result(0.0)
    hostile["jobs"][0] |= {"name": HOSTILE, "model": HOSTILE}
    hostile["allocations"] = {HOSTILE: [samples.stretch(0, "t4", 1)]}
    hostile["gpu_hours_by_model_type"] = {HOSTILE: {HOSTILE: 1.0}}
    runs = {HOSTILE: hostile, "fifo": hostile}

    drawn = (
        allocations_figure(runs, [HOSTILE], scheme="light"),
        paired_figure(runs, scheme="light"),
        model_hours_figure(samples.drawn(runs), scheme="light"),
        decision_time_figure(samples.drawn(runs), scheme="light"),
    )

    assert not any(
        "<script>" in figure.to_json().encode().decode("unicode_escape") for figure in drawn
    )
