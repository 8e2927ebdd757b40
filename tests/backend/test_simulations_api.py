"""Tests of simulations and operations in the API.

A request is checked as a whole before anything is stored; work is sent after the commit.
"""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient
from sqlmodel import col, func, select

from backend.clusters.repository import all_clusters
from backend.columns import pack_json
from backend.database import Database
from backend.models import Operation, Simulation, SimulationRun
from backend.simulations import traces
from backend.simulations.conditions import conditions_of
from backend.simulations.traces import workload_of
from maat.api.simulations import ClusterTrace
from maat.simulation.interference import Interference
from maat.simulation.tuned_jobs import TunedJobs
from maat.vocabulary import ProfilingMode, TuningRule

UNKNOWN_PAIRS = "job_id,num_gpus,submit_time,duration,model\n0,4,0,2000,resnet50\n"
SIMULATIONS, OPERATIONS = "/api/v1/simulations", "/api/v1/operations"
GENERATED = {"kind": "generated", "family": "philly", "jobs": 5, "hours": 1, "seed": 1}
CSV = (
    "name,time,application,num_replicas,batch_size\ncifar-0,0,cifar10,2,512\nbert-1,60,bert,1,24\n"
)


def body(**fields: Any) -> dict[str, Any]:
    runs = [
        {"policy": "sia", "policy_parameters": {"p": -1.0}},
        {"policy": "fifo", "placer": "packed-sticky", "seed": 3},
    ]
    return {
        "name": "compare",
        "traces": [GENERATED],
        "cluster": "t4=6x4,a100=2x8",
        "runs": runs,
    } | fields


def test_a_simulation_is_an_operation_that_is_sent_to_the_worker(
    client: TestClient, queue: Any
) -> None:
    answer = client.post(SIMULATIONS, json=body())
    simulation = answer.json()
    assert answer.status_code == 202
    assert answer.headers["Location"] == f"{OPERATIONS}/{simulation['operation_id']}"
    assert queue.sent == [("maat.run_simulation", simulation["id"])] * 2
    assert [
        (run["policy"], run["placer"], run["seed"], run["state"]) for run in simulation["runs"]
    ] == [
        ("sia", "whole-node", 0, "queued"),
        ("fifo", "packed-sticky", 3, "queued"),
    ]
    operation = client.get(answer.headers["Location"]).json()
    assert (operation["state"], operation["total"], operation["unit"]) == (
        "queued",
        2 * GENERATED["jobs"],
        "jobs",
    )
    assert operation["result_url"] == f"{SIMULATIONS}/{simulation['id']}"
    assert client.get(operation["result_url"]).json()["runs"] == simulation["runs"]


def test_a_trace_may_be_csv_and_its_text_is_not_shown_again(
    client: TestClient, database: Database
) -> None:
    simulation = client.post(SIMULATIONS, json=body(traces=[{"kind": "csv", "text": CSV}])).json()
    assert simulation["request"]["traces"] == [{"kind": "csv", "text_bytes": len(CSV)}]
    with database.session_scope(writes=False) as session:
        stored = session.get_one(Simulation, simulation["id"])
        workload = workload_of(session, stored.request.traces[0])
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
            session, session.get_one(Simulation, simulation["id"]).request.traces[0]
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
    asked = body(traces=[{"kind": "cluster", "cluster_id": "demo"}])
    key = {"Idempotency-Key": "once"}
    made = client.post(SIMULATIONS, json=asked, headers=key).json()
    cannot_run = job | {"model": "yolov3", "gpu_types": ["rtx"]}
    assert client.post("/api/v1/jobs", json=cannot_run).status_code == 201
    again = client.post(SIMULATIONS, json=asked, headers=key)
    assert (again.status_code, again.json()) == (202, made)
    read = client.get(f"{SIMULATIONS}/{made['id']}").json()
    (listed,) = client.get(SIMULATIONS).json()["items"]
    for answer in (made, read, listed):
        assert answer["request"]["traces"] == [{"kind": "cluster", "cluster_id": cluster_id}]
    assert client.post(SIMULATIONS, json=asked).status_code == 422, "a new request has the new job"
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
            session, ClusterTrace(kind="cluster", cluster_id=all_clusters(session)[0].id)
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


