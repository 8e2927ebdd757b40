"""`maat.autoscale` and `maat.tune`: their tables agree with the runs, their figures with both."""

from __future__ import annotations

import doctest
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import maat
from maat.cli.app import app
from maat.figures.experiments import Cost, cost_against_time
from maat.laboratory.experiments import usual_sizes
from maat.laboratory.rented import Training, train
from maat.library import experiment_plots
from maat.scheduling.autoscaling import FixedNodes, GoodputAutoscaler
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import InputError
from maat.simulation.fidelity import fidelity
from maat.simulation.world_models import named_model

NODES = "t4=4x4"


@pytest.fixture(scope="module")
def scaled() -> maat.Autoscaled:
    return maat.autoscale("cifar10", cluster=NODES, fixed_nodes=[1, 4])


def test_the_examples_of_the_figures_are_true() -> None:
    assert doctest.testmod(experiment_plots).failed == 0


def test_a_run_is_what_the_laboratory_plays(scaled: maat.Autoscaled) -> None:
    training = Training(named_model("cifar10"), Cluster.parse(NODES), fidelity("paper"))
    alone = train(training, GoodputAutoscaler())
    first = next(iter(scaled.runs))
    assert first["node_hours"] == alone.node_seconds / 3600
    assert first["restarts"] == alone.restarts
    assert [(row["time_seconds"], row["nodes"]) for row in scaled.nodes][: len(alone.rented)] == [
        *alone.rented
    ]


def test_fixed_nodes_are_paid_from_beginning_to_end(scaled: maat.Autoscaled) -> None:
    fixed = [run for run in scaled.runs if run["nodes"] is not None]
    assert [run["run"] for run in fixed] == ["1 node", "4 nodes"]
    for run in fixed:
        assert run["node_hours"] == pytest.approx(run["nodes"] * run["hours"])
        assert run["restarts"] == 0


def test_the_difference_is_of_goodput_over_throughput(scaled: maat.Autoscaled) -> None:
    cost, hours = scaled.runs["node_hours"], scaled.runs["hours"]
    assert scaled.differences == {
        "cost": pytest.approx(cost[0] / cost[1] - 1),
        "completion_time": pytest.approx(hours[0] / hours[1] - 1),
    }


def test_lines_over_time_end_with_their_runs_and_hold_what_was_rented(
    scaled: maat.Autoscaled,
) -> None:
    lines = scaled.plot.nodes_over_time().data
    assert [line.name for line in lines] == ["by goodput", "by throughput"]
    for line, name, hours in zip(
        lines, ("goodput", "throughput"), scaled.runs["hours"], strict=False
    ):
        rented = [nodes for _, nodes in scaled.rented[name].rented]
        assert list(line.y) == [*rented, rented[-1]]
        assert line.x[-1] == hours


def test_the_line_of_cost_goes_through_the_fixed_sizes_by_their_time() -> None:
    drawn = cost_against_time(
        {"1 node": Cost(8.0, 8.0, 1), "4 nodes": Cost(3.0, 12.0, 4), "by goodput": Cost(3.5, 9.0)}
    )
    chosen, fixed = drawn.data
    assert (list(chosen.x), list(chosen.y)) == ([3.5], [9.0])
    assert (list(fixed.x), list(fixed.y), list(fixed.text)) == ([3.0, 8.0], [12.0, 8.0], ["4", "1"])
    assert drawn.layout.xaxis.title.text == "Completion time (hours)"


def test_all_jobs_of_a_trace_are_rented_for() -> None:
    trace = maat.generate("philly", jobs=3, hours=1, seed=1)
    found = maat.autoscale(trace=trace, cluster="t4=8x4", fixed_nodes=[8], policy="pollux")
    assert found.runs["unfinished"] == [0, 0, 0]
    assert all(jct > 0 for jct in found.runs["avg_jct_hours"])
    assert "philly-1 on t4=8x4" in repr(found)


