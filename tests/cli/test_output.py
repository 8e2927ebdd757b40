"""Tests of every command that writes a file: it keeps its inputs, and reports a full disk."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from cli.running import maat

from maat.cli.output import write_csv
from maat.library.numbers import number_reader, whole_number_reader
from maat.scheduling.errors import ParameterError

ROWS = "name,time,application,num_replicas,batch_size,work_scale\na,0,cifar10,1,128,0.01\n"
CLUSTER = ("--cluster", "t4=1x4")
COMMANDS = {
    "simulate": ("--policy", "fifo"),
    "sweep": ("--policy", "fifo", "--vary", "round_seconds=60", "--workers", "1"),
    "compare": ("--policy", "fifo,srtf", "--workers", "1"),
}


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "small.csv"
    path.write_text(ROWS, encoding="utf-8")
    return path


def ended(command: str, *arguments: object) -> tuple[int, str]:
    done = maat(command, *map(str, arguments), *COMMANDS[command], *CLUSTER)
    return done.returncode, done.stderr


@pytest.mark.parametrize("command", list(COMMANDS))
def test_no_input_is_overwritten(command: str, trace: Path) -> None:
    other = trace.parent / "link.csv"
    other.symlink_to(trace)
    code, said = ended(command, trace, "--csv", other)
    assert code == 2
    assert said.startswith(f"maat: csv: would overwrite the input {trace} (got '")
    assert said.endswith("Name another file.\n")
    assert trace.read_text(encoding="utf-8") == ROWS


def test_nothing_is_written_into_a_folder_that_is_read(trace: Path) -> None:
    folder = trace.parent / "measured"
    folder.mkdir()
    code, said = ended("simulate", trace, "--variability", folder, "--csv", folder / "jobs.csv")
    assert code == 2
    assert not (folder / "jobs.csv").exists(), said


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("command", list(COMMANDS))
def test_a_full_disk_ends_with_a_message(command: str, trace: Path) -> None:
    code, said = ended(command, trace, "--csv", "/dev/full")
    assert (code, said) == (
        1,
        "maat: csv: /dev/full cannot be written (No space left on device). "
        "Give a file where there is space.\n",
    )
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-m", "maat", command, str(trace), *COMMANDS[command], *CLUSTER],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=240,
        )
    assert (done.returncode, done.stderr) == (
        1,
        "maat: the output cannot be written (No space left on device). "
        "Send it where there is space.\n",
    )


def test_a_refusal_leaves_no_empty_file(trace: Path) -> None:
    target = trace.parent / "jobs.csv"
    code, _ = ended("simulate", trace, "--reserve", "t4=9,tenant=x", "--csv", target)
    assert (code, target.exists()) == (2, False)


@pytest.mark.parametrize("text", ["0", "x", "1.5", "nan", "", "9" * 5000])
def test_what_is_no_whole_number_in_range_is_refused(text: str) -> None:
    with pytest.raises(
        ParameterError, match=r"^jobs: is n.* \(got '.{0,80}\)\. Give a whole number"
    ):
        whole_number_reader("jobs", least=1, most=100)(text)


@pytest.mark.parametrize("text", ["-1", "x", "nan", "inf", "9" * 5000])
def test_what_is_no_number_in_range_is_refused(text: str) -> None:
    with pytest.raises(ParameterError, match=r"^hours: is n.* \(got '.{0,80}\)\. Give a"):
        number_reader("hours", least=0.01, most=100)(text)


def test_a_name_that_is_a_formula_is_written_as_text(tmp_path: Path) -> None:
    file = tmp_path / "jobs.csv"
    write_csv(file, ("name", "change"), [("=cmd()", -1.5), ("plain", 2)])
    assert file.read_text().splitlines() == ["name,change", "'=cmd(),-1.5", "plain,2"]
