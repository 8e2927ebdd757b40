"""Simulations from their stored request to their stored result, on both databases."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from live_samples import make_cluster, submit
from simulation_samples import SMALL, operation_of, request_simulation, runs_of
from sqlmodel import col

from backend.clocktime import utc_now
from backend.database import Database
from backend.models import (
    Measurement,
    MeasurementFiles,
    MeasurementUse,
    Operation,
    OperationState,
    Simulation,
    SimulationRun,
)
from backend.simulations.traces import csv_workload
from maat.simulation.interference import Interference
from maat.simulation.iteration_models import shipped_models
from maat.simulation.record import Position
from worker import simulations
from worker.progress import Progress
from worker.scenarios import scenario_of

APART = {
    "kind": "csv",
    "text": (
        "job_id,num_gpus,submit_time,duration,model\n"
        "0,4,0,20000,resnet50\n"
        "1,6,10,20000,vgg19\n"
        "2,2,10,20000,resnet50\n"
    ),
}


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
    assert "yolov3" in caplog.text


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
    simulation_id = request_simulation(database, policies=("fifo",), **asked)
    (run,) = runs_of(database, simulation_id)
    with database.session_scope(writes=False) as session:
        request = session.get_one(Simulation, simulation_id).request
    request.runs[0].placer_parameters = {"binning": "two"}
    scenario = scenario_of(request, run, csv_workload(SMALL["text"]), shipped_models())
    assert (scenario.cluster.jobs_per_gpu, scenario.conditions.interference) == (
        2,
        Interference.constant(1.25),
    )
    assert scenario.placer_parameters == {"binning": "two"}
    assert simulations.run_simulation(database, simulation_id) is OperationState.SUCCEEDED
    (run,) = runs_of(database, simulation_id)
    assert {job["adaptivity"] for job in run.result["jobs"]} == {"rigid"}


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
    text = "name,time,application,num_replicas,batch_size\na,0,cifar10,1,128\nb,-5,cifar10,1,128\n"
    simulation_id = request_simulation(database, trace={"kind": "csv", "text": text})
    assert simulations.run_simulation(database, simulation_id) is OperationState.FAILED
    error = operation_of(database, simulation_id).error
    assert error is not None
    (named,) = error["errors"]
    assert (error["status"], named["field"], named["row"]) == (422, "time", 3)
    assert named["remedy"]
    assert {run.state for run in runs_of(database, simulation_id)} == {"failed"}


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


def test_cancelling_keeps_what_was_played_until_then(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulation_id = request_simulation(database)
    reports = []

    def ask_for_the_end(progress: Progress, position: Position, message: str) -> None:
        reports.append(message)
        if len(reports) == 10:
            request_cancel(database, simulation_id)
        progress._next_at = 0.0
        original(progress, position, message)

    original = Progress.report
    monkeypatch.setattr(Progress, "report", ask_for_the_end)
    assert simulations.run_simulation(database, simulation_id) is OperationState.CANCELLED
    first, second = runs_of(database, simulation_id)
    assert (first.state, second.state, second.result) == ("cancelled", "cancelled", None)
    assert first.summary is not None
    assert (first.summary["complete"], first.summary["rounds"]) == (False, 10)
    assert operation_of(database, simulation_id).state == "cancelled"


def test_workers_that_come_together_share_the_runs(database: Database) -> None:
    simulation_id = request_simulation(database, policies=("srtf", "fifo", "las"))
    meeting = threading.Barrier(2)

    def work() -> OperationState | None:
        meeting.wait()
        return simulations.run_simulation(database, simulation_id)

    with ThreadPoolExecutor(2) as pool:
        ends = [future.result() for future in [pool.submit(work) for _ in range(2)]]

    assert OperationState.SUCCEEDED in ends
    assert [run.state for run in runs_of(database, simulation_id)] == ["succeeded"] * 3
    operation = operation_of(database, simulation_id)
    assert (operation.state, operation.done, operation.total) == ("succeeded", 9.0, 9.0)


def test_a_run_that_another_worker_is_at_is_left_to_it(database: Database) -> None:
    simulation_id = request_simulation(database)
    set_run(
        database, runs_of(database, simulation_id)[0].id, state="running", heartbeat_at=utc_now()
    )
    assert simulations.run_simulation(database, simulation_id) is None
    assert [run.state for run in runs_of(database, simulation_id)] == ["running", "succeeded"]
    assert operation_of(database, simulation_id).state == "running"


def test_the_end_that_was_asked_for_reaches_runs_whose_worker_is_gone(database: Database) -> None:
    simulation_id = request_simulation(database)
    set_run(
        database,
        runs_of(database, simulation_id)[0].id,
        state="running",
        heartbeat_at=utc_now() - timedelta(minutes=5),
    )
    request_cancel(database, simulation_id)
    assert simulations.run_simulation(database, simulation_id) is OperationState.CANCELLED
    assert [run.state for run in runs_of(database, simulation_id)] == ["cancelled", "cancelled"]


def test_a_simulation_whose_worker_is_gone_goes_on_with_the_runs_that_are_left(
    database: Database,
) -> None:
    simulation_id = request_simulation(database)
    simulations.run_simulation(database, simulation_id)
    first, second = runs_of(database, simulation_id)
    long_ago = utc_now() - timedelta(minutes=5)
    with (
        database.session_scope() as session
    ):  # as a worker leaves it that is killed in the second run
        session.connection().execute(
            sa.update(Operation).values(state="running", heartbeat_at=long_ago, finished_at=None)
        )
    set_run(
        database,
        second.id,
        state="running",
        result=None,
        summary=None,
        finished_at=None,
        heartbeat_at=long_ago,
    )
    assert simulations.waiting_simulations(database) == [(simulation_id, 1)]
    assert simulations.run_simulation(database, simulation_id) is OperationState.SUCCEEDED
    again_first, again_second = runs_of(database, simulation_id)
    assert again_first.finished_at == first.finished_at
    assert again_second.state == "succeeded"
    assert again_second.result["jobs"] == second.result["jobs"]


def test_a_run_whose_worker_is_gone_is_sent_though_another_worker_keeps_its_simulation_alive(
    database: Database,
) -> None:
    simulation_id = request_simulation(database, policies=("srtf", "fifo", "las"))
    left, played, _ = runs_of(database, simulation_id)
    long_ago = utc_now() - timedelta(minutes=5)
    set_run(database, left.id, state="running", heartbeat_at=long_ago)
    set_run(database, played.id, state="running", heartbeat_at=utc_now())
    with database.session_scope() as session:
        session.connection().execute(
            sa.update(Operation).values(state="running", heartbeat_at=utc_now())
        )

    assert simulations.waiting_simulations(database) == [(simulation_id, 1)]
    assert simulations.waiting_simulations(database) == [], "it counts as sent"
    set_run(database, left.id, heartbeat_at=long_ago)
    assert simulations.waiting_simulations(database) == [(simulation_id, 1)], "its message was lost"

    assert simulations.run_simulation(database, simulation_id) is None
    assert [run.state for run in runs_of(database, simulation_id)] == [
        "succeeded",
        "running",
        "succeeded",
    ]


def test_what_a_dead_worker_left_comes_before_what_was_requested_later(
    database: Database,
) -> None:
    first, second, third = (request_simulation(database, policies=("fifo",)) for _ in range(3))
    abandon(database, first)
    assert simulations.run_simulation(database, second) is OperationState.SUCCEEDED
    left, later = runs_of(database, first)[0], runs_of(database, second)[0]
    assert (left.state, operation_of(database, first).state) == ("succeeded", "succeeded")
    assert left.finished_at <= later.started_at  # type: ignore[operator]
    assert runs_of(database, third)[0].state == "queued"


def test_what_a_dead_worker_left_waits_for_the_run_that_is_played_and_not_for_the_next(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = request_simulation(database, policies=("fifo",))
    second = request_simulation(database, policies=("fifo", "srtf"))
    real, playing = simulations.simulate, []

    def simulate(scenario: Any, **given: Any) -> Any:
        if not playing:  # the worker of the first dies while this one is at the second
            abandon(database, first)
        playing.append(scenario)
        return real(scenario, **given)

    monkeypatch.setattr(simulations, "simulate", simulate)
    assert simulations.run_simulation(database, second) is OperationState.SUCCEEDED
    moments = [
        (run.started_at, run.simulation_id)
        for work in (first, second)
        for run in runs_of(database, work)
    ]
    assert [work for _, work in sorted(moments)] == [second, first, second]  # type: ignore[type-var]
    assert operation_of(database, second).done == 6.0


def test_what_a_dead_worker_left_of_a_later_request_does_not_come_first(
    database: Database,
) -> None:
    first, second = (request_simulation(database, policies=("fifo",)) for _ in range(2))
    abandon(database, second)
    assert simulations.run_simulation(database, first) is OperationState.SUCCEEDED
    assert runs_of(database, second)[0].state == "running"


def test_a_simulation_that_a_worker_is_at_is_not_sent_again(database: Database) -> None:
    request_simulation(database)
    with database.session_scope() as session:
        session.connection().execute(
            sa.update(Operation).values(state="running", heartbeat_at=utc_now())
        )
    assert simulations.waiting_simulations(database) == []


def test_a_waiting_simulation_is_sent_once_and_again_only_much_later(database: Database) -> None:
    simulation_id = request_simulation(database)
    assert simulations.waiting_simulations(database) == [(simulation_id, 2)]
    assert simulations.waiting_simulations(database) == []
    with database.session_scope() as session:
        session.connection().execute(
            sa.update(Operation).values(heartbeat_at=utc_now() - timedelta(minutes=2))
        )
    assert simulations.waiting_simulations(database) == [(simulation_id, 2)]


def test_a_run_that_waits_for_gpus_that_do_not_exist_ends_by_itself(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worker.progress.STALLED_ROUNDS", 300)
    text = "name,time,application,num_replicas,batch_size\na,0,cifar10,1,128\nb,0,cifar10,16,128\n"
    simulation_id = request_simulation(
        database, policies=("fifo",), trace={"kind": "csv", "text": text}, cluster="t4=1x4"
    )
    simulations.run_simulation(database, simulation_id)
    (run,) = runs_of(database, simulation_id)
    assert run.summary is not None
    assert (run.summary["complete"], run.summary["unfinished"]) == (False, 1)


def set_run(database: Database, run_id: str, **values: object) -> None:
    with database.session_scope() as session:
        session.connection().execute(
            sa.update(SimulationRun).where(col(SimulationRun.id) == run_id).values(**values)
        )


def abandon(database: Database, simulation_id: str) -> None:
    """Leave a simulation as a worker that died long ago did."""
    long_ago = utc_now() - timedelta(minutes=5)
    left = {"state": "running", "heartbeat_at": long_ago, "started_at": long_ago}
    (run,) = runs_of(database, simulation_id)
    set_run(database, run.id, **left)
    operation = operation_of(database, simulation_id).id
    with database.session_scope() as session:
        session.connection().execute(
            sa.update(Operation).where(col(Operation.id) == operation).values(**left)
        )


def request_cancel(database: Database, simulation_id: str) -> None:
    operation_id = operation_of(database, simulation_id).id
    with database.session_scope() as session:
        operation = session.get_one(Operation, operation_id)
        operation.cancel_requested = True
        session.add(operation)


def test_a_run_is_played_with_the_measurements_it_was_asked_for_with_also_once_they_are_deleted(
    database: Database,
) -> None:
    simulation_id = request_simulation(
        database, policies=("fifo", "fifo"), cluster="t4=1x4", variability="unequal"
    )
    measure(database, simulation_id, "".join(f"gpu-{n},{1 if n < 3 else 30}\n" for n in range(5)))

    assert simulations.run_simulation(database, simulation_id) is OperationState.SUCCEEDED

    unequal = [
        run.summary["avg_jct_hours"] for run in runs_of(database, simulation_id) if run.summary
    ]
    alike_id = request_simulation(database, policies=("fifo",), cluster="t4=1x4")
    simulations.run_simulation(database, alike_id)
    alike = [run.summary["avg_jct_hours"] for run in runs_of(database, alike_id) if run.summary]
    assert unequal[0] == unequal[1] > alike[0]


def test_how_scores_are_drawn_and_what_nodes_apart_cost_change_what_a_run_finds(
    database: Database,
) -> None:
    alike: dict[str, Any] = {
        "policies": ("fifo",),
        "cluster": "v100=2x4",
        "fidelity": "pal-artifact",
        "trace": APART,
    }
    unequal = alike | {"variability": "unequal"}
    slow_once = "".join(
        f"gpu-{n},{30 if (n, time) == (0, 0) else 1 + n / 20}\n"
        for n in range(10)
        for time in range(5)
    )

    hours = [
        played(database, slow_once, **asked)
        for asked in (
            alike,
            alike | {"locality_penalty": 3.0},
            alike | {"locality_penalty": {"vgg19": 3.0}},
            alike | {"locality_penalty": {"resnet50": 3.0}},
            unequal,
            unequal | {"variability_draw": "medians"},
        )
    ]

    plain, of_all, of_the_one_on_both_nodes, of_another, rows, medians = hours
    assert of_all == of_the_one_on_both_nodes > plain == of_another
    assert len({plain, rows, medians}) == 3


def played(database: Database, times: str, **asked: Any) -> float:
    """Mean JCT of the one run."""
    simulation_id = request_simulation(database, **asked)
    if "variability" in asked:
        measure(database, simulation_id, times)
    assert simulations.run_simulation(database, simulation_id) is OperationState.SUCCEEDED
    (run,) = runs_of(database, simulation_id)
    assert run.summary is not None
    return float(run.summary["avg_jct_hours"])


def measure(database: Database, simulation_id: str, times: str) -> None:
    """Store measurements that the simulation asked for and that were deleted since.

    `times`: rows of uuid and perf, for every application.
    """
    with database.session_scope() as session:
        stored = session.get_one(Simulation, simulation_id)
        given = {
            "kind": "variability",
            "name": "unequal",
            "owner_id": stored.owner_id,
            "tenant_id": stored.tenant_id,
            "digest": "",
        }
        gpus = Measurement(**given, files=[], covers={}, deleted_at=utc_now())
        session.add(gpus)
        session.flush()
        gpu_type = stored.request.cluster.partition("=")[0]
        texts = {
            f"{application}-{gpu_type}.csv": "uuid,perf\n" + times
            for application in ("resnet", "bert", "pagerank")
        }
        session.add(MeasurementFiles(measurement_id=gpus.id, texts=texts))
        session.add(
            MeasurementUse(
                operation_id=stored.operation_id, kind="variability", measurement_id=gpus.id
            )
        )
