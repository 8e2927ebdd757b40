"""Figures of plain data: what they draw of it, how parts are told apart, what an axis must say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from typing import Any

import pytest

import maat.figures
from maat.colours import SERIES
from maat.figures.areas import stacked_areas
from maat.figures.axes import log_axis
from maat.figures.bars import grouped_bars, stacked_bars
from maat.figures.base import MAX_POINTS
from maat.figures.data import Distribution, Estimate, Point, Series
from maat.figures.distributions import cdf
from maat.figures.grids import heat_map, table
from maat.figures.lines import lines
from maat.figures.marks import mark
from maat.figures.scatter import scatter

HOSTILE = "<b>sia</b>"
ESCAPED = "&lt;b&gt;sia&lt;/b&gt;"
ONE_BAR = {"sia": [Estimate(1.0)]}
DRAWN = {
    "cdf": lambda y, name: cdf({name: Distribution.of([1.0])}, x=y),
    "grouped_bars": lambda y, name: grouped_bars(["a"], {name: [Estimate(1.0)]}, x="Trace", y=y),
    "stacked_bars": lambda y, name: stacked_bars(["a"], {name: [1.0]}, x="GPU-hours", y=y),
    "lines": lambda y, name: lines({name: [(1, Estimate(1.0))]}, x="GPUs", y=y),
    "areas": lambda y, name: stacked_areas({name: Series([0.0], [1])}, x="Time (hours)", y=y),
    "heat_map": lambda y, name: heat_map(["a"], ["b"], [[1.0]], x="GPUs", y=y, value=name),
    "scatter": lambda y, name: scatter({name: [Point(1.0, 2.0)]}, x="JCT (hours)", y=y),
}


@pytest.mark.parametrize(
    "module", [each.name for each in pkgutil.iter_modules(maat.figures.__path__)]
)
def test_the_examples_of_figures_of_data_are_true(module: str) -> None:
    assert doctest.testmod(importlib.import_module(f"maat.figures.{module}")).failed == 0


@pytest.mark.parametrize("draw", DRAWN.values(), ids=DRAWN.keys())
def test_an_axis_without_a_title_is_refused(draw: Any) -> None:
    with pytest.raises(ValueError, match="axis has no title"):
        draw(" ", "sia")


@pytest.mark.parametrize("draw", DRAWN.values(), ids=DRAWN.keys())
def test_a_name_is_shown_as_text_and_never_read_as_markup(draw: Any) -> None:
    shown = draw("Value (hours)", HOSTILE).to_json()

    assert "sia" in shown
    assert HOSTILE not in shown.replace("\\u003c", "<").replace("\\u003e", ">")


def test_a_table_shows_names_as_text() -> None:
    drawn = table([HOSTILE], [[HOSTILE]])

    assert (*drawn.data[0].header["values"], *drawn.data[0].cells["values"][0]) == (
        ESCAPED,
        ESCAPED,
    )


@pytest.mark.parametrize(
    "drawn",
    [
        cdf({"sia": Distribution.of([None])}, x="JCT", nothing="No job."),
        grouped_bars(["a"], {"sia": [Estimate(None)]}, x="Trace", y="JCT", nothing="No job."),
        stacked_bars([], {}, x="GPU-hours", y="Run", nothing="No job."),
        lines({"sia": [(1, Estimate(None))]}, x="GPUs", y="JCT", nothing="No job."),
        stacked_areas({"t4": Series([], [])}, x="Time", y="GPUs", nothing="No job."),
        heat_map(["a"], ["b"], [[None]], x="GPUs", y="Job", value="JCT", nothing="No job."),
        table(["a"], [], nothing="No job."),
        scatter({"bert": []}, x="JCT", y="JCT", nothing="No job."),
    ],
)
def test_a_figure_of_no_data_says_so(drawn: Any) -> None:
    assert ([note.text for note in drawn.layout.annotations], len(drawn.data)) == (["No job."], 0)


def test_a_series_differs_from_every_other_by_more_than_its_colour() -> None:
    marks = [mark(index) for index in range(36)]

    assert len({(each.colour, each.dash) for each in marks}) == 36
    assert len({(each.colour, each.symbol) for each in marks}) == 36
    assert len({(each.colour, each.pattern) for each in marks}) == 36
    assert [each.colour for each in marks[:6]] == list(SERIES)
    assert len({each.dash for each in marks[:6]}) == 6


def test_a_bar_has_a_whisker_from_its_lowest_to_its_highest_value_and_none_where_none_is_known() -> (  # noqa: E501
    None
):
    (sia, fifo) = grouped_bars(
        ["Philly", "Helios"],
        {"sia": [Estimate(2.0, 1.0, 5.0), Estimate(3.0)], "fifo": [Estimate(4.0), Estimate(None)]},
        x="Trace",
        y="Mean JCT (hours)",
    ).data

    assert (list(sia.error_y.array), list(sia.error_y.arrayminus)) == ([3.0, 0.0], [1.0, 0.0])
    assert (sia.error_y.visible, fifo.error_y.visible) == (True, False)
    assert (list(sia.y), list(fifo.y)) == ([2.0, 3.0], [4.0, None])
    assert sia.marker.pattern.shape != fifo.marker.pattern.shape


def test_a_band_covers_each_stretch_of_known_ranges_and_the_line_only_known_values() -> None:
    points = [
        (1.0, Estimate(2.0, 1.0, 3.0)),
        (2.0, Estimate(4.0, 3.0, 5.0)),
        (3.0, Estimate(None)),
        (4.0, Estimate(6.0, 5.0, 7.0)),
    ]
    first, alone, line = lines({"sia": points}, x="Time (hours)", y="Jobs").data

    assert list(zip(first.x, first.y, strict=True)) == [
        (1.0, 3.0),
        (2.0, 5.0),
        (2.0, 3.0),
        (1.0, 1.0),
    ]
    assert (list(alone.y), alone.line.width) == ([7.0, 5.0], 2)
    assert (list(line.x), list(line.y)) == ([1.0, 2.0, 4.0], [2.0, 4.0, 6.0])


def test_the_edges_of_a_band_of_steps_hold_until_the_next_place() -> None:
    points = [(1.0, Estimate(2.0, 1.0, 3.0)), (2.0, Estimate(4.0, 3.0, 5.0))]
    band, line = lines({"sia": points}, x="Time (hours)", y="Jobs", steps=True).data

    assert list(zip(band.x, band.y, strict=True)) == [
        (1.0, 3.0),
        (2.0, 3.0),
        (2.0, 5.0),
        (2.0, 3.0),
        (2.0, 1.0),
        (1.0, 1.0),
    ]
    assert line.line.shape == "hv"


def test_words_along_an_axis_keep_the_order_in_which_they_first_come() -> None:
    drawn = lines(
        {"jct": [("sia", Estimate(1.0)), ("fifo", Estimate(2.0))]}, x="Policy", y="JCT (hours)"
    )

    assert drawn.layout.xaxis.type == "category"
    assert list(drawn.layout.xaxis.categoryarray) == ["sia", "fifo"]


def test_a_logarithmic_axis_has_several_numbers_however_narrow_or_wide_it_is() -> None:
    assert len(log_axis([4.1, 4.4])["tickvals"]) == 5
    assert {1.0, 2.0, 5.0} <= set(log_axis([0.5, 20.0])["tickvals"])
    assert 2.0 not in log_axis([1e-4, 1e5])["tickvals"]


def test_a_logarithmic_axis_of_few_places_has_their_numbers() -> None:
    points = [(gpus, Estimate(1.0)) for gpus in (16, 48, 64)]
    axis = lines({"sia": points}, x="GPUs", y="JCT (hours)", log_x=True).layout.xaxis

    assert (list(axis.tickvals), list(axis.ticktext)) == ([16, 48, 64], ["16", "48", "64"])
    assert axis.range[0] < 1.2
    assert axis.range[1] > 1.81


def test_a_cell_without_a_value_is_no_zero() -> None:
    (cells,) = heat_map(
        ["sia"], ["1", "2"], [[0.0, None]], x="GPUs", y="Policy", value="JCT (hours)"
    ).data

    assert (list(cells.z[0]), list(cells.text[0])) == ([0.0, None], ["0", ""])


def test_a_ratio_parts_its_colours_at_one() -> None:
    (cells,) = heat_map(
        ["sia"], ["1"], [[0.5]], x="GPUs", y="Policy", value="JCT ratio", middle=1.0
    ).data

    assert cells.zmid == 1.0


def test_points_are_thinned_to_what_a_browser_draws_well() -> None:
    many = [Point(float(i), float(i)) for i in range(3 * MAX_POINTS)]
    drawn = scatter({"bert": many}, x="JCT (hours)", y="JCT (hours)")
    area = stacked_areas({"t4": Series(range(3 * MAX_POINTS), range(3 * MAX_POINTS))}, x="x", y="y")

    assert (len(drawn.data[0].x), len(area.data[0].x)) == (MAX_POINTS, MAX_POINTS)
    assert drawn.data[0].x[-1] == 3 * MAX_POINTS - 1
