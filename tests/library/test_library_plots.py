"""Figures of runs and comparisons: what they draw, from what the tables hold."""

from __future__ import annotations

import doctest
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import stdev
from types import SimpleNamespace
from typing import Any

import pytest
from laboratory.untimed_results import columns_of

import maat
from frontend.figures.contest import ratio_figure
from maat.colours import gpu_colour
from maat.library import kept_runs, plots, study_plots
from maat.library.plots import RunPlots
from maat.library.tables import Table
from maat.scheduling.errors import InputError, MaatError

JOBS = {"jct_seconds": float, "waited_seconds": float, "placement_slowdown": float}
USED = {"time_seconds": float, "a100_gpus": int, "t4_gpus": int}
EFFICIENCY = {"time_seconds": float, "efficiency": float}
NODES = {"time_seconds": float, "nodes": int}


def drawn(
    jobs: Sequence[Any] = (),
    gpus: Sequence[Any] = (),
    efficiency: Sequence[Any] = (),
    nodes: Sequence[Any] = (),
) -> RunPlots:
    return RunPlots({"<i>": tables(jobs, gpus, efficiency, nodes)})


def tables(
    jobs: Sequence[Any] = (),
    gpus: Sequence[Any] = (),
    efficiency: Sequence[Any] = (),
    nodes: Sequence[Any] = (),
) -> Any:
    """Return tables of a run; of `jobs`: JCT, waits and slowdown, which may be left out."""
    return SimpleNamespace(
        jobs=Table(JOBS, [(*job, *[1.0] * (3 - len(job))) for job in jobs]),
        gpus=Table(USED, gpus),
        efficiency=Table(EFFICIENCY, efficiency),
        nodes=Table(NODES, nodes),
    )


@pytest.mark.parametrize("module", [plots, study_plots, kept_runs])
def test_the_examples_of_figures_are_true(module: Any) -> None:
    assert doctest.testmod(module).failed == 0


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


def test_several_runs_are_a_line_each_of_all_gpu_types() -> None:
    runs = {
        "sia": tables(gpus=[(0.0, 0, 4), (3600.0, 8, 2)]),
        "fifo": tables(gpus=[(0.0, 1, 1)]),
        "none": tables(),
    }
    figure = RunPlots(runs, about=" of philly").gpus_over_time()
    assert [(line.name, list(line.y)) for line in figure.data] == [
        ("sia", [4, 10]),
        ("fifo", [2]),
    ]
    assert figure.layout.xaxis.title.text == "Time (hours) of philly"


def test_slowdowns_are_of_jobs_that_trained_and_words_where_there_are_none() -> None:
    slowed = drawn([(1.0, 0.0, 1.5), (None, None, None), (2.0, 0.0, 1.0)])
    (line,) = slowed.placement_slowdown_cdf().data
    assert (list(line.x), list(line.y)) == ([1.0, 1.0, 1.5], [0.0, 0.5, 1.0])
    for jobs, words in (([(1.0, 0.0, 1.0)], "slowed by its place"), ([], "No job trained.")):
        nothing = drawn(jobs).placement_slowdown_cdf()
        assert not nothing.data
        assert words in nothing.layout.annotations[0].text


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


TRACE = maat.generate("philly", jobs=5, hours=1)
APART = {"cluster": "t4=4x4", "locality_penalty": 1.5, "workers": 1}


def test_a_comparison_keeps_the_series_of_each_run_where_asked(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"seeds": [0, 1], "cache": tmp_path, **APART}
    plain = maat.compare(["fifo", "las"], TRACE, **asked)
    with pytest.raises(InputError, match=r"series: were not kept .*series=True"):
        plain.plot.gpus_over_time()
    found = maat.compare(["fifo", "las"], TRACE, series=True, **asked)
    assert columns_of(found.runs) == columns_of(plain.runs)
    again = maat.compare(["fifo", "las"], TRACE, series=True, **asked)
    assert again.series("gpus").to_dict() == found.series("gpus").to_dict(), "from the cache"

    alone = maat.simulate(TRACE, cluster="t4=4x4", locality_penalty=1.5, policy="las", seed=1)
    kept = found.run("las", seed=1)
    for name in ("gpus", "efficiency", "nodes", "waits", "jobs"):
        assert getattr(kept, name).to_dict() == getattr(alone, name).to_dict(), name
    line = found.plot.gpus_over_time(seed=1).data[1]
    assert (line.name, list(line.y)) == ("las + packed-sticky", alone.gpus["gpus"])
    assert max(kept.jobs["placement_slowdown"]) > 1
    pooled = found.plot.placement_slowdown_cdf().data[1]
    assert max(pooled.x) >= max(kept.jobs["placement_slowdown"])
    with pytest.raises(InputError, match=r"seed: was not played .got '7'.*philly, seed 1"):
        found.plot.gpus_over_time(seed=7)
    with pytest.raises(InputError, match=r"contestant: is not among the compared ones"):
        found.run("sia")
    with pytest.raises(InputError, match=r"name: is not kept of runs .got 'spans'"):
        found.series("spans")


def test_means_of_a_comparison_are_bars_by_trace_with_the_deviation_over_seeds() -> None:
    traces = {"one": TRACE, "two": maat.generate("philly", jobs=3, hours=1)}
    found = maat.compare(["fifo", "las"], traces, seeds=[0, 1], **APART)
    bars = found.plot.means("makespan_hours")
    fifo = bars.data[0]
    assert list(fifo.x) == ["one", "two"]
    hours = [row["makespan_hours"] for row in found.runs if row["contestant"].startswith("fifo")]
    assert list(fifo.y) == pytest.approx([sum(hours[:2]) / 2, sum(hours[2:]) / 2])
    assert fifo.error_y.array[0] == pytest.approx(stdev(hours[:2]))
    assert bars.layout.yaxis.title.text == "Makespan (h), mean ± deviation over 2 seeds"
    assert found.plot.means("utilisation").layout.yaxis.tickformat == ".0%"
    for name in ("speed", "jct_cdf"):
        with pytest.raises(InputError, match=rf"figure: is no figure of the tables .got '{name}'"):
            found.plot.means(name)


def test_a_sweep_is_a_line_for_each_value_of_its_second_setting() -> None:
    vary = {"round_seconds": [60, 600], "policy": ["fifo", "las"]}
    swept = maat.sweep(TRACE, vary, seeds=[0, 1], series=True, **APART)
    drawn = swept.plot.means("p99_jct_hours")
    assert [line.name for line in drawn.data] == ["policy = fifo", "policy = las"]
    means = [row["p99_jct_hours"] for row in swept.means if row["policy"] == "las"]
    assert (list(drawn.data[1].x), list(drawn.data[1].y)) == ([60.0, 600.0], means)
    assert list(drawn.layout.xaxis.tickvals) == [60.0, 600.0]
    assert drawn.layout.xaxis.type == "log"
    run = swept.run({"round_seconds": 600, "policy": "las"}, seed=1)
    line = swept.plot.gpus_over_time(seed=1).data[3]
    assert (line.name, list(line.y)) == ("round_seconds = 600, policy = las", run.gpus["gpus"])
    assert swept.plot.waits_cdf().data[0].name == "round_seconds = 60, policy = fifo"
    with pytest.raises(InputError, match=r"run: is no run of this study .got 'round_seconds = 9'"):
        swept.run({"round_seconds": 9})
