"""Simulations that the API refuses, by field; nothing is stored of them."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient
from simulation_requests import CSV, GENERATED, OPERATIONS, SIMULATIONS, body
from sqlmodel import func, select

from backend.database import Database
from backend.models import Operation, Simulation, SimulationRun

UNKNOWN_PAIRS = "job_id,num_gpus,submit_time,duration,model\n0,4,0,2000,resnet50\n"
ONE_JOB = "name,time,application,num_replicas,batch_size\nbert-1,60,bert,1,24\n"
REFUSED: list[tuple[str, dict[str, Any], str, int | None]] = [
    (
        "a missing column",
        {"kind": "csv", "text": "name,time,num_replicas\na,0,1\n"},
        "/traces/0/text",
        1,
    ),
    (
        "a negative time",
        {"kind": "csv", "text": ONE_JOB.replace(",60,", ",-60,")},
        "/traces/0/text",
        2,
    ),
    (
        "an unknown model",
        {"kind": "csv", "text": ONE_JOB.replace("bert,", "alexnet,")},
        "/traces/0/text",
        2,
    ),
    (
        "a time that is no number",
        {"kind": "csv", "text": ONE_JOB.replace(",60,", ",nan,")},
        "/traces/0/text",
        2,
    ),
    (
        "a count that is no number",
        {"kind": "csv", "text": ONE_JOB.replace(",1,24", ",many,24")},
        "/traces/0/text",
        2,
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


def assert_nothing_stored(database: Database, queue: Any) -> None:
    with database.session_scope(writes=False) as session:
        for table in (Simulation, SimulationRun, Operation):
            assert session.exec(select(func.count()).select_from(table)).one() == 0
    assert queue.sent == []


def test_a_trace_none_of_whose_jobs_may_use_the_cluster_is_refused_before_it_is_played(
    client: TestClient,
) -> None:
    header = "name,time,application,num_replicas,batch_size,gpu_types\n"
    text = f"{header}a,0,bert,1,24,t4\nb,1,bert,1,24,t4\n"
    refused = client.post(
        SIMULATIONS, json=body(traces=[{"kind": "csv", "text": text}], cluster="a100=1x4")
    )
    assert refused.status_code == 422
    assert "which the trace has for t4 only" in refused.json()["errors"][0]["message"]


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
        ({"cluster": "foo=6x4,t4=1x4"}, "/cluster"),
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
        ({"traces": [GENERATED | {"family": "sharing", "xxl_share": 0.5}]}, "/traces/0/xxl_share"),
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
        ({"least_stay_seconds": -1}, "/least_stay_seconds"),
        ({"most_moves_per_hour": 0}, "/most_moves_per_hour"),
        ({"most_moves_per_hour": 1.5}, "/most_moves_per_hour"),
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
        ({"measured_jobs": "3-1"}, "/measured_jobs", "is no window of jobs (got '3-1')."),
        (
            {"measured_jobs": "5-9"},
            "/measured_jobs",
            "lies beyond the 5 jobs of the workload (got '5-9').",
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


def test_the_interval_of_rounds_among_the_parameters_is_sent_to_its_own_field(
    client: TestClient,
) -> None:
    run = {"policy": "sia", "policy_parameters": {"round_seconds": 60}}
    answer = client.post(SIMULATIONS, json=body(runs=[run]))
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["pointer"] == "/runs/0/policy_parameters/round_seconds"
    assert error["remedy"] == "Give it as the field round_seconds, beside policy_parameters."