def test_a_job_that_may_use_none_of_the_clusters_gpu_types_is_refused_before_it_is_played(
    client: TestClient,
) -> None:
    header = "name,time,application,num_replicas,batch_size,gpu_types\n"
    text = f"{header}a,0,bert,1,24,t4\nb,1,bert,1,24,\n"
    refused = client.post(
        SIMULATIONS, json=body(traces=[{"kind": "csv", "text": text}], cluster="a100=1x4")
    )
    assert refused.status_code == 422
    assert "which the trace has for t4 only" in refused.json()["errors"][0]["message"]


REFUSED: list[tuple[str, dict[str, Any], str, int | None]] = [
    (
        "a missing column",
        {"kind": "csv", "text": "name,time,num_replicas\na,0,1\n"},
        "/traces/0/text",
        1,
    ),
    ("a negative time", {"kind": "csv", "text": CSV.replace(",60,", ",-60,")}, "/traces/0/text", 3),
    (
        "an unknown model",
        {"kind": "csv", "text": CSV.replace("bert,", "alexnet,")},
        "/traces/0/text",
        3,
    ),
    (
        "a time that is no number",
        {"kind": "csv", "text": CSV.replace(",60,", ",nan,")},
        "/traces/0/text",
        3,
    ),
    (
        "a count that is no number",
        {"kind": "csv", "text": CSV.replace(",1,24", ",many,24")},
        "/traces/0/text",
        3,
    ),
    ("no rows", {"kind": "csv", "text": CSV.splitlines()[0] + "\n"}, "/traces/0/text", None),
    ("a path", {"kind": "csv", "text": "/etc/passwd"}, "/traces/0/text", None),
    (
        "a binary file",
        {"kind": "csv", "text": "\x7fELF\x02\x01\n\x01\x02\x03\n"},
        "/traces/0/text",
        1,
    ),
    ("an unknown family", {**GENERATED, "family": "azure"}, "/traces/0/family", None),
]


