"""`maat nodes`, `drain`, `change-cluster` and what belongs to them, against the service itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from sqlmodel import col, select
from typer.testing import CliRunner

from backend.clocktime import utc_now
from backend.models import Cluster, Job, RoundPreview, SharingSample
from maat.cli import change_cluster
from maat.cli.app import app as commands
from maat.client import ApiError, Client, following
from maat.scheduling.errors import ParameterError
from worker.rehearsals.previews import run_preview

Run = Callable[..., str]


@pytest.fixture
def run(maat: Client, monkeypatch: pytest.MonkeyPatch) -> Run:
    """What a command prints. `said`: what is typed into it."""
    monkeypatch.setattr(Client, "close", lambda _: None)
    monkeypatch.setattr("maat.client.Client", lambda *_, **__: maat)

    def invoke(*arguments: str, said: str | None = None) -> str:
        done = CliRunner().invoke(commands, arguments, input=said, catch_exceptions=False)
        assert done.exit_code == (1 if said == "n\n" else 0), done.output
        return done.output

    return invoke


@pytest.fixture
def held(maat: Client, app: FastAPI) -> str:
    """A job that may not be preempted and holds a GPU of t4-0."""
    job = maat.submit_job({"name": "stays", "model": "bert", "preemptible": False})
    with app.state.database.session_scope() as session:
        row = session.get_one(Job, job["id"])
        row.state, row.gpu_type, row.gpus = "running", "t4", [1]
    return job["id"]


def test_nodes_are_listed_with_who_holds_them(run: Run, held: str) -> None:
    head, first, *_ = run("nodes").splitlines()
    assert head.split() == ["name", "gpu_type", "GPUs", "in", "use", "drained", "state", "jobs"]
    assert first.split() == ["t4-0", "t4", "4", "1", "0", "in", "service", "stays"]
    assert len(json.loads(run("nodes", "--json"))) == 11


def test_a_drain_says_who_is_moved_and_asks_before(run: Run, maat: Client, held: str) -> None:
    tried = run("drain", "t4-0", "--dry-run")
    assert "1 job may not be preempted" in tried
    assert f"  {held}  stays  1 of 1 x t4  cannot be moved" in tried
    left = run("drain", "t4-0", said="n\n")
    assert "drain t4-0?" in left
    assert maat.node("demo", "t4-0")["drained_gpus"] == []
    assert "t4-0 is drained: 2 of 4 GPUs" in run(
        "drain", "t4-0", "--gpu", "2", "--gpu", "3", "--yes"
    )
    assert "t4-0 is drained: 4 of 4 GPUs" in run("drain", "t4-0", "--yes")
    assert "drained" in run("nodes").splitlines()[1]
    assert run("undrain", "t4-0") == "t4-0 is back in service\n"


def test_nodes_are_added_resized_and_removed(run: Run, maat: Client) -> None:
    assert run("add-nodes", "--gpu-type", "t4", "--gpus", "4", "--count", "2") == (
        "added: t4-6, t4-7\n"
    )
    assert run("resize-node", "t4-7", "--gpus", "8") == "t4-7 has 8 GPUs\n"
    assert "nothing moves" in run("resize-node", "t4-7", "--gpus", "4", "--dry-run")
    assert "nothing moves" in run("remove-node", "t4-7", "--dry-run")
    with pytest.raises(ApiError, match="Drain it first"):
        run("remove-node", "t4-7")
    run("drain", "t4-7")
    assert run("remove-node", "t4-7") == "t4-7 is removed\n"
    assert maat.cluster("demo")["node_count"] == 12


def test_a_cluster_is_changed_and_parameters_of_the_same_policy_are_kept(
    run: Run, maat: Client
) -> None:
    run("change-cluster", "demo", "--set", "p=-1", "--round-seconds", "30")
    said = run("change-cluster", "demo", "--set", "tolerance=0.05", "--name", "lab")
    assert said == "lab has sia with whole-node, a round every 30 s\n"
    changed = maat.cluster("lab")
    assert changed["policy_parameters"] == {"p": -1, "tolerance": 0.05}
    run("change-cluster", "lab", "--policy", "fifo")
    assert maat.cluster("lab")["policy_parameters"] == {}
    with pytest.raises(ParameterError, match="change"):
        run("change-cluster", "lab")


def test_how_long_jobs_stay_is_set_on_clusters_and_jobs_and_taken_away_again(
    run: Run, maat: Client
) -> None:
    bounds = ("--least-stay-seconds", "30m", "--most-moves-per-hour", "4")

    def bounds_of(noun: Any) -> tuple[float | None, int | None]:
        return noun["least_stay_seconds"], noun["most_moves_per_hour"]

    run("create-cluster", "lab", "--shape", "t4=1x4", *bounds)
    assert bounds_of(maat.cluster("lab")) == (1800.0, 4)
    run("change-cluster", "lab", "--most-moves-per-hour", "none")
    assert bounds_of(maat.cluster("lab")) == (1800.0, None)
    run("submit", "net", "--model", "bert", "--cluster", "lab", *bounds)
    (net,) = maat.jobs(cluster="lab")["items"]
    assert bounds_of(net) == (1800.0, 4)
    run("change", "net", "--least-stay-seconds", "none")
    assert bounds_of(maat.job(net["id"])) == (None, 4)
    for wrong in (("--least-stay-seconds", "soon"), ("--most-moves-per-hour", "0")):
        with pytest.raises(ParameterError, match=wrong[0].removeprefix("--").replace("-", "_")):
            run("change-cluster", "lab", *wrong)


def test_a_cluster_is_made_with_the_placer_named_or_else_that_of_its_policy(
    run: Run, maat: Client
) -> None:
    said = run("create-cluster", "lab", "--shape", "t4=1x4", "--policy", "las", "--placer", "pal")
    assert "  lab is created: las with pal\n" in said
    said = run("create-cluster", "own", "--shape", "t4=1x4", "--policy", "pollux")
    assert said.endswith("  own is created: pollux with as-decided\n")

    run("change-cluster", "lab", "--set-placer", "binning=two")
    run("change-cluster", "lab", "--policy", "sia", "--set-placer", "spread=true")
    changed = maat.cluster("lab")
    assert (changed["placer"], changed["placer_parameters"]) == ("whole-node", {"spread": True})


def test_a_dry_run_shows_both_rounds_and_changes_nothing(
    run: Run, maat: Client, app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = app.state.database
    with database.session_scope() as session:
        cluster = session.exec(select(Cluster)).one()
        cluster.speed, cluster.anchor_wall = 1e-9, utc_now()  # what is profiled stays so
        session.add(cluster)
    maat.submit_job({"name": "first", "model": "cifar10"})

    def play(_seconds: float) -> None:
        newest = select(RoundPreview.id).order_by(col(RoundPreview.id).desc())
        with database.session_scope(writes=False) as session:
            preview_id = session.exec(newest).first()
        run_preview(database, str(preview_id))

    monkeypatch.setattr(following.time, "sleep", play)
    said = run("change-cluster", "demo", "--policy", "fifo", "--dry-run")
    assert said.splitlines()[0] == "Now 0 of 64 GPUs are in use."
    assert "sia with whole-node" in said
    assert "fifo with packed-sticky" in said
    assert "Both rounds treat every job alike." in said  # it is being profiled
    (line,) = [line for line in said.splitlines() if line.startswith("jobs that wait")]
    assert line.split()[-2:] == ["1", "1"]
    assert "1 of the jobs that wait is not considered yet" in said
    assert maat.cluster("demo")["policy"] == "sia"
    sharing = ("--policy", "sjf-bsbf", "--jobs-per-gpu", "2", "--interference", "1.5")
    said = run("change-cluster", "demo", *sharing, "--dry-run")
    (line,) = [line for line in said.splitlines() if line.startswith("on a GPU")]
    assert line.split("  ", 1)[1].split() == ["1", "job", "2", "jobs,", "slowdown", "1.5"]
    assert "lets jobs share GPUs" not in said
    said = run("change-cluster", "demo", "--policy", "sjf-bsbf", "--dry-run")
    assert "The policy sjf-bsbf lets jobs share GPUs; here a GPU holds one job" in said


def test_ctrl_c_cancels_the_preview(
    run: Run, maat: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_seconds: float) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(following.time, "sleep", interrupted)
    preview = maat.preview_round("demo", {"policy": "fifo"})
    with pytest.raises(KeyboardInterrupt):
        change_cluster.awaited(maat, preview)
    assert maat.round_preview("demo", preview["id"])["state"] == "cancelled"
    monkeypatch.undo()
    with pytest.raises(change_cluster.NoPreview, match="Cancelled before it began"):
        change_cluster.awaited(maat, maat.round_preview("demo", preview["id"]))


def test_the_nodes_that_slurm_names_become_a_cluster(
    run: Run, maat: Client, tmp_path: Path
) -> None:
    file = tmp_path / "site.txt"
    file.write_text("NODELIST GRES STATE\ngpu[01-03] gpu:tesla_t4:4 idle\ncpu1 (null) idle\n")
    said = run("import", "cluster", str(file), "--policy", "fifo")
    assert "site is created" in said
    made = maat.cluster("site")
    assert (made["policy"], made["node_count"], made["gpu_count"]) == ("fifo", 3, 12)
    assert [node["name"] for node in maat.nodes("site")["items"]] == ["gpu01", "gpu02", "gpu03"]


def test_measured_slowdowns_are_listed_and_those_of_many_reports_written(
    run: Run, maat: Client, app: FastAPI, tmp_path: Path
) -> None:
    assert "No pair was measured yet." in run("slowdowns")
    cluster_id = maat.clusters()[0]["id"]
    job_id = maat.submit_job({"name": "first", "model": "bert"})["id"]
    pair = {"victim": "bert", "partner": "ncf", "victim_batch": 16, "partner_batch": 64}
    with app.state.database.session_scope() as session:
        job = session.get_one(Job, job_id)
        pair |= {"job_id": job.id, "tenant_id": job.tenant_id, "partner_tenant_id": job.tenant_id}
        for gpu_count, count in ((1, 9), (2, 1)):
            row = {"gpu_type": "t4", "gpu_count": gpu_count, "count": count, "weight": 1.0}
            measured = {"ratio": 1.5, "ratio_m2": 0.01, "updated_seconds": 0.0}
            session.add(SharingSample(cluster_id=cluster_id, **pair, **row, **measured))
    output = tmp_path / "pairs.csv"
    _, first, second = run("slowdowns", "--output", str(output)).splitlines()
    assert first.split()[-6:] == ["1.50", "±", "0.10", "9", "yes", "default"]
    assert second.split()[-3:] == ["not", "yet", "default"]
    written = ["victim,partner,gpu_count,slowdown", "bert,ncf,1,1.5000"]
    assert output.read_text().split() == written
