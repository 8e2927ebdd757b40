"""Simulations and operations in the API: a request is checked as a whole before it is stored.

Work is sent after the commit.
"""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient
from simulation_requests import GENERATED, OPERATIONS, SIMULATIONS, body
from sqlmodel import col

from backend.columns import pack_json
from backend.database import Database
from backend.models import Operation, Simulation
from backend.simulations.conditions import conditions_of
from maat.simulation.interference import Interference
from maat.simulation.tuned_jobs import TunedJobs
from maat.vocabulary import ProfilingMode, TuningRule


def test_a_simulation_is_an_operation_that_is_sent_to_the_worker(
    client: TestClient, queue: Any
) -> None:
    answer = client.post(SIMULATIONS, json=body())
    simulation = answer.json()
    assert answer.status_code == 202
    assert answer.headers["Location"] == f"{OPERATIONS}/{simulation['operation_id']}"
    assert queue.sent == [("maat.play_next_run",)]
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


@pytest.mark.parametrize("mode", list(ProfilingMode))
def test_every_profiling_mode_of_the_library_can_be_asked_for(
    client: TestClient, mode: ProfilingMode
) -> None:
    assert (
        client.post(SIMULATIONS, json=body(profiling=mode.value)).json()["request"]["profiling"]
        == mode.value
    )


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
