"""Forecasts in the API: of jobs, questions what would happen, and what promises were worth."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient
from sqlmodel import Session, select

from backend.accounts.permissions import Role
from backend.clocktime import utc_now
from backend.database import Database
from backend.forecasts import interest
from backend.forecasts.calibration import Kept, held
from backend.forecasts.sharpness import Aimed, sharpness_of
from backend.models import (
    Cluster,
    ClusterForecast,
    ForecastInterest,
    ForecastPromise,
    Job,
    JobForecastRow,
    Operation,
    WhatIf,
)
from maat.api.fields import rfc3339
from maat.vocabulary import ForecastBasis, JobState, PromiseKind

FORECASTS = "/api/v1/forecasts"
BODY = {"name": "one", "model": "cifar10"}


def submit(client: TestClient, **fields: Any) -> dict[str, Any]:
    answer = client.post("/api/v1/jobs", json=BODY | fields)
    assert answer.status_code == 201, answer.text
    return answer.json()


def keep_forecast(session: Session, job_id: str, **fields: Any) -> None:
    job = session.get_one(Job, job_id)
    values = {
        "round_number": 3,
        "made_seconds": 100.0,
        "draws": 29,
        "holds_gpus": False,
        "start_p50": 700.0,
        "start_p90": 1900.0,
        "end_p50": 4300.0,
        "end_p90": None,
        "spans": [[700.0, "t4", 4], [1300.0, None, 0]],
    }
    session.add(JobForecastRow(job_id=job_id, cluster_id=job.cluster_id, **values | fields))


def end(session: Session, job_id: str, *, started: float, finished: float) -> None:
    job = session.get_one(Job, job_id)
    job.state = JobState.SUCCEEDED.value
    job.started_seconds, job.finished_seconds = started, finished
    session.add(job)


def last_read(database: Database) -> dict[str, datetime]:
    with database.session_scope(writes=False) as session:
        return {row.cluster_id: row.at for row in session.exec(select(ForecastInterest))}


# ---- who reads them


@pytest.mark.parametrize(
    "address", ["/jobs/{job}", "/jobs", "/jobs/{job}/forecast", "/calibration"]
)
def test_who_reads_forecasts_of_a_cluster_has_them_made(
    client: TestClient, database: Database, address: str
) -> None:
    job = submit(client)
    cluster_id = job["cluster_id"]
    assert last_read(database).keys() == {cluster_id}  # who submits a job waits for its forecast
    _forget_interest(database)

    assert client.get(f"/api/v1{address.format(job=job['id'])}").is_success

    assert last_read(database).keys() == {cluster_id}


def test_who_reads_jobs_that_have_ended_has_no_forecast_made(
    client: TestClient, database: Database
) -> None:
    job = submit(client)
    with database.session_scope() as session:
        end(session, job["id"], started=10.0, finished=20.0)
    _forget_interest(database)

    for address in ("/jobs", f"/jobs/{job['id']}", f"/jobs/{job['id']}/forecast"):
        assert client.get(f"/api/v1{address}").is_success

    assert last_read(database) == {}


def test_reading_forecasts_again_soon_writes_nothing(
    client: TestClient, database: Database
) -> None:
    submit(client)
    first = last_read(database)

    client.get("/api/v1/jobs")

    assert last_read(database) == first


def _forget_interest(database: Database) -> None:
    interest._RECORDED.clear()
    with database.session_scope() as session:
        session.execute(sa.delete(ForecastInterest))


# ---- of a job


def test_a_job_tells_when_it_starts_and_ends(client: TestClient, database: Database) -> None:
    job = submit(client)
    with database.session_scope() as session:
        keep_forecast(session, job["id"], basis=ForecastBasis.RUNS.value, precedents=3)
        epoch = session.exec(select(Cluster)).one().epoch

    found = client.get(f"/api/v1/jobs/{job['id']}/forecast").json()

    assert (found["state"], found["round_number"], found["draws"]) == ("made", 3, 29)
    times = found["times"]
    assert (times["start"]["p50_seconds"], times["start"]["p90_seconds"]) == (600.0, 1800.0)
    assert (times["end"]["p50_seconds"], times["end"]["p90_at"]) == (4200.0, None)
    assert [one["gpu_count"] for one in times["allocations"]] == [4, 0]
    assert (times["basis"], times["precedents"]) == ("runs", 3)
    assert "no P90 within 14 days" in found["sentence"]
    assert found["made_at"] > epoch.isoformat()


def test_a_job_that_holds_gpus_tells_its_end_alone(client: TestClient, database: Database) -> None:
    job = submit(client)
    with database.session_scope() as session:
        keep_forecast(session, job["id"], holds_gpus=True, start_p50=None, start_p90=None)

    found = client.get(f"/api/v1/jobs/{job['id']}/forecast").json()

    assert found["times"]["start"] is None
    assert found["sentence"].startswith("Ends about ")


def test_a_job_that_has_begun_since_its_forecast_tells_its_end_alone(
    client: TestClient, database: Database
) -> None:
    job = submit(client)
    with database.session_scope() as session:
        keep_forecast(session, job["id"])
        session.get_one(Job, job["id"]).gpus = [0, 1]

    found = client.get(f"/api/v1/jobs/{job['id']}/forecast").json()
    (listed,) = client.get("/api/v1/jobs").json()["items"]

    assert found["times"]["start"] is None
    assert found["sentence"].startswith("Ends about ")
    assert listed["forecast"]["start"] is None
    assert listed["forecast"]["end"] == found["times"]["end"]


def test_a_job_without_a_forecast_says_why(client: TestClient, database: Database) -> None:
    job = submit(client)
    address = f"/api/v1/jobs/{job['id']}/forecast"
    first = client.get(address).json()
    assert (first["state"], first["since"]) == ("coming", None)
    assert "The first begins after the next round, within 2 s." in first["sentence"]

    paused = client.post(f"/api/v1/jobs/{job['id']}/actions/pause", headers={"If-Match": "*"})
    assert paused.is_success, paused.text
    with database.session_scope() as session:
        keep_forecast(session, job["id"])
    assert client.get(address).json()["state"] == "paused"

    with database.session_scope() as session:
        end(session, job["id"], started=1.0, finished=2.0)
    assert client.get(address).json()["state"] == "ended"


def test_a_job_that_follows_others_is_not_told_to_be_paused(
    client: TestClient, database: Database
) -> None:
    first = submit(client, name="prepare")["id"]
    last = submit(client, name="train", after=[first])["id"]
    address = f"/api/v1/jobs/{last}/forecast"
    with database.session_scope() as session:
        row = session.get_one(Job, last)
        row.state, row.reason_code = "paused", "WAITING_DEPENDENCY"
        keep_forecast(session, last)
    assert client.get(address).json()["state"] == "made"
    assert client.get(f"/api/v1/jobs/{last}").json()["forecast"] is not None

    client.post(f"/api/v1/jobs/{first}/actions/pause").raise_for_status()
    told = client.get(address).json()
    assert (told["state"], told["times"]) == ("not-known", None)
    assert told["sentence"] == (
        "Not forecast: it follows job prepare, which is paused. Resume that one first."
    )

    with database.session_scope() as session:
        session.get_one(Job, first).state = "failed"
        session.get_one(Job, last).reason_code = "DEPENDENCY_FAILED"
    told = client.get(address).json()
    assert told["state"] == "paused"
    assert told["sentence"].endswith("it starts after somebody releases it.")


def test_a_job_without_a_forecast_says_what_is_under_way_and_since_when(
    client: TestClient, database: Database
) -> None:
    job = submit(client)
    address, now = f"/api/v1/jobs/{job['id']}/forecast", utc_now()

    def answer(**fields: Any) -> dict[str, Any]:
        with database.session_scope() as session:
            row = session.get(ClusterForecast, job["cluster_id"])
            row = row or ClusterForecast(cluster_id=job["cluster_id"])
            for name, value in fields.items():
                setattr(row, name, value)
            session.add(row)
        return client.get(address).json()

    began = now + timedelta(seconds=5)
    running = answer(state="running", started_at=began, compute_seconds=8.0, made_seconds=None)
    assert running["since"] == rfc3339(began)
    ready = began + timedelta(seconds=8)
    assert running["sentence"] == (
        f"No forecast yet: one with this job has been under way since {began:%H:%M:%S} UTC. It is "
        f"ready at {ready:%H:%M:%S} UTC at the earliest. The last took 8 s of CPU."
    )
    early = answer(started_at=now - timedelta(hours=1))
    assert "the job came after its begin. The next one has the job." in early["sentence"]

    rests = {"finished_at": now + timedelta(seconds=600), "first_at": now + timedelta(seconds=300)}
    resting = answer(state="succeeded", made_seconds=-1.0, **rests)
    assert "the job came after the last one. The next one begins in about " in resting["sentence"]
    assert f", at {rests['first_at']:%H:%M:%S} UTC." in resting["sentence"]
    rested = answer(first_at=now - timedelta(seconds=1))
    assert "Its first forecast is made within seconds." in rested["sentence"]
    missed = answer(started_at=utc_now() + timedelta(seconds=1))
    assert "No forecast yet. The next one begins in about " in missed["sentence"]
    assert "begins after the next round" in answer(finished_at=now - timedelta(hours=1))["sentence"]
    failed = answer(state="failed", detail="It took longer than 60 CPU s, or was put off.")
    assert "the last one failed. It took longer than 60 CPU s" in failed["sentence"]
    again = answer(state="running", started_at=began)
    assert "The last forecast failed. It took longer than 60 CPU s" in again["sentence"]
    assert f"has been under way since {began:%H:%M:%S} UTC" in again["sentence"]

    unknown = answer(state="succeeded", detail=None, made_seconds=1e9)
    assert unknown["state"] == "not-known"
    assert "how much work it has is not known" in unknown["sentence"]


def test_a_job_that_starts_late_if_at_all_is_not_told_that_nothing_needs_to_be_done(
    client: TestClient, database: Database
) -> None:
    job = submit(client)
    with database.session_scope() as session:
        session.get_one(Job, job["id"]).reason_code = "WAITING_CAPACITY"

    def answer() -> str:
        (only,) = client.get(f"/api/v1/jobs/{job['id']}/explanation").json()["remedies"]
        return str(only["sentence"])

    assert "Nothing needs to be done" in answer()
    late = {"round_number": 1, "made_seconds": 0.0, "draws": 9, "holds_gpus": False}
    with database.session_scope() as session:
        session.add(JobForecastRow(job_id=job["id"], cluster_id=job["cluster_id"], **late))
    assert "does not start within 14 days" in answer()


def test_a_list_has_the_forecasts_of_its_jobs_in_one_query(
    client: TestClient, database: Database
) -> None:
    made, bare, ended = submit(client), submit(client), submit(client)
    with database.session_scope() as session:
        keep_forecast(session, made["id"])
        keep_forecast(session, ended["id"])
        end(session, ended["id"], started=1.0, finished=2.0)

    asked: list[str] = []

    def note(*given: Any) -> None:
        asked.append(given[2])

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    items = {job["id"]: job for job in client.get("/api/v1/jobs").json()["items"]}
    sa.event.remove(sa.Engine, "before_cursor_execute", note)

    assert len([text for text in asked if "job_forecasts" in text]) == 1
    assert items[made["id"]]["forecast"]["start"]["p90_seconds"] == 1800.0
    assert items[made["id"]]["forecast"]["end"]["p90_at"] is None
    assert items[bare["id"]]["forecast"] is None
    assert items[ended["id"]]["forecast"] is None


# ---- what if


def test_a_question_is_an_operation_and_stores_no_job(
    client: TestClient, queue: Any, database: Database
) -> None:
    answer = client.post(FORECASTS, json={"job": BODY | {"gpu_count": 8, "max_gpus": 8}})

    assert answer.status_code == 202, answer.text
    asked = answer.json()
    assert queue.sent == [("maat.answer_what_if", asked["id"])]
    operation = client.get(answer.headers["Location"]).json()
    assert (operation["kind"], operation["state"]) == ("forecast", "queued")
    assert operation["result_url"] == f"{FORECASTS}/{asked['id']}"
    with database.session_scope(writes=False) as session:
        assert session.exec(select(Job)).all() == []
        stored = session.get_one(WhatIf, asked["id"]).request
    assert stored["row"]["gpu_count"] == 8
    assert client.post(f"{answer.headers['Location']}/actions/cancel").json()["state"] == (
        "cancelled"
    )


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, ""),
        ({"changes": {}}, "/changes"),
        ({"job": BODY | {"model": "gpt-9"}}, "/job/model"),
        ({"job": BODY | {"min_gpus": 5000}}, "/job/min_gpus"),
        ({"changes": {"drain_nodes": ["t4-0", "nowhere"]}}, "/changes/drain_nodes/1"),
        ({"changes": {"policy": "wishful"}}, "/changes/policy"),
        ({"changes": {"policy": "sia", "policy_parameters": {"p": "x"}}}, "/changes/policy_para"),
        ({"changes": {"policy_parameters": {"p": 1}}}, "/changes"),
        ({"changes": {"placer": "anywhere"}}, "/changes/placer"),
        ({"changes": {"least_stay_seconds": -1}}, "/changes/least_stay_seconds"),
        ({"changes": {"least_stay_seconds": 3e6}}, "/changes/least_stay_seconds"),
        ({"changes": {"least_stay_seconds": "none"}}, "/changes/least_stay_seconds"),
        ({"changes": {"most_moves_per_hour": 0}}, "/changes/most_moves_per_hour"),
        ({"changes": {"most_moves_per_hour": 1.5}}, "/changes/most_moves_per_hour"),
        (
            {"changes": {"add_nodes": [{"gpu_type": "nosuch", "gpu_count": 8}]}},
            "/changes/add_nodes/0/gpu_type",
        ),
        (
            {"changes": {"add_nodes": [{"gpu_type": "t4", "gpu_count": 64, "count": 5000}]}},
            "/changes/add_nodes",
        ),
        ({"changes": {"add_shape": "t4=2x8,two a100"}}, "/changes/add_shape"),
        ({"changes": {"add_shape": "nosuch=2x8"}}, "/changes/add_shape"),
        ({"changes": {"add_shape": "t4=2000x8,a100=499x8"}}, "/changes/add_shape"),
        ({"changes": {"add_shape": "t4=6000x1"}}, "/changes/add_shape"),
        ({"changes": {"add_shape": ""}}, "/changes/add_shape"),
    ],
)
def test_what_cannot_be_asked_is_named(
    client: TestClient, queue: Any, body: dict[str, Any], pointer: str
) -> None:
    answer = client.post(FORECASTS, json=body)

    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["pointer"].startswith(pointer)
    assert queue.sent == []


def test_a_shape_that_does_not_read_is_told_with_its_group_and_the_remedy(
    client: TestClient,
) -> None:
    answer = client.post(FORECASTS, json={"changes": {"add_shape": "t4=2x8,two a100"}})

    (error,) = answer.json()["errors"]
    assert error["message"] == "“two a100” does not read as type=NODESxGPUS."
    assert error["remedy"] == "Write for example t4=6x4,rtx=3x8,a100=2x8."


def test_nodes_are_added_as_a_list_and_as_a_shape(client: TestClient) -> None:
    listed = {"gpu_type": "rtx", "gpu_count": 8}
    body = {"changes": {"add_nodes": [listed], "add_shape": "a100=2x8,t4=1x4"}}

    answer = client.post(FORECASTS, json=body)

    assert answer.status_code == 202, answer.text
    assert answer.json()["request"]["changes"] == {
        "add_nodes": [
            listed,
            {"gpu_type": "a100", "gpu_count": 8, "count": 2},
            {"gpu_type": "t4", "gpu_count": 4, "count": 1},
        ]
    }


def test_an_unknown_cluster_is_not_found(client: TestClient) -> None:
    body = {"cluster_id": "nowhere", "changes": {"policy": "fifo"}}
    assert client.post(FORECASTS, json=body).status_code == 404


def kept_times(*, end: float) -> dict[str, Any]:
    """Times of a job that runs, as the worker keeps them."""
    of_start = dict.fromkeys(("start_p50", "start_p90"))
    of_end = {"end_p50": end, "end_p90": end, "spans": [[1.0, "t4", 4]]}
    return {"holds_gpus": True, **of_start, **of_end, "basis": "work", "precedents": 0}


def test_an_answer_names_no_job_of_another_tenant(
    client: TestClient, client_as: Any, database: Database
) -> None:
    visitor = client_as(Role.SUBMITTER, tenant="blue")
    mine, theirs = visitor.post("/api/v1/jobs", json=BODY).json(), submit(client, name="secret")
    asked = visitor.post(FORECASTS, json={"changes": {"policy": "fifo"}}).json()
    side = {
        "jobs": 2,
        "later": 0,
        "waiting": 0,
        "ending": 2,
        "mean_start_seconds": None,
        "mean_end_of_waiting_seconds": None,
        "mean_end_seconds": 5.0,
        "last_end_seconds": 9.0,
    }
    with database.session_scope() as session:
        row = session.get_one(WhatIf, asked["id"])
        row.result = {
            "made_seconds": 1.0,
            "draws": 9,
            "job": None,
            "slowed": [[theirs["id"], 60.0, 90.0, 1.0], [mine["id"], -60.0, 0.0, 0.0]],
            "times": {
                theirs["id"]: [kept_times(end=9.0), kept_times(end=69.0)],
                mine["id"]: [kept_times(end=100.0), kept_times(end=40.0)],
            },
            "before": side,
            "after": side,
        }
        session.add(row)
        operation = session.get_one(Operation, row.operation_id)
        operation.state = "succeeded"
        session.add(operation)

    found = visitor.get(f"{FORECASTS}/{asked['id']}").json()

    assert found["notes"] == []  # of an answer from before there were any
    assert [(one["job_id"], one["name"]) for one in found["slowed"]] == [
        ("other-1", None),
        (mine["id"], "one"),
    ]
    of_theirs, of_mine = found["slowed"]
    assert of_theirs["before"] is of_theirs["after"] is None
    ends = [of_mine[side]["end"]["p50_seconds"] for side in ("before", "after")]
    assert ends == [99.0, 39.0]
    assert [one["gpu_type"] for one in of_mine["after"]["allocations"]] == ["t4"]
    assert theirs["id"] not in visitor.get(FORECASTS).text
    stranger = client_as(Role.SUBMITTER, tenant="red")
    assert stranger.get(f"{FORECASTS}/{asked['id']}").status_code == 404
    assert stranger.get(f"/api/v1/jobs/{mine['id']}/forecast").status_code == 404


def test_secrets_of_a_command_are_not_kept(client: TestClient, database: Database) -> None:
    run = {"argv": ["true"], "cwd": "/tmp", "secret_env": {"TOKEN": "hush"}}
    client.post(FORECASTS, json={"job": BODY | {"run": run}})
    with database.session_scope(writes=False) as session:
        assert "hush" not in str([one.request for one in session.exec(select(WhatIf))])


# ---- what promises were worth


def promise(**fields: Any) -> ForecastPromise:
    values: dict[str, Any] = {
        "job_id": "job_x",
        "cluster_id": "clu_x",
        "kind": PromiseKind.SUBMISSION.value,
        "made_seconds": 0.0,
        "holds_gpus": False,
        "start_p50": 50.0,
        "start_p90": 100.0,
        "end_p50": 500.0,
        "end_p90": 900.0,
    }
    return ForecastPromise(**values | fields)


def test_a_promise_counts_once_its_time_has_come() -> None:
    fast = Kept(promise(), 40.0, 450.0)
    slow = Kept(promise(), 120.0, None)
    young = Kept(promise(made_seconds=990.0, end_p90=1800.0, end_p50=1500.0), 995.0, 999.0)

    assert held([fast, slow, young], "end", 0.9, now=1000.0) == [True, False]
    assert held([fast, slow, young], "end", 0.5, now=1000.0) == [True, False]
    assert held([fast, slow], "start", 0.9, now=1000.0) == [True, False]


def test_a_promise_of_a_job_that_has_begun_tells_nothing_of_starts() -> None:
    holds = Kept(promise(holds_gpus=True), 0.0, 400.0)
    preempted = Kept(promise(made_seconds=300.0), 100.0, 400.0)
    assert held([holds, preempted], "start", 0.9, now=1000.0) == []
    assert held([holds, preempted], "end", 0.9, now=1000.0) == [True, True]


def test_the_calibration_counts_the_jobs_that_one_may_see(
    client: TestClient, client_as: Any, database: Database
) -> None:
    visitor = client_as(Role.VIEWER, tenant="blue")
    job, failed = submit(client), submit(client)
    with database.session_scope() as session:
        cluster = session.exec(select(Cluster)).one()
        cluster.anchor_seconds = 5000.0
        session.add(cluster)
        for one in (job, failed):
            end(session, one["id"], started=60.0, finished=450.0)
            session.add(promise(job_id=one["id"], cluster_id=cluster.id))
        session.get_one(Job, failed["id"]).state = JobState.FAILED.value

    found = client.get("/api/v1/calibration").json()

    assert found["jobs"] == 1
    assert {(one["quantity"], one["quantile"]): one["held"] for one in found["bins"]} == {
        ("start", 0.5): 0.0,
        ("start", 0.9): 1.0,
        ("end", 0.5): 1.0,
        ("end", 0.9): 1.0,
    }
    assert [one["end_seconds"] for one in found["promises"]] == [450.0]
    near = {one.pop("quantity"): one for one in found["sharpness"]}
    assert near["end"]["promises"] == 1
    assert near["end"]["within_10_minutes"] == 1.0
    assert visitor.get("/api/v1/calibration").json()["jobs"] == 0
    assert client.get("/api/v1/calibration?kind=hourly").json()["jobs"] == 0


def test_how_near_a_promise_came_is_known_once_it_cannot_get_nearer() -> None:
    aimed = [
        Aimed(p50=1000.0, p90=2200.0, actual=1050.0),
        Aimed(p50=1000.0, p90=1600.0, actual=500.0),
        Aimed(p50=1000.0, p90=None, actual=None),  # over by more than a minute
        Aimed(p50=2000.0, p90=None, actual=None),
        Aimed(p50=None, p90=None, actual=1500.0),
        Aimed(p50=None, p90=None, actual=None),
    ]

    found = sharpness_of("end", aimed, now=1100.0)

    assert found == {
        "quantity": "end",
        "promises": 3,
        "within_1_minute": 0.25,
        "within_10_minutes": pytest.approx(2 / 3),
        "median_error_seconds": 275.0,
        "median_width_seconds": 900.0,
    }
    assert sharpness_of("start", [], now=0.0)["within_1_minute"] is None


def test_a_forecast_of_one_draw_is_called_a_first_guess(
    client: TestClient, database: Database
) -> None:
    job = submit(client)
    with database.session_scope() as session:
        keep_forecast(session, job["id"], draws=1, start_p90=700.0, end_p90=4300.0)

    found = client.get(f"/api/v1/jobs/{job['id']}/forecast").json()

    assert found["draws"] == 1
    assert found["sentence"].count("(a first guess, of one draw)") == 2
    assert "P50" not in found["sentence"]
