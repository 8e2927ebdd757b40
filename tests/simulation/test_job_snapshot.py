"""Snapshots of jobs: earlier rows load, what is written loads again, damage is named."""

from __future__ import annotations

import json
from typing import Any

import pytest
from simulation.small import spec, truth

from maat.scheduling.belief import GradientStatistics, MemoisingFitter
from maat.scheduling.goodput import BatchPlan
from maat.scheduling.job import Allocation
from maat.simulation.job_ledger import JobLedger
from maat.simulation.job_snapshot import (
    JobSnapshot,
    SnapshotError,
    beliefs_from_json,
    samples_to_json,
)
from maat.simulation.simulated_job import SimulatedJob

FITTER = MemoisingFitter()

# A row of executor_jobs and one of executor_samples, as they were written before data had versions.
ROW = """{"done_work": 551.0, "epoch": 2, "gpu_type": "t4", "gpus": [0, 1, 4], "shape": [2, 1],
 "fixed_plan": null, "plan": [60, 10, 1], "goodput": 29.5, "pace": 1.25, "restart_left": 3.5,
 "restarts": 2, "started_at": 60.0, "finished_at": null, "gpu_seconds": {"t4": 321.5},
 "profiling_gpu_seconds": {"t4": 20.0, "a100": 20.0}, "saved_work": 500.0,
 "unsaved_gpu_seconds": 12.0, "interruptions": 1, "lost_gpu_seconds": 7.5,
 "waited_seconds": 45.0, "waiting_since": null, "applied_round": 17,
 "gradient": [1.0, 0.25], "peak_replica_count": 4}"""
SAMPLES = '{"t4": [[1, 1, 10, 1.0, 0.0], [2, 3, 10, 1.5, 0.5]]}'


def row(**changes: Any) -> dict[str, Any]:
    return {**json.loads(ROW), **changes}


def new_job() -> SimulatedJob:
    return SimulatedJob(spec(submitted_at=5.0), truth(), 30.0, truth().epoch_ends, 400)


def restored(data: dict[str, Any]) -> SimulatedJob:
    job = new_job()
    JobSnapshot.from_json(data).restore(job, beliefs_from_json(json.loads(SAMPLES), fitter=FITTER))
    return job


def test_a_row_without_a_version_gives_back_the_whole_job() -> None:
    job = restored(row())
    assert job.ledger == JobLedger(
        waiting_since=None,
        done_work=551.0,
        epoch=2,
        restart_left=3.5,
        restarts=2,
        started_at=60.0,
        finished_at=None,
        gpu_seconds={"t4": 321.5},
        profiling_gpu_seconds={"t4": 20.0, "a100": 20.0},
        saved_work=500.0,
        unsaved_gpu_seconds=12.0,
        interruptions=1,
        lost_gpu_seconds=7.5,
        waited_seconds=45.0,
    )
    assert (job.allocation, job.shape) == (Allocation("t4", (0, 1, 4)), (2, 1))
    assert (job.fixed_plan, job.plan) == (None, BatchPlan(60, 10, 1))
    assert (job.goodput, job.pace, job.applied_round) == (29.5, 1.25, 17)
    assert job.agent.belief.gradient == GradientStatistics(1.0, 0.25)
    assert job.agent.belief.peak_replica_count == 4
    assert samples_to_json(job.agent.belief.by_type) == json.loads(SAMPLES)


def test_what_is_written_of_a_restored_job_is_the_row_with_its_version() -> None:
    written = json.loads(json.dumps(JobSnapshot.of(restored(row())).to_json()))
    since = {  # written by later versions only
        "processed_samples": 0.0,
        "lost_work": 0.0,
        "held_seconds": 0.0,
        "restarting_seconds": 0.0,
        "restarting_gpu_seconds": 0.0,
        "held_since": None,
        "moved_at": [],
    }
    assert written == {**row(), **since, "version": 1}
    assert JobSnapshot.from_json(written) == JobSnapshot.from_json(row())


def test_a_waiting_job_comes_back_without_gpus_or_plans() -> None:
    job = restored(row(gpu_type=None, gpus=None, shape=[], plan=None, waiting_since=70.0))
    assert (job.allocation, job.shape, job.plan) == (None, (), None)
    assert job.ledger.waiting_since == 70.0


def test_fields_that_older_rows_lack_are_those_of_a_new_job() -> None:
    older = row()
    for name in ("pace", "saved_work", "interruptions", "waited_seconds", "applied_round"):
        del older[name]
    job = restored(older)
    assert (job.pace, job.applied_round) == (1.0, -1)
    ledger = job.ledger
    assert (ledger.saved_work, ledger.interruptions, ledger.waited_seconds) == (0.0, 0, 0.0)


def test_a_snapshot_shares_nothing_with_its_job() -> None:
    job = restored(row())
    taken = JobSnapshot.of(job)
    job.advance(100.0, 160.0, fitter=FITTER, whole_second_epochs=False)
    assert taken == JobSnapshot.from_json(row())
    assert JobSnapshot.of(job) != taken


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"version": 2}, "version 2 was written by another version"),
        ({"done_work": "many"}, "done_work is 'many', not a number"),
        ({"done_work": None}, "done_work is None, not a number"),
        ({"epoch": 1.5}, "epoch is 1.5, not a whole number"),
        ({"restarts": True}, "restarts is True, not a whole number"),
        ({"gpus": ["0"]}, "gpus is '0', not a whole number"),
        ({"gpu_type": None}, "gpu_type is None, not a text"),
        ({"plan": [60, 10]}, "plan is .* not a batch plan"),
        ({"gradient": [1.0]}, "gradient is .* not two numbers"),
        ({"gpu_seconds": {"t4": None}}, "t4 is None, not a number"),
    ],
)
def test_damaged_data_is_refused_by_its_field(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(SnapshotError, match=says):
        JobSnapshot.from_json(row(**changes))


def test_a_job_that_is_put_back_continues_as_it_would_have() -> None:
    straight, back = restored(row()), restored(row())
    before = back.progress()
    back.advance(100.0, 130.0, fitter=FITTER, whole_second_epochs=False)
    back.interrupt(130.0)
    assert JobSnapshot.of(back) != JobSnapshot.of(straight)
    back.put_back(before)
    assert JobSnapshot.of(back) == JobSnapshot.of(straight)
    for job in (straight, back):
        job.advance(100.0, 130.0, fitter=FITTER, whole_second_epochs=False)
    assert JobSnapshot.of(back) == JobSnapshot.of(straight)
    assert samples_to_json(back.agent.belief.by_type) == samples_to_json(
        straight.agent.belief.by_type
    )


def test_when_a_job_got_its_gpus_and_was_moved_outlives_a_restart() -> None:
    job = restored(row(held_since=4000.0, moved_at=[600.0, 4000.0]))
    seen = job.as_seen()
    assert (seen.held_since, seen.moved_at) == (4000.0, (600.0, 4000.0))
    assert restored(dict(JobSnapshot.of(job).to_json())).as_seen() == seen


def test_moves_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(SnapshotError, match="moved_at"):
        JobSnapshot.from_json(row(moved_at=["soon"]))
