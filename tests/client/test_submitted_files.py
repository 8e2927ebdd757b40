"""`maat submit job.yaml`: the job of the file, and refusals with its lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from maat.cli.app import app as commands
from maat.client import Client
from maat.scheduling.errors import InputError


@pytest.fixture(autouse=True)
def here(maat: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Client, "close", lambda _: None)
    monkeypatch.setattr("maat.client.Client", lambda *_, **__: maat)
    monkeypatch.chdir(tmp_path)


def submit(text: str, *more: str) -> tuple[int, str]:
    Path("job.yaml").write_text(text)
    done = CliRunner().invoke(commands, ["submit", "job.yaml", *more], catch_exceptions=False)
    return done.exit_code, done.output


def test_a_file_says_all_of_a_job(maat: Client) -> None:
    text = "name: night\nmodel: bert\nmax_gpus: 4\nlabels: {team: vision}\ngpu_types: [a100]\n"

    assert submit(text, "--dry-run")[0] == 0
    assert maat.jobs()["items"] == []
    assert submit(text)[0] == 0

    (job,) = maat.jobs()["items"]
    assert (job["name"], job["max_gpus"], job["labels"], job["gpu_types"]) == (
        "night",
        4,
        {"team": "vision"},
        ["a100"],
    )


def test_what_the_service_refuses_is_told_with_its_line() -> None:
    code, said = submit("name: night\n\nmodel: bert\nmin_gpus: 8\nmax_gpus: 0\n")
    assert code == 2
    assert "maat: job.yaml, line 5: max_gpus: " in said
    assert "Give at least 1." in said


@pytest.mark.parametrize(
    ("more", "field"), [(["--gpus", "4"], "--gpus"), (["--", "python", "train.py"], "--")]
)
def test_options_that_say_something_of_the_job_are_refused(more: list[str], field: str) -> None:
    with pytest.raises(InputError, match="Write it in the file") as refused:
        submit("name: night\nmodel: bert\n", *more)
    assert refused.value.field == field


def test_a_file_that_is_not_there_or_no_job_is_refused() -> None:
    with pytest.raises(InputError, match=r"job.yaml, line 2: modle: .*Did you mean model"):
        submit("name: night\nmodle: bert\n")
    with pytest.raises(InputError, match="cannot be read"):
        CliRunner().invoke(commands, ["submit", "no.yml"], catch_exceptions=False)


def test_a_command_of_a_file_goes_to_a_cluster_that_runs_commands() -> None:
    with pytest.raises(InputError, match="no cluster of the service runs commands"):
        submit("name: a\nmodel: a\nadaptivity: rigid\ngpu_count: 1\nrun: {argv: [ls], cwd: /}\n")