@pytest.mark.parametrize(("most", "sizes"), [(1, (1,)), (8, (1, 2, 4, 8)), (10, (1, 2, 4, 8, 10))])
def test_usual_sizes_double_up_to_all_nodes(most: int, sizes: tuple[int, ...]) -> None:
    assert usual_sizes(most) == sizes


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("model", {}),
        ("model", {"model": "lenet"}),
        ("model", {"model": "cifar10", "trace": maat.generate(jobs=1)}),
        ("cluster", {"model": "cifar10", "cluster": "t4=2x4,a100=1x8"}),
        ("fixed_nodes", {"model": "cifar10", "fixed_nodes": [17]}),
        ("fixed_nodes", {"model": "cifar10", "fixed_nodes": [*range(1, 15)]}),
        ("upper", {"model": "cifar10", "upper": 0.2}),
        ("window", {"model": "cifar10", "window": 0}),
        ("policy", {"model": "cifar10", "policy": "fifo"}),
        ("fidelity", {"model": "cifar10", "fidelity": "none"}),
    ],
)
def test_bad_auto_scaling_names_the_argument(field: str, given: dict[str, Any]) -> None:
    with pytest.raises(InputError) as refused:
        maat.autoscale(**given)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("model", {"model": "lenet"}),
        ("policy", {"policy": "none"}),
        ("trials", {"trials": 0}),
        ("static_gpus", {"static_gpus": 17}),
        ("static_batch_per_gpu", {"static_batch_per_gpu": 5_000}),
        ("work_scale", {"work_scale": 0.0}),
        ("seed", {"seed": -1}),
    ],
)
def test_a_bad_search_names_the_argument(field: str, given: dict[str, Any]) -> None:
    pytest.importorskip("optuna", reason="Optuna is not installed (extra `hpo`)")
    with pytest.raises(InputError) as refused:
        maat.tune(**given)
    assert refused.value.field == field


def test_trials_stand_in_the_table_with_what_they_chose_and_when_they_ended() -> None:
    pytest.importorskip("optuna", reason="Optuna is not installed (extra `hpo`)")
    found = maat.tune(trials=4, at_a_time=2, seed=3)
    elastic = [row for row in found.trials if row["search"] == "elastic"]
    assert len(found.trials) == 8
    ends = [row["end_seconds"] for row in elastic]
    assert max(ends) / 3600 == found.searches["makespan_hours"][0]
    line = found.plot.trials_over_time().data[0]
    assert list(line.x)[1:] == sorted(end / 3600 for end in ends)
    best = found.plot.best_score_over_time().data[0].y
    assert list(best) == sorted(best)
    assert best[-1] == max(row["score"] for row in elastic)


def test_fixed_nodes_have_a_name_of_their_size() -> None:
    assert FixedNodes(4).name == "fixed-4"


def test_the_command_prints_what_the_library_finds(scaled: maat.Autoscaled) -> None:
    command = ["autoscale", "--model", "cifar10", "--cluster", NODES, "--fixed-nodes", "1,4"]
    printed = CliRunner().invoke(app, [*command, "--json"])
    assert json.loads(printed.output) == json.loads(json.dumps(scaled.to_dict()))
    table = CliRunner().invoke(app, command).output
    assert "by goodput" in table
    assert "4 nodes" in table


def test_the_command_draws_and_writes_what_the_library_has(
    scaled: maat.Autoscaled, tmp_path: Path
) -> None:
    command = ["autoscale", "--model", "cifar10", "--cluster", NODES, "--fixed-nodes", "1,4"]
    drawn, table = tmp_path / "cost.html", tmp_path / "runs.csv"
    written = ["--plot", str(drawn), "--figure", "cost_against_time", "--csv", str(table)]
    assert CliRunner().invoke(app, [*command, *written]).exit_code == 0
    assert "Completion time (hours)" in drawn.read_text(encoding="utf-8")
    assert len(table.read_text(encoding="utf-8").splitlines()) == 1 + len(scaled.runs)
    refused = CliRunner().invoke(app, [*command, "--plot", str(drawn), "--figure", "jct_cdf"])
    assert isinstance(refused.exception, InputError)
    assert refused.exception.field == "figure"


def test_the_command_refuses_sizes_that_are_no_numbers() -> None:
    refused = CliRunner().invoke(app, ["autoscale", "--fixed-nodes", "1,two"])
    assert isinstance(refused.exception, InputError)
    assert refused.exception.field == "fixed_nodes"


@pytest.mark.parametrize(("trials", "words"), [(1, "Best score"), (2, "Score of the best 2")])
def test_a_search_says_of_how_many_trials_its_score_is(trials: int, words: str) -> None:
    asked = ["tune", "--model", "bert", "--trials", str(trials), "--work-scale", "0.1"]
    shown = CliRunner(env={"COLUMNS": "160"}).invoke(app, asked)
    assert shown.exit_code == 0, shown.output
    assert words in shown.output
