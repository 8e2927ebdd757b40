"""`maat compare` as people run it: its tables, its JSON, its CSV, and what it says to bad input."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from maat.__main__ import main
from maat.laboratory.comparison import Outcome
from maat.laboratory.comparison_run import ComparisonPlan
from maat.scheduling.policies.fifo import Fifo
from maat.scheduling.solving.report import SolveReport

Compare = Callable[..., int]
SMALL = (
    "--generate",
    "philly",
    "--jobs",
    "3",
    "--hours",
    "0.5",
    "--cluster",
    "t4=4x4",
    "--workers",
    "1",
)


@pytest.fixture
def compare(monkeypatch: pytest.MonkeyPatch) -> Compare:
    """Runs the command in this process; its exit code."""

    def run(*arguments: str) -> int:
        monkeypatch.setattr("sys.argv", ["maat", "compare", *SMALL, *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0)

    return run


def test_every_policy_meets_every_placer(
    compare: Compare, capsys: pytest.CaptureFixture[str]
) -> None:
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


def test_the_table_gives_spread_and_interval(
    compare: Compare, capsys: pytest.CaptureFixture[str]
) -> None:
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
    assert [(row["policy"], row["trace"], row["seed"]) for row in rows] == [
        ("srtf", "philly", "0"),
        ("fifo", "philly", "0"),
    ]


def test_series_are_kept_where_they_are_written_or_drawn(
    compare: Compare, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ("--policy", "srtf,fifo", "--seeds", "0,1", "--figure", "gpus_over_time")
    page, folder = tmp_path / "gpus.html", tmp_path / "series"
    assert compare(*asked, "--plot", str(page), "--series", str(folder)) == 0
    assert sorted(path.name for path in folder.iterdir()) == [
        "efficiency.csv",
        "gpus.csv",
        "nodes.csv",
        "waits.csv",
    ]
    with (folder / "gpus.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["contestant", "trace", "seed", "time_seconds", "gpus", "t4_gpus"]
    assert len({(row["contestant"], row["seed"]) for row in rows}) == 4
    drawn = page.read_text(encoding="utf-8")
    assert all(f'"name":"{name} + packed-sticky"' in drawn for name in ("srtf", "fifo"))
    assert "Time (hours) of philly, seed 0" in drawn


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
        (("--policy", "sia,fifo,fifo"), "policy: names one twice (got 'fifo'). Name each once;"),
        (
            ("--policy", "fifo,=sia"),
            "policy: has no label before the = (got '=sia'). Write sia, or for example soft=sia.",
        ),
        (
            ("--round-seconds", "=60"),
            "round_seconds: has no policy before the = (got '=60'). "
            "Write 60 for all policies, or for example sia=60.",
        ),
        (("--seeds", "0,1,0"), "seeds: names one twice (got '0'). Name each once."),
        (("--generate", "philly,philly"), "trace: names one twice (got 'philly'). Name each once."),
        (("--tuned", "lifo=any-pair"), "tuned: names no policy that runs (got 'lifo'). Use one"),
        (("--tuned", "=any-pair"), "tuned: has no policy before the ="),
        (("--tuned", "any-pair", "--tuned", "best-batch"), "tuned: is given twice"),
        (("--tuned-gpus", "8"), "tuned_gpus: limits tuned jobs, and there are none (got 8)."),
        (
            ("--variability-draw", "rows"),
            "variability_draw: draws from measured GPUs, of which there are none (got 'rows').",
        ),
        (
            ("--interference", "1.5"),
            "interference: says what jobs on one GPU lose, but a GPU holds one job "
            "(got 'constant 1.5').",
        ),
    ],
)
def test_what_is_refused_is_told_by_its_name(
    compare: Compare, arguments: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare(*arguments) == 2
    assert f"maat: {says}" in capsys.readouterr().err


def test_a_trace_has_its_own_number_of_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "small.csv"
    trace.write_text(
        "name,time,application,num_replicas,batch_size\na,0,cifar10,1,128\n", encoding="utf-8"
    )
    monkeypatch.setattr("sys.argv", ["maat", "compare", str(trace), "--jobs", "5"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith(
        "maat: jobs: belongs to generated workloads; a trace has its own jobs (got 5)."
    )


def test_a_policy_is_compared_with_itself_under_another_parameter(
    compare: Compare, capsys: pytest.CaptureFixture[str]
) -> None:
    compare("--policy", "tiresias,flat=tiresias", "--set", "flat.thresholds=18000", "--json")

    found = json.loads(capsys.readouterr().out)
    assert [c["name"] for c in found["contestants"]] == [
        "tiresias + most-free",
        "tiresias (thresholds=18000) + most-free",
    ]
    assert [c["policy_parameters"] for c in found["contestants"]] == [{}, {"thresholds": 18000}]


def test_a_compared_policy_may_have_rounds_of_its_own(
    compare: Compare, capsys: pytest.CaptureFixture[str]
) -> None:
    rounds = ("--round-seconds", "60", "--round-seconds", "slow=1200")
    assert compare("--policy", "fifo,slow=fifo", *rounds, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [(c["name"], c["round_seconds"]) for c in found["contestants"]] == [
        ("fifo + packed-sticky", None),
        ("fifo (round_seconds=1200) + packed-sticky", 1200.0),
    ]
    usual, slow = (c["figures"]["avg_jct_hours"]["mean"] for c in found["contestants"])
    assert slow > usual
    assert compare("--policy", "fifo", "--round-seconds", "60", "--json") == 0
    (alone,) = json.loads(capsys.readouterr().out)["contestants"]
    assert alone["figures"]["avg_jct_hours"]["mean"] == usual


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ("--policy", "sia,fifo", "--set", "p=-1"),
            "set: names no compared policy (got 'p'). Write POLICY.NAME=VALUE",
        ),
        (
            ("--policy", "sia,fifo", "--set", "srtf.p=-1"),
            "set: names no compared policy (got 'srtf.p').",
        ),
        (
            ("--policy", "sia,fifo", "--set", "sia.round_seconds=120"),
            "set: is no parameter of a policy (got 'sia.round_seconds'). "
            "Write --round-seconds sia=120.",
        ),
        (
            ("--policy", "sia,fifo", "--round-seconds", "srtf=120"),
            "round_seconds: names no compared policy (got 'srtf=120'). "
            "The compared ones are: sia, fifo.",
        ),
        (
            ("--policy", "sia,fifo", "--round-seconds", "sia=0"),
            "round_seconds: is not between 1 and 86400 (got '0').",
        ),
        (
            ("--round-seconds", "60", "--round-seconds", "90"),
            "round_seconds: is given twice (got '90'). Give each once.",
        ),
        (("--policy", "sia,fifo", "--set", "fifo.p=-1"), "p: is no parameter of fifo (got -1)."),
        (
            ("--policy", "sia,fifo", "--set", "sia.p=" + "9" * 5000),
            "sia.p: has too many digits (got '999",
        ),
        (
            ("--policy", "sia,sia"),
            "policy: names one twice (got 'sia'). Name each once; "
            "to compare a policy with itself, write",
        ),
    ],
)
def test_a_parameter_is_of_one_of_those_who_are_compared(
    compare: Compare, arguments: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare(*arguments) == 2
    assert f"maat: {says}" in capsys.readouterr().err


def test_one_file_under_two_names_is_one_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "name,time,application,num_replicas,batch_size\na,0,cifar10,1,128\n"
    paths = [tmp_path / "one.csv", tmp_path / "two.csv"]
    for path in paths:
        path.write_text(text, encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["maat", "compare", *map(str, paths)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "/one; together they are one trace (got '" in capsys.readouterr().err


def test_what_is_declared_and_who_lacks_what_is_told(
    compare: Compare, capsys: pytest.CaptureFixture[str]
) -> None:
    compare(
        "--policy",
        "fifo,srtf",
        "--placer",
        "pal",
        "--jobs-per-gpu",
        "2",
        "--interference",
        "synthetic",
    )

    shown = capsys.readouterr().out
    assert "philly (generated) on t4=4x4, fidelity paper" in shown
    assert "jobs_per_gpu 2 and interference have no effect under fifo" in shown
    assert "jobs_per_gpu 2 and interference have no effect under srtf" in shown
    assert shown.count("The placer pal weighs how slow GPUs are; here all of a type are alike") == 1


def test_that_a_placer_restarts_jobs_by_itself_is_told_of_whom(
    compare: Compare, capsys: pytest.CaptureFixture[str]
) -> None:
    compare(
        "--policy", "fifo", "--placer", "random,random-sticky", "--round-seconds", "400", "--json"
    )
    found = json.loads(capsys.readouterr().out)

    moves, kept = (run["figures"]["restarts_by_placer"] for run in found["runs"])
    assert moves > 0 == kept
    told = (
        "restarts were moves by the placer random alone, of jobs that fifo left as they were: "
        "the placer random-sticky leaves them on their GPUs."
    )
    assert [note for note in found["notes"] if "by the placer" in note] == [
        f"{moves} of {moves} {told}"
    ]


def test_a_mean_and_a_ratio_that_seem_to_contradict_each_other_are_explained(
    compare: Compare, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def played(contest: ComparisonPlan, **_: object) -> tuple[Outcome, ...]:
        hours = ({"a": 2.0, "b": 2.0, "long": 10.0}, {"a": 1.0, "b": 1.0, "long": 20.0})
        figures = {"jobs": 3, "unfinished": 0}
        return tuple(
            Outcome(who, "t", 0, figures, jct)
            for who, jct in zip(contest.contestants, hours, strict=True)
        )

    monkeypatch.setattr("maat.library.comparing.run_comparison", played)
    assert compare("--policy", "fifo,srtf") == 0
    assert (
        "srtf + packed-sticky: JCT ratio 0.794 and difference +2.667 h are both true."
        in capsys.readouterr().out
    )


def test_that_a_clock_ended_a_solver_is_told_also_of_what_was_kept(
    compare: Compare,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    decide = Fifo.allocate
    monkeypatch.setattr(
        Fifo,
        "allocate",
        lambda self, given: replace(decide(self, given), report=SolveReport(out_of_time=True)),
    )
    arguments = ("--policy", "fifo,srtf", "--cache", str(tmp_path))
    compare(*arguments, "--json")
    found = json.loads(capsys.readouterr().out)
    rounds = [run["figures"]["rounds_out_of_time"] for run in found["runs"]]
    assert rounds[0] > 0 == rounds[1]

    monkeypatch.undo()
    monkeypatch.setattr("sys.argv", ["maat", "compare", *SMALL, *arguments])
    with pytest.raises(SystemExit):
        main()

    note = (
        f"The solver's time ran out in {rounds[0]} rounds of 1 of 2 runs: "
        "another machine may get another result."
    )
    assert note in found["notes"]
    assert note in capsys.readouterr().out.splitlines()
