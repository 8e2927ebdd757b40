"""Tests of the list of commands: help imports no command, and a call reaches the right one."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from maat.__main__ import main
from maat.cli.app import COMMANDS, DEMOS, app
from maat.cli.lazy_commands import Command


@pytest.mark.parametrize("command", [*COMMANDS, *DEMOS], ids=lambda command: command.name)
def test_a_summary_is_what_the_function_says_of_itself(command: Command) -> None:
    assert inspect.getdoc(command.function()).split("\n\n")[0] == command.summary


def test_help_names_every_command() -> None:
    said = CliRunner().invoke(app, ["--help"]).output
    for name in (*(command.name for command in COMMANDS), "up", "version"):
        assert f" {name} " in said


def test_a_command_takes_its_own_options() -> None:
    said = CliRunner().invoke(app, ["simulate", "--help"]).output
    assert "--fairness" in said
    assert "--limit" in CliRunner().invoke(app, ["jobs", "--help"]).output


def test_a_demo_does_not_write_into_a_folder_that_is_there(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "maat", "demo", "train", "--folder", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "folder: exists already" in done.stderr
    assert "Name a new one" in done.stderr


def test_a_mistyped_command_is_told_the_nearest() -> None:
    refused = CliRunner().invoke(app, ["simualte"])
    assert refused.exit_code == 2
    assert "'simulate'" in refused.output


@pytest.mark.parametrize("command", ["autoscale", "tune"])
def test_a_model_that_nobody_knows_is_refused(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["maat", command, "--model", "lenet"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert (
        "model: is no known model (got 'lenet'). Use one of: bert, cifar10"
        in capsys.readouterr().err
    )


def test_help_loads_no_command() -> None:
    listing = (
        "from typer.testing import CliRunner; from maat.cli.app import app; "
        "CliRunner().invoke(app, ['--help'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"{listing}; import sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert not {"numpy", "httpx", "maat.simulation"} & set(done.stdout.split())


def loaded_by_a_simulation(*options: str) -> set[str]:
    """The modules that `maat simulate` of four jobs has loaded at its end."""
    arguments = ["simulate", "--generate", "philly", "--jobs", "4", "--cluster", "t4=4x4"]
    played = f"import sys; from maat.__main__ import main; sys.argv[1:] = {[*arguments, *options]}"
    listing = "import atexit; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); main()"
    done = subprocess.run(
        [sys.executable, "-c", f"{played}; {listing}"], capture_output=True, text=True, check=True
    )
    return set(done.stderr.split())


@pytest.mark.parametrize("policy", ["sia", "shockwave"])
def test_cvxpy_is_loaded_only_where_it_solves(policy: str) -> None:
    assert "cvxpy" not in loaded_by_a_simulation("--policy", policy, "--json")
    stated = loaded_by_a_simulation("--policy", policy, "--set", "solver=cvxpy", "--json")
    assert {"cvxpy", f"maat.scheduling.solving.papers.{policy}"} <= stated


def test_a_simulation_that_fits_and_solves_nothing_loads_nothing_that_does() -> None:
    """Tiresias on one GPU type needs no fit, solver, chart or server.

    Importing them would take longer than the simulation.
    """
    loaded = loaded_by_a_simulation("--policy", "tiresias", "--json")
    assert "maat.simulation.engine" in loaded
    assert (
        not {
            "scipy",
            "highspy",
            "cvxpy",
            "optuna",
            "pandas",
            "httpx",
            "rich",
            "maat.client",
            "fastapi",
            "sqlmodel",
            "celery",
        }
        & loaded
    )
