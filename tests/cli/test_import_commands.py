"""`maat import trace` and `maat import cluster --dry-run`: what they write, print and refuse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from maat.cli.app import app
from maat.scheduling.errors import ClusterError, InputError, ParameterError
from maat.simulation.iteration_models import shipped_models
from maat.workloads.reading import read_workload

CSV = "arrived,gpus,seconds,type\n0,2,60,a100\n30,1,-5,a100\n60,1,60,titan\n"


def run(*arguments: object) -> str:
    done = CliRunner().invoke(app, ["import", *map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_a_trace_is_written_with_a_report_of_what_was_dropped(tmp_path: Path) -> None:
    given, written = tmp_path / "jobs.csv", tmp_path / "trace.csv"
    given.write_text(CSV)
    columns = ("--map", "submit=arrived", "--map", "gpus=gpus", "--map", "duration=seconds")
    said = run("trace", given, "--format", "csv", "-o", written, *columns)
    assert "2 jobs of 3 rows" in said
    assert "seconds = '-5'" in said
    assert "as-recorded, 2 GPUs, 60 s, at 0 s" in said
    jobs = read_workload(written, known_models=shipped_models()).jobs
    assert [(job.name, job.gpu_count) for job in jobs] == [("line-2", 2), ("line-4", 1)]
    options = (*columns, "--map", "gpu_type=type", "--gpu-type", "titan=t4", "--json")
    report = json.loads(run("trace", given, "--format", "csv", *options))
    assert report["preview"][2]["job"]["gpu_types"] == ["t4"]


def test_a_trace_that_cannot_be_written_or_read_is_refused_with_a_remedy(tmp_path: Path) -> None:
    given = tmp_path / "jobs.csv"
    given.write_text(CSV)
    with pytest.raises(InputError, match="output: would overwrite the input"):
        run("trace", given, "--format", "csv", "-o", given)
    with pytest.raises(ParameterError, match="--map submit=SubmitTime"):
        run("trace", given, "--format", "csv", "--map", "submit")
    with pytest.raises(InputError, match="Check the path"):
        run("trace", tmp_path / "absent", "--format", "sacct")


def test_the_nodes_of_a_cluster_are_shown_before_it_is_made(tmp_path: Path) -> None:
    given = tmp_path / "nodes.txt"
    given.write_text("NodeName=a Gres=gpu:tesla_t4:4 State=DRAIN\nNodeName=b Gres=(null)\n")
    said = run("cluster", given, "--dry-run")
    for words in ("tesla_t4 counts as t4", "a (DRAIN)", "left out, line 2: b has no GPUs"):
        assert words in said
    found = json.loads(run("cluster", given, "--dry-run", "--json"))
    assert found["nodes"] == [{"name": "a", "gpu_type": "t4", "gpu_count": 4}]
    given.write_bytes(b"\xff\xe9")
    with pytest.raises(ClusterError, match="UTF-8"):
        run("cluster", given, "--dry-run")


def test_what_hundreds_of_nodes_lack_is_said_once_and_types_to_name_at_the_end(
    tmp_path: Path,
) -> None:
    given = tmp_path / "nodes.conf"
    given.write_text(
        "NodeName=g[1-2] Gres=gpu:a100:8 State=CLOUD\nNodeName=c[001-300] CPUs=4\n"
        "NodeName=x1 Gres=gpu:titan:2\nNodeName=y1 Gres=gpu:mi250:2\n"
    )
    said = run("cluster", given, "--dry-run")
    assert "300 nodes, of which each has no GPUs: c001, c002" in said
    assert "and 290 more" in said
    assert "types that are not known: titan, mi250; say what each is like" in said
    assert len(said.splitlines()) < 12
    given.write_text("NODELIST GRES STATE\nn1 gpu:t4:2 idle~\n")
    assert "1 asleep there to save power, and in service here: n1" in run(
        "cluster", given, "--dry-run"
    )
