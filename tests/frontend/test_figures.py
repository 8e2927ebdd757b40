"""Figures: what they must show, whatever they look like."""

from __future__ import annotations

from collections.abc import Callable

import frontend_samples as samples
import plotly.graph_objects as go
import pytest

from frontend.figures.goodput import goodput_figure
from frontend.figures.job_timeline import job_timeline_figure
from frontend.figures.matrix import matrix_figure
from frontend.figures.rounds import prices_figure
from frontend.figures.side_by_side import allocations_figure, paired_figure
from frontend.figures.simulation import (
    contention_figure,
    fairness_figure,
    gpu_hours_figure,
    jct_figure,
)
from frontend.figures.spending import decision_time_figure, model_hours_figure
from frontend.figures.step_times import step_times_figure
from frontend.figures.usage import pending_figure, usage_figure
from maat.colours import KNOWN_GPU_TYPES, OKABE_ITO, gpu_colour
from maat.figures.base import MAX_POINTS, error_figure, name_runs, thinned
from maat.figures.theme import DARK, LIGHT

NOTHING: dict[str, list[object]] = {"at": [], "value": []}
RESULTS = {"sia": samples.result(0.0), "fifo": samples.result(5.0)}
DRAWN = samples.drawn(RESULTS)

FULL: dict[str, Callable[[str], go.Figure]] = {
    "usage": lambda scheme: usage_figure(
        {"t4": samples.steps(0, 2, 4), "a100": samples.steps(1, 1, 2)},
        {"t4": samples.steps(4), "a100": samples.steps(2)},
        scheme=scheme,
    ),
    "pending": lambda scheme: pending_figure(
        samples.steps(0, 1, 2), samples.steps(1, 2, 1), scheme=scheme
    ),
    "timeline": lambda scheme: job_timeline_figure(
        samples.spans(),
        now="2026-11-20T11:00:00Z",
        submitted_at="2026-11-20T09:59:00Z",
        scheme=scheme,
    ),
    "step_times": lambda scheme: step_times_figure(
        samples.step_samples(), samples.belief()["types"], scheme=scheme
    ),
    "goodput": lambda scheme: goodput_figure(samples.goodput_series(), scheme=scheme),
    "matrix": lambda scheme: matrix_figure(samples.record(), scheme=scheme),
    "prices": lambda scheme: prices_figure(samples.rounds(), scheme=scheme),
    "jct": lambda scheme: jct_figure(DRAWN, scheme=scheme),
    "fairness": lambda scheme: fairness_figure(DRAWN, scheme=scheme),
    "gpu_hours": lambda scheme: gpu_hours_figure(DRAWN, scheme=scheme),
    "contention": lambda scheme: contention_figure(DRAWN, scheme=scheme),
    "model_hours": lambda scheme: model_hours_figure(DRAWN, scheme=scheme),
    "decision_time": lambda scheme: decision_time_figure(DRAWN, scheme=scheme),
    "paired": lambda scheme: paired_figure(RESULTS, scheme=scheme),
    "allocations": lambda scheme: allocations_figure(RESULTS, ["job 0", "job 3"], scheme=scheme),
}
EMPTY: dict[str, Callable[[str], go.Figure]] = {
    "usage": lambda scheme: usage_figure({}, {}, scheme=scheme),
    "pending": lambda scheme: pending_figure(NOTHING, NOTHING, scheme=scheme),
    "timeline": lambda scheme: job_timeline_figure(
        [], now="2026-11-20T11:00:00Z", submitted_at="2026-11-20T11:00:00Z", scheme=scheme
    ),
    "step_times": lambda scheme: step_times_figure([], [], scheme=scheme),
    "goodput": lambda scheme: goodput_figure([], scheme=scheme),
    "matrix": lambda scheme: matrix_figure({**samples.record(), "job_names": []}, scheme=scheme),
    "prices": lambda scheme: prices_figure([], scheme=scheme),
    "jct": lambda scheme: jct_figure({}, scheme=scheme),
    "fairness": lambda scheme: fairness_figure({}, scheme=scheme),
    "gpu_hours": lambda scheme: gpu_hours_figure({}, scheme=scheme),
    "contention": lambda scheme: contention_figure({}, scheme=scheme),
    "model_hours": lambda scheme: model_hours_figure({}, scheme=scheme),
    "decision_time": lambda scheme: decision_time_figure({}, scheme=scheme),
    "paired": lambda scheme: paired_figure({"sia": samples.result(0.0)}, scheme=scheme),
    "allocations": lambda scheme: allocations_figure(RESULTS, ["job 9"], scheme=scheme),
}
UNITS = {
    "step_times": ("Batch size per GPU (samples)", "Step time without accumulation (s)"),
    "usage": ("Cluster time", "GPUs in use"),
    "pending": ("Cluster time", "Jobs of all teams"),
    "goodput": ("GPUs", "Goodput (effective samples/s)"),
    "matrix": ("Configuration: GPU type, GPUs · nodes", "Job"),
    "prices": ("Round", "Price (objective per GPU)"),
    "jct": ("JCT (hours)", "Share of jobs"),
    "fairness": ("Finish-time fairness rho (mean-of-ratios)", "Share of jobs"),
    "gpu_hours": ("GPU-hours", "Run"),
    "contention": ("Time (hours)", "Contention (jobs active)"),
    "model_hours": ("GPU-hours per job", "Run"),
    "decision_time": ("Decision time per round (ms)", "Run"),
    "paired": ("JCT under sia (hours)", "JCT under fifo (hours)"),
}


