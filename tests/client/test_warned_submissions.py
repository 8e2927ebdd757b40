"""A job that no round would start is accepted with a warning: by REST, client and command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from sqlmodel import select
from typer.testing import CliRunner

from backend.clocktime import utc_now
from backend.models import Cluster
from maat.cli.app import app as commands
from maat.client import Client
from worker.live import step as live

NEVER = {"name": "net", "model": "cifar10", "min_gpus": 3, "max_gpus": 3}
SENTENCE = "It asks for 3 and no other number."


@pytest.fixture(autouse=True)
def _client(maat: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Client, "close", lambda _: None)
    monkeypatch.setattr("maat.client.Client", lambda *_, **__: maat)


def run(*arguments: str) -> Any:
    done = CliRunner().invoke(commands, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done


def set_time(app: FastAPI, seconds: float) -> str:
    with app.state.database.session_scope() as session:
        cluster = session.exec(select(Cluster)).one()
        cluster.speed, cluster.anchor_seconds, cluster.anchor_wall = 1e-9, seconds, utc_now()
        session.add(cluster)
        return str(cluster.id)


def test_the_answer_names_field_value_and_remedy_and_rounds_then_say_the_same(
    maat: Client, app: FastAPI
) -> None:
    set_time(app, 0.0)
    made = maat.submit_job(NEVER)
    (warning,) = made["warnings"]
    assert (warning["field"], warning["value"]) == ("max_gpus", 3)
    assert warning["message"] == made["reason"]["sentence"]
    assert SENTENCE in warning["message"]
    assert "gpu_count" in warning["remedy"]
    assert maat.job(made["id"])["warnings"] == [warning]
    assert maat.jobs()["items"][0]["warnings"] == [warning]
    assert maat.explanation(made["id"])["primary"]["sentence"] == warning["message"]

    for seconds in (30.0, 90.0):
        live.step_cluster(app.state.database, set_time(app, seconds))

    after = maat.job(made["id"])
    assert (after["state"], after["warnings"]) == ("pending", [warning])
    assert after["reason"]["as_of_round"] is not None


def test_a_job_that_a_round_would_start_has_no_warning(maat: Client) -> None:
    assert maat.submit_job({"name": "net", "model": "cifar10"})["warnings"] == []


def test_every_job_of_an_array_and_of_a_batch_is_warned_of(maat: Client) -> None:
    array = maat.submit_array(NEVER, indices=[0, 1])
    batch = maat.submit_jobs([NEVER, {"name": "other", "model": "cifar10"}])
    counts = [
        [len(item["job"]["warnings"]) for item in made["items"] if item["job"] is not None]
        for made in (array, batch)
    ]
    assert counts == [[1, 1], [1, 0]]


def test_the_command_line_warns_on_standard_error_once_for_each_reason(tmp_path: Path) -> None:
    asked = ("--model", "cifar10", "--min-gpus", "3", "--max-gpus", "3")
    one, many = run("submit", "net", *asked), run("submit", "nets", *asked, "--array", "0-4")
    for done in (one, many):
        assert done.stderr.count("Warning: max_gpus 3: The policy gives these numbers") == 1
        assert "Warning" not in done.stdout
    job_id = one.stdout.split()[0]
    assert "Warning: max_gpus 3" in run("clone", job_id).stderr
    file = tmp_path / "job.yaml"
    file.write_text("name: net\nmodel: cifar10\nmin_gpus: 3\nmax_gpus: 3\n", encoding="utf-8")
    assert "Warning: max_gpus 3" in run("submit", str(file)).stderr
    assert json.loads(run("submit", str(file), "--json").stdout)["warnings"][0]["value"] == 3


def test_a_dry_run_says_that_no_round_would_start_it(maat: Client) -> None:
    found = maat.try_job(NEVER)
    assert (found["forecast"], [one["field"] for one in found["warnings"]]) == (
        "waits",
        ["max_gpus"],
    )
    assert SENTENCE in found["sentence"]
    said = run(
        "submit", "net", "--model", "cifar10", "--min-gpus", "3", "--max-gpus", "3", "--dry-run"
    )
    assert "Warning: max_gpus 3" in said.stdout


def test_a_list_with_a_job_that_others_keep_waiting_says_where_they_are_named(
    maat: Client, app: FastAPI
) -> None:
    set_time(app, 0.0)
    held = {"model": "bert", "gpu_types": ["a100"], "adaptivity": "rigid", "gpu_count": 16}
    maat.submit_job({**held, "name": "first", "batch_size": 192, "preemptible": False})
    assert "maat explain JOB" not in run("jobs").stderr
    for seconds in (30.0, 90.0):
        live.step_cluster(app.state.database, set_time(app, seconds))
    waiting = maat.submit_job({**held, "name": "second", "batch_size": 192})
    for seconds in (150.0, 210.0):
        live.step_cluster(app.state.database, set_time(app, seconds))

    assert maat.explanation(waiting["id"])["blockers"][0]["name"] == "first"
    assert "Which jobs hold the GPUs" in run("jobs").stderr
    assert run("jobs", "--json").stderr == ""
