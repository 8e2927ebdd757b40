"""The traces of a simulation in the API: text, a cluster's history, iterations."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient
from simulation_requests import CSV, GENERATED, OPERATIONS, SIMULATIONS, body

from backend.clusters.repository import all_clusters
from backend.database import Database
from backend.models import Simulation
from backend.simulations import traces
from backend.simulations.traces import workload_of
from maat.api.simulations import ClusterTrace
from maat.laboratory.requested import shipped_models


def test_a_trace_may_be_csv_and_its_text_is_not_shown_again(
    client: TestClient, database: Database
) -> None:
    simulation = client.post(SIMULATIONS, json=body(traces=[{"kind": "csv", "text": CSV}])).json()
    assert simulation["request"]["traces"] == [{"kind": "csv", "text_bytes": len(CSV)}]
    with database.session_scope(writes=False) as session:
        stored = session.get_one(Simulation, simulation["id"])
        workload = workload_of(session, stored.request.traces[0], shipped_models())
    assert [(job.name, job.model, job.submit_seconds) for job in workload.jobs] == [
        ("cifar-0", "cifar10", 0.0),
        ("bert-1", "bert", 60.0),
    ]


def test_a_trace_may_be_the_jobs_that_a_cluster_has_had(
    client: TestClient, database: Database
) -> None:
    trace = {"kind": "cluster", "cluster_id": "demo"}
    empty = client.post(SIMULATIONS, json=body(traces=[trace]))
    assert empty.status_code == 422
    assert empty.json()["errors"][0]["pointer"] == "/traces/0/cluster_id"
    client.post(
        "/api/v1/jobs", json={"name": "train", "model": "bert", "work_scale": 0.5, "gpu_count": 2}
    )
    client.post("/api/v1/jobs", json={"name": "train", "model": "ncf"})
    simulation = client.post(SIMULATIONS, json=body(traces=[trace])).json()
    with database.session_scope(writes=False) as session:
        workload = workload_of(
            session,
            session.get_one(Simulation, simulation["id"]).request.traces[0],
            shipped_models(),
        )
    assert [(job.model, job.gpu_count, job.work_scale) for job in workload.jobs] == [
        ("bert", 2, 0.5),
        ("ncf", 1, 1.0),
    ]
    assert workload.jobs[0].submit_seconds == 0.0


def test_a_clusters_history_is_answered_without_its_jobs_and_the_same_under_one_key(
    client: TestClient, database: Database
) -> None:
    job = {"name": "train", "model": "bert"}
    client.post("/api/v1/jobs", json=job)
    with database.session_scope(writes=False) as session:
        cluster_id = all_clusters(session)[0].id
    asked = body(traces=[{"kind": "cluster", "cluster_id": "demo"}], cluster="t4=6x4")
    key = {"Idempotency-Key": "once"}
    made = client.post(SIMULATIONS, json=asked, headers=key).json()
    cannot_run = job | {"model": "gpt"}  # on no t4
    assert client.post("/api/v1/jobs", json=cannot_run).status_code == 201
    again = client.post(SIMULATIONS, json=asked, headers=key)
    assert (again.status_code, again.json()) == (202, made)
    read = client.get(f"{SIMULATIONS}/{made['id']}").json()
    (listed,) = client.get(SIMULATIONS).json()["items"]
    for answer in (made, read, listed):
        assert answer["request"]["traces"] == [{"kind": "cluster", "cluster_id": cluster_id}]
    client.post("/api/v1/jobs", json=job)
    later = client.post(SIMULATIONS, json=asked).json()
    counts = [
        client.get(f"{OPERATIONS}/{each['operation_id']}").json()["total"] for each in (made, later)
    ]
    assert counts == [2, 4], "a new request has the new job that can run"
    sent_back = body(traces=[{"kind": "cluster", "cluster_id": "demo", "text": CSV}])
    assert client.post(SIMULATIONS, json=sent_back).status_code == 422


def test_a_replayed_job_keeps_what_bound_it_and_what_it_does(
    client: TestClient, database: Database
) -> None:
    bound = {"adaptivity": "rigid", "gpu_count": 2, "batch_size": 24, "preemptible": False}
    serves = {"workload_kind": "latency-inference", "batch_size": 16, "promised_seconds": 0.5}
    for fields in (bound, serves, {}):
        assert (
            client.post(
                "/api/v1/jobs", json={"name": "train", "model": "bert", **fields}
            ).status_code
            == 201
        )
    with database.session_scope(writes=False) as session:
        first, second, third = workload_of(
            session,
            ClusterTrace(kind="cluster", cluster_id=all_clusters(session)[0].id),
            shipped_models(),
        ).jobs
    assert (first.adaptivity, first.preemptible, first.batch_size, first.tenant) == (
        "rigid",
        False,
        24,
        "default",
    )
    assert (second.workload_kind, second.promised_seconds, third.adaptivity) == (
        "latency-inference",
        0.5,
        None,
    )


def test_a_trace_of_iterations_is_simulated_on_the_gpu_types_that_its_models_are_known_for(
    client: TestClient, database: Database
) -> None:
    trace = {
        "kind": "csv",
        "text": "job_id,num_gpus,submit_time,duration,model\n0,4,0,2000,resnet50\n",
    }
    answer = client.post(SIMULATIONS, json=body(traces=[trace], cluster="v100=2x4"))
    assert answer.status_code == 202, answer.text
    refused = client.post(SIMULATIONS, json=body(traces=[trace], cluster="t4=2x4"))
    assert refused.status_code == 422
    error = refused.json()["errors"][0]
    assert (error["pointer"], error["remedy"]) == ("/cluster", "It runs on v100, rtx5000, a100.")


def test_a_trace_that_was_sent_as_text_is_kept_for_another_simulation(client: TestClient) -> None:
    sent = [{"kind": "csv", "text": CSV}, {"kind": "generated", "jobs": 3}]
    made = client.post(SIMULATIONS, json=body(traces=sent)).json()

    kept = client.get(f"{SIMULATIONS}/{made['id']}/traces/0")
    drawn = client.get(f"{SIMULATIONS}/{made['id']}/traces/1")

    assert kept.json() == {"text": CSV}
    assert (drawn.status_code, client.get(f"{SIMULATIONS}/{made['id']}/traces/2").status_code) == (
        404,
        404,
    )
    assert "sent with no text as trace 1" in drawn.json()["detail"]


def test_a_replay_says_how_many_jobs_of_a_long_history_it_leaves_out(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        job = {"name": f"job {number}", "model": "bert"}
        assert client.post("/api/v1/jobs", json=job).status_code == 201
    asked = body(traces=[{"kind": "cluster", "cluster_id": "demo"}])
    whole = client.post(SIMULATIONS, json=asked).json()
    monkeypatch.setattr(traces, "MAX_SIMULATED_JOBS", 2)
    cut = client.post(SIMULATIONS, json=asked).json()

    assert "left_out" not in whole["request"]["traces"][0]
    assert cut["request"]["traces"][0]["left_out"] == 1


def test_every_run_is_played_on_every_trace(client: TestClient) -> None:
    made = client.post(SIMULATIONS, json=body(traces=[GENERATED, GENERATED | {"seed": 7}])).json()

    assert [(run["policy"], run["trace"]) for run in made["runs"]] == [
        ("sia", 0),
        ("sia", 1),
        ("fifo", 0),
        ("fifo", 1),
    ]