@pytest.mark.parametrize("name", sorted(UNITS))
def test_axes_are_titled_with_their_units(name: str) -> None:
    figure = FULL[name]("light")

    assert (figure.layout.xaxis.title.text, figure.layout.yaxis.title.text) == UNITS[name]


def test_the_charts_of_a_jobs_timeline_are_titled_on_one_time_axis() -> None:
    layout = FULL["timeline"]("light").layout

    axes = (layout.yaxis2, layout.yaxis3, layout.yaxis4)
    titles = ["GPUs held", "Batch size<br>(samples)", "Efficiency"]
    assert [axis.title.text for axis in axes] == titles
    assert layout.xaxis4.title.text == "Cluster time"
    assert layout.xaxis.matches == "x4"


def test_the_life_of_a_job_whose_batch_is_not_known_has_its_time_below_its_gpus() -> None:
    unknown = {"total_batch_size": None, "processed_samples": 0.0, "effective_samples": None}
    layout = job_timeline_figure(
        [span | unknown for span in samples.spans()],
        now="2026-11-20T11:00:00Z",
        submitted_at="2026-11-20T09:00:00Z",
        scheme="light",
    ).layout
    assert layout.xaxis2.title.text == "Cluster time"
    assert (layout.xaxis.matches, layout.yaxis2.domain[0]) == ("x2", 0)


@pytest.mark.parametrize("name", sorted(EMPTY))
def test_without_data_a_figure_says_so_and_what_to_do(name: str) -> None:
    figure = EMPTY[name]("light")

    assert figure.layout.meta["state"] == "empty"
    assert not figure.data
    title, _, remedy = figure.layout.annotations[0].text.partition("<br>")
    assert len(title) > 5
    assert len(remedy) > 20


def test_a_failed_figure_says_why_in_the_colour_of_errors_and_escapes_it() -> None:
    figure = error_figure("light", "<b>broken</b>", "Try again.")

    assert figure.layout.meta["state"] == "error"
    assert "&lt;b&gt;broken" in figure.layout.annotations[0].text
    assert figure.layout.annotations[0].font.color == LIGHT.danger


@pytest.mark.parametrize("name", sorted(FULL))
def test_light_and_dark_differ_in_their_template_only_by_its_greys(name: str) -> None:
    light, dark = FULL[name]("light"), FULL[name]("dark")

    assert light.layout.template.layout.font.color == LIGHT.text
    assert dark.layout.template.layout.font.color == DARK.text
    assert [trace.name for trace in light.data] == [trace.name for trace in dark.data]


