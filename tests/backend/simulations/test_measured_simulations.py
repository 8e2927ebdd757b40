"""Tests of simulations and sweeps with uploaded measurements.

Measurements are found by name or id, checked against trace and cluster, and kept after deletion.
"""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient
from measurement_samples import (
    BY_BATCH_SIZE,
    GAVEL,
    MEASUREMENTS,
    PAIRS,
    locality,
    pairs,
    unequal,
    uploaded,
)
from sqlmodel import select

from backend.accounts.permissions import Role
from backend.database import Database
from backend.measurements.uses import measured, uses_of
from backend.models import Measurement, Simulation
from backend.simulations.conditions import conditions_of
from maat.api.simulations import SimulationBody

SIMULATIONS, SWEEPS = "/api/v1/simulations", "/api/v1/sweeps"
GENERATED = {"kind": "generated", "family": "philly", "jobs": 5, "hours": 1}
CIFAR10 = {
    "kind": "csv",
    "text": "name,time,application,num_replicas,batch_size\na,0,cifar10,1,128\nb,0,cifar10,1,128\n",
}


def simulation(**fields: Any) -> dict[str, Any]:
    return {
        "name": "measured",
        "traces": [GENERATED],
        "cluster": "t4=2x4",
        "runs": [{"policy": "fifo", "placer": "pal"}],
    } | fields


def sweep(**fields: Any) -> dict[str, Any]:
    return {
        "name": "measured",
        "trace": GENERATED,
        "cluster": "t4=2x4",
        "vary": [{"name": "p", "values": [-1, 1]}],
    } | fields


@pytest.mark.parametrize("by", ["name", "id"])
def test_a_simulation_goes_by_uploaded_steps_across_nodes(
    client: TestClient, database: Database, by: str
) -> None:
    table = uploaded(client, locality())
    assert table["covers"] == {"a100": ["ncf"], "t4": ["bert"]}
    answer = client.post(SIMULATIONS, json=simulation(locality_penalty=table[by]))
    assert answer.status_code == 202, answer.text
    shown = answer.json()
    assert [(used["kind"], used["id"]) for used in shown["measurements"]] == [
        ("locality", table["id"])
    ]
    with database.session_scope(writes=False) as session:
        stored = session.get_one(Simulation, shown["id"])
        request = SimulationBody.model_validate(simulation(locality_penalty=table[by]))
        found = measured(session, uses_of(session, stored.operation_id), request)
        assert conditions_of(request, found).locality_penalties == {"bert": 2.5}


@pytest.mark.parametrize(
    ("penalty", "cluster", "words"),
    [
        ("no such", "t4=2x4", "There are no measurements of locality of this name"),
        ("network", "rtx=2x8", "has no row of a GPU type of this cluster"),
    ],
)
def test_steps_across_nodes_that_do_not_apply_are_refused_at_their_field(
    client: TestClient, penalty: str, cluster: str, words: str
) -> None:
    uploaded(client, locality())
    body = simulation(locality_penalty=penalty, cluster=cluster)
    answer = client.post(SIMULATIONS, json=body)
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["pointer"] == "/locality_penalty"
    assert words in error["message"]


def test_placers_may_know_what_the_models_own_steps_show(client: TestClient) -> None:
    answer = client.post(SIMULATIONS, json=simulation(locality_penalty="measured"))
    assert answer.status_code == 202, answer.text
    assert answer.json()["measurements"] == []
    request = SimulationBody.model_validate(simulation(locality_penalty="measured"))
    assert conditions_of(request).weighs_steps


def test_no_table_of_steps_across_nodes_is_called_as_the_models_own(client: TestClient) -> None:
    refused = client.post(MEASUREMENTS, json=locality(name="measured"))
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"] == "/name"
    spoilt = client.post(MEASUREMENTS, json=locality(text="model,gpu_type\nbert,t4\n"))
    assert spoilt.status_code == 422
    assert "maat measure locality" in spoilt.text


@pytest.mark.parametrize("by", ["name", "id"])
def test_a_simulation_and_a_sweep_name_measurements_by_name_or_id(
    client: TestClient, by: str
) -> None:
    gpus, table = uploaded(client, unequal()), uploaded(client, pairs())
    given = {"variability": gpus[by], "jobs_per_gpu": 2, "interference": table[by]}
    for address, body in ((SIMULATIONS, simulation(**given)), (SWEEPS, sweep(**given))):
        answer = client.post(address, json=body)
        assert answer.status_code == 202, answer.text
        shown = answer.json()
        assert [
            (used["kind"], used["id"], used["digest"], used["deleted"])
            for used in shown["measurements"]
        ] == [
            ("interference", table["id"], table["digest"], False),
            ("variability", gpus["id"], gpus["digest"], False),
        ]
        assert (
            client.get(f"{address}/{shown['id']}").json()["measurements"] == shown["measurements"]
        )


def test_work_keeps_the_measurements_it_was_asked_for_with_after_they_are_deleted(
    client: TestClient, database: Database
) -> None:
    used, unused = uploaded(client, unequal()), uploaded(client, unequal(name="unused"))
    made = client.post(SIMULATIONS, json=simulation(variability="unequal")).json()
    for one in (used, unused):
        assert client.delete(f"{MEASUREMENTS}/{one['id']}").status_code == 204
    uploaded(client, unequal(text="uuid,perf\n" + "".join(f"g{n},1\n" for n in range(9))))
    assert client.get(f"{SIMULATIONS}/{made['id']}").json()["measurements"][0]["deleted"] is True
    with database.session_scope(writes=False) as session:
        stored = session.get_one(Simulation, made["id"])
        found = measured(session, uses_of(session, stored.operation_id), stored.request)
        assert session.get(Measurement, unused["id"]) is None, "nothing was asked for with it"
        assert (
            session.exec(select(Measurement.id).where(Measurement.id == used["id"])).first()
            == used["id"]
        )
    assert found.variability is not None
    assert len(found.variability.measured["t4", "bert"].time) == 40


