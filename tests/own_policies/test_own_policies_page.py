"""docs/own-policies.md: what it says to write, run and install does what it says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from own_policies.installing import ROOT, environment_with

from maat.contracts.listing import ANY_ROUND

PAGE = ROOT / "docs" / "own-policies.md"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the page shows."""
    folder = tmp_path_factory.mktemp("fair-queue")
    text = PAGE.read_text(encoding="utf-8")
    for language, name in (("python", "fair_queue.py"), ("toml", "pyproject.toml")):
        (block,) = re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
        (folder / name).write_text(block)
    return folder


def run(folder: Path, *command: str, path: Path = ROOT) -> CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *command],
        env=environment_with(path, NO_COLOR="1", COLUMNS="200"),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def commands() -> list[list[str]]:
    lines = re.findall(r"^\$ (maat .*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(lines) == 4
    return [line.split() for line in lines]


@pytest.mark.parametrize("command", commands(), ids=lambda command: command[1])
def test_a_command_of_the_page_runs(folder: Path, command: list[str]) -> None:
    few = ["--jobs", "4"] if "--generate" in command and "--jobs" not in command else []
    ran = run(folder, *command, *few)
    assert ran.returncode == 0, ran.stderr
    assert "LongestFirst" in ran.stdout


def test_its_policy_keeps_every_contract_in_the_words_of_the_page(folder: Path) -> None:
    checked = run(folder, "maat.check_policy", "fair_queue:LongestFirst", "--quick")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    page = PAGE.read_text(encoding="utf-8")
    for contract in ANY_ROUND.contracts[:2]:
        assert f"  kept    {contract.sentence}" in page
        assert f"  kept    {contract.sentence}" in checked.stdout
    assert checked.stdout.splitlines()[-1] == "It keeps every contract."


def test_it_is_listed_once_it_is_installed(folder: Path, tmp_path: Path) -> None:
    options = ("--quiet", "--no-index", "--no-deps", "--no-build-isolation")
    made = run(folder, "pip", "install", *options, "--target", str(tmp_path), ".")
    assert made.returncode == 0, made.stderr
    listed = run(tmp_path.parent, "maat", "policies", "--json", path=tmp_path)
    (found,) = [p for p in json.loads(listed.stdout) if p["name"] == "longest-first"]
    assert (found["from"], found["round_seconds"]) == ("fair-queue", 120.0)