@pytest.mark.parametrize(
    ("trace", "pointer", "row"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_a_trace_that_cannot_be_used_is_refused_with_its_row(
    client: TestClient,
    queue: Any,
    database: Database,
    trace: dict[str, Any],
    pointer: str,
    row: int | None,
) -> None:
    answer = client.post(SIMULATIONS, json=body(traces=[trace]))
    assert answer.status_code == 422, answer.text
    error = answer.json()["errors"][0]
    assert error["pointer"] == pointer
    assert error.get("row") == row
    assert (error.get("column") is None) == (row is None)
    assert error["remedy"]
    assert_nothing_stored(database, queue)


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"cluster": "t4=0x4"}, "/cluster"),
        ({"cluster": "nonsense"}, "/cluster"),
        ({"cluster": "t4=20000x64"}, "/cluster"),
        ({"cluster": "h100=2x8"}, "/cluster"),
        ({"fidelity": "exact"}, "/fidelity"),
        ({"runs": []}, "/runs"),
        ({"runs": [{}, {"policy": "luck"}]}, "/runs/1/policy"),
        ({"runs": [{"policy_parameters": {"p": "x"}}]}, "/runs/0/policy_parameters/p"),
        ({"runs": [{"placer": "luck"}]}, "/runs/0/placer"),
        ({"runs": [{"seed": -1}]}, "/runs/0/seed"),
        ({"runs": [{"seed": i} for i in range(201)]}, "/runs"),
        (
            {
                "runs": [{"seed": i} for i in range(101)],
                "traces": [GENERATED, GENERATED | {"seed": 7}],
            },
            "/runs",
        ),
        ({"traces": []}, "/traces"),
        ({"traces": [{"kind": "dream"}]}, "/traces/0"),
        ({"traces": [{**GENERATED, "jobs": 10_000_000}]}, "/traces/0/generated/jobs"),
        ({"traces": [GENERATED, GENERATED | {"seed": 7}, GENERATED]}, "/traces/2"),
        (
            {"traces": [GENERATED, {"kind": "cluster", "cluster_id": "mars"}]},
            "/traces/1/cluster_id",
        ),
        ({"name": ""}, "/name"),
        ({"profiling": "psychic"}, "/profiling"),
        ({"jobs_per_gpu": 0}, "/jobs_per_gpu"),
        ({"jobs_per_gpu": 9, "interference": 1.5}, "/jobs_per_gpu"),
        ({"jobs_per_gpu": 2}, "/interference"),
        ({"interference": 1.5}, "/interference"),
        ({"interference": 0.5}, "/interference"),
        ({"interference": "measured.csv"}, "/interference"),
        (
            {
                "jobs_per_gpu": 2,
                "interference": "synthetic",
                "cluster": "v100=1x4",
                "traces": [{"kind": "csv", "text": UNKNOWN_PAIRS}],
            },
            "/interference",
        ),
        ({"locality_penalty": "1.7"}, "/locality_penalty"),
        ({"locality_penalty": {}}, "/locality_penalty"),
        ({"locality_penalty": {"bert": None}}, "/locality_penalty"),
        ({"variability_draw": "rows"}, "/variability_draw"),
        ({"variability_draw": "by-hand"}, "/variability_draw"),
        ({"tuned": "by-hand"}, "/tuned"),
        ({"runs": [{"seed": 1}, {"seed": 2}, {"seed": 1}]}, "/runs/2"),
        ({"interference": "synthetic", "jobs_per_gpu": 1}, "/interference"),
        ({"tuned_gpus": 8}, "/tuned_gpus"),
        (
            {"round_seconds": 60, "runs": [{}, {"policy_parameters": {"round_seconds": 30}}]},
            "/runs/1/policy_parameters/round_seconds",
        ),
        ({"tuned": "any-pair", "tuned_gpus": 0}, "/tuned_gpus"),
        (
            {"runs": [{"placer": "random", "placer_parameters": {"nonsense": 1}}]},
            "/runs/0/placer_parameters/nonsense",
        ),
        (
            {"runs": [{}, {"placer_parameters": {"nonsense": 1}}]},
            "/runs/1/placer_parameters/nonsense",
        ),
        ({"rigid_share": 1.5}, "/rigid_share"),
        ({"rigid_share": 0.6, "strong_scaling_share": 0.6}, "/strong_scaling_share"),
        ({"failures": {"mtbf_hours": 0}}, "/failures/mtbf_hours"),
        ({"failures": {"mtbf_hours": 0.1}, "cluster": "t4=200x4"}, "/failures/mtbf_hours"),
        ({"failures": {"mtbf_hours": 1, "repair_seconds": -1}}, "/failures/repair_seconds"),
        (
            {"reservations": [{"gpu_type": "h100", "gpu_count": 1, "tenant": "x"}]},
            "/reservations/0",
        ),
        ({"reservations": [{"gpu_type": "t4", "gpu_count": 1}]}, "/reservations/0"),
        (
            {
                "reservations": [
                    {
                        "gpu_type": "t4",
                        "gpu_count": 1,
                        "tenant": "x",
                        "start_seconds": 9.0,
                        "end_seconds": 9.0,
                    }
                ]
            },
            "/reservations/0",
        ),
        (
            {"reservations": [{"gpu_type": "t4", "gpu_count": 1, "job": "nobody"}]},
            "/reservations/0/job",
        ),
        (
            {
                "reservations": [
                    {"gpu_type": "t4", "gpu_count": 1, "tenant": f"t{i}"} for i in range(7)
                ]
            },
            "/reservations",
        ),
    ],
    ids=str,
)
def test_a_request_that_cannot_be_simulated_is_refused_by_field(
    client: TestClient, queue: Any, database: Database, fields: dict[str, Any], pointer: str
) -> None:
    answer = client.post(SIMULATIONS, json=body(**fields))
    assert answer.status_code == 422, answer.text
    assert pointer in [error["pointer"] for error in answer.json()["errors"]]
    assert_nothing_stored(database, queue)


def test_a_trace_beyond_the_upload_limit_is_refused(
    client: TestClient, database: Database, queue: Any
) -> None:
    rows = "".join(f"job-{i},0,bert,1,24\n" for i in range(20_000))
    answer = client.post(SIMULATIONS, json=body(traces=[{"kind": "csv", "text": CSV + rows}]))
    assert answer.status_code == 413
    assert_nothing_stored(database, queue)


def test_a_queue_that_is_away_does_not_lose_the_simulation(client: TestClient, app: Any) -> None:
    class Away:
        def send(self, *_: str) -> None:
            raise ConnectionError("no broker")

    app.state.queue = Away()
    answer = client.post(SIMULATIONS, json=body())
    assert answer.status_code == 202
    assert client.get(answer.headers["Location"]).json()["state"] == "queued"