def test_known_gpu_types_have_the_okabe_ito_colours_in_their_fixed_order() -> None:
    assert tuple(gpu_colour(name) for name in KNOWN_GPU_TYPES) == OKABE_ITO


def test_a_type_has_the_same_colour_in_every_chart() -> None:
    usage, goodput, prices = (
        FULL["usage"]("light"),
        FULL["goodput"]("light"),
        FULL["prices"]("light"),
    )

    for figure in (usage, goodput, prices):
        colours = {trace.name: trace.line.color for trace in figure.data}
        assert colours["t4"] == gpu_colour("t4")
        assert colours["a100"] == gpu_colour("a100")


def test_an_unknown_gpu_type_keeps_its_colour_from_one_call_to_the_next() -> None:
    assert gpu_colour("mi300") == gpu_colour("mi300")
    assert gpu_colour("mi300") in OKABE_ITO


@pytest.mark.parametrize("name", ["usage", "pending", "prices", "contention", "jct"])
def test_what_changes_at_rounds_is_a_step_line_never_a_slope(name: str) -> None:
    assert {trace.line.shape for trace in FULL[name]("light").data} == {"hv"}


def test_no_trace_has_more_points_than_the_limit_and_the_last_one_stays() -> None:
    many = {"at": list(range(9000)), "value": [float(i % 7) for i in range(9000)]}

    figure = usage_figure({"t4": many}, {}, scheme="light")

    assert len(figure.data[0].x) == MAX_POINTS
    assert figure.data[0].x[-1] == 8999


def test_thinning_leaves_a_short_series_as_it_is() -> None:
    assert thinned(["a", "b", "c"]) == [0, 1, 2]


def test_text_from_users_is_escaped_in_every_figure_that_shows_it() -> None:
    hostile = "<script>alert(1)</script>"
    drawn = [
        FULL["matrix"]("light"),
        jct_figure(samples.drawn({hostile: samples.result(0.0)}), scheme="light"),
    ]

    for figure in drawn:
        assert "<script" not in figure.to_json().replace("\\u003c", "<")


def test_a_job_holds_nothing_between_two_allocations() -> None:
    figure = FULL["timeline"]("light")

    t4 = next(trace for trace in figure.data if trace.name == "t4")
    assert list(t4.y) == [2, 2, 0]
    assert {
        trace.name: trace.line.color for trace in figure.data if trace.name in ("t4", "a100")
    } == {
        "t4": gpu_colour("t4"),
        "a100": gpu_colour("a100"),
    }


def test_the_fairness_chart_has_the_rule_at_one() -> None:
    figure = FULL["fairness"]("light")

    assert [(shape.x0, shape.x1) for shape in figure.layout.shapes] == [(1, 1)]
    assert figure.layout.annotations[0].text == "rho = 1"


def test_a_cdf_of_completion_times_reaches_only_the_share_of_the_jobs_that_finished() -> None:
    told = samples.result(0.0)
    jobs = [*told["jobs"], *({**job, "finish": None, "rho": None} for job in told["jobs"])]
    for draw in (jct_figure, fairness_figure):
        line = draw(samples.drawn({"sia": {**told, "jobs": jobs}}), scheme="light").data[0]
        assert max(line.y) == 0.5
        assert f"of {len(jobs)} jobs" in line.hovertemplate


def test_a_cdf_ends_at_the_whole_and_few_jobs_show_as_points() -> None:
    few = {**samples.result(0.0), "jobs": samples.result(0.0)["jobs"][:10]}

    many_line, few_line = (
        jct_figure(samples.drawn({"sia": samples.result(0.0)}), scheme="light").data[0],
        jct_figure(samples.drawn({"sia": few}), scheme="light").data[0],
    )

    assert many_line.y[-1] == 1.0
    assert list(many_line.x) == sorted(many_line.x)
    assert (many_line.mode, few_line.mode) == ("lines", "lines+markers")


def test_gpu_hours_add_up_per_run_and_type() -> None:
    bars = {trace.name: list(trace.x) for trace in FULL["gpu_hours"]("light").data}

    assert bars == {"t4": [40.0, 40.0], "a100": [80.0, 280.0]}


