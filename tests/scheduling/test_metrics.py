"""The figures that compare schedules, on schedules small enough to check by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from maat.scheduling.metrics import (
    JobRecord,
    RoundUse,
    finish_time_fairness,
    percentile_99,
    schedule_metrics,
)
from maat.vocabulary import FairnessRule


def record(
    name: str,
    submit: float,
    start: float | None,
    finish: float | None,
    *,
    restarts: int = 0,
    gpus: int = 1,
) -> JobRecord:
    return JobRecord(name, "m", submit, start, finish, restarts, gpus)


def active(*jobs: int) -> list[RoundUse]:
    """Rounds of which only the jobs that were there are of interest."""
    return [RoundUse(60.0 * number, many, held=0, usable=8) for number, many in enumerate(jobs)]


def test_times_count_from_submission() -> None:
    one = record("a", 100.0, 160.0, 3700.0)
    assert one.jct == 3600.0
    assert one.queueing_delay == 60.0
    assert record("b", 100.0, None, None).jct is None
    assert record("b", 100.0, None, None).queueing_delay is None


def test_means_medians_and_makespan_are_in_hours() -> None:
    records = [
        record("a", 0.0, 0.0, 3600.0, restarts=2),
        record("b", 3600.0, 7200.0, 10800.0),
        record("c", 7200.0, 7200.0, 25200.0, restarts=1),
    ]
    found = schedule_metrics(records, gpu_hours=12.0, rounds=active(1, 2, 3, 0))
    assert (found.jobs, found.unfinished) == (3, 0)
    assert found.avg_jct_hours == pytest.approx((1 + 2 + 5) / 3)
    assert found.median_jct_hours == 2.0
    assert found.makespan_hours == 7.0
    assert found.gpu_hours_per_job == 4.0
    assert found.restarts_per_job == 1.0
    assert found.avg_queueing_hours == pytest.approx(1 / 3)
    assert (found.contention_mean, found.contention_max) == (1.5, 3)


def test_unfinished_jobs_are_counted_and_left_out_of_completion_times() -> None:
    found = schedule_metrics(
        [record("a", 0.0, 0.0, 3600.0), record("b", 0.0, None, None)],
        gpu_hours=1.0,
        rounds=active(2),
    )
    assert found.unfinished == 1
    assert found.avg_jct_hours == 1.0


def test_waiting_in_all_is_of_the_jobs_that_finished() -> None:
    few = [("small", 4, 3600.0), ("large", 8, 7200.0), ("running", 8, None)]
    records = [
        JobRecord(name, "m", 0.0, 0.0, 36000.0, 0, gpus, waited=waited)
        for name, gpus, waited in few
    ]
    found = schedule_metrics(records, gpu_hours=1.0, rounds=active(3))
    assert (
        found.avg_waiting_hours,
        found.avg_waiting_hours_small,
        found.avg_waiting_hours_large,
    ) == (1.5, 1.0, 2.0)
    assert found.avg_queueing_hours == 0.0


def test_jobs_that_ask_for_more_than_four_gpus_are_large() -> None:
    records = [
        record("small", 0.0, 3600.0, 7200.0, gpus=4),
        record("large", 0.0, 7200.0, 10800.0, gpus=5),
        record("larger", 0.0, 14400.0, 18000.0, gpus=16),
        record("waiting", 0.0, None, None, gpus=2),
    ]
    found = schedule_metrics(records, gpu_hours=1.0, rounds=active(4))
    assert found.large_jobs == 2
    assert (found.avg_jct_hours_small, found.avg_jct_hours_large) == (2.0, 4.0)
    assert (found.avg_queueing_hours_small, found.avg_queueing_hours_large) == (1.0, 3.0)
    assert found.avg_queueing_hours == pytest.approx((1 + 2 + 4) / 3)


def test_utilisation_is_the_share_of_gpus_held_while_jobs_are_there_and_over_the_makespan() -> None:
    records = [record("a", 60.0, 60.0, 120.0), record("b", 180.0, 180.0, 230.0)]
    rounds = [
        RoundUse(0.0, active_jobs=0, held=0, usable=8),
        RoundUse(60.0, active_jobs=1, held=4, usable=8),
        RoundUse(120.0, active_jobs=0, held=0, usable=8),
        RoundUse(180.0, active_jobs=1, held=4, usable=4),
        RoundUse(240.0, active_jobs=0, held=0, usable=8),
    ]
    found = schedule_metrics(records, gpu_hours=1.0, rounds=rounds)
    assert found.utilisation_busy == pytest.approx(8 / 12)
    assert found.utilisation == pytest.approx(8 / 20), (
        "the round before the first submission and the one after the last finish are left out"
    )


def test_rounds_alike_count_as_often_as_they_were() -> None:
    records = [record("a", 60.0, 60.0, 120.0), record("b", 360.0, 360.0, 410.0)]
    busy, idle = (
        RoundUse(60.0, active_jobs=3, held=4, usable=8),
        RoundUse(120.0, active_jobs=0, held=0, usable=8, rounds=4),
    )
    found = schedule_metrics(
        records,
        gpu_hours=1.0,
        rounds=[busy, idle, RoundUse(360.0, active_jobs=3, held=4, usable=8)],
    )
    assert found.contention_mean == 1.0
    assert found.utilisation == pytest.approx(8 / 48)
    assert found.utilisation_busy == 0.5


def test_until_an_unfinished_job_ends_the_makespan_goes_on() -> None:
    rounds = [RoundUse(0.0, 1, 4, 4), RoundUse(60.0, 1, 0, 4)]
    found = schedule_metrics(
        [record("a", 0.0, 0.0, 30.0), record("b", 0.0, None, None)], gpu_hours=1.0, rounds=rounds
    )
    assert found.utilisation == 0.5


def test_restarts_evictions_and_failures_are_counted() -> None:
    rounds = [RoundUse(0.0, 1, 4, 4, evicted=2), RoundUse(60.0, 1, 0, 4, evicted=1)]
    hit = JobRecord("a", "m", 0.0, 0.0, 30.0, 2, 1, interruptions=2, lost_gpu_seconds=5400.0)
    records = [hit, record("b", 0.0, 0.0, 30.0, restarts=1)]
    found = schedule_metrics(records, gpu_hours=1.0, rounds=rounds, failures=3)
    assert (found.restarts, found.evictions) == (3, 3)
    assert (found.failures, found.interruptions, found.lost_gpu_hours) == (3, 2, 1.5)


def test_time_in_restarts_is_a_share_of_the_time_that_jobs_held_gpus() -> None:
    long = JobRecord(
        "a",
        "m",
        0.0,
        0.0,
        100.0,
        2,
        4,
        gpu_seconds={"t4": 360.0, "a100": 40.0},
        held_seconds=100.0,
        restarting_seconds=10.0,
        restarting_gpu_seconds=40.0,
    )
    short = replace(long, gpu_seconds={"t4": 100.0}, restarting_seconds=0.0)
    found = schedule_metrics(
        [long, replace(short, restarting_gpu_seconds=0.0)], gpu_hours=1.0, rounds=[]
    )
    assert (found.restart_time_share, found.restart_gpu_share) == (0.05, 0.08)


def test_an_empty_schedule_has_zeros() -> None:
    found = schedule_metrics([], gpu_hours=0.0, rounds=())
    assert set(vars(found).values()) == {0}


def test_p99_of_160_jobs_is_the_second_largest() -> None:
    values = np.random.default_rng(0).permutation(160).astype(float)
    assert percentile_99(values) == 158.0
    assert percentile_99(np.arange(100.0)) == 99.0
    assert percentile_99(np.array([7.0])) == 7.0
    assert percentile_99(np.array([])) == 0.0


def test_finish_time_fairness_is_the_mean_ratio_weighted_by_gpus() -> None:
    isolated = {"t4": 100.0, "a100": 25.0}
    assert finish_time_fairness(50.0, isolated, {"t4": 24, "a100": 8}) == pytest.approx(
        0.75 * 0.5 + 0.25 * 2.0
    )


def test_the_published_script_takes_the_ratio_to_the_mean_and_is_never_less_flattering() -> None:
    isolated, gpus = {"t4": 100.0, "a100": 25.0}, {"t4": 24, "a100": 8}
    published = finish_time_fairness(50.0, isolated, gpus, rule=FairnessRule.RATIO_TO_MEAN)
    assert published == pytest.approx(50.0 / (0.75 * 100.0 + 0.25 * 25.0))
    assert published < finish_time_fairness(50.0, isolated, gpus)
    assert finish_time_fairness(50.0, {"t4": 100.0}, gpus, rule=FairnessRule.RATIO_TO_MEAN) == 0.5


def test_types_that_cannot_run_a_job_do_not_count_for_its_fairness() -> None:
    assert finish_time_fairness(50.0, {"t4": 100.0}, {"t4": 24, "a100": 8}) == 0.5
    assert math.isnan(finish_time_fairness(50.0, {}, {"t4": 24}))