def test_a_queued_operation_is_cancelled_at_once_and_only_once(client: TestClient) -> None:
    simulation = client.post(SIMULATIONS, json=body()).json()
    cancel = f"{OPERATIONS}/{simulation['operation_id']}/actions/cancel"
    cancelled = client.post(cancel).json()
    assert (cancelled["state"], cancelled["cancelable"], cancelled["finished_at"] is None) == (
        "cancelled",
        False,
        False,
    )
    assert {
        run["state"] for run in client.get(f"{SIMULATIONS}/{simulation['id']}").json()["runs"]
    } == {"cancelled"}
    again = client.post(cancel)  # by somebody whose first answer was lost
    assert (again.status_code, again.json()["finished_at"]) == (200, cancelled["finished_at"])


def test_a_running_operation_is_asked_to_stop_and_left_to_its_worker(
    client: TestClient, database: Database
) -> None:
    simulation = client.post(SIMULATIONS, json=body()).json()
    with database.session_scope() as session:
        session.get_one(Operation, simulation["operation_id"]).state = "running"
    cancelled = client.post(f"{OPERATIONS}/{simulation['operation_id']}/actions/cancel").json()
    assert (cancelled["state"], cancelled["cancel_requested"], cancelled["cancelable"]) == (
        "running",
        True,
        False,
    )


def test_a_result_is_there_once_its_run_has_one(client: TestClient, database: Database) -> None:
    simulation = client.post(SIMULATIONS, json=body()).json()
    run_id = simulation["runs"][0]["id"]
    address = f"{SIMULATIONS}/{simulation['id']}/runs/{run_id}/result"
    early = client.get(address)
    assert early.status_code == 409
    assert "queued" in early.json()["detail"]
    result = {"summary": {"avg_jct_hours": 0.5}, "jobs": [], "contention": [[0.0, 1.0]]}
    with database.session_scope() as session:
        run = session.get_one(SimulationRun, run_id)
        run.state, run.summary, run.result = "succeeded", result["summary"], result
    nobody = {"rule": "mean-of-ratios", "worst_rho": None, "unfair_fraction": None, "jobs": 0}
    assert client.get(address).json() == result | {"allocations": {}, "fairness": nobody}
    assert client.get(f"{SIMULATIONS}/{simulation['id']}").json()["runs"][0]["summary"] == {
        "avg_jct_hours": 0.5
    }
    assert client.get(f"{SIMULATIONS}/{simulation['id']}/runs/run_none/result").status_code == 404


def test_a_result_holds_the_allocations_of_chosen_jobs_alone(
    client: TestClient, database: Database
) -> None:
    simulation = client.post(SIMULATIONS, json=body()).json()
    run_id = simulation["runs"][0]["id"]
    span = {
        "start": 0.0,
        "end": 60.0,
        "gpu_type": "t4",
        "gpu_count": 1,
        "node_count": 1,
        "total_batch_size": 128,
    }
    names = ("a", "b, c", "d")
    with database.session_scope() as session:
        run = session.get_one(SimulationRun, run_id)
        run.state = "succeeded"
        run.result = {
            "summary": {},
            "jobs": [{"name": name} for name in names],
            "allocations": {name: [span] for name in names},
        }
    address = f"{SIMULATIONS}/{simulation['id']}/runs/{run_id}/result"
    assert client.get(address).json()["allocations"] == {}
    assert client.get(address, params={"jobs": ["a", "b, c"]}).json()["allocations"] == {
        "a": [span],
        "b, c": [span],
    }
    unknown = client.get(address, params={"jobs": ["a", "nobody"]})
    assert unknown.status_code == 422
    assert [(error["pointer"], error["value"]) for error in unknown.json()["errors"]] == [
        ("/jobs", "nobody")
    ]
    assert client.get(address, params={"jobs": ["a"] * 13}).status_code == 422


