"""Tests of rounds in the API: the list, one round with its matrix, the timeline and health."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from fastapi import FastAPI
from fastapi.testclient import TestClient
from round_rows import round_row
from sqlmodel import select

from backend.accounts.permissions import Role
from backend.clocktime import utc_now
from backend.database import Database
from backend.models import Cluster, Job, JobAllocation, Node, Round

DEMO = "/api/v1/clusters/demo"
HEALTH = "/api/v1/health"
RECORD = {
    "round": 1,
    "job_ids": ["job_a"],
    "pairs": {"job": [0], "column": [0], "goodput": [12.5], "utility": None},
    "chosen": [0],
    "configurations": [{"gpu_type": "t4", "gpu_count": 4, "node_count": 1}],
}


def busy_round(cluster_id: str, number: int, **columns: Any) -> Round:
    given: dict[str, Any] = {
        "active_jobs": 3,
        "running_jobs": number % 3,
        "pending_jobs": 3 - number % 3,
        "gpus_used": 4 * (number % 3),
        "gpus_total": 64,
        "changes": 1,
        "method": "price",
        "objective": 1.5,
        "bound": 1.5,
        "gap": 0.0,
        "solve_seconds": 0.01,
        "policy_seconds": 0.02,
        "place_seconds": 0.001,
        "prices": {"t4": 0.25},
        "gpus_by_type": {"t4": {"used": 4 * (number % 3), "capacity": 24}},
        "record": RECORD,
    }
    return round_row(cluster_id, number, **(given | columns))


@pytest.fixture
def cluster(client: TestClient, database: Database) -> Cluster:
    """The demo cluster with rounds 1 to 20, a minute apart."""
    with database.session_scope() as session:
        found = session.exec(select(Cluster)).one()
        session.add_all(busy_round(found.id, number) for number in range(1, 21))
        found.next_round_number = 21
    return found


def test_rounds_come_newest_first_in_pages_without_their_records(
    client: TestClient, cluster: Cluster, app: FastAPI
) -> None:
    statements: list[str] = []
    sa.event.listen(
        app.state.database.engine, "before_cursor_execute", lambda *args: statements.append(args[2])
    )
    first = client.get(f"{DEMO}/rounds", params={"limit": 15}).json()
    second = client.get(
        f"{DEMO}/rounds", params={"limit": 15, "cursor": first["next_cursor"]}
    ).json()
    assert [found["number"] for found in first["items"] + second["items"]] == list(range(20, 0, -1))
    assert second["next_cursor"] is None
    assert "record" not in first["items"][0]
    assert not [statement for statement in statements if "rounds.record" in statement]


def test_one_round_has_its_matrix_and_its_certificate(client: TestClient, cluster: Cluster) -> None:
    found = client.get(f"{DEMO}/rounds/7").json()
    beside = {"others": [], "runner_up": [None], "alone": [None], "why": [[]]}
    assert found["record"] == {**RECORD, **beside}
    assert (found["number"], found["gap"], found["prices"]) == (7, 0.0, {"t4": 0.25})
    assert (found["gpus_by_type"], found["capacity_by_type"]) == ({"t4": 4}, {"t4": 24})
    assert client.get(f"{DEMO}/rounds/latest").json()["number"] == 20


@pytest.mark.parametrize(
    ("number", "status"),
    [("21", 404), ("0", 422), ("-1", 422), ("abc", 422), ("9" * 30, 422), ("1.5", 422)],
)
def test_a_round_that_is_not_there_is_a_problem(
    client: TestClient, cluster: Cluster, number: str, status: int
) -> None:
    assert client.get(f"{DEMO}/rounds/{number}").status_code == status


def test_rounds_are_chosen_by_cluster_time(client: TestClient, cluster: Cluster) -> None:
    after, before = (cluster.epoch + timedelta(seconds=60.0 * number) for number in (5, 9))
    found = client.get(
        f"{DEMO}/rounds", params={"after": after.isoformat(), "before": before.isoformat()}
    ).json()
    assert [item["number"] for item in found["items"]] == [8, 7, 6]


@pytest.mark.parametrize("points", [2, 3, 7, 20, 2000])
def test_a_timeline_is_reduced_to_the_points_asked_for_and_ends_with_the_latest_round(
    client: TestClient, cluster: Cluster, points: int
) -> None:
    timeline = client.get(f"{DEMO}/timeline", params={"points": points}).json()
    running = timeline["series"]["running_jobs"]
    assert 1 < len(running["at"]) == len(running["value"]) == timeline["points"] <= points
    assert running["value"][-1] == 20 % 3
    assert timeline["series"]["capacity_by_type"]["t4"]["value"] == [24] * timeline["points"]


def test_a_timeline_shows_every_round_where_there_is_room(
    client: TestClient, cluster: Cluster
) -> None:
    series = client.get(f"{DEMO}/timeline").json()["series"]
    assert series["gpus_used_by_type"]["t4"]["value"] == [
        4 * (number % 3) for number in range(1, 21)
    ]
    assert series["pending_jobs"]["value"] == [3 - number % 3 for number in range(1, 21)]
    numbers = client.get(f"{DEMO}/timeline", params={"points": 3}).json()["round_numbers"]
    assert numbers == [10, 20]


def test_the_record_of_a_round_is_kept_compressed(cluster: Cluster, database: Database) -> None:
    with database.engine.connect() as connection:
        raw = connection.execute(sa.text("SELECT record FROM rounds LIMIT 1")).scalar_one()
    assert bytes(raw)[:1] == b"\x78"


def test_a_round_is_unique_by_cluster_and_number(cluster: Cluster, database: Database) -> None:
    with pytest.raises(sa.exc.IntegrityError), database.session_scope() as session:
        session.add(busy_round(cluster.id, 20))


def test_the_state_of_a_past_round_is_what_that_round_left(
    client: TestClient,
    cluster: Cluster,
    database: Database,
    client_as: Callable[..., TestClient],
) -> None:
    job = client.post("/api/v1/jobs", json={"name": "train", "model": "bert"}).json()["id"]
    with database.session_scope() as session:
        shared = {"job_id": job, "cluster_id": cluster.id, "node_count": 1}
        for first, last, gpu_type, gpus in (
            (2, 3, "t4", [0, 1]),
            (3, 5, "t4", [2]),
            (5, None, "a100", [3, 63]),  # GPU 3 was an a100 before the nodes changed
        ):
            span = {"gpu_type": gpu_type, "gpu_count": len(gpus), "gpus": gpus}
            ends = None if last is None else 60.0 * last
            row = JobAllocation(
                **shared, **span, round_number=first, from_seconds=60.0 * first, to_seconds=ends
            )
            session.add(row)
        session.exec(select(Node).where(Node.name == "t4-0")).one().drained_gpus = [0]

    def held(number: int, of: TestClient = client) -> tuple[list[int], set[str | None]]:
        state = of.get(f"{DEMO}/state", params={"round": number}).json()
        cells = [cell for cell in state["gpus"] if cell["held"]]
        assert state["round_number"] == number
        assert not any(cell["drained"] for cell in state["gpus"])
        return [cell["gpu"] for cell in cells], {cell["job_id"] for cell in cells}

    assert [held(number)[0] for number in (1, 2, 3, 4, 5, 20)] == [[], [0, 1], [2], [2], [63], [63]]
    assert held(2)[1] == {job}
    assert held(2, client_as(Role.VIEWER, tenant="other"))[1] == {"other-1"}
    assert client.get(f"{DEMO}/state", params={"round": 21}).status_code == 404
    assert client.get(f"{DEMO}/state", params={"round": 0}).status_code == 422


def test_what_changed_since_a_round_is_told_job_by_job(
    client: TestClient,
    cluster: Cluster,
    database: Database,
    client_as: Callable[..., TestClient],
) -> None:
    spans = {
        "stays": [(2, None, "t4", 1)],
        "left": [(3, 20, "t4", 2)],
        "gone before": [(3, 5, "t4", 2)],
        "same size": [(3, 20, "t4", 2), (20, None, "t4", 2)],
        "moved": [(2, 19.5, "t4", 1), (19.5, 20, "rtx", 8), (20, None, "a100", 4)],
        "began": [(20, None, "a100", 8)],
    }
    for name, lived in spans.items():
        job = client.post("/api/v1/jobs", json={"name": name, "model": "bert"}).json()["id"]
        with database.session_scope() as session:
            for first, last, gpu_type, gpu_count in lived:
                ends = None if last is None else 60.0 * last
                session.add(
                    JobAllocation(
                        job_id=job,
                        cluster_id=cluster.id,
                        round_number=int(first),
                        from_seconds=60.0 * first,
                        to_seconds=ends,
                        gpu_type=gpu_type,
                        gpu_count=gpu_count,
                        node_count=1,
                    )
                )

    def changes(of: TestClient = client, **query: int) -> dict[str, Any]:
        answer: dict[str, Any] = of.get(f"{DEMO}/changes", params=query).json()
        return answer

    def told(answer: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
        return {
            one["job_name"]: tuple(
                held and (held["gpu_type"], held["gpu_count"])
                for held in (one["before"], one["after"])
            )
            for one in answer["changes"]
        }

    assert changes()["since_round"] == 19
    assert told(changes()) == {
        "left": (("t4", 2), None),
        "moved": (("t4", 1), ("a100", 4)),
        "began": (None, ("a100", 8)),
    }
    assert changes(round=20) == {"since_round": 20, "changes": []}
    stranger = changes(client_as(Role.VIEWER, tenant="other"))["changes"]
    assert {one["job_id"] for one in stranger} == {"other-1", "other-2", "other-3"}
    assert {one["job_name"] for one in stranger} == {"another tenant's job"}
    assert client.get(f"{DEMO}/changes", params={"round": 21}).status_code == 404
    assert client.get(f"{DEMO}/changes", params={"round": 0}).status_code == 422


def test_before_the_second_round_nothing_has_changed(client: TestClient) -> None:
    assert client.get(f"{DEMO}/changes").json() == {"since_round": None, "changes": []}


def test_a_jobs_spans_are_shown_in_cluster_time(
    client: TestClient, cluster: Cluster, database: Database
) -> None:
    job = client.post("/api/v1/jobs", json={"name": "train", "model": "bert"}).json()
    with database.session_scope() as session:
        shared = {"job_id": job["id"], "cluster_id": cluster.id, "gpu_type": "t4", "node_count": 1}
        session.add(
            JobAllocation(
                **shared,
                round_number=2,
                from_seconds=120.0,
                to_seconds=180.0,
                gpu_count=2,
                gpus=[0, 1],
            )
        )
        session.add(
            JobAllocation(
                **shared, round_number=3, from_seconds=180.0, gpu_count=4, gpus=[0, 1, 2, 3]
            )
        )
        row = session.get_one(Job, job["id"])
        row.state, row.goodput, row.remaining_work, row.gpu_seconds = "running", 10.0, 600.0, 7200.0
    spans = client.get(f"/api/v1/jobs/{job['id']}/allocations").json()["items"]
    assert [(span["gpu_count"], span["to_at"] is None) for span in spans] == [(2, False), (4, True)]
    assert spans[0]["to_at"] == spans[1]["from_at"]
    shown = client.get(f"/api/v1/jobs/{job['id']}").json()
    assert (shown["remaining_seconds"], shown["gpu_hours"]) == (60.0, 2.0)


def test_health_says_when_rounds_are_missing(
    client: TestClient, cluster: Cluster, database: Database
) -> None:
    fresh = client.get(HEALTH).json()
    assert (fresh["status"], fresh["worker"]["state"]) == ("ok", "ok")
    long_ago = utc_now() - timedelta(minutes=10)
    with database.session_scope() as session:
        session.exec(select(Cluster)).one().anchor_wall = long_ago
        session.execute(sa.update(Round).values(committed_at=long_ago))
    stale = client.get(HEALTH).json()
    assert (stale["status"], stale["worker"]["state"]) == ("degraded", "stale")
    assert stale["worker"]["last_round_age_seconds"] == pytest.approx(600, abs=30)
    client.post(f"{DEMO}/actions/pause")
    assert client.get(HEALTH).json()["status"] == "ok"


def test_health_before_the_first_round_is_no_fault(client: TestClient) -> None:
    assert client.get(HEALTH).json()["worker"] == {"state": "none", "last_round_age_seconds": None}
