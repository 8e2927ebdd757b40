"""The study of fidelity: what its items say follows from the runs, and from nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from maat.library.tables import Cell
from maat.papers.bench import Bench, Size
from maat.papers.catalogue import item_of
from maat.papers.data import Data
from maat.papers.fidelity import FIDELITY, fits, rules, simulator
from maat.papers.fidelity.published import HOURS_BY_TYPE, RUNS, TYPES
from maat.papers.fidelity.runs import ARTIFACT, METRICS, PAPER, TRACES, difference
from maat.papers.fidelity.simulator import moved, verdict
from maat.papers.gpu_hours import gpu_hours_by_type
from maat.papers.items import Outcomes, Shown, WithRho, key_of
from maat.papers.observation import Observation, observe
from maat.papers.sia.runs import pooled
from maat.scheduling.cluster import Cluster
from maat.simulation.conditions import Conditions
from maat.simulation.fidelity import FIDELITIES
from maat.simulation.scenario import Scenario
from maat.simulation.world_models import catalog_models
from maat.workloads.workloads import TraceJob, Workload


def observed(
    figures: Mapping[str, float],
    *,
    jobs: Mapping[str, Sequence[Cell]] | None = None,
    spans: Mapping[str, Sequence[Cell]] | None = None,
) -> Observation:
    """Return what is kept of a run with these figures and columns."""
    kept = [{name: [*cells] for name, cells in (given or {}).items()} for given in (jobs, spans)]
    return Observation(figures, kept[0], {}, kept[1], {}, [], [], 0.0, {})


def as_published(trace: str) -> Observation:
    """Return a run with the published figures; one job of each model holds one GPU of each type."""
    models = HOURS_BY_TYPE[trace]
    spans = [
        (model, 0.0, 3600 * hours, kind, 1)
        for model, mix in models.items()
        for kind, hours in zip(TYPES, mix, strict=True)
    ]
    columns = ("job", "start_seconds", "end_seconds", "gpu_type", "gpu_count")
    return observed(
        {metric.name: metric.of(RUNS[trace]) for metric in METRICS},
        jobs={"name": [*models], "model": [*models]},
        spans=dict(zip(columns, zip(*spans, strict=True), strict=True)),
    )


def changed(run: Observation, **shares: float) -> Observation:
    """Return the run with some of its figures multiplied."""
    figures = {name: value * shares.get(name, 1.0) for name, value in run.figures.items()}
    return observed(figures, jobs=run.jobs, spans=run.spans)


def shown(key: str, outcomes: Outcomes) -> Shown:
    return item_of(FIDELITY, key).show(Bench(), outcomes)


def test_runs_as_published_differ_by_nothing_and_are_as_near_as_asked() -> None:
    found = shown("traces", {(trace, "seed 0"): as_published(trace) for trace in TRACES})
    assert len(found.rows) == (len(TRACES) + 1) * len(METRICS)
    assert all(row.difference == pytest.approx(0.0) for row in found.rows if row.published)
    assert all(row.mean == pytest.approx(0.0) for row in found.rows if row.published is None)
    assert "Every mean over the seeds is as near as asked" in found.why
    assert "Every published figure lies within the range of the seeds." in found.why


def test_a_figure_further_off_than_asked_is_named() -> None:
    slow = changed(as_published("philly-2"), makespan_hours=1.08)
    said = verdict({("philly-1", "seed 0"): as_published("philly-1"), ("philly-2", "seed 0"): slow})
    assert "Further off than asked (docs/fidelity.md): makespan, h of philly-2 (+8.0 %)." in said


def test_a_published_figure_beyond_every_seed_is_named() -> None:
    run = as_published("philly-1")
    seeds = {
        ("philly-1", "seed 0"): changed(run, avg_jct_hours=0.96, p99_jct_hours=0.9),
        ("philly-1", "seed 1"): changed(run, avg_jct_hours=0.97, p99_jct_hours=1.1),
    }
    assert "Outside the range of the seeds: average JCT, h of philly-1." in verdict(seeds)


def test_gpu_hours_as_published_need_no_other_type() -> None:
    found = shown("gpu-hours", {("philly-1", "seed 0"): as_published("philly-1")})
    imagenet = {row.measure: row for row in found.rows if row.of == ("philly-1", "imagenet")}
    assert imagenet["GPU-hours per job on t4"].mean == pytest.approx(16.76, abs=0.02)
    assert imagenet["on another type than published, %"].mean == pytest.approx(0.0, abs=0.1)


def test_two_mixes_differ_by_the_share_that_would_have_to_move() -> None:
    assert moved((1.0, 1.0, 2.0), (2.0, 2.0, 4.0)) == 0
    assert moved((1.0, 0.0, 0.0), (0.0, 3.0, 0.0)) == 1
    assert moved((1.0, 1.0, 0.0), (1.0, 0.0, 0.0)) == 0.5
    assert difference(1.1, 1.0) == pytest.approx(0.1)


def test_what_one_rule_changes_is_the_mean_over_the_traces() -> None:
    change = "time to an epoch's end rounded to a second"
    runs = {
        (name, trace): as_published(trace)
        for name in ("none", *rules.CHANGES)
        for trace in rules.CHANGED_TRACES
    }
    runs[change, "philly-1"] = changed(as_published("philly-1"), avg_jct_hours=1.04)
    found = shown("rules", runs)
    means = {(row.of[0], row.measure): row.mean for row in found.rows}
    assert means[change, "average JCT, h: change, %"] == pytest.approx(2.0)
    assert [value for key, value in means.items() if key[0] != change] == pytest.approx(
        [0.0] * len(METRICS) * (len(rules.CHANGES) - 1)
    )


def test_the_papers_rules_are_set_against_the_published_simulators() -> None:
    run = as_published("philly-1")
    faster = changed(run, avg_jct_hours=0.9)
    found = shown("fidelities", {("philly-1", PAPER): faster, ("philly-1", ARTIFACT): run})
    assert found.rows[0].mean == pytest.approx(-10.0)
    assert "+7.4 % of average JCT and +51.7 % of restarts per job (Philly)" in found.why


def test_a_familys_p99_is_over_the_jobs_of_its_traces_together() -> None:
    outcomes = {
        ("Philly", "1"): observed({"contention_max": 20.0}, jobs={"jct_seconds": [3600.0] * 60}),
        ("Philly", "2"): observed(
            {"contention_max": 32.0}, jobs={"jct_seconds": [*[7200.0] * 39, 32400.0]}
        ),
    }
    assert pooled(outcomes, "p99_jct_hours", "Philly") == [9.0]
    assert pooled(outcomes, "contention_max", "Philly") == [32.0]


def three_jobs() -> Scenario:
    jobs = tuple(
        TraceJob(
            name=f"job-{i}",
            submit_seconds=45.0 * i,
            model=model,
            gpu_count=1,
            batch_size=128,
            work_scale=0.1,
        )
        for i, model in enumerate(["cifar10", "yolov3", "cifar10"])
    )
    return Scenario(
        Workload("three", jobs, "csv"),
        catalog_models(),
        Cluster.parse("t4=1x4,a100=1x4"),
        conditions=Conditions(fidelity=FIDELITIES[ARTIFACT]),
    )


def test_hours_by_whole_rounds_add_up_to_those_of_the_metrics() -> None:
    run = Observation.of(observe(three_jobs()))
    hours = gpu_hours_by_type([run], round_seconds=60.0)
    total = 2 * sum(hours["cifar10"].values()) + sum(hours["yolov3"].values())
    assert total == pytest.approx(3 * run.figures["gpu_hours_per_job"])
    assert sum(gpu_hours_by_type([run])["yolov3"].values()) < sum(hours["yolov3"].values())


def test_both_searches_of_fits_have_one_yardstick() -> None:
    """Under the published search jobs alone are slower too, which would hide what it costs."""
    scenario = fits.scenario_of(Bench(size=Size.TINY), "generated-1")
    published = fits._searching(scenario, fits.FitSearch.PUBLISHED)
    own, shared = WithRho(published), WithRho(published, alone=scenario)
    assert key_of(own) != key_of(shared)
    by_own, by_shared = (
        Observation.of(observe(run.scenario, rho=True, alone=run.alone)) for run in (own, shared)
    )
    assert by_own.figures["avg_jct_hours"] == by_shared.figures["avg_jct_hours"]
    assert by_own.rho["mean-of-ratios"] != by_shared.rho["mean-of-ratios"]


@pytest.mark.needs_data
def test_every_run_of_the_study_is_wanted_once(data_folder: Path) -> None:
    for size, per_trace in ((Size.WHOLE, 10), (Size.QUICK, 3)):
        bench = Bench(Data(data_folder), size)
        counted = {item.key: len(item.runs(bench)) for item in (*simulator.ITEMS, *rules.ITEMS)}
        played = len(TRACES) if size is Size.WHOLE else 1
        assert counted == {
            "traces": played * per_trace,
            "gpu-hours": played * per_trace,
            "one-type": per_trace,
            "published-rules": len(simulator.SWITCHED) * per_trace,
            "fidelities": 2 * played,
            "rules": (1 + len(rules.CHANGES)) * (2 if size is Size.WHOLE else 1),
        }
