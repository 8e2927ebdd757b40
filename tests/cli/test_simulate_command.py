"""Tests of `maat simulate`: its output, its files and its refusals."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from cli.running import maat, maat_process

from maat.__main__ import main

Refused = Callable[..., str]
KEYS = {
    "policy",
    "placer",
    "fidelity",
    "trace",
    "jobs",
    "rounds",
    "avg_jct_hours",
    "median_jct_hours",
    "p99_jct_hours",
    "makespan_hours",
    "gpu_hours_per_job",
    "restarts_per_job",
    "contention_mean",
    "contention_max",
    "avg_queueing_hours",
    "avg_queueing_hours_large",
    "avg_queueing_hours_small",
    "avg_waiting_hours",
    "avg_waiting_hours_large",
    "avg_waiting_hours_small",
    "avg_jct_hours_large",
    "avg_jct_hours_small",
    "utilisation",
    "utilisation_busy",
    "restarts",
    "evictions",
    "failures",
    "interruptions",
    "lost_gpu_hours",
    "policy_seconds_median",
    "policy_seconds_p95",
    "cpu_seconds",
    "wall_seconds",
}
HEADER = "name,time,application,num_replicas,batch_size,work_scale\n"
ROWS = "a,0,cifar10,1,128,0.05\nb,60.5,bert,2,24,0.02\n"
SMALL = ("--cluster", "t4=2x4")


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "small.csv"
    path.write_text(HEADER + ROWS, encoding="utf-8")
    return path


def figures(*arguments: str, run: Callable[..., CompletedProcess[str]] = maat) -> Any:
    done = run("simulate", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("command", ["simulate", "compare", "sweep"])
def test_that_many_rounds_were_asked_for_is_said_before_they_are_played(
    command: str, tmp_path: Path
) -> None:
    trace = tmp_path / "sparse.csv"
    trace.write_text(
        HEADER + "a,0,cifar10,1,128,0.001\nb,200000,cifar10,1,128,0.001\n", encoding="utf-8"
    )
    varied = ("--vary", "round_seconds=2,60") if command == "sweep" else ("--round-seconds", "2")
    done = maat(command, str(trace), *SMALL, "--policy", "fifo", *varied, "--json")
    assert json.loads(done.stdout)
    assert done.stderr == (
        f"maat: round_seconds 2 makes 100,000 rounds until the last job of {tmp_path.name}/sparse "
        "is submitted, of which those that can change nothing are passed over: "
        "a larger round_seconds takes less time.\n"
    )


def test_json_is_one_object_of_unrounded_figures(trace: Path) -> None:
    found = figures(str(trace), *SMALL, "--policy", "sia")
    assert set(found) >= KEYS
    assert (found["policy"], found["placer"], found["fidelity"]) == ("sia", "whole-node", "paper")
    assert (found["jobs"], found["unfinished"], found["cluster"]) == (2, 0, "t4=2x4")
    assert found["trace"].endswith("small")
    for name in ("avg_jct_hours", "makespan_hours", "gpu_hours_per_job", "cpu_seconds"):
        assert found[name] != round(found[name], 4), name
    assert found["cpu_seconds"] > 0.0
    assert "jobs_csv" not in found


def test_csv_holds_every_job_in_order_of_submission(trace: Path, tmp_path: Path) -> None:
    target = tmp_path / "jobs.csv"
    found = figures(str(trace), *SMALL, "--policy", "fifo", "--csv", str(target))
    assert found["jobs_csv"] == str(target)
    with target.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["name", "submit", "start", "finish", "restarts"]
    assert [(row["name"], float(row["submit"]), row["restarts"]) for row in rows] == [
        ("a", 0.0, "0"),
        ("b", 60.5, "0"),
    ]
    jcts = [float(row["finish"]) - float(row["submit"]) for row in rows]
    assert found["avg_jct_hours"] == pytest.approx(sum(jcts) / 2 / 3600, rel=1e-12)


def test_the_same_command_gives_the_same_figures(trace: Path) -> None:
    timed = {"policy_seconds_median", "policy_seconds_p95", "cpu_seconds", "wall_seconds"}
    first, again = (
        figures(str(trace), *SMALL, "--policy", "srtf", run=run) for run in (maat, maat_process)
    )
    assert {k: v for k, v in first.items() if k not in timed} == {
        k: v for k, v in again.items() if k not in timed
    }


def test_several_policies_are_compared_in_one_list(trace: Path) -> None:
    found = figures(str(trace), *SMALL, "--policy", "sia, fifo,srtf")
    assert [(s["policy"], s["placer"]) for s in found] == [
        ("sia", "whole-node"),
        ("fifo", "packed-sticky"),
        ("srtf", "packed-sticky"),
    ]


def test_without_json_a_table_is_printed(trace: Path) -> None:
    done = maat("simulate", str(trace), *SMALL, "--policy", "fifo,srtf")
    assert done.returncode == 0, done.stderr
    for text in ("2 jobs of", "t4=2x4", "Average JCT, h", "Restarts per job", "fifo", "srtf"):
        assert text in done.stdout
    assert done.stderr == ""


def test_that_jobs_are_tuned_is_said_once_and_noted_in_json(trace: Path) -> None:
    note = (
        "Jobs are tuned by the rule best-batch, drawn by the seed: "
        "not the trace's own GPU counts and batch sizes."
    )
    arguments = (str(trace), *SMALL, "--policy", "fifo,srtf", "--tuned", "best-batch")
    assert maat("simulate", *arguments).stdout.splitlines().count(note) == 1
    assert [found["notes"] for found in figures(*arguments)] == [[note], [note]]


def test_a_workload_may_be_generated_instead_of_read() -> None:
    found = figures(
        "--generate",
        "philly",
        "--jobs",
        "2",
        "--hours",
        "0.05",
        "--seed",
        "4",
        "--cluster",
        "a100=4x8",
    )
    assert (found["jobs"], found["seed"], found["unfinished"]) == (2, 4, 0)


def test_settings_fidelity_profiling_and_rounds_reach_the_simulation(trace: Path) -> None:
    found = figures(
        str(trace),
        *SMALL,
        "--set",
        "p=-1",
        "--set",
        "scale_up_base=largest",
        "--fidelity",
        "sia-artifact",
        "--profiling",
        "oracle",
    )
    assert found["fidelity"] == "sia-artifact"
    slow = figures(str(trace), *SMALL, "--policy", "fifo", "--round-seconds", "600")
    assert slow["rounds"] < figures(str(trace), *SMALL, "--policy", "fifo")["rounds"]


def test_fairness_is_worked_out_only_when_asked_for(trace: Path) -> None:
    found = figures(str(trace), *SMALL, "--policy", "sia,fifo", "--fairness")
    for summary in found:
        assert 0.0 < summary["rho_mean"] <= summary["rho_worst"]
        assert summary["rho_ratio_to_mean_mean"] <= summary["rho_mean"] + 1e-12
        assert summary["rho_share_of_type_worst"] <= summary["rho_worst"] + 1e-12
        assert 0.0 <= summary["unfair_fraction"] <= 1.0
    assert "rho_mean" not in figures(str(trace), *SMALL)
    done = maat("simulate", str(trace), *SMALL, "--policy", "fifo", "--fairness")
    assert "Finish-time fairness rho, mean" in done.stdout
    assert "rho as ratio to the mean, worst" in done.stdout


def test_nodes_fail_as_often_as_told_and_the_same_each_time(trace: Path) -> None:
    arguments = (
        str(trace),
        *SMALL,
        "--policy",
        "fifo",
        "--failures-mtbf-hours",
        "0.1",
        "--repair-minutes",
        "2",
    )
    first, again = figures(*arguments), figures(*arguments, run=maat_process)
    assert first["failures"] > 0
    assert [first[k] for k in ("failures", "interruptions", "lost_gpu_hours", "avg_jct_hours")] == [
        again[k] for k in ("failures", "interruptions", "lost_gpu_hours", "avg_jct_hours")
    ]
    assert "Nodes that failed" in maat("simulate", *arguments).stdout
    assert "Nodes that failed" not in maat("simulate", *arguments[:-4]).stdout


def test_jobs_that_can_never_run_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "huge.csv"
    path.write_text(HEADER + "a,0,cifar10,64,128,0.05\nb,0,cifar10,1,128,0.05\n", encoding="utf-8")
    found = figures(str(path), *SMALL, "--policy", "fifo")
    assert (found["jobs"], found["unfinished"], found["complete"]) == (2, 1, False)


# ---- bad input


def only_line(code: int | str | None, stdout: str, stderr: str) -> str:
    """Return the one line of a refusal: exit code 2, no traceback, no result."""
    assert code == 2, (stdout, stderr)
    assert stdout == ""
    lines = stderr.splitlines()
    assert len(lines) == 1, stderr
    assert lines[0].startswith("maat: ")
    return lines[0].removeprefix("maat: ")


def test_a_trace_says_job_by_job_what_binds_it_and_what_it_does(tmp_path: Path) -> None:
    path = tmp_path / "mixed.csv"
    header = HEADER.strip() + ",adaptivity,workload_kind,promised_seconds,preemptible,tenant\n"
    mixed = (
        "a,0,cifar10,4,512,0.05,rigid,,,false,vision\n"
        "b,0,bert,1,16,0.001,,latency-inference,60,,\n"
        "c,0,bert,1,,0.01,,batch-inference,,,\n"
    )
    path.write_text(header + mixed, encoding="utf-8")
    found = figures(str(path), *SMALL, "--fairness", "--reserve", "t4=8,tenant=vision,until=1")
    assert (found["jobs"], found["unfinished"]) == (3, 0)
    assert found["avg_queueing_hours"] > 0.5, (
        "all but the tenant's job wait for the end of its reservation"
    )


def test_a_rigid_job_of_a_model_that_spans_gpus_asks_for_whole_replicas(
    tmp_path: Path, refused: Refused
) -> None:
    path = tmp_path / "hybrid.csv"
    path.write_text(HEADER.strip() + ",adaptivity\na,0,gpt,3,48,0.01,rigid\n", encoding="utf-8")
    said = refused("simulate", str(path), "--cluster", "a100=2x8")
    assert "num_replicas: is no whole number of replicas of this rigid job (got 3)" in said


def test_reserved_gpus_are_left_to_their_holder_while_the_reservation_holds(trace: Path) -> None:
    arguments = (str(trace), *SMALL, "--policy", "fifo")
    kept_out = figures(*arguments, "--reserve", "t4=8,tenant=vision,until=0.5")
    served = figures(
        *arguments, "--reserve", "t4=1,job=a,until=0.5", "--reserve", "t4=2,job=b,until=0.5"
    )
    assert kept_out["avg_queueing_hours"] > 0.4
    assert served["avg_queueing_hours"] < 0.1


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


def test_a_process_that_refuses_says_one_line_and_exits_with_2(trace: Path) -> None:
    done = maat_process("simulate", str(trace), "--cluster", "t4=0x4")
    said = only_line(done.returncode, done.stdout, done.stderr)
    assert said.startswith(
        "cluster: has zero GPUs (got 't4=0x4'). Give every type at least one node"
    )


def test_jobs_may_share_gpus_and_the_answer_names_what_that_costs(trace: Path) -> None:
    done = maat(
        "simulate",
        str(trace),
        *SMALL,
        "--policy",
        "sjf-bsbf",
        "--jobs-per-gpu",
        "2",
        "--interference",
        "synthetic",
        "--json",
    )
    found = json.loads(done.stdout)
    assert (found["placer"], found["jobs_per_gpu"], found["interference"]) == (
        "shared",
        2,
        "synthetic (declared, not measured)",
    )


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


def test_a_process_that_cannot_write_its_csv_says_one_line_and_exits_with_2(trace: Path) -> None:
    done = maat("simulate", str(trace), *SMALL, "--policy", "fifo", "--csv", str(trace.parent))
    assert "csv: cannot be written (Is a directory)" in only_line(
        done.returncode, done.stdout, done.stderr
    )


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
            HEADER + "a,0,cifar10,1,128,1\na,1,bert,1,12,1\n",
            ["row 3", "name: stands twice", "(got 'a')"],
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
        "twice",
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
    said = refused("simulate", str(trace), "--cluster", "abacus=1x4")
    assert "row 2" in said
    assert (
        "application: cannot run on any GPU type of this cluster (abacus) (got 'cifar10')" in said
    )
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
            ("--reserve", "t4"),
            "reserve: does not read as a reservation (got 't4'). Write TYPE=GPUS,tenant=NAME",
        ),
        (
            ("--cluster", f"t4={'9' * 5000}x4"),
            "cluster: does not read as type=NODESxGPUS (got 't4=999",
        ),
        (
            ("--reserve", f"t4={'9' * 5000},tenant=x"),
            "reserve: does not read as a reservation (got 't4=999",
        ),
        (("--reserve", "t4=2,tenant=x,from=nan"), "reserve: does not read as a reservation"),
        (("--reserve", "t4=2,owner=x"), "reserve: does not read as a reservation"),
        (("--reserve", "t4=2,tenant=x,from=soon"), "reserve: does not read as a reservation"),
        (("--reserve", "t4=2"), "reservation: is for a tenant or for a job, one of them"),
        (("--reserve", "t4=2,tenant=x,from=2,until=1"), "end: is not after the start (got 3600.0)"),
        (
            ("--reserve", "h100=2,tenant=x"),
            "reservation.gpu_type: is no GPU type of this cluster (got 'h100')",
        ),
        (
            ("--reserve", "t4=2,job=nobody"),
            "reservation.job_id: is no job of the trace (got 'nobody')",
        ),
        (
            ("--failures-mtbf-hours", "0"),
            "mtbf_hours: is no time of 0.1 hours or more (got 0.0). Give hours, such as 100.",
        ),
        (
            ("--failures-mtbf-hours", "1", "--repair-minutes", "-1"),
            "repair_minutes: is not a time from zero up (got -1.0). Give minutes, such as 30.",
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
            ("--policy", "fifo,srtf", "--csv", "x.csv"),
            "csv: is written for one policy at a time (got 'x.csv'). Name one policy, or leave",
        ),
        (
            ("--failures-mtbf-hours", "1", "--repair-minutes", "inf"),
            "repair_minutes: is not a time from zero up (got inf). Give minutes",
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
            "Add --tuned best-batch, or leave",
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
            "--repair-minutes",
            "5",
            "repair_minutes: repairs nodes, but none fails (got 5.0). "
            "Add --failures-mtbf-hours, or leave",
        ),
    ],
)
def test_a_number_that_cannot_be_used_is_refused_by_name(
    refused: Refused, option: str, value: str, says: str
) -> None:
    assert says in refused("simulate", "--generate", "philly", option, value)


def test_help_and_version_need_nothing() -> None:
    assert "Simulate a workload" in maat("simulate", "--help").stdout
    assert maat_process("version").stdout.strip().count(".") == 2
