"""Tests of `maat simulate`: what it refuses, by field, value and remedy."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cli.running import HEADER, SMALL, only_line

from maat.__main__ import main

Refused = Callable[..., str]


def test_a_rigid_job_of_a_model_that_spans_gpus_asks_for_whole_replicas(
    tmp_path: Path, refused: Refused
) -> None:
    path = tmp_path / "hybrid.csv"
    path.write_text(HEADER.strip() + ",adaptivity\na,0,gpt,3,48,0.01,rigid\n", encoding="utf-8")
    said = refused("simulate", str(path), "--cluster", "a100=2x8")
    assert "num_replicas: is no whole number of replicas of this rigid job (got 3)" in said


@pytest.fixture
def refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """Return a function that runs the command in this process and returns its refusal.

    A process for each refusal would take most of the time of these tests.
    """

    def run_here(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["maat", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return only_line(ended.value.code, said.out, said.err)

    return run_here


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--least-stay-seconds", "soon"), "least_stay_seconds: is no duration"),
        (
            ("--least-stay-seconds", "31d"),
            "least_stay_seconds: is no time from 0 to 2592000 s (30 days)",
        ),
        (("--most-moves-per-hour", "0"), "most_moves_per_hour: is no whole number from 1 to 3600"),
        (("--most-moves-per-hour", "1.5"), "most_moves_per_hour: is no whole number"),
    ],
)
def test_bounds_on_moves_that_make_no_sense_are_refused_by_their_field(
    arguments: tuple[str, ...], said: str, trace: Path, refused: Refused
) -> None:
    assert said in refused("simulate", str(trace), *SMALL, *arguments)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--jobs-per-gpu", "2"), "interference: is missing where several jobs may share a GPU"),
        (("--jobs-per-gpu", "9", "--interference", "1.5"), "jobs_per_gpu: is not between 1 and 8"),
        (
            ("--jobs-per-gpu", "2", "--interference", "0.5"),
            "interference: is no slowdown from 1 to 1000",
        ),
        (
            ("--jobs-per-gpu", "2", "--interference", "none.csv"),
            "interference: is no file, no number and not 'synthetic'",
        ),
    ],
)
def test_sharing_that_makes_no_sense_is_refused_by_its_field(
    refused: Refused, trace: Path, arguments: tuple[str, ...], said: str
) -> None:
    assert said in refused("simulate", str(trace), *SMALL, "--policy", "sjf-bsbf", *arguments)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "name,time,application,num_replicas\na,0,cifar10,1\n",
            ["row 1", "batch_size: column is missing", "The header needs"],
        ),
        (
            HEADER + "a,-5,cifar10,1,128,1\n",
            ["row 2", "time: is not between 0", "(got '-5')", "Correct it or remove the row."],
        ),
        (
            HEADER + "a,nan,cifar10,1,128,1\n",
            ["row 2", "time: is no finite number", "(got 'nan')", "Give a plain decimal number."],
        ),
        (
            HEADER + "a,0,resnet999,1,128,1\n",
            ["row 2", "application: is no known model", "(got 'resnet999')", "Known are"],
        ),
        (
            HEADER + "a,0,cifar10,0,128,1\n",
            ["row 2", "num_replicas: is not between 1", "(got '0')"],
        ),
        (
            HEADER + "a,0,cifar10\n",
            ["row 2", "line: has 3 cells where there are 6 columns", "Complete the row."],
        ),
        (HEADER, ["rows: holds no jobs", "Add at least one row"]),
        ("", ["file: is empty"]),
    ],
    ids=[
        "missing-column",
        "negative-time",
        "nan",
        "unknown-model",
        "zero-gpus",
        "short-row",
        "no-rows",
        "empty",
    ],
)
def test_a_bad_trace_is_refused_by_file_row_field_value_and_remedy(
    tmp_path: Path, refused: Refused, text: str, says: list[str]
) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text, encoding="utf-8")
    said = refused("simulate", str(path), *SMALL)
    assert str(path) in said
    for part in says:
        assert part in said, said


def test_a_binary_file_is_refused(tmp_path: Path, refused: Refused) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(bytes(range(256)) * 64)
    said = refused("simulate", str(path), *SMALL)
    assert "file: is a binary file, not CSV. Give a CSV text file in UTF-8." in said


def test_a_trace_that_is_not_there_is_refused(tmp_path: Path, refused: Refused) -> None:
    said = refused("simulate", str(tmp_path / "none.csv"))
    assert "file: cannot be read: No such file or directory. Check the path" in said


def test_a_job_that_no_type_of_the_cluster_runs_is_refused_by_row(
    trace: Path, refused: Refused
) -> None:
    said = refused("simulate", str(trace), "--cluster", "h100=1x4")
    assert "row 2" in said
    assert "application: cannot run on any GPU type of this cluster (h100) (got 'cifar10')" in said
    assert "Measured are: t4" in said


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ("--cluster", "t4=0x4"),
            "cluster: has zero GPUs (got 't4=0x4'). Give every type at least one node",
        ),
        (
            ("--cluster", "four cards"),
            "cluster: does not read as type=NODESxGPUS (got 'four cards'). "
            "Write for example t4=6x4",
        ),
        (
            ("--policy", "lifo"),
            "policy: is no policy that Maat has (got 'lifo'). Use one of: sia, fifo, srtf",
        ),
        (
            ("--placer", "anywhere"),
            "placer: is no placer that Maat has (got 'anywhere'). Use one of: "
            "whole-node, packed-sticky, packed",
        ),
        (
            ("--fidelity", "exact"),
            "fidelity: is no fidelity that Maat has (got 'exact'). Use one of: paper, sia-artifact",
        ),
        (
            ("--reservation", "t4"),
            "reservations: does not read as a reservation (got 't4'). Write TYPE=GPUS,tenant=NAME",
        ),
        (
            ("--cluster", f"t4={'9' * 5000}x4"),
            "cluster: does not read as type=NODESxGPUS (got 't4=999",
        ),
        (
            ("--reservation", f"t4={'9' * 5000},tenant=x"),
            "reservations: does not read as a reservation (got 't4=999",
        ),
        (
            ("--reservation", "t4=2,tenant=x,from=nan"),
            "reservations: does not read as a reservation",
        ),
        (("--reservation", "t4=2,owner=x"), "reservations: does not read as a reservation"),
        (
            ("--reservation", "t4=2,tenant=x,from=soon"),
            "reservations: does not read as a reservation",
        ),
        (("--reservation", "t4=2"), "reservation: is for a tenant or for a job, one of them"),
        (
            ("--reservation", "t4=2,tenant=x,from=2,until=1"),
            "end: is not after the start (got 3600.0)",
        ),
        (
            ("--reservation", "h100=2,tenant=x"),
            "reservation.gpu_type: is no GPU type of this cluster (got 'h100')",
        ),
        (
            ("--reservation", "t4=2,job=nobody"),
            "reservation.job_id: is no job of the trace (got 'nobody')",
        ),
        (
            ("--failures-mtbf-hours", "0"),
            "mtbf_hours: is no time of 0.1 hours or more (got 0.0). Give hours, such as 100.",
        ),
        (
            ("--failures-mtbf-hours", "1", "--repair-seconds", "-1"),
            "repair_seconds: is not a time from zero up (got -1.0). Give seconds, such as 1800.",
        ),
        (
            ("--rigid-share", "1.5"),
            "rigid_share: is not between 0 and 1 (got 1.5). Give a share of the jobs, such as 0.5.",
        ),
        (
            ("--rigid-share", "0.6", "--strong-scaling-share", "0.6"),
            "strong_scaling_share: and rigid_share together are more than all jobs",
        ),
        (
            ("--set", "sia.round_seconds=60"),
            "set: is no parameter of a policy (got 'sia.round_seconds'). Write --round-seconds 60.",
        ),
        (
            ("--set", "round_seconds=60"),
            "set: is no parameter of a policy (got 'round_seconds'). Write --round-seconds 60.",
        ),
        (
            ("--set", "p"),
            "set: is not of the form NAME=VALUE (got 'p'). Write for example --set p=-1.",
        ),
        (
            ("--set", "p=0"),
            "p: makes all configurations equal (got 0.0). Use a value below or above zero",
        ),
        (("--set", "p=high"), "p: is no number (got 'high'). Give a finite number."),
        (
            ("--set", "power=1"),
            "power: is no parameter of sia (got 1). Use one of: p, idle_penalty",
        ),
        (("--profiles", "/nowhere/at/all"), "(got '/nowhere/at/all')"),
        (
            ("--csv", "/nowhere/at/all.csv"),
            "csv: cannot be written (No such file or directory) (got '/nowhere/at/all.csv'). "
            "Name a file in",
        ),
        (
            ("--series", "/nowhere/at/all"),
            "series: cannot be made a folder (No such file or directory) (got '/nowhere/at/all'). "
            "Name a new folder in one that exists, or a file that ends in .json.",
        ),
        (
            ("--series", "/nowhere/at/all.json"),
            "series: cannot be written (No such file or directory) (got '/nowhere/at/all.json'). "
            "Name a file in",
        ),
        (
            ("--failures-mtbf-hours", "1", "--repair-seconds", "inf"),
            "repair_seconds: is not a time from zero up (got inf). Give seconds",
        ),
        (
            ("--jobs", "5"),
            "jobs: belongs to generated workloads; a trace has its own jobs (got 5). "
            "Use --generate philly",
        ),
        (
            ("--hours", "2"),
            "hours: belongs to generated workloads; a trace has its own jobs (got 2.0). "
            "Use --generate philly",
        ),
        (
            ("--tuned-gpus", "8"),
            "tuned_gpus: limits tuned jobs, and there are none (got 8). "
            "Say by which rule (tuned best-batch), or leave",
        ),
        (
            ("--variability-draw", "rows"),
            "variability_draw: draws from measured GPUs, of which there are none (got 'rows'). "
            "Say what was measured (variability), or leave it out.",
        ),
        (
            ("--interference", "1.5"),
            "interference: says what jobs on one GPU lose, but a GPU holds one job "
            "(got 'constant 1.5'). Let more jobs share a GPU",
        ),
        (
            ("--cluster", "t4=99999999x4"),
            "cluster: has more GPUs than Maat accepts (got 't4=99999999x4'). "
            "Stay at or below 1000000 GPUs.",
        ),
        (
            ("--generate", "philly"),
            "trace: is missing, or given twice. Name a workload CSV, or use --generate philly.",
        ),
    ],
    ids=lambda value: "-".join(value).strip("-")[:60] if isinstance(value, tuple) else "",
)
def test_a_bad_option_is_refused_by_field_value_and_remedy(
    trace: Path, refused: Refused, arguments: tuple[str, ...], says: str
) -> None:
    assert says in refused(
        "simulate", str(trace), *(SMALL if "--cluster" not in arguments else ()), *arguments
    )


def test_an_unknown_family_of_workloads_is_refused(refused: Refused) -> None:
    said = refused("simulate", "--generate", "borg")
    assert "(got 'borg')" in said
    assert "philly" in said


def test_neither_trace_nor_generator_is_refused(refused: Refused) -> None:
    assert "trace: is missing, or given twice" in refused("simulate")


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        (
            "--jobs",
            "0",
            "jobs: is not between 1 and 200000 (got '0'). Give a whole number in that range.",
        ),
        ("--jobs", "9" * 5000, "jobs: is not a whole number (got '999"),
        (
            "--hours",
            "-1",
            "hours: is not between 0.01 and 8784 (got '-1'). Give a number in that range.",
        ),
        ("--hours", "nan", "hours: is not a number (got 'nan'). Give a plain decimal number."),
        ("--seed", "-1", "seed: is not between 0 and 9223372036854775807 (got '-1')."),
        ("--round-seconds", "0", "round_seconds: is not between 1 and 86400 (got '0')."),
        ("--rigid-share", "nan", "rigid_share: is not a number (got 'nan')."),
        (
            "--repair-seconds",
            "5",
            "repair_seconds: repairs nodes, but none fails (got 5.0). "
            "Say how often they fail (failures_mtbf_hours), or leave",
        ),
    ],
)
def test_a_number_that_cannot_be_used_is_refused_by_name(
    refused: Refused, option: str, value: str, says: str
) -> None:
    assert says in refused("simulate", "--generate", "philly", option, value)


def test_a_gpu_type_that_nobody_knows_is_refused_with_the_one_that_is_meant(
    trace: Path, refused: Refused
) -> None:
    for command in ("simulate", "compare", "sweep --vary p=-1,1"):
        said = refused(*command.split(), str(trace), "--cluster", "t4=1x4,dgx-ext=2x8")
        assert "cluster: is a GPU type that neither" in said
        assert "(got 'dgx-ext'). Did you mean a100?" in said


def test_records_that_are_left_out_are_told_in_table_and_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(HEADER + "a,0,cifar10,1,128,1\na,1,bert,1,12,1\n", encoding="utf-8")
    note = (
        "1 of 2 records of the trace was left out, its GPU-hours unknown: "
        "line 3 (name stands twice, 'a')."
    )
    for arguments in ((), ("--json",)):
        monkeypatch.setattr(sys, "argv", ["maat", "simulate", str(path), *SMALL, *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr().out
        assert ended.value.code in (0, None)
        if arguments:
            assert note in json.loads(said)["notes"]
        else:
            assert note in said