def test_shared_gpus_tuned_jobs_and_parameters_of_placers_are_part_of_the_stored_request(
    client: TestClient, database: Database
) -> None:
    shared = {
        "jobs_per_gpu": 2,
        "interference": 1.25,
        "tuned": "any-pair",
        "tuned_gpus": 32,
        "profiling": "request-oracle",
    }
    runs = [
        {"policy": "sia"},
        {"policy": "fifo", "placer": "pal", "placer_parameters": {"binning": "two"}},
    ]
    answer = client.post(
        SIMULATIONS, json=body(runs=runs, traces=[GENERATED, GENERATED | {"seed": 7}], **shared)
    )
    assert answer.status_code == 202, answer.text
    with database.session_scope(writes=False) as session:
        request = session.get_one(Simulation, answer.json()["id"]).request
    assert shared.items() <= request.model_dump(mode="json").items()
    given = conditions_of(request)
    assert (given.interference, given.tuned) == (
        Interference.constant(1.25),
        TunedJobs(TuningRule.ANY_PAIR, 32),
    )
    assert [
        request.run_at(run["trace"] + 2 * i).placer_parameters
        for i, run in enumerate(answer.json()["runs"][::2])
    ] == [
        {},
        {"binning": "two"},
    ]


@pytest.mark.parametrize(
    ("fields", "pointer", "says"),
    [
        (
            {"locality_penalty": 0.5},
            "/locality_penalty",
            "is no factor of at least 1 (got 0.5). Write for example 1.7, or resnet50=1.2.",
        ),
        (
            {"locality_penalty": {"vgg19": 0.5}},
            "/locality_penalty",
            "is no factor of at least 1 (got 'vgg19=0.5')",
        ),
        (
            {"locality_penalty": {"lenet": 2}},
            "/locality_penalty",
            "is no known model (got 'lenet'). Use one of: ",
        ),
        (
            {"variability_draw": "rows"},
            "/variability_draw",
            "draws from measured GPUs, of which there are none (got 'rows').",
        ),
    ],
    ids=str,
)
def test_a_condition_is_refused_in_the_words_of_the_command_line(
    refusing: TestClient, fields: dict[str, Any], pointer: str, says: str
) -> None:
    answer = refusing.post(SIMULATIONS, json=body(**fields))
    assert answer.status_code == 422, answer.text
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]
    assert answer.json()["detail"].startswith(f"{pointer[1:]}: {says}")


def test_policies_and_placers_may_lack_what_they_are_for_as_on_the_command_line(
    client: TestClient,
) -> None:
    """Their results say so in a note."""
    runs = [{"policy": "fifo", "placer": "pal"}, {"policy": "sjf-bsbf"}, {"policy": "sjf-ffs"}]
    assert client.post(SIMULATIONS, json=body(runs=runs)).status_code == 202


@pytest.mark.parametrize(
    "path", [SIMULATIONS, OPERATIONS, "/api/v1/jobs", "/api/v1/policies", "/api/v1/measurements"]
)
def test_query_parameters_that_there_are_none_of_are_refused(
    refusing: TestClient, path: str
) -> None:
    refused = refusing.get(path, params={"stat": "queued", "limi/t": 3})
    assert refused.status_code == 422, refused.text
    assert [error["pointer"] for error in refused.json()["errors"]] == ["/stat", "/limi~1t"]


@pytest.mark.parametrize("mode", list(ProfilingMode))
def test_every_profiling_mode_of_the_library_can_be_asked_for(
    client: TestClient, mode: ProfilingMode
) -> None:
    assert (
        client.post(SIMULATIONS, json=body(profiling=mode.value)).json()["request"]["profiling"]
        == mode.value
    )


def test_runs_that_differ_by_a_parameter_of_the_placer_are_compared_as_two(
    client: TestClient, database: Database
) -> None:
    runs = [
        {"policy": "fifo", "placer": "pal", "placer_parameters": {"binning": rule}}
        for rule in ("silhouette", "two")
    ]
    simulation = client.post(SIMULATIONS, json=body(runs=runs)).json()
    for run in simulation["runs"]:
        finish(database, run["id"], [1.0, 2.0])
    found = client.get(f"{SIMULATIONS}/{simulation['id']}/comparison").json()
    assert [c["variant"] for c in found["contestants"]] == ["binning=silhouette", "binning=two"]
    assert [c["name"] for c in found["contestants"]] == [r["name"] for r in simulation["runs"]]


