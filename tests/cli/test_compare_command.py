"""`maat compare` as people run it: its tables, its JSON, its CSV, and what it says to bad input."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from maat.__main__ import main

Compare = Callable[..., int]
SMALL = ("--generate", "philly", "--jobs", "3", "--hours", "0.5", "--cluster", "t4=4x4", "--workers", "1")


@pytest.fixture
def compare(monkeypatch: pytest.MonkeyPatch) -> Compare:
    """Runs the command in this process; its exit code."""

    def run(*arguments: str) -> int:
        monkeypatch.setattr("sys.argv", ["maat", "compare", *SMALL, *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0)

    return run


def test_every_policy_meets_every_placer(compare: Compare, capsys: pytest.CaptureFixture[str]) -> None:
    compare("--policy", "srtf,fifo", "--placer", "packed-sticky,whole-node", "--json")

    found = json.loads(capsys.readouterr().out)
    assert [(c["policy"], c["placer"]) for c in found["contestants"]] == [
        ("srtf", "packed-sticky"),
        ("srtf", "whole-node"),
        ("fifo", "packed-sticky"),
        ("fifo", "whole-node"),
    ]
    assert len(found["paired"]) == 3
    assert {d["basis"] for d in found["paired"]} == {"jobs"}


def test_the_table_gives_spread_and_interval(compare: Compare, capsys: pytest.CaptureFixture[str]) -> None:
    compare("--policy", "srtf,fifo", "--seeds", "0,1")

    shown = capsys.readouterr().out
    assert "2 run(s) of each; mean ± sample standard deviation over runs" in shown
    assert "in brackets the 95 % interval over the traces" in shown
    assert "srtf + packed-sticky" in shown


def test_the_baseline_can_be_chosen(compare: Compare, capsys: pytest.CaptureFixture[str]) -> None:
    compare("--policy", "srtf,fifo", "--baseline", "fifo", "--json")

    found = json.loads(capsys.readouterr().out)
    assert found["contestants"][found["baseline"]]["name"] == "fifo + packed-sticky"
    assert [found["contestants"][d["contestant"]]["policy"] for d in found["paired"]] == ["srtf"]


def test_runs_are_written_one_per_line(compare: Compare, tmp_path: Path) -> None:
    compare("--policy", "srtf,fifo", "--csv", str(tmp_path / "runs.csv"))

    rows = list(csv.DictReader((tmp_path / "runs.csv").open(encoding="utf-8")))
    assert [(row["policy"], row["trace"], row["seed"]) for row in rows] == [("srtf", "philly", "0"), ("fifo", "philly", "0")]


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("--policy", "luck"), "policy"),
        (("--placer", "luck"), "placer"),
        (("--policy", "fifo,fifo"), "policy"),
        (("--policy", "fifo", "--baseline", "sia"), "baseline"),
        (("--seeds", "x"), "seeds"),
    ],
)
def test_bad_input_names_its_field_and_ends_with_2(
    compare: Compare, arguments: tuple[str, ...], field: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare(*arguments) == 2
    assert f"maat: {field}: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--policy", "sia,fifo,fifo"), "policy: names one twice (got 'fifo + packed-sticky'). Name each once."),
        (("--seeds", "0,1,0"), "seeds: names one twice (got '0'). Name each once."),
        (("--generate", "philly,philly"), "trace: names one twice (got 'philly'). Name each once."),
        (("--tuned-gpus", "8"), "tuned_gpus: bounds tuned jobs, of which there are none (got 8)."),
        (("--variability-draw", "rows"), "variability_draw: draws from measured GPUs, of which there are none (got 'rows')."),
        (("--interference", "1.5"), "interference: says what jobs on one GPU lose, but a GPU holds one job (got '1.5')."),
    ],
)
def test_what_is_refused_is_told_by_its_name(
    compare: Compare, arguments: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare(*arguments) == 2
    assert f"maat: {says}" in capsys.readouterr().err


def test_a_trace_has_its_own_number_of_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "small.csv"
    trace.write_text("name,time,application,num_replicas,batch_size\na,0,cifar10,1,128\n", encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["maat", "compare", str(trace), "--jobs", "5"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("maat: jobs: belongs to generated workloads; a trace has its own jobs (got 5).")
