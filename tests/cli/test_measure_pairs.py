"""`maat measure pairs`: two commands that sleep their steps, slower beside each other."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from maat.cli.app import app
from maat.cli.measure import put_rows
from maat.simulation.interference import read_table

STEPS = """
import pathlib, signal, sys, time
here, other, slowdown = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), float(sys.argv[3])
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
here.touch()
print("some words before the first step")
try:
    due = time.monotonic()
    for step in range(100_000):
        due += 0.04 * (slowdown if other.exists() else 1.0)
        time.sleep(max(due - time.monotonic(), 0.0))
        print("step", step)
finally:
    here.unlink(missing_ok=True)
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "steps.py"
    path.write_text(STEPS)
    return path


def command(script: Path, mine: str, other: str, slowdown: float) -> str:
    folder = script.parent
    argv = [sys.executable, script, folder / mine, folder / other, slowdown]
    return shlex.join(map(str, argv))


def measure(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["measure", "pairs", *arguments])
    return done.exit_code, done.output + (str(done.exception) if done.exception else "")


@pytest.mark.parametrize(("xi", "other_xi"), [(1.1, 1.5), (2.5, 1.1)])
def test_slowdowns_are_found_within_5_percent_and_read_by_interference(
    script: Path, tmp_path: Path, xi: float, other_xi: float
) -> None:
    """Each step sleeps until it is due, so that a busy machine makes none of them longer."""
    output = tmp_path / "pairs.csv"
    first, second = command(script, "a", "b", xi), command(script, "b", "a", other_xi)
    options = ("--names", "bert,ncf", "--seconds", "2", "--step-line", "^step")
    code, told = measure(first, second, *options, "--output", str(output))
    assert code == 0, told
    table = read_table(output)
    assert table.pairs["bert", "ncf"][1] == pytest.approx(xi, rel=0.05)
    assert table.pairs["ncf", "bert"][1] == pytest.approx(other_xi, rel=0.05)
    assert not list(tmp_path.glob("[ab]")), "both have ended"
    assert ("Not both below 1.5" in told) or xi < 2.0


def test_rows_are_added_to_a_table_that_exists_and_to_no_other_file(
    script: Path, tmp_path: Path
) -> None:
    output = tmp_path / "pairs.csv"
    output.write_text("victim,partner,gpu_count,slowdown\nx,y,1,1.5\n")
    both = command(script, "a", "b", 1.0), command(script, "b", "a", 1.0)
    options = ("--names", "bert,ncf", "--seconds", "0.6", "--gpus", "0,1")
    assert measure(*both, *options, "--output", str(output))[0] == 0
    table = read_table(output)
    assert table.pairs["x", "y"] == {1: 1.5}
    assert set(table.pairs["bert", "ncf"]) == {2}
    script_before = script.read_text()
    code, told = measure(*both, "--output", str(script))
    assert code != 0
    assert script.read_text() == script_before
    assert "Name a new file" in told


@pytest.mark.parametrize(
    ("commands", "words"),
    [
        (("true",), "are not two commands"),
        (("no-such-programme", "true"), "cannot be started"),
        (("echo done", "true"), "made 0 steps that count"),
        (("false", "true"), "false failed: it ended with exit code 1"),
        (
            ("sh -c 'echo step; echo out of memory >&2; exit 3'", "true"),
            "with exit code 3 while it was measured. It wrote last: 'out of memory'.",
        ),
        (("sh -c 'kill -9 $$'", "true"), "by signal 9 (Killed)"),
    ],
)
def test_what_cannot_be_measured_is_said(
    commands: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    code, told = measure(*commands, "--seconds", "0.3", "--output", str(tmp_path / "pairs.csv"))
    assert code != 0
    assert words in told


def test_a_table_has_one_figure_of_a_pair_the_newest_and_of_several_the_worst(
    tmp_path: Path,
) -> None:
    table = tmp_path / "pairs.csv"
    put_rows(table, [["a", "b", "1", "1.9"], ["b", "a", "1", "1.3"]])
    put_rows(table, [["a", "b", "1", "1.2"], ["a", "b", "1", "1.4"], ["a", "b", "2", "1.1"]])
    assert read_table(table).pairs == {("a", "b"): {1: 1.4, 2: 1.1}, ("b", "a"): {1: 1.3}}