def test_runs_of_a_policy_with_rounds_of_their_own_are_compared_apart(
    client: TestClient, database: Database
) -> None:
    runs = [{"policy": "fifo"}, {"policy": "fifo", "round_seconds": 300}]
    simulation = client.post(SIMULATIONS, json=body(runs=runs, round_seconds=60)).json()
    assert [run["round_seconds"] for run in simulation["request"]["runs"]] == [None, 300.0]
    for run in simulation["runs"]:
        finish(database, run["id"], [1.0, 2.0])
    found = client.get(f"{SIMULATIONS}/{simulation['id']}/comparison").json()
    assert [c["variant"] for c in found["contestants"]] == ["", "round_seconds=300"]
    names = [c["name"] for c in found["contestants"]]
    assert names == [run["name"] for run in simulation["runs"]]
    assert names[1].startswith("fifo (round_seconds=300) + ")
    refused = client.post(SIMULATIONS, json=body(runs=[{"round_seconds": 0}]))
    assert refused.json()["errors"][0]["pointer"] == "/runs/0/round_seconds"


def test_every_run_is_played_on_every_trace(client: TestClient) -> None:
    made = client.post(SIMULATIONS, json=body(traces=[GENERATED, GENERATED | {"seed": 7}])).json()

    assert [(run["policy"], run["trace"]) for run in made["runs"]] == [
        ("sia", 0),
        ("sia", 1),
        ("fifo", 0),
        ("fifo", 1),
    ]


def test_runs_are_compared_job_by_job_over_what_both_have_finished(
    client: TestClient, database: Database
) -> None:
    runs = [{"policy": policy, "seed": seed} for policy in ("sia", "fifo") for seed in (0, 1)]
    simulation = client.post(SIMULATIONS, json=body(runs=runs)).json()
    address = f"{SIMULATIONS}/{simulation['id']}/comparison"
    assert client.get(address).status_code == 409
    hours = {
        ("sia", 0): [1.0, 2.0],
        ("sia", 1): [1.0, 1.0],
        ("fifo", 0): [2.0, 4.0],
        ("fifo", 1): [4.0, None],
    }
    for run in simulation["runs"]:
        finish(database, run["id"], hours[run["policy"], run["seed"]])

    found = client.get(address).json()

    assert [c["name"] for c in found["contestants"]] == ["sia + whole-node", "fifo + packed-sticky"]
    assert found["contestants"][0]["figures"]["avg_jct_hours"] == {
        "mean": 1.25,
        "deviation": pytest.approx(0.5 / 2**0.5),
        "runs": 2,
    }
    (against,) = found["paired"]
    assert (
        found["baseline"],
        against["contestant"],
        against["basis"],
        against["jobs"],
        against["left_out"],
    ) == (0, 1, "seeds", 2, 1)
    assert against["difference_hours"]["estimate"] == pytest.approx((1.5 + 3.0) / 2)
    assert client.get(address, params={"baseline": 1}).json()["paired"][0]["contestant"] == 0
    assert client.get(address, params={"baseline": 2}).json()["errors"][0]["pointer"] == "/baseline"


def finish(database: Database, run_id: str, hours: list[float | None]) -> None:
    """As the worker keeps a run whose jobs took that long."""
    jobs = [
        {"name": str(i), "jct": None if jct is None else 3600 * jct} for i, jct in enumerate(hours)
    ]
    done = [jct for jct in hours if jct is not None]
    with database.session_scope() as session:
        run = session.get_one(SimulationRun, run_id)
        run.state, run.summary = (
            "succeeded",
            {"jobs": len(jobs), "avg_jct_hours": sum(done) / len(done)},
        )
        run.result = {
            "jobs": jobs,
            "fairness": {"worst_rho": 1.0, "unfair_fraction": 0.0, "jobs": len(done)},
        }


def test_simulations_and_operations_are_listed_newest_first_in_pages(client: TestClient) -> None:
    made = [client.post(SIMULATIONS, json=body(name=f"s{i}")).json() for i in range(5)]
    first = client.get(SIMULATIONS, params={"limit": 3}).json()
    second = client.get(SIMULATIONS, params={"limit": 3, "cursor": first["next_cursor"]}).json()
    assert [item["name"] for item in first["items"] + second["items"]] == [
        "s4",
        "s3",
        "s2",
        "s1",
        "s0",
    ]
    assert len(first["items"][0]["runs"]) == 2
    client.post(f"{OPERATIONS}/{made[0]['operation_id']}/actions/cancel")
    queued = client.get(OPERATIONS, params={"state": "queued"}).json()["items"]
    assert [item["id"] for item in queued] == [item["operation_id"] for item in reversed(made[1:])]