def test_few_lines_are_named_at_their_end_and_many_by_a_legend() -> None:
    few = FULL["goodput"]("light")
    many = goodput_figure(
        [{**samples.goodput_series()[1], "gpu_type": f"type{i}"} for i in range(6)], scheme="light"
    )

    assert {note.text for note in few.layout.annotations} == {"t4", "a100"}
    assert not few.layout.showlegend
    assert many.layout.showlegend


def test_prices_that_are_nothing_but_rounding_stand_at_the_bottom_of_an_ordinary_axis() -> None:
    layout = prices_figure(
        [{"number": 1, "prices": {"t4": 0.0, "a100": 2e-10}}], scheme="light"
    ).layout

    assert tuple(layout.yaxis.range) == (0, 1)
    assert max(note.y for note in layout.annotations) < 0.5


def test_names_at_the_ends_of_lines_that_end_alike_stand_apart() -> None:
    layout = pending_figure(samples.steps(20, 1, 0), samples.steps(1, 2, 0), scheme="light").layout

    low, high = sorted(note.y for note in layout.annotations)
    assert high - low >= 0.12 * 20


def test_a_span_without_length_is_an_empty_state_and_no_path() -> None:
    span = {
        "gpu_type": "t4",
        "gpu_count": 1,
        "node_count": 1,
        "round_number": 1,
        "from_at": "2026-11-20T11:00:00Z",
        "to_at": None,
        "total_batch_size": 32,
        "per_gpu_batch_size": 32,
        "accumulation_steps": 0,
        "processed_samples": None,
        "effective_samples": None,
    }
    at = {"submitted_at": "2026-11-20T10:59:00Z", "scheme": "light"}

    assert not job_timeline_figure([span], now="2026-11-20T11:00:00Z", **at).data
    assert job_timeline_figure([span], now="2026-11-20T11:01:00Z", **at).data


def test_a_job_whose_batch_size_nobody_knows_yet_has_both_charts_on_an_axis_of_times() -> None:
    spans = [{**span, "total_batch_size": None} for span in samples.spans()]

    layout = job_timeline_figure(
        spans, now="2026-11-20T11:00:00Z", submitted_at="2026-11-20T09:59:00Z", scheme="light"
    ).layout

    assert (layout.xaxis.type, layout.xaxis2.type) == ("date", "date")


def test_a_narrow_range_of_completion_times_has_several_ticks() -> None:
    told = samples.result(0.0)
    jobs = [{**told["jobs"][0], "submit": 0.0, "finish": 3600 * hours} for hours in (1.1, 1.2, 1.4)]

    axis = jct_figure(samples.drawn({"sia": {**told, "jobs": jobs}}), scheme="light").layout.xaxis

    assert (
        len([tick for tick in axis.tickvals if 10 ** axis.range[0] <= tick <= 10 ** axis.range[1]])
        >= 3
    )


def test_a_long_name_of_a_run_stands_on_two_lines_beside_its_row() -> None:
    drawn = go.Figure()
    name_runs(drawn, ["sia + whole-node", "sia (round_seconds=300) + whole-node"])

    assert drawn.layout.yaxis.ticktext == (
        "sia + whole-node",
        "sia (round_seconds=300)<br>+ whole-node",
    )
    assert drawn.layout.yaxis.tickvals[1] == "sia (round_seconds=300) + whole-node"


def test_measured_steps_stand_beside_the_fitted_curve_of_their_type() -> None:
    drawn = step_times_figure(samples.step_samples(), samples.belief()["types"], scheme="light")
    traces = {trace.name: trace for trace in drawn.data}
    assert list(traces) == ["t4, measured", "t4, fitted: 1 GPU", "a100, measured"]
    assert traces["t4, measured"].error_y.array == (0.01, 0.01)
    assert traces["t4, measured"].marker.color == traces["t4, fitted: 1 GPU"].line.color
    # Two passes of 0.1 s, the last of which also waits for the other replica.
    assert traces["a100, measured"].y == pytest.approx((0.11,))
