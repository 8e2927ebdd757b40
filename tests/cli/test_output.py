"""Tests of every command that writes a file: it keeps its inputs, and reports a full disk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli.running import maat, maat_process, only_line
from small_disk import SmallDisk

from maat.cli.output import write_table
from maat.library.numbers import number_reader, whole_number_reader
from maat.library.tables import Table
from maat.scheduling.errors import ParameterError

ROWS = "name,time,application,num_replicas,batch_size,work_scale\na,0,cifar10,1,128,0.01\n"
LOUD = """
class Loud:
    \"\"\"Give each job the first GPU, and say so.\"\"\"

    def allocate(self, round_input):
        print("I decide")
        return {job.id: ("t4", 1) for job in round_input.jobs[:4]}
"""
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


@pytest.mark.parametrize("command", list(COMMANDS))
@pytest.mark.parametrize(
    ("outputs", "said"),
    [
        ("--plot same.html --csv same.html", "plot: names what --csv writes (got 'same.html')"),
        ("--csv same.json --series ./same.json", "series: names what --csv writes"),
        ("--csv out --series out", "series: names what --csv writes"),
        ("--series out --csv out/gpus.csv", "series: names what --csv writes"),
        ("--plot sub/../same.html --csv same.html", "plot: names what --csv writes"),
        ("--plot link.html --csv same.html", "plot: names what --csv writes"),
        ("--plot within/same.html --csv same.html", "plot: names what --csv writes"),
    ],
)
def test_two_outputs_to_one_file_are_refused_before_anything_runs(
    command: str, outputs: str, said: str, trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = trace.parent / "results"
    (folder / "sub").mkdir(parents=True)
    (folder / "link.html").symlink_to(folder / "same.html")  # which is not there yet
    (folder / "within").symlink_to(folder)
    before = sorted(folder.iterdir())
    monkeypatch.chdir(folder)
    code, words = ended(command, trace, *outputs.split())
    assert code == 2
    assert words.startswith(f"maat: {said}")
    assert words.endswith("Name another file: each output needs its own.\n")
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("command", ["autoscale", "tune"])
def test_an_experiment_does_not_write_two_outputs_to_one_file(command: str, tmp_path: Path) -> None:
    path = str(tmp_path / "same.html")
    done = maat(command, "--plot", path, "--csv", path)
    assert done.returncode == 2
    assert done.stderr.startswith("maat: plot: names what --csv writes")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "words",
    [
        "simulate --policy loud_policy:Loud",
        "compare --policy loud_policy:Loud,fifo --workers 2",
        "sweep --policy loud_policy:Loud --vary round_seconds=60,120 --workers 1",
    ],
)
def test_what_an_own_policy_prints_is_not_in_the_json(
    words: str, trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (trace.parent / "loud_policy.py").write_text(LOUD)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(trace.parent), *sys.path]))
    command, *options = words.split()
    done = maat_process(command, str(trace), *options, *CLUSTER, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)
    assert "I decide" in done.stderr


@pytest.mark.needs_chromium
@pytest.mark.parametrize("browser", ["/bin/false", "/bin/cat"])
def test_all_that_is_said_of_a_browser_that_ends_is_the_error(
    browser: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROWSER_PATH", browser)
    done = maat_process("tune", "--plot", str(tmp_path / "scores.svg"))
    said = only_line(done.returncode, done.stdout, done.stderr)
    assert said.startswith("plot: cannot be drawn: the browser failed")


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
    code, _ = ended("simulate", trace, "--reservation", "t4=9,tenant=x", "--csv", target)
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


@pytest.mark.parametrize(
    ("command", "arguments", "says"),
    [
        ("simulate", ("--plot", "jct.jpeg"), "plot: has no suffix of a figure (got 'jct.jpeg')."),
        ("sweep", ("--plot", "none/x.svg"), "plot: cannot be written (No such file or directory)"),
        ("compare", ("--plot", "trace"), "plot: has no suffix of a figure"),
        ("simulate", ("--figure", "jct_cdf"), "figure: is drawn to no file (got 'jct_cdf'). Name"),
        (
            "simulate",
            ("--plot", "x.html", "--figure", "ratios"),
            "figure: is not drawn of this (got 'ratios'). Use one of: jct_cdf, waits_cdf, ",
        ),
        (
            "sweep",
            ("--plot", "x.html", "--figure", "jct_cdf"),
            "Use one of: means, waits_cdf, placement_slowdown_cdf, gpus_over_time, ",
        ),
        (
            "compare",
            ("--plot", "x.html", "--figure", "mean_jct"),
            "nodes_over_time; or a figure of the tables, such as avg_jct_hours.",
        ),
    ],
)
def test_a_figure_that_cannot_be_drawn_is_refused_before_anything_is_simulated(
    command: str, arguments: tuple[str, ...], says: str, tmp_path: Path, trace: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("maat.simulation.engine.World", None)  # nothing can be simulated
    code, said = ended(command, trace, *arguments)
    assert code == 2
    assert says in said
    assert [path.name for path in tmp_path.iterdir()] == [trace.name]


@pytest.mark.parametrize(
    ("browser", "why"),
    [
        ("/nowhere/chrome", "BROWSER_PATH names no browser, but /nowhere/chrome"),
        ("/bin/false", "the browser failed (The browser seemed to close immediately"),
    ],
)
def test_without_a_chrome_a_picture_is_refused_before_and_a_page_is_drawn(
    browser: str, why: str, trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROWSER_PATH", browser)
    picture, page = trace.parent / "jct.svg", trace.parent / "jct.html"
    code, said = ended("simulate", trace, "--plot", picture)
    assert code == 2
    assert f"plot: cannot be drawn: {why}" in said
    assert said.endswith("or end it in .html, which needs no browser.\n")
    assert not picture.exists()
    assert ended("simulate", trace, "--plot", page) == (0, "")
    assert "Plotly.newPlot(" in page.read_text(encoding="utf-8")


def test_what_was_computed_is_printed_if_its_file_cannot_be_written(
    small_disk: SmallDisk, trace: Path
) -> None:
    asked = ("--plot", str(small_disk.path / "jct.html"), *COMMANDS["compare"], *CLUSTER)
    done = maat("compare", str(trace), *asked)  # plotly alone is larger than the disk
    assert done.returncode == 1
    assert "jct.html cannot be written (No space left on device)" in done.stderr
    assert "srtf + packed-sticky" in done.stdout


def test_a_full_disk_is_refused_before_and_leaves_what_was_there(
    small_disk: SmallDisk, trace: Path
) -> None:
    page = small_disk.path / "jct.html"
    code, said = ended("simulate", trace, "--plot", page)  # plotly alone is larger than the disk
    assert code == 1
    assert f"plot: {page} cannot be written (No space left on device)" in said
    assert not list(small_disk.path.iterdir())
    page.write_text("mine")
    small_disk.fill()
    code, said = ended("simulate", trace, "--plot", page)
    assert code == 2
    assert "plot: cannot be written (No space left on device)" in said
    assert page.read_text() == "mine"


def test_a_name_that_is_a_formula_is_written_as_text(tmp_path: Path) -> None:
    file = tmp_path / "jobs.csv"
    write_table(file, Table({"name": str, "change": float}, [("=cmd()", -1.5), ("plain", None)]))
    assert file.read_text().splitlines() == ["name,change", "'=cmd(),-1.5", "plain,"]
