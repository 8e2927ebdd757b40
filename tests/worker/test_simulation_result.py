"""What the pages get of a run: complete, and never too much of it."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from backend.simulations.series import MAX_POINTS, reduced
from maat.scheduling.cluster import Cluster
from maat.simulation.engine import simulate
from maat.simulation.job_window import JobWindow
from maat.simulation.record import SimulationResult
from maat.simulation.scenario import Scenario
from maat.simulation.world_models import catalog_models
from maat.workloads.workloads import TraceJob, Workload
from worker.simulations.result import quantiles, result_to_json
from worker.simulations.series import job_series


@pytest.fixture(scope="module")
def result() -> SimulationResult:
    jobs = tuple(
        TraceJob(
            name=f"job-{i}",
            submit_seconds=60.0 * i,
            model="cifar10",
            gpu_count=1,
            batch_size=128,
            work_scale=0.2,
        )
        for i in range(3)
    )
    return simulate(
        Scenario(Workload("three", jobs, "csv"), catalog_models(), Cluster.parse("t4=1x4,a100=1x4"))
    )


def test_the_stretches_of_a_job_add_up_to_the_gpu_hours_that_it_held(
    result: SimulationResult,
) -> None:
    shown = result_to_json(result)
    for job, record in zip(shown["jobs"], result.records, strict=True):
        stretches = shown["allocations"][job["name"]]
        held = (
            sum((stretch["end"] - stretch["start"]) * stretch["gpu_count"] for stretch in stretches)
            / 3600
        )
        profiled = 20.0 * 2 / 3600  # one GPU of each of two types
        assert held == pytest.approx(sum(job["gpu_hours_by_type"].values()) - profiled, rel=1e-6)
        assert stretches[-1]["end"] == record.finish
        assert all(before["end"] <= after["start"] for before, after in pairwise(stretches))


def test_figures_of_a_window_leave_out_the_other_jobs(result: SimulationResult) -> None:
    conditions = replace(result.scenario.conditions, measured_jobs=JobWindow(1, 2))
    shown = result_to_json(
        replace(result, scenario=replace(result.scenario, conditions=conditions))
    )
    first, *measured = shown["jobs"]
    assert [job["measured"] for job in shown["jobs"]] == [False, True, True]
    assert (first["rho"], shown["fairness"]["jobs"]) == (None, 2)
    assert sum(shown["gpu_hours_by_model_type"]["cifar10"].values()) == pytest.approx(
        sum(sum(job["gpu_hours_by_type"].values()) for job in measured)
    )


def test_every_job_has_its_jct_and_every_figure_its_definition(result: SimulationResult) -> None:
    shown = result_to_json(result)
    assert [job["jct"] for job in shown["jobs"]] == [
        job["finish"] - job["submit"] for job in shown["jobs"]
    ]
    assert shown["fairness"]["worst_rho"] == max(job["rho"] for job in shown["jobs"])
    assert shown["fairness"]["unfair_fraction"] == sum(job["rho"] > 1 for job in shown["jobs"]) / 3
    assert set(shown["definitions"]) == {
        "comparison",
        "jct",
        "rho",
        "worst_rho",
        "unfair_fraction",
        "policy_seconds",
    }
    assert all(
        len(line) > 20 and line == line.strip()
        for text in shown["definitions"].values()
        for line in text.split("\n")
    )
    assert [
        line.partition(":")[0] for line in shown["definitions"]["comparison"].split("\n")[1:4]
    ] == [
        "JCT",
        "Makespan",
        "GPU-hours per job",
    ]
    assert "Sia eq. 6" in shown["definitions"]["rho"]


def test_quantiles_of_decision_times_stand_in_their_order() -> None:
    found = quantiles([0.4, 0.1, 0.2, 0.3, 0.5])
    assert found == {
        "rounds": 5,
        "min": 0.1,
        "p25": 0.2,
        "median": 0.3,
        "p75": 0.4,
        "p95": pytest.approx(0.48),
        "max": 0.5,
    }
    assert quantiles([]) is None


def test_a_long_series_is_cut_to_the_limit_and_keeps_its_ends_and_peaks() -> None:
    points = [[float(at), 1.0] for at in range(50_000)]
    points[31_337][1], points[40_000][1] = 99.0, 0.0
    kept = reduced(points)
    assert len(kept) <= MAX_POINTS
    assert (kept[0], kept[-1]) == (points[0], points[-1])
    assert [31_337.0, 99.0] in kept
    assert [40_000.0, 0.0] in kept
    assert kept == sorted(kept)


def test_a_long_series_with_gaps_keeps_gaps() -> None:
    points: list[list[float | None]] = [[float(at), 1.0] for at in range(50_000)]
    points[31_337][1] = None
    assert [31_337.0, None] in reduced(points)


def test_the_series_of_the_cluster_are_the_sums_of_those_of_the_jobs(
    result: SimulationResult,
) -> None:
    shown, jobs = result_to_json(result), job_series(result.series)
    in_use = sum(
        value * (until - since)
        for points in shown["gpus_by_type"].values()
        for (since, value), (until, _) in pairwise(points)
    )
    held = sum(
        count * (until - since)
        for life in jobs.values()
        for count, since, until in zip(
            life["gpu_count"], life["time"], [*life["time"][1:], life["end"]], strict=True
        )
    )
    assert in_use == pytest.approx(held, abs=0.1)
    assert shown["nodes"][0] == [0.0, 2.0]
    assert all(value is None or 0 < value <= 1 for _, value in shown["efficiency"])
    assert [job["waited"] for job in shown["jobs"]] == [r.waited for r in result.records]
    assert json.loads(json.dumps([shown, jobs], allow_nan=False))


def test_a_restless_job_has_no_more_stretches_than_the_limit(result: SimulationResult) -> None:
    one = result.series.of_job("job-0")
    rows = np.zeros(50_000, dtype=np.int64)
    restless = one.chosen(rows)
    times = np.arange(50_000.0)
    many = replace(
        result.series,
        jobs=("job-0",),
        stretches=replace(restless, job=rows, start=times, end=times + 1),
    )
    life = job_series(many)["job-0"]
    assert {len(values) for name, values in life.items() if name != "end"} == {MAX_POINTS}
    assert (life["time"][0], life["end"]) == (0.0, 50_000.0)


def test_a_short_series_stays_as_it_is() -> None:
    assert reduced([(0.0, 1), (60.0, 2)]) == [[0.0, 1], [60.0, 2]]
