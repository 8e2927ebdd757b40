"""Pollux's items: values that can be worked out by hand, and what the items share."""

from __future__ import annotations

from dataclasses import fields
from itertools import pairwise
from pathlib import Path

import pytest

from maat.models.truth import gain
from maat.papers.bench import Bench, Size
from maat.papers.data import Data
from maat.papers.items import WithRho, key_of
from maat.papers.observation import Observation, observe
from maat.papers.pollux import POLLUX, applications, models, readings, runs, schedulers, settings
from maat.papers.speeds import filled, progress, timed_plan
from maat.scheduling.autoscaling import FastBatch, Ideal, ScalingInput, ThroughputAutoscaler
from maat.scheduling.cluster import Cluster
from maat.simulation.iteration_models import shipped_models
from maat.vocabulary import ProfilingMode


def test_the_items_are_the_papers_fourteen() -> None:
    keys = [item.key for item in POLLUX.items]
    assert len(keys) == 14
    assert all(item.hardware is None and not item.needs for item in POLLUX.items)


def test_a_timed_plan_is_the_true_step_with_its_accumulation() -> None:
    truth = shipped_models()["cifar10"].truth
    shape = filled(6, 4)
    assert shape == (4, 2)
    timed = timed_plan(truth, "t4", shape, 1200)
    assert timed is not None
    plan, seconds = timed
    assert (plan.total_batch_size, plan.accumulation_steps) == (1200, 0)
    assert seconds == truth.step("t4", shape, 200).step_seconds
    most = truth.largest_per_gpu("t4", 1)
    timed = timed_plan(truth, "t4", (1,), 2 * most)
    assert timed is not None
    assert timed[0].accumulation_steps == 1
    assert timed[1] == truth.step("t4", (1,), most).with_accumulation(1)
    assert timed_plan(truth, "t4", (4,) * 16, truth.initial_batch_size) is None, "2 on each GPU"
    assert progress(truth, 3, 128) == pytest.approx(128)
    assert progress(truth, 3, 512) == pytest.approx(128 * gain(truth.gradient(3, 512), 4))


def test_efficiency_of_the_initial_batch_is_all_and_falls_with_the_batch() -> None:
    truth = shipped_models()["imagenet"].truth
    values = models._efficiencies(truth, 3)
    assert values[0] == 100
    assert values == sorted(values, reverse=True)
    assert values == models._efficiencies(truth, 3, measured_at=800), "fits have one phi"


def test_items_share_the_runs_of_table_2() -> None:
    bench = Bench(Data(), Size.QUICK)
    of = {item.key: {key_of(run) for run in item.runs(bench).values()} for item in POLLUX.items}
    shared = of["table-2"]
    assert len(shared) == len(runs.CONTENDERS)
    assert of["fig-6"] < of["fig-5"] < of["fig-7"] < shared
    assert len(of["fig-8a"] & shared) == 3
    for key in ("fig-8b", "fig-8c", "sec-5.3.2"):
        assert of["fig-6"] < of[key]


@pytest.mark.needs_data
def test_stored_values_are_of_the_workloads_at_hand(data_folder: Path) -> None:
    quick = Bench(Data(data_folder), Size.QUICK)
    assert settings._stored_hours(quick) == round(2088.8 / 3600, 4)
    assert settings._stored_hours(Bench(Data(), Size.QUICK)) == pytest.approx(0.7642, abs=1e-4)


@pytest.mark.parametrize(("workloads", "is_compared"), [(0, False), (1, False), (8, True)])
def test_a_stored_mean_of_eight_workloads_is_compared_with_no_fewer(
    workloads: int, *, is_compared: bool, tmp_path: Path
) -> None:
    (tmp_path / "pollux" / "workloads").mkdir(parents=True)
    for number in range(1, workloads + 1):
        (tmp_path / "pollux" / "workloads" / f"workload-{number}.csv").touch()
    bench = Bench(Data(tmp_path), Size.WHOLE)
    rows = settings._of_eight(bench, ("Sia", "0.5"), "average JCT, h", [0.3], 0.4)
    assert [(row.measure, row.mean, row.published, row.difference) for row in rows] == (
        [("average JCT, h", 0.3, 0.4, pytest.approx(-0.25))]
        if is_compared
        else [
            ("average JCT, h", 0.3, None, None),
            ("average JCT, h: mean of eight workloads", None, 0.4, None),
        ]
    )
    of_the_same = settings._of_the_same(bench, ("Sia", "1"), "average JCT, h", [0.3], 0.4)
    assert (of_the_same[0].published == 0.4) == bool(workloads)


@pytest.mark.needs_data
def test_tiresias_and_optimus_reach_the_stored_results(data_folder: Path) -> None:
    bench = Bench(Data(data_folder), Size.QUICK)
    published = settings._STORED
    for name in (runs.TIRESIAS, runs.OPTIMUS):
        (run,) = runs.compared(bench, (name,)).values()
        assert isinstance(run, WithRho)
        observed = observe(run.scenario)
        seconds = 3600 * observed["figures"]["avg_jct_hours"]
        assert seconds == pytest.approx(published[name][0], abs=0.06), "as stored, rounded"


