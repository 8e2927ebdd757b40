"""/metrics: read by Prometheus' own tool, true, without names of tenants, cheap in any history."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import yaml
from fastapi import FastAPI
from fastapi.testclient import TestClient
from history import fill, settle
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families
from round_rows import round_row
from sqlmodel import select

from backend.accounts.identity import principal_named
from backend.accounts.permissions import Permission, Role
from backend.clocktime import utc_now
from backend.database import Database
from backend.events.feed import Feed, Position
from backend.metrics.snapshot import take_snapshot
from backend.models import Cluster, Job, Node, WorkerHeartbeat
from backend.queue import celery_queue
from backend.settings import Settings
from benchmarks.service.real_server import free_port

MakeClient = Callable[..., TestClient]
Submit = Callable[..., dict[str, Any]]
DEPLOY = Path(__file__).parents[2] / "deploy"
OF_PROMETHEUS = {"up"}
SUFFIXES = ("_bucket", "_count", "_sum", "_total", "_created", "_info")

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> Settings:
    """Every scrape reads the database."""
    return Settings(
        _env_file=None,
        data_dir=tmp_path,
        database_url=database_url,
        demo=True,
        metrics_seconds=0,
    )


def promtool() -> str:
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("promtool is not installed: install the Debian package prometheus")
    return found


def scraped(client: TestClient) -> Samples:
    answer = client.get("/metrics")
    assert answer.status_code == 200, answer.text
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def one(samples: Samples, name: str, **labels: str) -> float:
    return samples[name, frozenset(labels.items())]


def exported(client: TestClient) -> set[str]:
    """The names of all families, those without a sample too."""
    return {family.name for family in text_string_to_metric_families(client.get("/metrics").text)}


def add_round(database: Database, *, used: Mapping[str, int]) -> None:
    with database.session_scope() as session:
        cluster = session.exec(select(Cluster)).one()
        session.add(
            round_row(
                cluster.id,
                1,
                active_jobs=1,
                running_jobs=1,
                gpus_used=sum(used.values()),
                gpus_total=64,
                changes=1,
                solve_seconds=0.02,
                policy_seconds=0.05,
                place_seconds=0.01,
                gpus_by_type={name: {"used": count, "capacity": 8} for name, count in used.items()},
                committed_at=utc_now() - timedelta(seconds=40),
            )
        )


def test_promtool_finds_nothing_wrong(
    client: TestClient, submit: Submit, database: Database
) -> None:
    submit()
    add_round(database, used={"t4": 4})
    client.get("/api/v1/jobs")
    text = client.get("/metrics").text
    done = subprocess.run(
        [promtool(), "check", "metrics"], input=text, text=True, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_forms_of_prometheus_and_of_openmetrics_can_be_read(client: TestClient) -> None:
    plain = client.get("/metrics")
    assert plain.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert "maat_jobs" in {f.name for f in text_string_to_metric_families(plain.text)}
    accept = "application/openmetrics-text; version=1.0.0"
    modern = client.get("/metrics", headers={"Accept": accept})
    assert modern.headers["Content-Type"].startswith("application/openmetrics-text")
    assert "maat_jobs" in {family.name for family in read_openmetrics(modern.text)}


def test_the_figures_are_those_of_the_database(
    client: TestClient, submit: Submit, database: Database
) -> None:
    for _ in range(3):
        submit()
    cancelled = submit()
    with database.session_scope() as session:
        session.get_one(Job, cancelled["id"]).state = "pending"
        session.get_one(Job, cancelled["id"]).restarts = 2
        node = session.exec(select(Node).where(Node.name == "t4-0")).one()
        node.drained_gpus = [0]
        at = utc_now() - timedelta(seconds=7)
        session.add(WorkerHeartbeat(name="rounds@a", queues=["rounds"], version="1", at=at))
    add_round(database, used={"t4": 4, "a100": 8})
    found = scraped(client)
    assert one(found, "maat_jobs", cluster="demo", state="submitted") == 3
    assert one(found, "maat_jobs", cluster="demo", state="pending") == 1
    assert one(found, "maat_jobs_waiting", cluster="demo") == 4
    assert one(found, "maat_active_job_restarts", cluster="demo") == 2
    assert 0 <= one(found, "maat_queue_wait_longest_seconds", cluster="demo") < 3600
    gpus = {
        state: one(found, "maat_gpus", cluster="demo", gpu_type="t4", state=state)
        for state in ("held", "free", "drained")
    }
    assert gpus == {"held": 4, "free": 19, "drained": 1}
    assert one(found, "maat_gpus", cluster="demo", gpu_type="a100", state="held") == 8
    assert 39 < one(found, "maat_round_age_seconds", cluster="demo") < 100
    assert one(found, "maat_round_interval_seconds", cluster="demo") == 2  # a minute, at 30 times
    assert one(found, "maat_round_seconds", cluster="demo", part="solver") == 0.02
    assert one(found, "maat_worker_heartbeat_age_seconds", worker="rounds@a", queue="rounds") > 6
    assert one(found, "maat_broker_up") == 1
    assert one(found, "maat_queue_messages", queue="simulations") == 0
    assert one(found, "maat_database_bytes") > 100_000
    assert one(found, "maat_database_connections", state="in_use") >= 1


def test_requests_are_counted_by_route_and_never_by_address(
    client: TestClient, submit: Submit
) -> None:
    job = submit()["id"]
    for _ in range(2):
        client.get(f"/api/v1/jobs/{job}")
    client.get("/api/v1/jobs/job_that_is_not_there")
    client.get("/api/v1/nothing/of/the/kind")
    client.get("/api/v1/jobs", params={"state": "nonsense"})
    client.post("/api/v1/jobs", json={}, headers={"Sec-Fetch-Site": "cross-site"})
    text, found = client.get("/metrics").text, scraped(client)
    counted = "maat_http_requests_total"
    at = "/api/v1/jobs/{job_id}"
    assert one(found, counted, method="GET", route=at, status="200") == 2
    assert one(found, counted, method="GET", route=at, status="404") == 1
    assert one(found, counted, method="GET", route="/api/v1/jobs", status="422") == 1
    assert one(found, counted, method="POST", route="unknown", status="403") == 1
    assert one(found, counted, method="POST", route="/api/v1/jobs", status="201") == 1
    seconds = one(found, "maat_http_request_seconds_count", method="GET", route=at)
    assert seconds == 3
    assert job not in text
    assert "nonsense" not in text
    assert "of/the/kind" not in text


def test_no_figure_names_a_tenant_a_user_or_a_job(
    client: TestClient, client_as: MakeClient
) -> None:
    ann = client_as(Role.SUBMITTER, tenant="planted-tenant", name="planted-user")
    body = {"name": "planted-job", "model": "bert"}
    assert ann.post("/api/v1/jobs", json=body).status_code == 201
    assert "planted" not in client.get("/metrics").text


def test_it_is_for_operators_by_role_or_by_a_token(
    app: FastAPI, client: TestClient, client_as: MakeClient
) -> None:
    for role in (Role.VIEWER, Role.SUBMITTER, Role.TENANT_MANAGER):
        assert client_as(role).get("/metrics").status_code == 403
    scraper = client_as(Role.AUDITOR, scopes=[Permission.METRICS_READ], name="prometheus")
    assert scraper.get("/metrics").status_code == 200
    assert scraper.get("/api/v1/jobs").status_code == 403
    stranger = TestClient(app, base_url="http://maat.example", client=("10.0.0.9", 1))
    refused = stranger.get("/metrics")
    assert (refused.status_code, refused.json()["type"]) == (401, "/problems/unauthenticated")


@contextmanager
def statements(database: Database) -> Iterator[list[str]]:
    seen: list[str] = []

    def see(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        seen.append(statement)

    sa.event.listen(database.engine, "before_cursor_execute", see)
    yield seen
    sa.event.remove(database.engine, "before_cursor_execute", see)


def test_its_queries_do_not_grow_with_history(app: FastAPI, database: Database) -> None:
    numbers = []
    for jobs in (200, 5_000):
        with database.session_scope() as session:
            session.execute(sa.text("DELETE FROM jobs"))
            session.execute(sa.text("DELETE FROM clusters WHERE name = 'second'"))
            session.execute(sa.text("DELETE FROM users WHERE name LIKE 'owner-%'"))
            session.execute(sa.text("DELETE FROM tenants WHERE name IN ('red', 'blue')"))
            fill(session, jobs)
            settle(session)
        with database.session_scope(writes=False) as session, statements(database) as seen:
            found = take_snapshot(session)
        assert sum(sum(one.jobs.values()) for one in found.clusters) == jobs
        numbers.append(len([text for text in seen if text.startswith("SELECT")]))
    assert numbers[0] == numbers[1] < 16


def test_scrapes_close_together_read_the_database_once(
    app: FastAPI, client: TestClient, submit: Submit
) -> None:
    app.state.metrics._keep_seconds = 3600.0
    before = scraped(client)
    submit()
    after = scraped(client)
    key = ("maat_jobs_waiting", frozenset({("cluster", "demo")}))
    assert before[key] == after[key] == 0
    app.state.metrics._keep_seconds = 0.0
    assert scraped(client)[key] == 1


def test_a_broker_that_does_not_answer_is_a_figure_and_no_failure(
    app: FastAPI, client: TestClient, tmp_path: Path
) -> None:
    away = Settings(
        _env_file=None, data_dir=tmp_path, broker_url=f"redis://127.0.0.1:{free_port()}/0"
    )
    app.state.metrics._queue = celery_queue(away)
    found = scraped(client)
    assert one(found, "maat_broker_up") == 0
    assert ("maat_queue_messages", frozenset({("queue", "rounds")})) not in found


def test_messages_that_wait_are_counted_in_the_embedded_broker(tmp_path: Path) -> None:
    queue = celery_queue(Settings(_env_file=None, data_dir=tmp_path))
    queue.send("maat.play_next_run")
    queue.send("maat.play_next_run")
    assert queue.waiting() == {"rounds": 0, "simulations": 2, "forecasts": 0}


def test_open_streams_and_the_slowest_of_them_are_told(
    app: FastAPI, client: TestClient, submit: Submit, database: Database
) -> None:
    submit()
    with database.session_scope(writes=False) as session:
        principal = principal_named(session, "local")
    behind = Feed(Position(), frozenset({"jobs"}), principal)
    with app.state.metrics.process.streaming(behind):
        found = scraped(client)
        assert one(found, "maat_event_streams") == 1
        assert one(found, "maat_event_stream_lag") >= 1
    found = scraped(client)
    assert (one(found, "maat_event_streams"), one(found, "maat_event_stream_lag")) == (0, 0)


def names_in(expression: str) -> set[str]:
    """The metrics that an expression names, without labels, functions and words of PromQL."""
    without = r"\{[^}]*\}|\b(?:by|on|ignoring) \([^)]*\)|\"[^\"]*\"|\[[^\]]*\]"
    bare = re.sub(without, " ", expression)
    named = set(re.findall(r"\b(?:maat|process)_\w+|\bup\b", bare))
    return {next((n.removesuffix(s) for s in SUFFIXES if n.endswith(s)), n) for n in named}


def test_every_expression_of_dashboard_and_alerts_names_what_is_exported(
    client: TestClient,
) -> None:
    client.get("/api/v1/jobs")
    known = exported(client) | OF_PROMETHEUS
    known |= {next((n.removesuffix(s) for s in SUFFIXES if n.endswith(s)), n) for n in known}
    dashboard = json.loads((DEPLOY / "grafana" / "maat.json").read_text())
    shown = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    rules = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text())
    watched = [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
    for expression in (*shown, *watched):
        assert names_in(expression) <= known, expression
        assert names_in(expression), expression


def test_promtool_accepts_the_alerts_and_the_scrape_configuration() -> None:
    for what, name in (("rules", "alerts.yml"), ("config", "scrape.yml")):
        file = DEPLOY / "prometheus" / name
        syntax = ["--syntax-only"] if what == "config" else []
        done = subprocess.run(
            [promtool(), "check", what, *syntax, str(file)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
