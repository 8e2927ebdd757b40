"""Simulations from their stored request to their stored result, on both databases."""

from __future__ import annotations

import pytest
from live_samples import make_cluster, submit
from simulation_samples import SMALL, operation_of, request_simulation, runs_of

from backend.database import Database
from backend.models import (
    OperationState,
    Simulation,
)
from backend.simulations.traces import csv_workload
from maat.scheduling.stability import Stability
from maat.simulation.interference import Interference
from maat.simulation.iteration_models import shipped_models
from worker.simulations import runs as simulations
from worker.simulations.scenarios import scenario_of


def test_every_run_is_kept_with_its_figures_and_the_operation_succeeds(database: Database) -> None:
    simulation_id = request_simulation(database)
    assert simulations.run_simulation(database, simulation_id) is OperationState.SUCCEEDED
    operation = operation_of(database, simulation_id)
    assert (operation.state, operation.done, operation.total, operation.unit) == (
        "succeeded",
        6.0,
        6.0,
        "jobs",
    )
    for run, policy in zip(runs_of(database, simulation_id), ("sia", "srtf"), strict=True):
        assert run.state == "succeeded"
        assert run.summary is not None
        assert (run.summary["policy"], run.summary["jobs"], run.summary["unfinished"]) == (
            policy,
            3,
            0,
        )
        assert len(run.result["jobs"]) == 3
        assert all(job["rho"] > 0 and job["finish"] > job["submit"] for job in run.result["jobs"])
        assert set(run.result["gpus_by_type"]) == {"t4", "a100"}


def test_a_simulation_that_has_ended_is_not_run_again(database: Database) -> None:
    simulation_id = request_simulation(database, policies=("srtf",))
    simulations.run_simulation(database, simulation_id)
    before = runs_of(database, simulation_id)
    assert simulations.run_simulation(database, simulation_id) is None
    assert [run.finished_at for run in runs_of(database, simulation_id)] == [
        run.finished_at for run in before
    ]


def test_the_jobs_that_a_cluster_had_can_be_replayed_under_another_policy(
    database: Database,
) -> None:
    cluster_id = make_cluster(database)
    submit(database, cluster_id, count=3, work_scale=0.05)
    simulation_id = request_simulation(
        database, policies=("srtf",), trace={"kind": "cluster", "cluster_id": cluster_id}
    )
    assert simulations.run_simulation(database, simulation_id) is OperationState.SUCCEEDED
    (run,) = runs_of(database, simulation_id)
    assert len(run.result["jobs"]) == 3


