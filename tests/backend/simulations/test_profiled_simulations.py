"""Simulations and sweeps of uploaded profiles and traces, from the request to their figures."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient
from measurement_samples import MEASUREMENTS, uploaded
from profile_samples import profile_files, profiles, throughputs

from backend.accounts.permissions import Role
from backend.database import Database
from worker.simulations.runs import run_simulation
from worker.simulations.sweeps import run_point

SIMULATIONS, SWEEPS = "/api/v1/simulations", "/api/v1/sweeps"
TEXT = "name,time,application,num_replicas,batch_size\na,0,bert,1,32\nb,60,bert,2,32\n"
TRACE = {"kind": "csv", "text": TEXT}


def simulation(**fields: Any) -> dict[str, Any]:
    runs = [{"policy": "fifo"}]
    return {"name": "profiled", "traces": [TRACE], "cluster": "t4=2x4", "runs": runs} | fields


def sweep(**fields: Any) -> dict[str, Any]:
    vary = [{"name": "round_seconds", "values": [60, 120]}]
    shared = {"name": "profiled", "cluster": "t4=2x4", "policy": "fifo"}
    return {**shared, "trace": TRACE, "vary": vary} | fields


def upload_trace(client: TestClient, text: str = TEXT, *, name: str = "two jobs") -> dict[str, Any]:
    files = [{"name": "jobs.csv", "text": text}]
    return uploaded(client, {"kind": "trace", "name": name, "files": files})


def played(client: TestClient, database: Database, **fields: Any) -> float:
    """Mean JCT of a simulation of one run, in hours."""
    answer = client.post(SIMULATIONS, json=simulation(**fields))
    assert answer.status_code == 202, answer.text
    run_simulation(database, answer.json()["id"])
    (run,) = client.get(f"{SIMULATIONS}/{answer.json()['id']}").json()["runs"]
    assert run["error"] is None, run["error"]
    return float(run["summary"]["avg_jct_hours"])


def test_a_simulation_takes_as_long_as_the_profiles_it_names(
    client: TestClient, database: Database
) -> None:
    uploaded(client, profiles(name="fast"))
    uploaded(client, profiles(profile_files(slower=4.0), name="slow"))
    fast, slow, catalog = (
        played(client, database, **given)
        for given in ({"profiles": "fast"}, {"profiles": "slow"}, {})
    )
    assert fast < slow
    assert catalog not in (fast, slow)


def test_profiles_of_all_gpu_types_are_not_named_with_a_type(client: TestClient) -> None:
    uploaded(client, profiles(name="fast"))
    refused = client.post(SIMULATIONS, json=simulation(profiles="fast#t4"))
    assert refused.status_code == 422
    (error,) = refused.json()["errors"]
    assert (error["pointer"], error["code"]) == ("/profiles", "unknown_measurement")


def test_a_simulation_keeps_its_profiles_when_they_are_deleted_and_replaced(
    client: TestClient, database: Database
) -> None:
    first = uploaded(client, profiles())
    before = played(client, database, profiles="measured")
    asked = client.post(SIMULATIONS, json=simulation(profiles="measured")).json()
    assert client.delete(f"{MEASUREMENTS}/{first['id']}").status_code == 204
    uploaded(client, profiles(profile_files(slower=4.0)))

    run_simulation(database, asked["id"])

    shown = client.get(f"{SIMULATIONS}/{asked['id']}").json()
    assert shown["runs"][0]["summary"]["avg_jct_hours"] == before
    (used,) = shown["measurements"]
    assert (used["kind"], used["id"], used["deleted"]) == ("profiles", first["id"], True)


def test_a_run_that_needs_what_the_profiles_lack_fails_by_name(
    client: TestClient, database: Database
) -> None:
    files = profile_files()
    path = "bert/placements-aws.csv"
    files[path] = "".join(
        line for line in files[path].splitlines(keepends=True) if line[:2] not in ("3,", "4,")
    )
    uploaded(client, profiles(files))
    asked = client.post(SIMULATIONS, json=simulation(profiles="measured")).json()
    run_simulation(database, asked["id"])
    (run,) = client.get(f"{SIMULATIONS}/{asked['id']}").json()["runs"]
    assert run["state"] == "failed"
    assert "never measured for bert on t4" in run["error"]["detail"]


def test_points_of_a_sweep_are_those_of_its_profiles(
    client: TestClient, database: Database
) -> None:
    uploaded(client, profiles(name="fast"))
    uploaded(client, profiles(profile_files(slower=4.0), name="slow"))
    hours = []
    for given in ({"profiles": "fast"}, {"profiles": "slow"}):
        made = client.post(SWEEPS, json=sweep(**given))
        assert made.status_code == 202, made.text
        for point in made.json()["points"]:
            run_point(database, point["key"])
        points = client.get(f"{SWEEPS}/{made.json()['id']}").json()["points"]
        hours.append([point["figures"]["avg_jct_hours"] for point in points])
    assert max(hours[0]) < min(hours[1])


def test_an_uploaded_trace_is_played_as_its_text_and_stays_when_it_is_deleted(
    client: TestClient, database: Database
) -> None:
    made = upload_trace(client)
    by_name = {"kind": "uploaded", "measurement": "two jobs"}
    by_id = {"kind": "uploaded", "measurement": made["id"]}
    assert played(client, database, traces=[by_name]) == played(client, database)
    assert client.post(SWEEPS, json=sweep(trace=by_id)).status_code == 202
    asked = client.post(SIMULATIONS, json=simulation(traces=[by_id])).json()
    client.delete(f"{MEASUREMENTS}/{made['id']}")
    run_simulation(database, asked["id"])
    shown = client.get(f"{SIMULATIONS}/{asked['id']}").json()
    assert shown["runs"][0]["state"] == "succeeded"
    assert shown["request"]["traces"] == [
        {"kind": "csv", "name": "two jobs", "text_bytes": len(TEXT)}
    ]


def test_a_trace_of_models_that_only_a_table_has_is_played_with_that_table(
    client: TestClient, database: Database
) -> None:
    text = (
        "ResNet-18 (batch size 32)\tpython3 main.py\timage_classification/cifar10\t--num_steps"
        "\t1\t6252\t1\tstatic\t1\t-1.000000\t{}\t55\n"
    )
    upload_trace(client, text.format(0) + text.format(60), name="own")
    for rate in (5.0, 10.0):
        uploaded(client, profiles({"t.json": throughputs(rate=rate)}, name=f"at {rate:g}"))
    fields = {"traces": [{"kind": "uploaded", "measurement": "own"}], "cluster": "v100=1x1"}
    slow, fast = (played(client, database, profiles=name, **fields) for name in ("at 5", "at 10"))
    assert slow > 1.8 * fast


@pytest.mark.parametrize("body", [simulation, sweep], ids=["simulation", "sweep"])
@pytest.mark.parametrize(
    ("fields", "pointer", "words"),
    [
        ({"profiles": "none"}, "/profiles", "no measurements of profiles"),
        ({"profiles": "table"}, "text", "bert"),
        ({"profiles": "measured", "cluster": "a100=1x8"}, "/cluster", "bert"),
        (
            {"profiles": "measured", "locality_penalty": {"yolov3": 2.0}},
            "/locality_penalty",
            "yolov3",
        ),
    ],
    ids=["unknown profiles", "unknown model", "unmeasured type", "penalty of no model"],
)
def test_profiles_that_do_not_apply_are_refused_at_their_field(
    client: TestClient, body: Any, fields: dict[str, Any], pointer: str, words: str
) -> None:
    uploaded(client, profiles())
    uploaded(client, profiles({"t.json": throughputs()}, name="table"))
    address = SIMULATIONS if body is simulation else SWEEPS
    answer = client.post(address, json=body(**fields))
    assert answer.status_code == 422, answer.text
    (error,) = answer.json()["errors"]
    assert error["pointer"].endswith(pointer)
    assert words in answer.text


@pytest.mark.parametrize("body", [simulation, sweep], ids=["simulation", "sweep"])
def test_a_drawn_trace_of_other_models_is_refused(client: TestClient, body: Any) -> None:
    uploaded(client, profiles(profile_files("own-model")))
    drawn = {"kind": "generated", "family": "philly", "jobs": 5, "hours": 1}
    given = {"traces": [drawn]} if body is simulation else {"trace": drawn}
    address = SIMULATIONS if body is simulation else SWEEPS
    answer = client.post(address, json=body(profiles="measured", **given))
    assert answer.status_code == 422, answer.text
    assert "own-model" in answer.text


def test_another_tenants_profiles_and_traces_have_no_names(client_as: Any) -> None:
    owner, other = client_as(Role.SUBMITTER), client_as(Role.SUBMITTER, tenant="other")
    made, trace = uploaded(owner, profiles()), upload_trace(owner)
    asked = [
        simulation(profiles="measured"),
        simulation(profiles=made["id"]),
        simulation(traces=[{"kind": "uploaded", "measurement": "two jobs"}]),
        simulation(traces=[{"kind": "uploaded", "measurement": trace["id"]}]),
    ]
    answers = [other.post(SIMULATIONS, json=body) for body in asked]
    assert {answer.status_code for answer in answers} == {422}
    assert {answer.json()["errors"][0]["code"] for answer in answers} == {"unknown_measurement"}
    assert client_as(Role.SUBMITTER, name="colleague").post(
        SIMULATIONS, json=asked[0]
    ).status_code in (202, 403)
