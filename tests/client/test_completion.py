"""What the shells propose: names of the service, one word each, or nothing at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from unittest.mock import patch

import pytest
from typer.testing import CliRunner

from maat.cli.app import app as commands
from maat.cli.completion import words_of
from maat.client import Client

NOBODY = "http://127.0.0.1:9"  # the port that discards


@pytest.fixture
def proposing(maat: Client, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(Client, "close", lambda _: None)
    with patch("maat.client.Client", lambda *_, **__: maat):
        yield


def proposed(line: str, shell: str = "bash", url: str = NOBODY) -> tuple[str, str]:
    """Return what the script of a shell gets for a line whose last word is being typed."""
    words = line.split(" ")
    asked = {
        "_MAAT_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
        "_TYPER_COMPLETE_ARGS": line,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        "_TYPER_COMPLETE_TESTING": "1",
        "MAAT_URL": url,
    }
    done = CliRunner().invoke(commands, [], prog_name="maat", env=os.environ | asked)
    return done.stdout.strip(), done.stderr


@pytest.mark.usefixtures("proposing")
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_jobs_and_models_are_proposed_by_what_is_typed(maat: Client, shell: str) -> None:
    for name in ("night-run", "night-2", "day"):
        maat.submit_job({"name": name, "model": "bert"})

    said, _ = proposed("maat explain night", shell)
    assert "night-run" in said
    assert "night-2" in said
    assert "day" not in said
    assert "bert" in proposed("maat submit x --model be", shell)[0]
    assert "--watch" in proposed("maat jobs --wa", shell)[0]


@pytest.mark.usefixtures("proposing")
def test_a_name_that_is_more_than_a_word_is_proposed_by_its_id(maat: Client) -> None:
    made = maat.submit_job({"name": "a; touch /tmp/x", "model": "bert"})
    assert proposed("maat explain job_")[0] == made["id"]
    assert proposed("maat explain a")[0] == ""


def test_only_words_of_a_shell_are_proposed() -> None:
    evil = ["$(id)", "`id`", "a b", "a;b", "-rf", "a*", "a\nb", "a'b", "~x", "a>b", "!!", "ok.1"]
    assert words_of(evil, "") == ["ok.1"]


def test_a_service_that_is_away_proposes_nothing_and_says_nothing() -> None:
    assert proposed("maat explain ni") == ("", "")