def test_points_of_the_same_measurements_are_the_same_points(client: TestClient) -> None:
    for name in ("one", "two"):
        uploaded(client, unequal(name=name))
    uploaded(
        client,
        unequal(name="other", text="uuid,perf\n" + "".join(f"g{n},{1 + n}\n" for n in range(9))),
    )
    keys = [
        client.post(SWEEPS, json=sweep(**given)).json()["points"][0]["key"]
        for given in ({"variability": "one"}, {"variability": "two"}, {"variability": "other"}, {})
    ]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3


def test_the_draw_is_part_of_a_points_content_and_single_measurements_serve_a_cluster_larger_than_the_measured_one(  # noqa: E501
    client: TestClient,
) -> None:
    uploaded(client, unequal())
    keys = [
        client.post(
            SWEEPS, json=sweep(variability="unequal", fidelity="pal-artifact", **draw)
        ).json()["points"][0]["key"]
        for draw in ({}, {"variability_draw": "rows"}, {"variability_draw": "medians"})
    ]
    assert len(set(keys)) == 3
    large = {"variability": "unequal", "cluster": "t4=16x4"}
    for address, body in ((SIMULATIONS, simulation(**large)), (SWEEPS, sweep(**large))):
        assert client.post(address, json=body | {"variability_draw": "rows"}).status_code == 202
        refused = client.post(address, json=body | {"variability_draw": "medians"})
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (
            422,
            "/variability",
        )


def test_of_gavels_table_a_gpu_type_may_be_chosen(client: TestClient, database: Database) -> None:
    uploaded(client, pairs(name="Gavel", text=GAVEL))
    for given, slowdown in {"Gavel": 2.0, "Gavel#p100": 4.0}.items():
        answer = client.post(
            SIMULATIONS, json=simulation(traces=[CIFAR10], jobs_per_gpu=2, interference=given)
        )
        assert answer.status_code == 202, answer.text
        with database.session_scope(writes=False) as session:
            stored = session.get_one(Simulation, answer.json()["id"])
            found = measured(session, uses_of(session, stored.operation_id), stored.request)
        assert found.interference is not None
        assert found.interference.pairs["cifar10", "cifar10"] == {1: slowdown}


def test_a_table_that_knows_job_types_by_batch_size_serves_simulations_and_sweeps(
    client: TestClient,
) -> None:
    uploaded(client, pairs(text=BY_BATCH_SIZE))
    shared = {"jobs_per_gpu": 2, "interference": "pairs"}
    for address, body in (
        (SIMULATIONS, simulation(traces=[CIFAR10])),
        (SWEEPS, sweep(trace=CIFAR10)),
    ):
        answer = client.post(address, json=body | shared)
        assert answer.status_code == 202, answer.text


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"variability": "nobody's"}, "/variability"),
    ({"variability": "pairs"}, "/variability"),
    ({"variability": "/etc/passwd"}, "/variability"),
    ({"variability": ""}, "/variability"),
    ({"variability": 1.5}, "/variability"),
    ({"variability": "unequal", "cluster": "a100=2x8"}, "/variability"),
    ({"variability": "unequal", "cluster": "t4=16x4"}, "/variability"),
    ({"jobs_per_gpu": 2, "interference": "nobody's"}, "/interference"),
    ({"jobs_per_gpu": 2, "interference": "/etc/passwd"}, "/interference"),
    ({"jobs_per_gpu": 2, "interference": "unequal"}, "/interference"),
    ({"jobs_per_gpu": 2, "interference": "pairs#p100"}, "/interference"),
    ({"jobs_per_gpu": 2, "interference": "few"}, "/interference"),
]


@pytest.mark.parametrize(("fields", "pointer"), REFUSED, ids=str)
def test_measurements_that_are_not_there_or_do_not_fit_are_refused_by_field(
    client: TestClient, queue: Any, fields: dict[str, Any], pointer: str
) -> None:
    for body in (unequal(), pairs(), pairs(name="few", text=f"{PAIRS}bert,bert,1,2\n")):
        uploaded(client, body)
    for address, body in ((SIMULATIONS, simulation()), (SWEEPS, sweep())):
        answer = client.post(address, json=body | fields)
        assert answer.status_code == 422, answer.text
        assert pointer in [error["pointer"] for error in answer.json()["errors"]]
    assert queue.sent == []


def test_a_cluster_that_a_sweep_makes_larger_than_what_was_measured_is_refused_before_anything_is_played(  # noqa: E501
    client: TestClient,
) -> None:
    uploaded(client, unequal())
    answer = client.post(
        SWEEPS, json=sweep(variability="unequal", vary=[{"name": "cluster_size", "values": [1, 8]}])
    )
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/variability")


def test_another_tenants_measurements_cannot_be_named(client_as: Any) -> None:
    made = uploaded(client_as(Role.SUBMITTER), unequal())
    other = client_as(Role.SUBMITTER, tenant="other")
    for given in (made["id"], made["name"]):
        answer = other.post(SIMULATIONS, json=simulation(variability=given))
        assert (answer.status_code, answer.json()["errors"][0]["code"]) == (
            422,
            "unknown_measurement",
        )
