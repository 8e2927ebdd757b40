"""`maat audit` against the service itself."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from maat.cli.app import app as commands
from maat.cli.app import run as run_command_line
from maat.client import Client
from maat.client.audit_words import change_words

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


def test_changes_are_listed_with_what_differs(run: Run, maat: Client) -> None:
    maat.create_user({"name": "ann", "role": "viewer"})
    maat.change_user("ann", {"role": "submitter"}, version=maat.user("ann")["version"])
    lines = run("audit", "--kind", "user").splitlines()
    assert lines[0].split() == ["at", "actor", "action", "target", "tenant", "change", "request"]
    assert "role: viewer -> submitter" in lines[1]
    assert "name: ann" in lines[2]
    (one,) = json.loads(run("audit", "--action", "change user", "--json"))
    assert change_words(one) == "role: viewer -> submitter"
    assert run("audit", "--actor", "nobody").splitlines()[1:] == []


def test_more_than_are_listed_are_announced(run: Run, maat: Client) -> None:
    for name in ("one", "two"):
        maat.create_tenant(name)
    assert "there are more than 1" in run("audit", "--limit", "1")


def test_they_are_written_to_a_file(run: Run, maat: Client, tmp_path: Path) -> None:
    maat.create_tenant("one")
    run("audit", "--file", str(tmp_path / "all.csv"))
    with (tmp_path / "all.csv").open(newline="") as file:
        assert "create tenant" in [row["action"] for row in csv.DictReader(file)]
    run("audit", "--file", str(tmp_path / "all.json"))
    assert json.loads((tmp_path / "all.json").read_text())[0]["action"] == "create tenant"


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (["--file", "all.pdf"], "ends with .csv or .json"),
        (["--limit", "0"], "between 1 and 500"),
        (["--from", "yesterday"], "2026-11-20T12:00:00Z"),
        (["--kind", "cat"], "cat"),
    ],
)
def test_bad_input_ends_with_2_and_says_what_to_give(
    given: list[str],
    named: str,
    maat: Client,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(Client, "close", lambda _: None)
    monkeypatch.setattr("maat.client.Client", lambda *_, **__: maat)
    monkeypatch.setattr("sys.argv", ["maat", "audit", *given])
    with pytest.raises(SystemExit) as ended:
        run_command_line()
    assert ended.value.code == 2
    assert named in capsys.readouterr().err


def test_what_is_missing_is_told_with_its_remedy(
    maat: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Client, "close", lambda _: None)
    monkeypatch.setattr("maat.client.Client", lambda *_, **__: maat)
    done = CliRunner().invoke(commands, ["ready"], catch_exceptions=False)
    assert done.exit_code == 1
    assert "missing: worker. " in done.output
    assert "Start one: celery" in done.output
    assert "disk" not in done.output
