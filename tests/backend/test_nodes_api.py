"""Changes of nodes that jobs use: tried first, then made; what moves, what holds them up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlmodel import select

from backend.database import Database
from backend.models import AttemptRow, GpuHold, Job, Node
from maat.models.catalog import load_catalog

DEMO = "/api/v1/clusters/demo"
FIRST, LAST = f"{DEMO}/nodes/t4-0", f"{DEMO}/nodes/a100-1"
LAST_GPUS = range(56, 64)
Submit = Callable[..., dict[str, Any]]


@pytest.fixture
def hold(database: Database, submit: Submit) -> Callable[..., str]:
    """Have a new job hold GPUs, by their numbers in the cluster."""

    def held(gpus: list[int], gpu_type: str, **fields: Any) -> str:
        job_id: str = submit(**fields)["id"]
        with database.session_scope() as session:
            row = session.get_one(Job, job_id)
            row.state, row.gpu_type, row.gpus = "running", gpu_type, gpus
        return job_id

    return held


def tried(answer: Any) -> dict[str, Any]:
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    assert found["dry_run"] is True
    return found


def attempt_of(job_id: str, cluster_id: str, **fields: Any) -> AttemptRow:
    given = {"number": 1, "round_number": 1, "state": "running", "reports": False, "gpu_count": 1}
    given |= {"gpus_by_node": {}, "ordered_seconds": 0.0}
    return AttemptRow(job_id=job_id, cluster_id=cluster_id, **given, **fields)


def test_a_tried_drain_names_who_moves_who_holds_it_up_and_the_cost_and_changes_nothing(
    client: TestClient, hold: Callable[..., str]
) -> None:
    moves = hold([2, 3, 4], "t4", name="moves", model="bert")
    stays = hold([1], "t4", name="stays", preemptible=False)
    hold([8], "t4", name="elsewhere")
    before = client.get(DEMO).headers["ETag"]
    effect = tried(client.post(f"{FIRST}/actions/drain", params={"dry_run": True}))
    first, second = effect["jobs"]
    assert (first["job_id"], first["gpus_here"], first["gpu_count"]) == (moves, 2, 3)
    assert (second["job_id"], second["gpus_here"]) == (stays, 1)
    assert (first["may_move"], second["may_move"], effect["held_up_by"]) == (True, False, 1)
    seconds = load_catalog()["bert"].restart_seconds
    assert first["restart_seconds"] == seconds
    assert effect["restart_gpu_seconds"] == pytest.approx(seconds * 3)
    assert effect["gpus"] == [0, 1, 2, 3]
    assert effect["sentence"] == (
        "The next round takes 2 GPUs of t4-0 from 1 job: each is moved and restarted, or waits. "
        "1 job may not be preempted and keeps its GPUs until it ends."
    )
    assert client.get(DEMO).headers["ETag"] == before
    assert client.get(FIRST).json()["drained_gpus"] == []


def test_a_tried_change_counts_only_the_gpus_that_it_takes(
    client: TestClient, hold: Callable[..., str]
) -> None:
    hold([0, 1], "t4")
    change = {"params": {"dry_run": True}, "json": {"drained_gpus": [1, 2]}}
    effect = tried(client.patch(FIRST, **change))
    assert ([job["gpus_here"] for job in effect["jobs"]], effect["gpus"]) == ([1], [1, 2])
    free = tried(client.patch(FIRST, params={"dry_run": True}, json={"drained_gpus": [3]}))
    assert (free["jobs"], free["sentence"]) == (
        [],
        "No job holds these GPUs of t4-0: nothing moves.",
    )
    wrong = client.patch(FIRST, params={"dry_run": True}, json={"drained_gpus": [4]})
    assert (wrong.status_code, wrong.json()["errors"][0]["field"]) == (422, "drained_gpus")
    empty = client.patch(FIRST, params={"dry_run": True}, json={})
    assert empty.status_code == 422


def test_a_tried_removal_says_which_jobs_must_leave_first(
    client: TestClient, hold: Callable[..., str]
) -> None:
    job_id = hold([60], "a100")
    effect = tried(client.delete(LAST, params={"dry_run": True}))
    assert [job["job_id"] for job in effect["jobs"]] == [job_id]
    never = client.delete(FIRST, params={"dry_run": True})
    assert (never.status_code, "not the last node" in never.text) == (409, True)
    assert client.get(LAST).status_code == 200


def test_the_restart_of_a_command_costs_what_its_attempts_measured(
    client: TestClient, database: Database, submit: Submit
) -> None:
    body = {"name": "here", "executor": "local", "shape": "cpu=1x4"}
    cluster_id = client.post("/api/v1/clusters", json=body).json()["id"]
    job_id = submit()["id"]
    with database.session_scope() as session:
        row = session.get_one(Job, job_id)
        row.cluster_id, row.state, row.gpu_type, row.gpus = cluster_id, "running", "cpu", [0]
        times = {"queued_seconds": 0.0, "alive_seconds": 9.0, "running_seconds": 49.0}
        session.add(attempt_of(job_id, cluster_id, gpu_type="cpu", **times))
    answer = client.post(
        "/api/v1/clusters/here/nodes/cpu-0/actions/drain", params={"dry_run": True}
    )
    (job,) = tried(answer)["jobs"]
    # stop 5 assumed; queue (1 + 9) / 2; start (20 + 40) / 2; restore 4 assumed
    assert job["restart_seconds"] == pytest.approx(5 + 5 + 30 + 4)


def test_the_last_node_gets_other_gpus_and_no_other_node_does(
    client: TestClient, database: Database
) -> None:
    any_version = {"If-Match": "*"}
    refused = client.patch(FIRST, json={"gpu_count": 8}, headers=any_version)
    assert (refused.status_code, "not the last node" in refused.text) == (409, True)
    assert client.patch(LAST, json={"gpu_count": 12}).status_code == 428
    more = client.patch(LAST, json={"gpu_count": 12}, headers=any_version)
    assert (more.status_code, more.json()["gpu_count"]) == (200, 12)
    assert client.get(DEMO).json()["gpu_count"] == 68
    assert [gpu["gpu"] for gpu in client.get(f"{DEMO}/state").json()["gpus"]] == list(range(68))
    in_service = client.patch(LAST, json={"gpu_count": 6}, headers=any_version)
    assert (in_service.status_code, "GPU 6 is in service" in in_service.text) == (409, True)
    assert client.patch(LAST, json={"gpu_count": 0}, headers=any_version).status_code == 422
    unknown = client.patch(LAST, json={"gpu_count": 4, "drained_gpus": [4]}, headers=any_version)
    assert (unknown.status_code, unknown.json()["errors"][0]["code"]) == (422, "no_such_gpu")
    client.patch(LAST, json={"drained_gpus": [1, *range(6, 12)]}, headers=any_version)
    fewer = client.patch(LAST, json={"gpu_count": 6}, headers=any_version)
    assert (fewer.json()["gpu_count"], fewer.json()["drained_gpus"]) == (6, [1])
    (record,) = client.get("/api/v1/audit", params={"action": "change node", "limit": 1}).json()[
        "items"
    ]
    assert (record["before"]["gpu_count"], record["after"]["gpu_count"]) == (12, 6)


def test_gpus_that_somebody_holds_do_not_go(
    client: TestClient, database: Database, hold: Callable[..., str]
) -> None:
    any_version = {"If-Match": "*"}
    client.patch(LAST, json={"drained_gpus": [4, 5, 6, 7]}, headers=any_version)
    job_id = hold([LAST_GPUS[5]], "a100")
    fewer = {"gpu_count": 4}
    effect = tried(client.patch(LAST, params={"dry_run": True}, json=fewer))
    assert [job["job_id"] for job in effect["jobs"]] == [job_id]
    held = client.patch(LAST, json=fewer, headers=any_version)
    assert (held.status_code, "still holds" in held.text) == (409, True)
    with database.session_scope() as session:
        session.get_one(Job, job_id).gpus = [LAST_GPUS[3]]
        node = session.exec(select(Node).where(Node.name == "a100-1")).one()
        attempt = attempt_of(job_id, node.cluster_id, gpu_type="a100")
        session.add(attempt)
        session.flush()
        session.add(GpuHold(node_id=node.id, gpu_index=7, attempt_id=attempt.id))
    ending = client.patch(LAST, json=fewer, headers=any_version)
    assert (ending.status_code, "are ending" in ending.text) == (409, True)


def test_a_cluster_says_how_many_nodes_and_gpus_it_has(client: TestClient) -> None:
    shown = client.get(DEMO).json()
    assert (shown["node_count"], shown["gpu_count"]) == (11, 64)
    client.post(f"{DEMO}/nodes", json={"nodes": [{"gpu_type": "t4", "gpu_count": 4}]})
    (listed,) = client.get("/api/v1/clusters").json()["items"]
    assert (listed["node_count"], listed["gpu_count"]) == (12, 68)