def test_a_history_that_cannot_be_played_fails_without_naming_the_job(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    """All of a tenant read the problem; whose the job is, the log may say."""
    cluster_id = make_cluster(database)
    submit(database, cluster_id, model="yolov3", gpu_types=["rtx"])
    simulation_id = request_simulation(
        database,
        policies=("fifo",),
        trace={"kind": "cluster", "cluster_id": cluster_id},
        cluster="t4=1x4",
    )
    assert simulations.run_simulation(database, simulation_id) is OperationState.FAILED
    (run,) = runs_of(database, simulation_id)
    for error in (run.error, operation_of(database, simulation_id).error):
        assert error is not None
        assert (error["status"], error["errors"][0]["code"]) == (422, "another_tenants_job")
        assert "yolov3" not in str(error)
    assert "got 'rtx'" in caplog.text


def test_jobs_that_no_type_runs_are_left_out_and_told_in_the_stored_result(
    database: Database,
) -> None:
    text = f"{SMALL['text']}fourth,90,gpt,2,,0.01\n"
    simulation_id = request_simulation(
        database, policies=("fifo",), trace={"kind": "csv", "text": text}, cluster="t4=4x4"
    )
    assert simulations.run_simulation(database, simulation_id) is OperationState.SUCCEEDED
    (run,) = runs_of(database, simulation_id)
    assert [job["name"] for job in run.result["jobs"]] == ["first", "second", "third"]
    (note,) = [note for note in run.summary["notes"] if "left out" in note]
    assert "1 of 4 jobs of the trace was left out, with about" in note
    assert "gpt (1 job) cannot run on any GPU type of this cluster (t4)" in note


def test_what_a_run_is_simulated_under_reaches_the_engine(database: Database) -> None:
    reserved = {
        "gpu_type": "a100",
        "gpu_count": 16,
        "tenant": "vision",
        "job": None,
        "start_seconds": 0.0,
        "end_seconds": None,
    }
    asked = {
        "profiling": "no-profile",
        "rigid_share": 1.0,
        "failures": {"mtbf_hours": 0.5, "repair_seconds": 600.0},
    }
    simulation_id = request_simulation(
        database, policies=("fifo",), reservations=[reserved], **asked
    )
    assert simulations.run_simulation(database, simulation_id) is OperationState.SUCCEEDED
    (run,) = runs_of(database, simulation_id)
    jobs = run.result["jobs"]
    assert {job["adaptivity"] for job in jobs} == {"rigid"}
    assert {kind for job in jobs for kind in job["gpu_hours_by_type"]} == {"t4"}
    assert run.summary["failures"] > 0
    assert run.summary["interruptions"] == sum(job["interruptions"] for job in jobs)
    assert run.summary["lost_gpu_hours"] == pytest.approx(
        sum(job["lost_gpu_hours"] for job in jobs)
    )


def test_shared_gpus_tuned_jobs_and_parameters_of_the_placer_reach_the_engine(
    database: Database,
) -> None:
    asked = {"jobs_per_gpu": 2, "interference": 1.25, "tuned": "best-batch", "tuned_gpus": 2}
    asked |= {"least_stay_seconds": 1800.0, "most_moves_per_hour": 4, "measured_jobs": "1-2"}
    simulation_id = request_simulation(database, policies=("fifo",), **asked)
    (run,) = runs_of(database, simulation_id)
    with database.session_scope(writes=False) as session:
        request = session.get_one(Simulation, simulation_id).request
    request.runs[0].placer_parameters = {"binning": "two"}
    scenario = scenario_of(request, run, csv_workload(SMALL["text"], shipped_models()))
    assert (scenario.cluster.jobs_per_gpu, scenario.conditions.interference) == (
        2,
        Interference.constant(1.25),
    )
    assert scenario.conditions.stability == Stability(1800.0, 4)
    assert scenario.placer_parameters == {"binning": "two"}
    assert simulations.run_simulation(database, simulation_id) is OperationState.SUCCEEDED
    (run,) = runs_of(database, simulation_id)
    assert {job["adaptivity"] for job in run.result["jobs"]} == {"rigid"}
    assert (run.summary["jobs"], len(run.result["jobs"])) == (2, 3)


@pytest.mark.parametrize("policy", ["sia", "fifo"])
def test_a_run_keeps_the_quotas_that_it_was_asked_for_with(database: Database, policy: str) -> None:
    jobs = "".join(
        f"{name},0,cifar10,2,512,0.3,{name[:4]}\n" for name in ("red-1", "red-2", "blue")
    )
    trace = {
        "kind": "csv",
        "text": "name,time,application,num_replicas,batch_size,work_scale,tenant\n" + jobs,
    }
    quotas = [{"tenant": "red-", "ceiling": {"t4": 2}}]
    simulation_id = request_simulation(
        database, policies=(policy,), trace=trace, cluster="t4=2x4", quotas=quotas
    )
    assert simulations.run_simulation(database, simulation_id) is OperationState.SUCCEEDED
    (run,) = runs_of(database, simulation_id)
    stretches = [
        stretch for name in ("red-1", "red-2") for stretch in run.result["allocations"][name]
    ]
    for began in stretches:
        at = began["start"]
        held = [one["gpu_count"] for one in stretches if one["start"] <= at < one["end"]]
        assert sum(held) <= 2


def test_a_trace_that_cannot_be_read_is_a_problem_that_names_row_field_and_remedy(
    database: Database,
) -> None:
    text = "name,time,application,num_replicas,batch_size\nb,-5,cifar10,1,128\n"
    simulation_id = request_simulation(database, trace={"kind": "csv", "text": text})
    assert simulations.run_simulation(database, simulation_id) is OperationState.FAILED
    error = operation_of(database, simulation_id).error
    assert error is not None
    (named,) = error["errors"]
    assert (error["status"], named["field"], named["row"]) == (422, "time", 2)
    assert named["remedy"]
    assert {run.state for run in runs_of(database, simulation_id)} == {"failed"}


def test_records_that_are_left_out_are_told_with_every_run(database: Database) -> None:
    text = "name,time,application,num_replicas,batch_size\na,0,cifar10,1,128\nb,-5,cifar10,1,128\n"
    simulation_id = request_simulation(
        database, policies=("fifo", "srtf"), trace={"kind": "csv", "text": text}
    )
    assert simulations.run_simulation(database, simulation_id) is OperationState.SUCCEEDED
    for run in runs_of(database, simulation_id):
        assert run.summary is not None
        assert run.summary["jobs"] == 1
        told = [note for note in run.summary["notes"] if "left out" in note]
        assert len(told) == 1
        assert told[0].startswith("1 of 2 records of the trace was left out")
        assert "line 3 (time is not between 0" in told[0]


def test_a_run_that_fails_leaves_the_others_their_results(database: Database) -> None:
    simulation_id = request_simulation(database, policies=("srtf", "no-such-policy", "fifo"))
    assert simulations.run_simulation(database, simulation_id) is OperationState.FAILED
    assert [run.state for run in runs_of(database, simulation_id)] == [
        "succeeded",
        "failed",
        "succeeded",
    ]
    error = operation_of(database, simulation_id).error
    assert error is not None
    assert error["errors"][0]["value"] == "no-such-policy"


def test_a_run_that_waits_for_gpus_that_do_not_exist_ends_by_itself(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worker.simulations.progress.STALLED_ROUNDS", 300)
    text = "name,time,application,num_replicas,batch_size\na,0,cifar10,1,128\nb,0,cifar10,16,128\n"
    simulation_id = request_simulation(
        database, policies=("fifo",), trace={"kind": "csv", "text": text}, cluster="t4=1x4"
    )
    simulations.run_simulation(database, simulation_id)
    (run,) = runs_of(database, simulation_id)
    assert run.summary is not None
    assert (run.summary["complete"], run.summary["unfinished"]) == (False, 1)