def test_series_are_kept_for_the_runs_that_ask_and_agree_with_the_jobs() -> None:
    bench = Bench(Data(), Size.TINY)
    (run,) = runs.compared(bench, (runs.POLLUX,)).values()
    assert isinstance(run, WithRho)
    assert run.series
    kept = Observation.of(observe(run.scenario, rho=True, series=True))
    table = kept.series["gpus"]
    times, counts = table["time_seconds"], table["gpus"]
    held = sum(n * (b - a) for n, a, b in zip(counts, times, times[1:], strict=False))
    assert held == pytest.approx(sum(kept.jobs["gpu_seconds"]))
    job = str(kept.jobs["name"][0])
    life = schedulers._of_job(kept.series["job_series"], job, "gpu_count")
    assert life.at[-1] == pytest.approx(kept.jobs["finish_seconds"][0] / 3600)
    plain = Observation.of(observe(run.scenario))
    assert plain.series == {}
    assert plain.jobs == kept.jobs


def test_means_over_time_leave_out_what_is_not_known() -> None:
    table = {"time_seconds": [0.0, 3600.0, 7200.0], "value": [1.0, None, 4.0]}
    assert schedulers._step_mean(table, "value", until=5.0) == pytest.approx((1 + 4 * 3) / 4)
    assert schedulers._step_mean(table, "value", since=1.0, until=2.0) is None
    assert schedulers._step_mean(table, "value", since=0.5, until=2.5) == pytest.approx(2.5)


# ---- auto-scaling: what the paper leaves open


def test_the_first_reading_is_the_default_and_each_other_changes_something() -> None:
    first, *others = readings.SINGLE.values()
    assert first == readings.Reading()
    assert len({first, *others}) == len(readings.SINGLE)
    changed = {
        field.name
        for field in fields(readings.Reading)
        for other in others
        if getattr(other, field.name) != getattr(first, field.name)
    }
    assert changed == {field.name for field in fields(readings.Reading)} - {"fast_batch"}, (
        "at 16 nodes the GPUs hold the largest batch"
    )
    assert {reading.target for reading in readings.grid()} > {readings.LOWER}


def test_a_reading_comes_back_from_its_fields() -> None:
    odd = readings.Reading(
        8, 0.6, Ideal.ONE_NODE, FastBatch.MOST_THROUGHPUT, known=ProfilingMode.NO_PROFILE
    )
    assert readings._reading(readings.fields_of(odd)) == odd


def test_readings_that_differ_in_one_autoscaler_share_the_run_of_the_other() -> None:
    reading = readings.Reading(
        target=0.6, ideal=Ideal.ONE_NODE, fast_batch=FastBatch.MOST_THROUGHPUT, one_by_one=True
    )
    assert reading.by_goodput() == readings.Reading(target=0.6, ideal=Ideal.ONE_NODE)
    assert reading.by_throughput() == readings.Reading(
        fast_batch=FastBatch.MOST_THROUGHPUT, one_by_one=True
    )


def test_one_node_at_a_time_goes_where_the_other_would_have_gone() -> None:
    class Ten(ThroughputAutoscaler):
        def node_count(self, scaling: ScalingInput) -> int:
            return 10

    def wanted(now: int) -> int:
        scaling = ScalingInput((), Cluster.parse("t4=16x4"), now)
        return readings.OneByOne(Ten()).node_count(scaling)

    assert [wanted(now) for now in (1, 2, 9, 10)] == [2, 3, 10, 10]


def test_a_reading_is_near_where_both_figures_are() -> None:
    assert applications._is_near((0.75, 1.06))
    assert applications._is_near((0.71, 1.10))
    assert not applications._is_near((0.75, 2.0)), "the cost alone"


def test_all_readings_are_counted_by_nodes_and_batch() -> None:
    far = dict.fromkeys(readings.grid(), (1.0, 2.0))
    near = readings.Reading(nodes=8, ideal=Ideal.ONE_NODE, fast_batch=FastBatch.MOST_THROUGHPUT)
    rows = applications._grid_rows({**far, near: (0.75, 1.06)})
    counts = {row.of[0]: row.ours[0] for row in rows if row.measure == "near both"}
    assert len(counts) == 10
    words = "12 readings: at most 8 nodes, batch by throughput: the largest"
    assert {name for name, count in counts.items() if count} == {words}
    assert not applications._grid_rows(dict.fromkeys(readings.SINGLE.values(), (1.0, 2.0)))


def test_a_training_costs_its_nodes_over_time_and_tells_its_efficiency() -> None:
    fields_of = readings.fields_of(readings.Reading(nodes=4))
    for by_goodput in (True, False):
        run = readings.trained(None, "cifar10", fields_of, by_goodput=by_goodput)
        times = [*(time for time, _ in run["nodes"]), run["hours"]]
        counts = [count for _, count in run["nodes"]]
        cost = sum(n * (b - a) for n, a, b in zip(counts, times, times[1:], strict=False))
        assert run["node_hours"] == pytest.approx(cost)
        at, shares = zip(*run["efficiencies"], strict=True)
        assert list(at) == sorted(at)
        assert all(0 < share <= 1 for share in shares)
        assert all(a != b for a, b in pairwise(shares)), "only changes"


def test_no_training_ends_before_the_bound_at_its_cost() -> None:
    run = readings.trained(None, "cifar10", readings.fields_of(readings.Reading()), by_goodput=True)
    costs = {"same": run["node_hours"], "less": 0.6 * run["node_hours"]}
    bound = readings.least_hours(None, "cifar10", costs)
    assert bound["same"] <= run["hours"]
    assert bound["same"] < bound["less"]