def test_a_simulation_that_cannot_be_read_costs_only_itself(
    client: TestClient, database: Database
) -> None:
    ids = [client.post(SIMULATIONS, json=body(name=name)).json()["id"] for name in ("a", "b", "c")]
    later = sa.update(Simulation).where(col(Simulation.id) == ids[1])
    with database.session_scope() as session:
        session.connection().execute(later.values(request=pack_json({"of": "a later version"})))

    listed = client.get(SIMULATIONS).json()["items"]
    assert [item["id"] for item in listed] == ids[::-1]
    assert [bool(item["unreadable"]) for item in listed] == [False, True, False]
    assert "another version of Maat" in listed[1]["unreadable"]
    assert (listed[1]["name"], listed[1]["state"], listed[1]["request"]) == ("b", "queued", {})
    for address in ("", "/comparison", "/figures", f"/runs/{listed[1]['runs'][0]['id']}/result"):
        refused = client.get(f"{SIMULATIONS}/{ids[1]}{address}")
        assert refused.status_code == 409
        assert refused.json()["detail"] == listed[1]["unreadable"]
    cancelled = client.post(f"{OPERATIONS}/{listed[1]['operation_id']}/actions/cancel")
    assert cancelled.json()["state"] == "cancelled"


def assert_nothing_stored(database: Database, queue: Any) -> None:
    with database.session_scope(writes=False) as session:
        for table in (Simulation, SimulationRun, Operation):
            assert session.exec(select(func.count()).select_from(table)).one() == 0
    assert queue.sent == []


def test_charts_get_what_they_draw_and_no_more(client: TestClient, database: Database) -> None:
    simulation = client.post(SIMULATIONS, json=body()).json()
    address = f"{SIMULATIONS}/{simulation['id']}/figures"
    assert client.get(address).json() == {"runs": [], "definitions": {}}
    jobs = [
        {
            "name": f"j{i}",
            "model": "bert",
            "submit": 0.0,
            "finish": None if i < 30 else 3600.0 * i,
            "rho": None if i < 30 else i / 100,
        }
        for i in range(1030)
    ]
    result = {
        "jobs": [{**job, "gpu_hours_by_type": {"t4": 1.0}} for job in jobs],
        "fairness": {"worst_rho": 10.29, "unfair_fraction": 0.9, "jobs": 1000},
        "contention": [[float(i), float(i == 500)] for i in range(1500)],
        "gpu_hours_by_model_type": {"bert": {"t4": 1030.0}},
        "policy_seconds": None,
        "definitions": {"jct": "From submission to end."},
    }
    with database.session_scope() as session:
        run = session.get_one(SimulationRun, simulation["runs"][1]["id"])
        run.state, run.result = "succeeded", result
    found = client.get(address).json()
    (drawn,) = found["runs"]
    assert (drawn["id"], found["definitions"]) == (
        simulation["runs"][1]["id"],
        result["definitions"],
    )
    assert (drawn["jct_hours"]["known"], drawn["jct_hours"]["jobs"]) == (1000, 1030)
    assert drawn["jct_hours"]["points"][0] == [30.0, 1 / 1030]
    assert drawn["jct_hours"]["points"][-1] == [1029.0, 1000 / 1030], (
        "the line ends at the share that finished"
    )
    assert (
        max(
            len(drawn["jct_hours"]["points"]), len(drawn["rho"]["points"]), len(drawn["contention"])
        )
        <= 400
    )
    assert [500.0, 1.0] in drawn["contention"], "no peak is lost"
    assert (len(drawn["unfinished"]), drawn["unfinished_count"]) == (20, 30)
    assert [job["name"] for job in drawn["worst_off"]] == [
        "j1029",
        "j1028",
        "j1027",
        "j1026",
        "j1025",
    ]
    assert (drawn["gpu_hours_by_type"], drawn["gpu_hours_by_model"]) == (
        {"t4": 1030.0},
        {"bert": {"jobs": 1030, "by_type": {"t4": 1030.0}}},
    )
    refused = client.get(address, params={"runs": simulation["runs"][0]["id"]})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/runs")


def test_the_interval_of_rounds_among_the_parameters_is_sent_to_its_own_field(
    client: TestClient,
) -> None:
    run = {"policy": "sia", "policy_parameters": {"round_seconds": 60}}
    answer = client.post(SIMULATIONS, json=body(runs=[run]))
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["pointer"] == "/runs/0/policy_parameters/round_seconds"
    assert error["remedy"] == "Give it as the field round_seconds, beside policy_parameters."


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
