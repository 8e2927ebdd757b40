"""The fidelity document: what it says follows from the runs, and from nothing else."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from benchmarks.fidelity.metrics import difference
from benchmarks.fidelity.page import family_figures, moved, page
from benchmarks.fidelity.published import HOURS_BY_TYPE, RUNS, TYPES
from benchmarks.fidelity.runs import (
    ARTIFACT,
    ARTIFACT_TRACES,
    CHANGES,
    PAPER,
    Outcome,
    Run,
    outcome_of,
    play_all,
    wanted,
)
from maat.scheduling.cluster import Cluster
from maat.simulation.conditions import Conditions
from maat.simulation.engine import simulate
from maat.simulation.fidelity import FIDELITIES
from maat.simulation.scenario import Scenario
from maat.simulation.world_models import catalog_models
from maat.workloads.workloads import TraceJob, Workload


def as_published(trace: str) -> Outcome:
    hours = {
        model: dict(zip(TYPES, mix, strict=True)) for model, mix in HOURS_BY_TYPE[trace].items()
    }
    return Outcome(RUNS[trace], (0.1, 0.5), hours)


def test_runs_as_published_differ_by_nothing_and_lie_within_what_is_asked() -> None:
    text = page({Run(trace, ARTIFACT): as_published(trace) for trace in ARTIFACT_TRACES})

    assert (
        "Every mean over the seeds lies within what is asked. "
        "Every published figure lies inside the range of the seeds." in text
    )
    assert (
        "| philly-1 | average JCT, h | 0.542 | 0.542 | 0.542 | 0.542 | +0.0 % | inside "
        "| 5 %: 1 of 1 |" in text
    )
    assert "−" not in text.split("## GPU-hours")[0].split("Every mean")[0]
    assert "| philly-1 | imagenet | 16.76 (16.76) |" in text


def test_a_figure_outside_what_is_asked_is_named() -> None:
    slow = as_published("philly-2")
    slow = replace(slow, figures=replace(slow.figures, makespan_hours=13.26 * 1.08))

    text = page(
        {Run("philly-1", ARTIFACT): as_published("philly-1"), Run("philly-2", ARTIFACT): slow}
    )

    assert "Outside what is asked: makespan, h of philly-2 (+8.0 %)." in text


def test_the_range_over_seeds_says_whether_the_published_figure_lies_in_it_and_how_many_seeds_are_near() -> (  # noqa: E501
    None
):
    published = as_published("philly-1")
    faster = replace(published, figures=replace(published.figures, avg_jct_hours=0.50))
    fast = replace(published, figures=replace(published.figures, avg_jct_hours=0.53))

    text = page({Run("philly-1", ARTIFACT): faster, Run("philly-1", ARTIFACT, 1): fast})

    assert (
        "| philly-1 | average JCT, h | 0.515 | 0.500 | 0.530 | 0.542 | −5.0 % | above ours "
        "| 5 %: 1 of 2 |" in text
    )
    assert (
        "| philly-1 | makespan, h | 15.53 | 15.53 | 15.53 | 15.53 | +0.0 % | inside | 7 %: 2 of 2 |"
        in text
    )
    assert "Not inside the range of the seeds: average JCT, h of philly-1 (above ours)." in text


def test_what_one_rule_changes_is_the_mean_over_the_traces() -> None:
    change = "time to an epoch's end rounded to a second"
    one, other = as_published("philly-1"), as_published("saturn-1")
    slower = replace(one, figures=replace(one.figures, avg_jct_hours=0.542 * 1.04))
    runs = {Run("philly-1", PAPER): one, Run("philly-1", PAPER, change=change): slower}
    runs |= {Run("saturn-1", PAPER): other, Run("saturn-1", PAPER, change=change): other}

    assert f"| {change} | +2.0 % | +0.0 % |" in page(runs)


def test_outcomes_are_kept_and_not_simulated_again(tmp_path: Path) -> None:
    kept = tmp_path / "outcomes.json"
    run, outcome = Run("philly-1", ARTIFACT, 3), as_published("philly-1")
    kept.write_text(json.dumps([[asdict(run), asdict(outcome)]]), encoding="utf-8")

    assert play_all([run], tmp_path, processes=1, kept=kept) == {run: outcome}


def test_a_familys_p99_is_taken_over_the_jobs_of_its_traces_together() -> None:
    one, other = as_published("philly-1"), as_published("philly-2")
    pooled = family_figures(
        [replace(one, jct_hours=(1.0,) * 60), replace(other, jct_hours=(*(2.0,) * 39, 9.0))]
    )

    assert pooled.p99_jct_hours == 9.0
    assert pooled.contention_max == 32
    assert pooled.avg_jct_hours == pytest.approx((0.542 + 0.747) / 2)


def test_two_mixes_differ_by_the_share_that_would_have_to_move() -> None:
    assert moved((1.0, 1.0, 2.0), (2.0, 2.0, 4.0)) == 0
    assert moved((1.0, 0.0, 0.0), (0.0, 3.0, 0.0)) == 1
    assert moved((1.0, 1.0, 0.0), (1.0, 0.0, 0.0)) == 0.5
    assert difference(1.1, 1.0) == pytest.approx(0.1)


def test_hours_by_whole_rounds_add_up_to_those_of_the_metrics() -> None:
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
    workload = Workload("three", jobs, "csv")
    scenario = Scenario(
        workload,
        catalog_models(),
        Cluster.parse("t4=1x4,a100=1x4"),
        conditions=Conditions(fidelity=FIDELITIES[ARTIFACT]),
    )

    outcome = outcome_of(simulate(scenario))

    total = 2 * sum(outcome.hours["cifar10"].values()) + sum(outcome.hours["yolov3"].values())
    assert total == pytest.approx(3 * outcome.figures.gpu_hours_per_job)
    assert len(outcome.jct_hours) == 3


def test_every_run_is_wanted_once_and_a_quick_look_has_one_trace() -> None:
    runs = wanted(quick=False)

    assert len(set(runs)) == len(runs) == (5 + 1) * 10 + 7 + 2 * len(CHANGES)
    assert {run.trace for run in wanted(quick=True)} == {"philly-1"}
    assert {run.fidelity for run in wanted(quick=True)} == {ARTIFACT, PAPER}
