"""Dry runs of a submission, of which nothing is left; and arrays of jobs."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from typer.testing import CliRunner

from maat.cli.app import app as commands
from maat.client import ApiError, Client
from maat.scheduling.errors import ParameterError

Run = Callable[..., str]


@pytest.fixture
def run(maat: Client, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setattr(Client, "close", lambda _: None)
    monkeypatch.setattr("maat.client.Client", lambda *_, **__: maat)

    def invoke(*arguments: str) -> str:
        done = CliRunner().invoke(commands, arguments, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    return invoke


def test_it_says_what_would_be_made_and_what_the_next_round_would_give(maat: Client) -> None:
    body = {"name": "train", "model": "cifar10", "gpu_types": ["a100"], "external_id": "mine"}
    found = maat.try_job(body)
    assert found["declared"] | body == found["declared"]
    assert found["declared"]["min_gpus"] == 1
    assert found["runs_on"] == [{"gpu_type": "a100", "least_gpus": 1, "cluster_gpus": 16}]
    assert found["forecast"] == "starts"
    assert found["starts_with"] is not None
    assert found["starts_with"]["gpu_type"] == "a100"
    assert maat.jobs()["items"] == []
    assert maat.try_job(body) == found


def test_a_job_for_which_there_is_no_room_would_wait(maat: Client) -> None:
    maat.create_tenant("vision")
    maat.reserve("demo", {"gpu_type": "a100", "gpu_count": 16, "tenant": "vision"})
    found = maat.try_job({"name": "train", "model": "cifar10", "gpu_types": ["a100"]})
    assert (found["forecast"], found["starts_with"]) == ("waits", None)
    assert "would wait" in found["sentence"]


def test_it_refuses_what_a_submission_refuses(maat: Client) -> None:
    with pytest.raises(ApiError) as refused:
        maat.try_job({"name": "train", "model": "gpt-9"})
    assert refused.value.status == 422
    maat.submit_job({"name": "one", "model": "bert", "external_id": "mine"})
    with pytest.raises(ApiError) as taken:
        maat.try_job({"name": "two", "model": "bert", "external_id": "mine"})
    assert taken.value.status == 409


def test_the_command_line_prints_it(run: Run, maat: Client) -> None:
    said = run("submit", "train", "--model", "cifar10", "--gpu-type", "t4", "--dry-run")
    assert said.splitlines()[0].startswith("It could be submitted. At present")
    assert "t4: from 1 of 24 GPUs" in said
    assert json.loads(run("submit", "train", "--model", "bert", "--dry-run", "--json"))["dry_run"]
    assert maat.jobs()["items"] == []


def test_an_array_is_submitted_listed_and_cancelled_by_line(run: Run, maat: Client) -> None:
    said = run("submit", "sweep", "--model", "bert", "--array", "0-2,7")
    array = said.split()[-1]
    assert said == f"4 jobs: array {array}\n"
    assert "sweep[7]" in run("jobs", "--array", array)
    assert run("cancel", "--array", array, "--yes") == "cancel: 4 jobs changed\n"
    for wrong in ("x", "5-1", "0-5000", "1,"):
        with pytest.raises(ParameterError, match="are no indices"):
            run("submit", "sweep", "--model", "bert", "--array", wrong)
