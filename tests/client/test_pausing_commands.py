"""`maat pause`, `hold`, `resume` and `release`, against the service itself."""

from __future__ import annotations

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


def test_a_job_is_paused_and_resumed_by_its_name(run: Run, maat: Client) -> None:
    job = maat.submit_job({"name": "train", "model": "bert"})
    assert run("pause", "train") == f"{job['id']} is asked to pause\n"
    assert maat.job(job["id"])["paused_by"] == "local"
    assert "Resume it" in run("explain", "train")
    assert run("resume", "train") == f"{job['id']} is in the queue\n"
    assert maat.job(job["id"])["pause_requested"] is False


def test_a_job_is_held_and_released(run: Run, maat: Client) -> None:
    job = maat.submit_job({"name": "train", "model": "bert"})
    assert run("hold", job["id"]) == f"{job['id']} is held\n"
    assert run("release", job["id"]) == f"{job['id']} is in the queue\n"


def test_many_jobs_are_previewed_and_cancelled_once_confirmed(maat: Client, run: Run) -> None:
    for number in range(12):
        maat.submit_job({"name": f"train-{number}", "model": "bert", "labels": {"x": "1"}})
    other = maat.submit_job({"name": "other", "model": "bert"})
    said = run("cancel", "--label", "x=1", "--dry-run")
    assert said.startswith("cancel: 12 jobs (12 submitted)\n")
    assert "and 2 older ones" in said
    asked = ["cancel", "--label", "x=1", "--state", "submitted"]
    refused = CliRunner().invoke(commands, asked, input="n\n")
    assert refused.exit_code == 1
    assert (
        maat.change_jobs({"action": "cancel", "filter": {"label": ["x=1"]}, "dry_run": True})[
            "count"
        ]
        == 12
    )
    agreed = CliRunner().invoke(commands, asked, input="y\n")
    assert agreed.output.endswith("cancel: 12 jobs changed\n")
    assert maat.job(other["id"])["cancel_requested"] is False
    assert run("cancel", "--label", "x=1", "--yes").startswith("cancel: 0 jobs\n12 jobs more match")


def test_a_job_or_a_filter_is_named_and_not_both() -> None:
    for words in (["pause"], ["pause", "one", "--state", "pending"]):
        with pytest.raises(ParameterError, match="Name one job, or say which ones"):
            CliRunner().invoke(commands, words, catch_exceptions=False)


def test_a_job_that_is_unknown_is_a_problem(maat: Client) -> None:
    with pytest.raises(ApiError, match="no job"):
        maat.pause_job("job_0")


def test_a_job_is_changed_and_cloned_by_line(run: Run, maat: Client) -> None:
    job = maat.submit_job({"name": "train", "model": "bert", "labels": {"a": "1"}})
    assert run("change", "train", "--priority", "3", "--set-label", "b=2") == (
        f"{job['id']} is changed\n"
    )
    now = maat.job(job["id"])
    assert (now["priority"], now["labels"]) == (3, {"a": "1", "b": "2"})
    said = run("clone", "train", "--set", "name=again", "--set", "labels.c=3")
    made = maat.job(said.split()[0])
    assert (made["name"], made["priority"]) == ("again", 3)
    assert made["labels"] == {"a": "1", "b": "2", "c": "3"}
    run("change", "again", "--weight", "1.5")
    assert maat.job(made["id"])["weight"] == 1.5
    run("change", "--model", "bert", "--weight", "0.5", "--yes")
    assert {maat.job(one["id"])["weight"] for one in (job, made)} == {0.5}
    run("change", "--model", "bert", "--priority", "9", "--yes")
    assert {maat.job(one["id"])["priority"] for one in (job, made)} == {9}


@pytest.mark.parametrize(
    "words", [["change", "train"], ["clone", "train", "--set", "x"], ["change", "--name", "x"]]
)
def test_a_change_that_says_nothing_is_refused(run: Run, maat: Client, words: list[str]) -> None:
    maat.submit_job({"name": "train", "model": "bert"})
    with pytest.raises(ParameterError):
        run(*words)
