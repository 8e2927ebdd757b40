"""`maat measure locality`: real processes that step more slowly when they are told of two nodes."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import pytest
from slurm_cluster import SlurmCluster
from typer.testing import CliRunner

from maat.cli.app import app
from maat.demo.jobs import JOBS
from maat.laboratory.measured_runs import SlurmLauncher, srun_words
from maat.launch.attempt_dir import Limits, Spec
from maat.models.locality_table import read_locality

STEPS = """
import json, os, sys, time
nodes = len(json.loads(os.environ["MAAT_SHAPE"]))
print("some words before the first step", flush=True)
due = time.monotonic()
for step in range(100_000):
    due += 0.04 * (float(sys.argv[1]) if nodes > 1 else 1.0)
    time.sleep(max(due - time.monotonic(), 0.0))
    print("step", step, flush=True)
"""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "steps.py"
    path.write_text(STEPS)
    return path


def measure(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["measure", "locality", *arguments])
    return done.exit_code, done.output + (str(done.exception) if done.exception else "")


def test_a_planted_slowdown_is_found_and_a_newer_measurement_replaces_the_older(
    script: Path,
) -> None:
    """Each step sleeps until it is due, so that a busy machine makes none of them longer."""
    options = ("--gpu-type", "t4", "--gpus", "2", "--seconds", "1.2", "--step-line", "^step")
    for planted in (1.8, 1.5):
        code, told = measure(*options, "--", sys.executable, str(script), str(planted))
        assert code == 0, told
        table = read_locality(Path("locality.csv"))
        assert table.by_type("steps")["t4"].penalty == pytest.approx(planted, rel=0.05)
    assert len(table.rows) == 1
    assert table.rows[0].gpu_count == 2
    assert "times as long" in told
    assert not list(Path.cwd().glob(".maat-measure-*"))


def test_an_adaptive_script_on_emulated_devices_says_itself_what_its_steps_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    script = (sys.executable, "-m", "maat.demo.digits")
    sizes = ("--per-gpu-batch-size", "8", "--seconds", "4", "--name", "digits", "--json")
    code, told = measure("--gpu-type", "t4", *sizes, "--", *script)
    assert code == 0, told
    found = json.loads(told)
    assert found["penalty"] == pytest.approx(JOBS["digits"].across_nodes, rel=0.15)
    assert found["steps"] >= 10


def test_slurm_starts_the_processes_on_one_node_and_on_two(
    script: Path, slurm: SlurmCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm.settle()
    monkeypatch.setenv("SLURM_CONF", str(slurm.conf))
    options = ("--gpu-type", "t4", "--seconds", "1", "--step-line", "^step", "--slurm")
    command = ("--", sys.executable, str(script), "1.5")
    code, told = measure(*options, "--srun", "--partition=maat", *command)
    assert code == 0, told
    found = read_locality(Path("locality.csv")).by_type("steps")["t4"]
    assert found.penalty == pytest.approx(1.5, rel=0.1)
    slurm.until(lambda: not slurm.run("squeue", "-h"))
    code, told = measure(*options, "--srun", "--partition=none", *command)
    assert code != 0
    assert "Slurm started no process. It wrote last:" in told


def test_slurm_is_asked_for_the_same_on_every_node_with_the_options_that_are_given() -> None:
    spec = Spec(
        "att", "net", 1, ("true",), "/", {}, (), "t4", {"a": (0, 1), "b": (0, 1)}, 1, None, 1, 1.0,
        Limits(), None, "/none",
    )  # fmt: skip
    words = srun_words(spec, "/shared/att", SlurmLauncher(Path("/"), ("--time=10",)).options)
    assert words[:7] == [
        "srun",
        "--nodes=2",
        "--ntasks-per-node=2",
        "--gres=gpu:t4:2",
        "--job-name=maat-measure-net",
        "--chdir=/shared/att",
        "--time=10",
    ]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--gpus", "3"), "gpus: is no multiple of the nodes"),
        (("--srun", "--time=1"), "srun: has options of srun, which is not used"),
        (("--srun", "'", "--slurm"), "could not be read by a shell"),
        (("--step-line", "("), "step_line: is no regular expression"),
        (("--output", "none/l.csv"), "output: cannot be written"),
    ],
)
def test_options_that_cannot_be_measured_by_are_refused(
    script: Path, options: tuple[str, ...], words: str
) -> None:
    more = () if "--step-line" in options else ("--step-line", "^step")
    code, told = measure("--gpu-type", "t4", *more, *options, "--", "true")
    assert code != 0
    assert words in told


@pytest.mark.parametrize(
    ("command", "options", "words"),
    [
        ("exit 0", ("--step-line", "x"), "sh made 0 steps that count on 1 node, and 10 are needed"),
        ("exit 0", ("--per-gpu-batch-size", "8"), "its script has no maat.agent"),
        (
            "echo out of memory >&2; exit 3",
            ("--per-gpu-batch-size", "8"),
            "ended with exit code 3. It wrote last: 'out of memory'.",
        ),
    ],
)
def test_a_command_that_cannot_be_measured_is_told_and_nothing_is_written(
    script: Path, command: str, options: tuple[str, ...], words: str
) -> None:
    code, told = measure("--gpu-type", "t4", *options, "--", "sh", "-c", command)
    assert code != 0
    assert words in told
    assert not Path("locality.csv").exists()


def test_without_a_batch_size_or_a_step_line_it_says_what_to_give(script: Path) -> None:
    code, told = measure("--gpu-type", "t4", "--", "true")
    assert code != 0
    assert "per_gpu_batch_size: is missing" in told


def test_another_table_is_not_written_over(script: Path) -> None:
    Path("pairs.csv").write_text("victim,partner\n")
    options = ("--gpu-type", "t4", "--step-line", "x", "--output", "pairs.csv")
    code, told = measure(*options, "--", "true")
    assert code != 0
    assert "model: column is missing" in told
    with open("pairs.csv", newline="") as file:
        assert list(csv.reader(file)) == [["victim", "partner"]]
