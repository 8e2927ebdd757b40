"""The replay of a recorded run: from its own measurements, on its own cluster, with its outages."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from recorded_runs import recorded_job, recorded_run

from maat.demo.recording import Recording
from maat.demo.replay import compare, noise_curve, profiled_at, replay, restart_seconds


def test_a_run_that_went_as_the_simulator_says_is_met_exactly() -> None:
    run = recorded_run(recorded_job("one"), recorded_job("two", submitted=20.0, finished=300.0))
    simulated = {record.name: record.finish or 0.0 for record in replay(run).records}
    jobs = [replace(job, finished=simulated[job.name]) for job in run.jobs]
    for row in compare(replace(run, jobs=jobs)):
        assert row.error == pytest.approx(0.0, abs=1e-9), row.what


def test_a_slower_device_makes_the_replay_slower() -> None:
    job = recorded_job("one")
    slow = [
        {**fit, "parameters": {**fit["parameters"], "alpha_compute": 0.7}}
        for fit in job.belief["types"]
    ]
    slower = replace(job, belief={**job.belief, "types": slow})
    assert _makespan(recorded_run(slower)) > 1.5 * _makespan(recorded_run(job))


def test_an_outage_costs_time() -> None:
    job = recorded_job("one")
    both = [(node, 20.0, 90.0) for node in ("t4-node", "a100-node")]
    assert _makespan(recorded_run(job, outages=both)) > _makespan(recorded_run(job)) + 60.0


def test_the_noise_follows_the_share_of_the_work() -> None:
    assert noise_curve(recorded_job("one")) == ((0.0, 50.0), (0.9, 900.0))
    assert noise_curve(replace(recorded_job("one"), noise=[])) == ((0.0, 0.0),)


def test_a_restart_ends_what_ran_and_starts_it_again() -> None:
    job = recorded_job("one")
    (only,) = job.lives
    assert restart_seconds(job) == 10.0
    moved = replace(only, ended=90.0, stopped=86.0)
    after = replace(only, number=2, queued=91.0, trained=111.0)
    assert restart_seconds(replace(job, lives=[moved, after])) == (10.0 + 4.0 + 20.0) / 2
    assert restart_seconds(replace(job, lives=[])) == 12.0


def test_profiles_hold_a_job_up_until_the_last_one_before_it_trains() -> None:
    job = recorded_job("one", submitted=5.0)
    (train,) = job.lives
    profiles = [replace(train, kind="profile", queued=0.0, ended=end) for end in (20.0, 35.0, 90.0)]
    held_up = replace(job, lives=[*profiles, replace(train, queued=40.0, trained=50.0)])
    assert profiled_at(held_up) == 35.0
    assert profiled_at(job) == 5.0
    assert _makespan(recorded_run(held_up)) > _makespan(recorded_run(job))


def test_a_recording_is_read_as_it_was_written(tmp_path: Path) -> None:
    run = recorded_run(recorded_job("one"), outages=[("t4-node", 1.0, 2.0)])
    run.write(tmp_path / "recording.json")
    again = Recording.read(tmp_path / "recording.json")
    assert again.jobs[0].lives == run.jobs[0].lives
    assert [row.error for row in compare(again)] == [row.error for row in compare(run)]


def _makespan(run: Recording) -> float:
    return max(record.finish or 0.0 for record in replay(run).records)
