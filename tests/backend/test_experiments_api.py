"""Experiments in the API: checked before they are stored, and of one tenant."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient
from profile_samples import profiles

from backend.accounts.permissions import Role
from backend.columns import pack_json
from backend.database import Database
from backend.models import Experiment

EXPERIMENTS = "/api/v1/experiments"
CSV = (
    "name,time,application,num_replicas,batch_size\ncifar-0,0,cifar10,2,512\nbert-1,60,bert,1,24\n"
)


def autoscaling(**fields: Any) -> dict[str, Any]:
    return {"name": "rent", "cluster": "t4=4x4", "model": "cifar10"} | fields


def workload(**fields: Any) -> dict[str, Any]:
    return autoscaling(model=None, trace={"kind": "csv", "text": CSV}) | fields


def tuning(**fields: Any) -> dict[str, Any]:
    return {"name": "search", "trials": 3} | fields


def ask(client: TestClient, body: dict[str, Any]) -> Any:
    """Ask for auto-scaling, or for a search if the body has trials."""
    return client.post(
        f"{EXPERIMENTS}/{'tuning' if 'trials' in body else 'autoscaling'}", json=body
    )


def test_an_experiment_is_an_operation_of_as_many_runs_and_one_task(
    client: TestClient, queue: Any
) -> None:
    answer = ask(client, autoscaling(fixed_nodes=[1, 4]))
    made = answer.json()
    assert answer.status_code == 202, answer.text
    assert (made["kind"], made["state"], made["runs"]) == ("autoscaling", "queued", [])
    assert queue.sent == [("maat.play_next_run",)]
    operation = client.get(answer.headers["Location"]).json()
    assert (operation["kind"], operation["done"], operation["total"], operation["unit"]) == (
        "experiment",
        0,
        4,
        "runs",
    )
    assert client.get(operation["result_url"]).json() == made


def test_what_is_left_out_has_the_papers_values(client: TestClient) -> None:
    request = ask(client, tuning()).json()["request"]
    assert {name: request[name] for name in ("model", "cluster", "at_a_time", "static_gpus")} == {
        "model": "cifar10",
        "cluster": "a100=2x8",
        "at_a_time": 4,
        "static_gpus": 4,
    }
    request = ask(client, autoscaling()).json()["request"]
    assert (request["upper"], request["lower"]) == (pytest.approx(2 / 3), 0.5)


@pytest.mark.parametrize(
    ("fields", "samples"),
    [({}, 128), ({"model": "bert"}, 96), ({"model": "bert", "static_batch_per_gpu": 24}, 24)],
)
def test_a_static_batch_that_is_left_out_fits_the_model(
    client: TestClient, fields: dict[str, Any], samples: int
) -> None:
    made = ask(client, tuning(**fields))
    assert made.status_code == 202, made.text
    assert made.json()["request"]["static_batch_per_gpu"] == samples


def test_a_search_says_how_its_scores_are_made(client: TestClient) -> None:
    assert "declared, not measured" in ask(client, tuning()).json()["scores"]


def test_the_text_of_a_trace_is_kept_and_told_by_its_length(
    client: TestClient, database: Database
) -> None:
    made = ask(client, workload()).json()
    assert made["request"]["trace"] == {"kind": "csv", "text_bytes": len(CSV)}
    with database.session_scope(writes=False) as session:
        assert session.get_one(Experiment, made["id"]).request.body.trace.text == CSV


def test_an_uploaded_trace_and_profiles_are_named(client: TestClient) -> None:
    files = [{"name": "w.csv", "text": CSV}]
    client.post("/api/v1/measurements", json={"kind": "trace", "name": "mine", "files": files})
    uploaded = {"kind": "uploaded", "measurement": "mine"}
    made = ask(client, workload(trace=uploaded)).json()
    assert made["request"]["trace"]["text_bytes"] == len(CSV)
    assert client.post("/api/v1/measurements", json=profiles(name="fast")).status_code == 201
    made = ask(client, autoscaling(model="bert", profiles="fast")).json()
    assert [used["name"] for used in made["measurements"]] == ["fast"]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        (autoscaling(model="lenet"), "/model"),
        (autoscaling(model=None), "/model"),
        (autoscaling(trace={"kind": "csv", "text": CSV}), "/model"),
        (autoscaling(cluster="t4=2x4,a100=1x8"), "/cluster"),
        (autoscaling(cluster="t4=257x1"), "/cluster"),
        (autoscaling(cluster="t4"), "/cluster"),
        (autoscaling(cluster="k80=2x4"), "/model"),
        (autoscaling(upper=0.3), "/upper"),
        (autoscaling(upper=1.5), "/upper"),
        (autoscaling(window=0), "/window"),
        (autoscaling(fixed_nodes=[5]), "/fixed_nodes"),
        (autoscaling(fidelity="none"), "/fidelity"),
        (autoscaling(profiles="none"), "/profiles"),
        (autoscaling(policy="none"), "/policy"),
        (autoscaling(policy="fifo"), "/policy"),
        (workload(policy_parameters={"q": 1}), "/policy_parameters/q"),
        (workload(trace={"kind": "csv", "text": "name,time\n"}), "/trace/text"),
        (workload(trace={"kind": "generated", "jobs": 1001}), "/trace"),
        (workload(trace={"kind": "generated", "family": "none"}), "/trace/family"),
        (workload(trace={"kind": "uploaded", "measurement": "none"}), "/trace/measurement"),
        (tuning(model="lenet"), "/model"),
        (tuning(trials=0), "/trials"),
        (tuning(trials=1001), "/trials"),
        (tuning(static_gpus=17), "/static_gpus"),
        (tuning(static_batch_per_gpu=1_000_000), "/static_batch_per_gpu"),
        (tuning(work_scale=0), "/work_scale"),
        (tuning(policy="none"), "/policy"),
        (tuning(cluster="a100=9999x8"), "/cluster"),
        (autoscaling(kind="tuning"), "/kind"),
        (tuning(upper=0.5), "/upper"),
    ],
)
def test_a_bad_request_is_refused_at_its_field(
    refusing: TestClient, body: dict[str, Any], pointer: str
) -> None:
    answer = ask(refusing, body)
    assert answer.status_code == 422, answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
    errors = answer.json()["errors"]
    assert [error["pointer"] for error in errors] == [pointer], errors
    assert errors[0]["message"]


def test_another_tenant_neither_finds_nor_cancels_it(client: TestClient, client_as: Any) -> None:
    own, other = client_as(Role.SUBMITTER), client_as(Role.SUBMITTER, tenant="other")
    made = ask(own, autoscaling()).json()
    assert [one["id"] for one in own.get(EXPERIMENTS).json()["items"]] == [made["id"]]
    assert other.get(EXPERIMENTS).json()["items"] == []
    assert other.get(f"{EXPERIMENTS}/{made['id']}").status_code == 404
    operation = f"/api/v1/operations/{made['operation_id']}"
    assert other.post(f"{operation}/actions/cancel").status_code == 404
    assert ask(client_as(Role.VIEWER), tuning()).status_code == 403
    assert own.post(f"{operation}/actions/cancel").json()["state"] == "cancelled"
    assert own.get(f"{EXPERIMENTS}/{made['id']}").json()["state"] == "cancelled"


def test_measurements_of_another_tenant_cannot_be_named(client_as: Any) -> None:
    own, other = client_as(Role.SUBMITTER), client_as(Role.SUBMITTER, tenant="other")
    files = [{"name": "w.csv", "text": CSV}]
    own.post("/api/v1/measurements", json={"kind": "trace", "name": "mine", "files": files})
    body = workload(trace={"kind": "uploaded", "measurement": "mine"})
    assert ask(own, body).status_code == 202
    assert ask(other, body).status_code == 422


def test_a_list_loads_no_runs_and_says_what_cannot_be_read(
    client: TestClient, database: Database
) -> None:
    made = ask(client, autoscaling()).json()
    with database.session_scope() as session:
        row = session.get_one(Experiment, made["id"])
        row.request = pack_json({"kind": "of a later version"})  # type: ignore[assignment]
        session.add(row)
    (shown,) = client.get(EXPERIMENTS).json()["items"]
    assert "another version of Maat" in shown["unreadable"]
    assert "runs" not in shown
    assert client.get(f"{EXPERIMENTS}/{made['id']}").status_code == 409
