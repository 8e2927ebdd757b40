"""Figures of runs and comparisons: what they draw, from what the tables hold."""

from __future__ import annotations

import doctest
import sys
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

import maat
from frontend.figures.contest import ratio_figure
from maat.colours import gpu_colour
from maat.library import plots
from maat.library.plots import RunPlots
from maat.library.tables import Table
from maat.scheduling.errors import MaatError

JOBS = {"jct_seconds": float, "waited_seconds": float}
USED = {"time_seconds": float, "a100_gpus": int, "t4_gpus": int}
EFFICIENCY = {"time_seconds": float, "efficiency": float}
NODES = {"time_seconds": float, "nodes": int}


def drawn(
    jobs: Sequence[Any] = (),
    gpus: Sequence[Any] = (),
    efficiency: Sequence[Any] = (),
    nodes: Sequence[Any] = (),
) -> RunPlots:
    tables = SimpleNamespace(
        jobs=Table(JOBS, jobs),
        gpus=Table(USED, gpus),
        efficiency=Table(EFFICIENCY, efficiency),
        nodes=Table(NODES, nodes),
    )
    return RunPlots("<i>", tables)


def test_the_examples_of_figures_are_true() -> None:
    assert doctest.testmod(plots).failed == 0


def test_a_share_of_jobs_is_of_all_and_ends_below_one_if_some_have_not_finished() -> None:
    figure = drawn([(7200.0, 0.0), (None, None), (3600.0, 0.0), (3600.0, 0.0)]).jct_cdf()
    (line,) = figure.data
    assert list(line.x) == [1.0, 1.0, 1.0, 2.0]
    assert list(line.y) == [0.0, 0.25, 0.5, 0.75]
    assert line.name == "&lt;i&gt;"


def test_gpus_are_stacked_by_type_in_the_order_and_colours_of_the_pages() -> None:
    figure = drawn([], [(0.0, 0, 4), (3600.0, 8, 2)]).gpus_over_time()
    assert [area.name for area in figure.data] == ["t4", "a100"]
    assert [list(area.y) for area in figure.data] == [[4, 2], [0, 8]]
    assert list(figure.data[0].x) == [0.0, 1.0]
    assert len({area.stackgroup for area in figure.data}) == 1
    assert figure.data[0].line.color == gpu_colour("t4")


def test_a_figure_of_nothing_says_so() -> None:
    plotted = drawn([(None, None)])
    assert plotted.jct_cdf().layout.annotations[0].text == "No job has finished."
    assert plotted.waits_cdf().layout.annotations[0].text == "No job has finished."
    assert plotted.gpus_over_time().layout.annotations[0].text == "No job held a GPU."
    assert plotted.efficiency_over_time().layout.annotations[0].text == "No job trained."


def test_waits_count_every_job_at_all_its_waiting() -> None:
    (line,) = drawn([(None, 1800.0), (None, None), (None, 0.0)]).waits_cdf().data
    assert list(line.x) == [0.0, 0.0, 0.5]
    assert list(line.y) == pytest.approx([0.0, 1 / 3, 2 / 3])


def test_efficiency_and_nodes_hold_until_they_change() -> None:
    plotted = drawn(efficiency=[(0.0, 1.0), (3600.0, 0.5)], nodes=[(0.0, 4), (1800.0, 3)])
    (efficiency,) = plotted.efficiency_over_time().data
    assert (list(efficiency.x), list(efficiency.y)) == ([0.0, 1.0], [1.0, 0.5])
    assert efficiency.line.shape == "hv"
    (nodes,) = plotted.nodes_over_time().data
    assert (list(nodes.x), list(nodes.y)) == ([0.0, 0.5], [4, 3])


def test_lines_of_a_comparison_differ_by_dash_too() -> None:
    found = maat.compare(["fifo", "las"], maat.generate(jobs=5, hours=1), seeds=[0, 1], workers=1)
    lines = found.plot.jct_cdf().data
    assert len({line.line.dash for line in lines}) == 2
    assert [max(line.y) for line in lines] == [1.0, 1.0]
    assert [len(line.x) for line in lines] == [11, 11]


def test_without_plotly_a_figure_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    monkeypatch.setitem(sys.modules, "plotly", None)
    for name in [name for name in sys.modules if name.startswith("maat.figures")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(MaatError, match=r"pip install 'maat\[plot\]'"):
        drawn([(1.0, 0.0)]).jct_cdf()


def test_ratios_of_a_comparison_are_those_of_its_table_and_of_the_pages() -> None:
    found = maat.compare(["fifo", "las"], maat.generate(jobs=5, hours=1), seeds=[0, 1], workers=1)
    (row,) = found.plot.ratios().data
    (page,) = ratio_figure(found.to_dict(), scheme="light").data

    assert list(row.x) == found.differences["ratio"] == list(page.x)
    assert (row.marker.symbol, row.error_x.array) == (page.marker.symbol, page.error_x.array)
    assert "10 jobs in 2 runs" in page.hovertemplate
