"""Tests of `maat sweep` as a process: its table, JSON, CSV, cache and refusals."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cli.running import maat

from maat.__main__ import main
from maat.scheduling.policies.fifo import Fifo
from maat.scheduling.solving.report import SolveReport

Refused = Callable[..., str]
ROWS = (
    "name,time,application,num_replicas,batch_size,work_scale\n"
    "a,0,cifar10,1,128,0.05\n"
    "b,60.5,bert,2,24,0.02\n"
)
SMALL = ("--cluster", "t4=2x4")


def result(*arguments: str) -> Any:
    done = maat("sweep", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "small.csv"
    path.write_text(ROWS, encoding="utf-8")
    return path


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refused:
    def run_here(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["maat", "sweep", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        assert (ended.value.code, said.out) == (2, "")
        (line,) = said.err.splitlines()
        return line.removeprefix("maat: ")

    return run_here


def test_json_has_every_point_in_order_and_the_mean_of_every_setting(tmp_path: Path) -> None:
    generated = ("--generate", "philly", "--jobs", "2", "--hours", "0.1", "--cluster", "a100=4x8")
    found = result(
        *generated,
        "--vary",
        "p=-1,0.5",
        "--vary",
        "round_seconds=60,300",
        "--seeds",
        "0,1",
        "--workers",
        "2",
    )
    assert [(axis["name"], axis["unit"], axis["values"]) for axis in found["axes"]] == [
        ("p", None, [-1.0, 0.5]),
        ("round_seconds", "s", [60.0, 300.0]),
    ]
    assert [(*point["settings"].values(), point["seed"]) for point in found["points"]] == [
        (p, seconds, seed) for p in (-1.0, 0.5) for seconds in (60.0, 300.0) for seed in (0, 1)
    ]
    for number, row in enumerate(found["rows"]):
        pair = [
            point["figures"]["avg_jct_hours"]
            for point in found["points"][2 * number : 2 * number + 2]
        ]
        assert row["mean"]["avg_jct_hours"] == pytest.approx(sum(pair) / 2, rel=1e-12)
        assert row["spread"]["avg_jct_hours"] == pytest.approx(
            abs(pair[0] - pair[1]) / 2**0.5, rel=1e-9
        )


def test_a_point_has_the_figures_that_maat_simulate_prints(trace: Path) -> None:
    (point,) = result(str(trace), *SMALL, "--vary", "p=-1")["points"]
    alone = json.loads(maat("simulate", str(trace), *SMALL, "--set", "p=-1", "--json").stdout)
    for name in (
        "avg_jct_hours",
        "makespan_hours",
        "gpu_hours_per_job",
        "restarts_per_job",
        "rounds",
    ):
        assert point["figures"][name] == alone[name]


def test_a_share_of_bound_jobs_is_varied_on_a_base_that_binds_others(trace: Path) -> None:
    points = result(
        str(trace), *SMALL, "--vary", "rigid_share=0,0.5", "--strong-scaling-share", "0.5"
    )["points"]
    one = maat(
        "simulate",
        str(trace),
        *SMALL,
        "--rigid-share",
        "0.5",
        "--strong-scaling-share",
        "0.5",
        "--json",
    )
    assert points[1]["figures"]["avg_jct_hours"] == json.loads(one.stdout)["avg_jct_hours"]
    assert points[0]["figures"]["avg_jct_hours"] != points[1]["figures"]["avg_jct_hours"]


def test_what_the_cache_has_is_not_simulated_again_and_damage_is_said(
    trace: Path, tmp_path: Path
) -> None:
    arguments = (
        str(trace),
        *SMALL,
        "--vary",
        "round_seconds=60,120",
        "--workers",
        "1",
        "--cache",
        str(tmp_path / "kept"),
    )
    first = maat("sweep", *arguments)
    again = maat("sweep", *arguments)
    assert first.stdout.startswith("2 points, 2 simulated;")
    assert again.stdout.startswith("2 points, 0 simulated;")
    assert first.stdout.splitlines()[1:] == again.stdout.splitlines()[1:]
    next((tmp_path / "kept").rglob("*.json")).write_text("{")
    repaired = maat("sweep", *arguments)
    assert repaired.stdout.startswith("2 points, 1 simulated;")
    assert (
        repaired.stderr == "maat: 1 stored result(s) were damaged and have been simulated again\n"
    )


def test_csv_has_one_line_per_point(trace: Path, tmp_path: Path) -> None:
    target = tmp_path / "points.csv"
    found = result(str(trace), *SMALL, "--vary", "policy=fifo,srtf", "--csv", str(target))
    with target.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["policy"], row["seed"]) for row in rows] == [("fifo", "0"), ("srtf", "0")]
    assert [float(row["avg_jct_hours"]) for row in rows] == [
        point["figures"]["avg_jct_hours"] for point in found["points"]
    ]


def test_a_figure_of_the_table_is_drawn_over_what_is_varied(trace: Path, tmp_path: Path) -> None:
    page = tmp_path / "makespan.html"
    asked = ("--vary", "policy=fifo,srtf", "--plot", str(page), "--figure", "makespan_hours")
    found = result(str(trace), *SMALL, *asked)
    drawn = page.read_text(encoding="utf-8")
    assert '"text":"Makespan (h)"' in drawn
    assert '"categoryarray":["fifo","srtf"]' in drawn
    assert f"{found['rows'][0]['mean']['makespan_hours']:.4g}" in drawn


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "vary: are not one or two different settings (got []). Vary one or two"),
        (
            ("--vary", "p"),
            "vary: is not of the form NAME=VALUE,VALUE,... (got 'p'). Write for example",
        ),
        (
            ("--vary", "luck=1"),
            "vary: is nothing that can be varied (got 'luck'). Use one of: policy, placer, p, idle",
        ),
        (("--vary", "p=high"), "p: is no number from -10 to 10 (got 'high')"),
        (("--vary", "p=0"), "p: makes all configurations equal"),
        (("--vary", "p=,"), "p: has no values"),
        (
            ("--vary", "p=1", "--seeds", "a"),
            "seeds: are not whole numbers from 0 up, separated by commas (got 'a')",
        ),
        (("--vary", "p=1", "--seeds", "1,1"), "seeds: are not different whole numbers"),
        (("--vary", "p=1", "--policy", "fifo"), "p: is no parameter of fifo"),
        (
            ("--vary", "policy=fifo,srtf", "--policy", "sia"),
            "policy: is varied, and set for all points (got 'sia'). Set it or vary it.",
        ),
        (
            ("--vary", "round_seconds=60,120", "--round-seconds", "90"),
            "round_seconds: is varied, and set for all points (got [60.0, 120.0])",
        ),
        (
            ("--vary", "p=1", "--set", "p=-1"),
            "p: is varied, and set for all points (got [1.0]). Set it or vary it.",
        ),
        (
            ("--vary", "profiling=oracle", "--profiling", "no-profile"),
            "profiling: is varied, and set for all points",
        ),
        (
            ("--vary", "rigid_share=0,0.6", "--strong-scaling-share", "0.5"),
            "strong_scaling_share: and rigid_share together are more than",
        ),
        (
            ("--vary", "least_stay_seconds=60,none", "--least-stay-seconds", "10m"),
            "least_stay_seconds: is varied, and set for all points (got [60.0, 'none']). "
            "Set it or vary it.",
        ),
        (
            ("--vary", "most_moves_per_hour=2,0"),
            "most_moves_per_hour: is no whole number from 1 to 3600 (got '0').",
        ),
        (("--vary", "p=1", "--cluster", "t4=0x4"), "cluster: has zero GPUs"),
        (
            ("--vary", "p=1", "--cluster", "h100=1x4"),
            "application: cannot run on any GPU type of this cluster (h100)",
        ),
        (("--vary", "p=1", "--cache", "/dev/null"), "cache: cannot be written"),
        (("--vary", "p=1", "--csv", "/nowhere/at/all.csv"), "csv: cannot be written"),
        (("--vary", "p=1", "--generate", "philly"), "trace: is missing, or given twice"),
    ],
    ids=lambda value: "-".join(value).strip("-") if isinstance(value, tuple) else "",
)
def test_a_bad_option_is_refused_by_field_value_and_remedy(
    trace: Path, refused: Refused, arguments: tuple[str, ...], says: str
) -> None:
    assert says in refused(str(trace), "--workers", "1", *arguments)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--jobs", "5"),
        ("--hours", "2"),
        ("--tuned-gpus", "8"),
        ("--variability-draw", "rows"),
        ("--interference", "1.5"),
    ],
)
def test_an_option_that_says_nothing_without_another_is_refused(
    trace: Path, refused: Refused, option: str, value: str
) -> None:
    field = option.removeprefix("--").replace("-", "_")
    assert refused(str(trace), "--vary", "p=-1,1", *SMALL, option, value).startswith(f"{field}: ")


def test_that_a_clock_ended_a_solver_is_told(
    trace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    decide = Fifo.allocate
    monkeypatch.setattr(
        Fifo,
        "allocate",
        lambda self, given: replace(decide(self, given), report=SolveReport(out_of_time=True)),
    )
    varied = ("--policy", "fifo", "--vary", "round_seconds=60,300", "--workers", "1")
    monkeypatch.setattr(sys, "argv", ["maat", "sweep", str(trace), *SMALL, *varied])
    with pytest.raises(SystemExit):
        main()
    said = capsys.readouterr().out
    assert "The solver's time ran out in" in said
    assert "rounds of 2 of 2 runs: another machine may get another result." in said


def one_node_profiles(folder: Path) -> Path:
    """Write the profiles of a model `m` that was measured on one node of t4 alone."""
    model = folder / "profiles" / "m"
    model.mkdir(parents=True)
    steps = [(gpus, batch, batch / 100 + 0.1) for gpus in (1, 2, 4) for batch in (8, 32)]
    placements = [f"{gpus},{batch},{seconds},0.01" for gpus, batch, seconds in steps]
    scalability = [f"1,{row}" for row in placements]
    for name, head, rows in (
        ("placements-t4", "placement,local_bsz,step_time,sync_time", placements),
        ("scalability-t4", "num_nodes,num_replicas,local_bsz,step_time,sync_time", scalability),
        ("validation-64", "progress,grad_sqr,grad_var", ["100,1,1", "200,1,1"]),
        ("validation-256", "progress,grad_sqr,grad_var", ["100,1,1", "200,1,1"]),
    ):
        (model / f"{name}.csv").write_text("\n".join([head, *rows, ""]), encoding="utf-8")
    return model.parent


def test_a_point_that_fails_is_named_and_the_others_are_kept(tmp_path: Path) -> None:
    path, cells = tmp_path / "t.csv", tmp_path / "cells.csv"
    path.write_text(
        "name,time,application,num_replicas,batch_size\na,0,m,8,128\n", encoding="utf-8"
    )
    profiles = ("--profiles", str(one_node_profiles(tmp_path)), "--cluster", "t4=2x4")
    shared = (str(path), *profiles, "--vary", "policy=fifo,sia", "--csv", str(cells))

    table = maat("sweep", *shared)
    listed = maat("sweep", *shared, "--json")

    assert (table.returncode, listed.returncode) == (1, 1), table.stderr
    assert "2 points, 1 simulated" in table.stdout
    assert "1 of 2 points could not be simulated:" in table.stderr
    assert "policy fifo, seed 0: configuration: was never measured for m on t4" in table.stderr
    found = json.loads(listed.stdout)
    assert [point["settings"] for point in found["points"]] == [{"policy": "sia"}]
    assert [point["settings"] for point in found["failed"]] == [{"policy": "fifo"}]
    assert len(cells.read_text(encoding="utf-8").splitlines()) == 2


def test_a_point_whose_cluster_is_too_small_for_a_reservation_fails_alone(trace: Path) -> None:
    cluster = ("--cluster", "t4=2x4", "--reservation", "t4=9,tenant=x", "--workers", "1")

    varied = maat("sweep", str(trace), *cluster, "--vary", "cluster_size=1,2", "--json")
    refused = maat("sweep", str(trace), *cluster, "--vary", "cluster_size=1")

    assert varied.returncode == 1, varied.stderr
    assert "cluster_size 1, seed 0: reservation.gpu_count: of t4 hold together" in varied.stderr
    found = json.loads(varied.stdout)
    assert [point["settings"] for point in found["points"]] == [{"cluster_size": 2}]
    assert [point["settings"] for point in found["failed"]] == [{"cluster_size": 1}]
    assert refused.returncode == 2
    assert "of t4 hold together" in refused.stderr
