"""Tests of `maat simulate`: its output and its files."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from cli.running import HEADER, SMALL, maat, maat_process, only_line

import maat as library
from maat.laboratory.figures import untimed

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


def test_csv_holds_every_job_of_every_policy_by_the_names_of_the_library(
    trace: Path, tmp_path: Path
) -> None:
    target = tmp_path / "jobs.csv"
    found = figures(str(trace), *SMALL, "--policy", "fifo,srtf", "--csv", str(target))
    assert [summary["jobs_csv"] for summary in found] == [str(target)] * 2
    with target.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    run = library.simulate(trace, cluster=SMALL[1], policy="fifo", progress=False)
    assert tuple(rows[0]) == ("policy", "placer", *run.jobs.columns)
    assert [(row["policy"], row["placer"], row["name"]) for row in rows] == [
        ("fifo", "packed-sticky", "a"),
        ("fifo", "packed-sticky", "b"),
        ("srtf", "packed-sticky", "a"),
        ("srtf", "packed-sticky", "b"),
    ]
    assert [float(row["jct_seconds"]) for row in rows[:2]] == run.jobs["jct_seconds"]
    assert found[0]["avg_jct_hours"] == run.summary["avg_jct_hours"]


def test_series_of_several_policies_begin_with_the_policy(trace: Path, tmp_path: Path) -> None:
    file = tmp_path / "series.json"
    figures(str(trace), *SMALL, "--policy", "fifo,srtf", "--series", str(file))
    used = json.loads(file.read_text(encoding="utf-8"))["gpus"]
    assert set(used["policy"]) == {"fifo", "srtf"}
    assert len(used["policy"]) == len(used["time_seconds"])


@pytest.mark.needs_chromium
def test_a_figure_lays_several_policies_beside_each_other(trace: Path, tmp_path: Path) -> None:
    picture = tmp_path / "gpus.svg"
    asked = ("--policy", "fifo,srtf", "--figure", "gpus_over_time", "--plot", str(picture))
    done = maat("simulate", str(trace), *SMALL, *asked)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Average JCT, h" in done.stdout, "it is drawn beside what is printed"
    drawn = picture.read_text(encoding="utf-8")
    assert drawn.startswith("<svg")
    assert all(f">{words}<" in drawn for words in ("fifo", "srtf", "GPUs in use"))


def test_series_are_a_folder_of_csv_files_or_one_json_file(trace: Path, tmp_path: Path) -> None:
    folder, file = tmp_path / "series", tmp_path / "series.json"
    for target in (folder, file):
        found = figures(str(trace), *SMALL, "--policy", "fifo", "--series", str(target))
        assert found["series"] == str(target)
    tables = json.loads(file.read_text(encoding="utf-8"))
    assert sorted(tables) == ["efficiency", "gpus", "jobs", "nodes", "waits"]
    for name, columns in tables.items():
        with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as written:
            rows = list(csv.DictReader(written))
        assert list(rows[0]) == list(columns)
        assert len(rows) == len(columns["time_seconds" if "time_seconds" in columns else "job"])
    times, used = tables["gpus"]["time_seconds"], tables["gpus"]["gpus"]
    held = [n * (b - a) for n, a, b in zip(used, times, times[1:], strict=False)]
    assert sum(held) > 0
    assert used[-1] == 0


def test_the_same_command_gives_the_same_figures(trace: Path) -> None:
    timed = {"cpu_seconds", "wall_seconds"}
    first, again = (
        figures(str(trace), *SMALL, "--policy", "srtf", run=run) for run in (maat, maat_process)
    )
    assert {k: v for k, v in untimed(first).items() if k not in timed} == {
        k: v for k, v in untimed(again).items() if k not in timed
    }


def test_the_table_shows_the_figures_that_were_asked_for(trace: Path) -> None:
    asked = ("--policy", "fifo", "--figures", "worst_rho, restart_time_share,policy_seconds_p95")
    done = maat("simulate", str(trace), *SMALL, *asked)
    assert done.returncode == 0, done.stderr
    rows = [line.split("│")[1].strip() for line in done.stdout.splitlines() if "│" in line]
    assert rows == ["Worst rho, mean-of-ratios", "Job time in restarts", "Policy time, p95, s"]
    every = maat("simulate", str(trace), *SMALL, "--policy", "fifo", "--figures", "all")
    assert "Placement time, p95, s" in every.stdout
    assert "p99 JCT of all runs" not in every.stdout, "it is of a comparison"
    wrong = maat("simulate", str(trace), *SMALL, "--figures", "pooled_p99_jct_hours")
    assert wrong.returncode == 2
    assert "figures: is no figure of this table (got 'pooled_p99_jct_hours')" in wrong.stderr


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
        "--repair-seconds",
        "120",
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


def test_a_trace_says_job_by_job_what_binds_it_and_what_it_does(tmp_path: Path) -> None:
    path = tmp_path / "mixed.csv"
    header = HEADER.strip() + ",adaptivity,workload_kind,promised_seconds,preemptible,tenant\n"
    mixed = (
        "a,0,cifar10,4,512,0.05,rigid,,,false,vision\n"
        "b,0,bert,1,16,0.001,,latency-inference,60,,\n"
        "c,0,bert,1,,0.01,,batch-inference,,,\n"
    )
    path.write_text(header + mixed, encoding="utf-8")
    found = figures(str(path), *SMALL, "--fairness", "--reservation", "t4=8,tenant=vision,until=1")
    assert (found["jobs"], found["unfinished"]) == (3, 0)
    assert found["avg_queueing_hours"] > 0.5, (
        "all but the tenant's job wait for the end of its reservation"
    )


def test_reserved_gpus_are_left_to_their_holder_while_the_reservation_holds(trace: Path) -> None:
    arguments = (str(trace), *SMALL, "--policy", "fifo")
    kept_out = figures(*arguments, "--reservation", "t4=8,tenant=vision,until=0.5")
    served = figures(
        *arguments, "--reservation", "t4=1,job=a,until=0.5", "--reservation", "t4=2,job=b,until=0.5"
    )
    assert kept_out["avg_queueing_hours"] > 0.4
    assert served["avg_queueing_hours"] < 0.1


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


def test_a_process_that_cannot_write_its_csv_says_one_line_and_exits_with_2(trace: Path) -> None:
    done = maat("simulate", str(trace), *SMALL, "--policy", "fifo", "--csv", str(trace.parent))
    assert "csv: cannot be written (Is a directory)" in only_line(
        done.returncode, done.stdout, done.stderr
    )


def test_help_and_version_need_nothing() -> None:
    assert "Simulate a workload" in maat("simulate", "--help").stdout
    assert maat_process("version").stdout.strip().count(".") == 2


def test_a_job_that_does_not_finish_is_named_with_its_reason_below_the_table(
    tmp_path: Path,
) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text(
        "name,time,application,num_replicas,batch_size,work_scale,adaptivity,gpu_types\n"
        "bound,0,as-recorded,1,,600,rigid,t4\n"
        "large,0,as-recorded,64,,600,rigid,\n"
        "small,0,as-recorded,1,,600,rigid,v100\n"
    )
    said = maat("simulate", str(trace), "--cluster", "v100=1x4", "--policy", "fifo").stdout
    assert "bound did not finish. Its GPU type t4 is not in this cluster." in said
    assert "large did not finish. It needs more GPUs of one type" in said
