"""`maat fairness` and `maat rho` against the service itself, with jobs that a worker has ended."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta

import pytest
from fastapi import FastAPI
from sqlmodel import select
from typer.testing import CliRunner

from backend.clocktime import utc_now
from backend.database import Database
from backend.models import Cluster
from maat.api.fairness import RecomputeBody
from maat.cli.app import app as commands
from maat.client import ApiError, Client
from maat.scheduling.errors import ParameterError
from worker.fairness.work import work_out
from worker.live.step import step_cluster

Run = Callable[..., str]


@pytest.fixture
def run(maat: Client, monkeypatch: pytest.MonkeyPatch) -> Run:
    """What a command prints. The client stays open: every command ends with closing its own."""
    monkeypatch.setattr(Client, "close", lambda _: None)
    monkeypatch.setattr("maat.client.Client", lambda *_, **__: maat)

    def invoke(*arguments: str) -> str:
        done = CliRunner().invoke(commands, arguments, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    return invoke


@pytest.fixture
def ended(maat: Client, app: FastAPI) -> str:
    """A job that has ended and waits for its rho."""
    job = maat.submit_job({"name": "over", "model": "ncf", "work_scale": 0.1})
    database: Database = app.state.database
    for seconds in range(60, 1200, 60):
        with database.session_scope() as session:
            cluster = session.exec(select(Cluster)).one()
            cluster.speed, cluster.anchor_seconds = 1e-9, float(seconds)
            cluster.anchor_wall = utc_now()
            session.add(cluster)
        step_cluster(database, cluster.id)
        if maat.job(job["id"])["state"] == "succeeded":
            return job["id"]
    raise AssertionError("the job has not ended")


def test_rho_of_the_week_is_shown_with_the_worst_job_and_the_shares(
    run: Run, maat: Client, app: FastAPI, ended: str
) -> None:
    assert "1; 0 have a rho, 1 are being worked out." in run("fairness", "--week")
    assert "It waits to be worked out." in run("rho", ended)
    work_out(app.state.database)
    shown = run("fairness", "--worst", "3")
    for words in ("default*", "all", "Worst:", ended, "Of its life:", "Jain's index", "version 1"):
        assert words in shown
    found = json.loads(run("fairness", "--json"))
    assert found["fairness"]["all"]["jobs"] == 1
    assert found["worst"][0]["job_id"] == ended
    why = found["worst"][0]["why"]
    assert why["held_gpus"] >= 1
    assert why["share_gpus"] > 1
    assert found["shares"]["whole"]["tenants"][0]["tenant"] == "default"
    one = run("rho", "over")
    assert "alone on t4" in one
    assert "mean-of-ratios, version 1" in one
    assert json.loads(run("rho", ended, "--json"))["rho"] == found["fairness"]["all"]["worst"]


def test_rho_is_asked_for_again_and_left_by_an_operator(
    run: Run, maat: Client, app: FastAPI, ended: str
) -> None:
    work_out(app.state.database)
    assert "0 of 1 jobs worked out." in run("fairness", "--recompute")
    assert "over: done" in run("rho", ended, "--skip")
    operation = maat.recompute_fairness(RecomputeBody(job_ids=[ended]))
    assert (operation["kind"], operation["total"]) == ("fairness", 1.0)
    yesterday = (utc_now() - timedelta(days=1)).isoformat()
    body = RecomputeBody.model_validate({"from": yesterday})
    with pytest.raises(ApiError, match="worked out already"):
        maat.recompute_fairness(body)


def test_two_periods_at_once_and_unknown_ones_are_refused(run: Run, maat: Client) -> None:
    with pytest.raises(ParameterError, match="beside another"):
        run("fairness", "--week", "--period", "last-week")
    with pytest.raises(ApiError) as refused:
        run("fairness", "--period", "this-year")
    assert refused.value.status == 422
    assert "this-week" in str(refused.value)


def test_the_end_of_a_period_is_named_as_in_every_command(run: Run) -> None:
    days = ("--from", "2020-01-01T00:00:00Z", "--to", "2020-01-02T00:00:00Z")
    assert "from 2020-01-01T00:00:00.000Z to 2020-01-02T00:00:00.000Z" in run("fairness", *days)


def test_a_week_without_jobs_is_told_as_such(run: Run) -> None:
    shown = run("fairness", "--period", "last-month")
    assert "0; 0 have a rho." in shown
    assert "Worst" not in shown
