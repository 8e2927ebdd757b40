"""A window of a cluster's history as a trace: what each job still had to do when it began."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient
from usage_history import HOUR, Held, cluster_at, lived_job, person

from backend.clusters.repository import all_clusters
from backend.database import Database
from backend.models import Job
from backend.simulations.traces import history_of
from maat.api.simulations import ClusterTrace, HistoryWindow
from maat.workloads.workloads import TraceJob, Workload

SIMULATIONS = "/api/v1/simulations"
ENDED_BEFORE = Held(0, 10)
IN_TWO_PARTS = (Held(8, 10, efficiency=1.0), Held(16, 20, efficiency=0.5))


@pytest.fixture
def jobs(client: TestClient, database: Database) -> dict[str, str]:
    """Jobs by what they are, on a cluster whose clock stands at hour 60; a window begins at 12."""
    assert client.get("/api/v1/health").status_code == 200
    ids: dict[str, str] = {}
    with database.session_scope() as session:
        cluster = cluster_at(session, 60.0)
        ann = person(session, "red", "ann")

        def add(name: str, *spans: Held, state: str = "succeeded", **given: Any) -> None:
            job = lived_job(session, cluster, ann, *spans, submitted=given.pop("submitted", 0.0))
            job.state = state
            ends = max((span.end or 60.0) for span in spans) * HOUR
            job.finished_seconds = None if state == "running" else ends
            job.progress = given.pop("progress", 1.0)
            for field, value in given.items():
                setattr(job, field, value)
            session.add(job)
            ids[job.id] = name

        add("ended before", ENDED_BEFORE)
        add("half done", *IN_TWO_PARTS, work_scale=0.5)
        add("waited", Held(20, 30), submitted=10.0)
        add("goes on", Held(30, None), submitted=29.0, state="running", progress=0.4)
        add("cancelled", Held(6, 18), state="cancelled", progress=0.25)
        add("cancelled at once", Held(13, 14), submitted=13.0, state="cancelled", progress=0.0)
        command = Held(8, 24, gpus=(0, 1), gpu_type="a100", starts=2.0)
        add("command", command, model="digits", preemptible=False)
    return ids


def replayed(database: Database, **window: float) -> tuple[Workload, HistoryWindow]:
    with database.session_scope(writes=False) as session:
        cluster_id = all_clusters(session)[0].id
        asked = ClusterTrace(kind="cluster", cluster_id=cluster_id, **window)
        found = history_of(session, asked)
    assert found.window is not None
    return found.workload, found.window


def test_each_job_comes_with_the_work_that_it_had_left_when_the_window_began(
    jobs: dict[str, str], database: Database
) -> None:
    workload, window = replayed(database, since_seconds_ago=48 * HOUR)
    found: dict[str, TraceJob] = {jobs[job.name]: job for job in workload.jobs}
    assert {name: round(job.submit_seconds / HOUR, 6) for name, job in found.items()} == {
        "half done": 0.0,
        "cancelled": 0.0,
        "command": 0.0,
        "waited": 0.0,
        "goes on": 17.0,
    }
    assert {
        name: pytest.approx(job.work_scale) for name, job in found.items() if name != "command"
    } == {"half done": 0.25, "cancelled": 0.125, "waited": 1.0, "goes on": 1.0}
    command = found["command"]
    assert (command.model, command.gpu_count, command.gpu_types) == ("as-recorded", 2, ("a100",))
    assert (command.work_scale, command.preemptible) == (pytest.approx(12 * HOUR), False)
    counts = window.model_dump()
    assert (counts.pop("start"), counts.pop("end")) == (
        "2026-03-02T12:00:00.000Z",
        "2026-03-04T12:00:00.000Z",
    )
    assert counts == {
        "begun_before": 3,
        "waiting_before": 1,
        "submitted": 1,
        "cut_short": 1,
        "as_recorded": 1,
        "without_work": 1,
    }


def test_a_window_that_has_ended_leaves_out_what_came_later(
    jobs: dict[str, str], database: Database
) -> None:
    window = {"since_seconds_ago": 48 * HOUR, "until_seconds_ago": 35 * HOUR}
    workload, _ = replayed(database, **window)
    assert "goes on" not in {jobs[job.name] for job in workload.jobs}


def test_progress_is_spread_over_time_where_the_spans_have_been_deleted(
    jobs: dict[str, str], database: Database
) -> None:
    with database.session_scope() as session:
        for job_id, name in jobs.items():
            if name == "half done":
                job = session.get_one(Job, job_id)
                job.started_seconds = -1.0 * HOUR  # earlier than any span that is kept
                session.add(job)
    workload, _ = replayed(database, since_seconds_ago=48 * HOUR)
    found = {jobs[job.name]: job for job in workload.jobs}
    assert found["half done"].work_scale == pytest.approx(0.5 * 8 / 21)


def test_a_window_is_asked_for_over_rest_and_the_answer_says_what_was_in_it(
    jobs: dict[str, str], client: TestClient
) -> None:
    asked: dict[str, Any] = {"kind": "cluster", "cluster_id": "demo", "since_seconds_ago": 172_800}
    body = {"name": "r", "cluster": "t4=2x4,a100=1x8", "runs": [{}], "traces": [asked]}
    answer = client.post(SIMULATIONS, json=body)
    assert answer.status_code == 202, answer.text
    (trace,) = answer.json()["request"]["traces"]
    assert trace["window"]["begun_before"] == 3
    assert "text" not in trace
    backwards = {**body, "traces": [asked | {"until_seconds_ago": 180_000.0}]}
    refused = client.post(SIMULATIONS, json=backwards)
    assert refused.status_code == 422
    assert "ends before it begins" in refused.text
    early = {**asked, "since_seconds_ago": 250_000.0, "until_seconds_ago": 217_000.0}
    refused = client.post(SIMULATIONS, json={**body, "traces": [early]})
    assert refused.json()["errors"][0]["pointer"] == "/traces/0/since_seconds_ago"
