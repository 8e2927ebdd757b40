"""The commands that talk to a running service, against the service itself."""

from __future__ import annotations

import base64
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from profile_samples import profile_files, zipped
from sqlmodel import select
from typer.testing import CliRunner

from backend.clocktime import utc_now
from backend.database import Database
from backend.models import Cluster
from maat.__main__ import main
from maat.cli.app import app as commands
from maat.client import ApiError, Client
from maat.scheduling.errors import ParameterError
from worker.live.step import step_cluster

Run = Callable[..., str]


@pytest.fixture
def run(maat: Client, monkeypatch: pytest.MonkeyPatch) -> Run:
    """What a command prints. The client stays open: every command ends with closing its own."""
    monkeypatch.setattr(Client, "close", lambda _: None)
    monkeypatch.setattr("maat.client.Client", lambda *_, **__: maat)

    def invoke(*arguments: str) -> str:
        done = CliRunner().invoke(commands, arguments, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    return invoke


def test_every_field_of_a_job_can_be_submitted(run: Run, maat: Client) -> None:
    shape = (
        "--adaptivity",
        "strong-scaling",
        "--min-gpus",
        "2",
        "--max-gpus",
        "8",
        "--batch-size",
        "256",
        "--max-batch-size",
        "512",
    )
    rest = (
        "--gpu-type",
        "t4",
        "--gpu-type",
        "a100",
        "--work-scale",
        "0.5",
        "--no-preemptible",
        "--external-id",
        "mine-1",
    )
    said = run("submit", "train", "--model", "cifar10", *shape, *rest, "--cluster", "demo")
    (job,) = maat.jobs()["items"]
    first, follow = said.splitlines()
    assert first == f"{job['id']} is submitted"
    assert follow.endswith(f"maat explain {job['id']}.")
    assert {
        name: job[name]
        for name in ("adaptivity", "min_gpus", "max_gpus", "batch_size", "max_batch_size")
    } == {
        "adaptivity": "strong-scaling",
        "min_gpus": 2,
        "max_gpus": 8,
        "batch_size": 256,
        "max_batch_size": 512,
    }
    assert (job["gpu_types"], job["work_scale"], job["preemptible"], job["external_id"]) == (
        ["t4", "a100"],
        0.5,
        False,
        "mine-1",
    )


def test_inference_is_submitted_with_its_promise_and_once_per_key(run: Run, maat: Client) -> None:
    serve = (
        "--kind",
        "latency-inference",
        "--batch-size",
        "16",
        "--promised-seconds",
        "0.5",
        "--idempotency-key",
        "k1",
        "--json",
    )
    first, again = (json.loads(run("submit", "serve", "--model", "bert", *serve)) for _ in range(2))
    assert (first["workload_kind"], first["promised_seconds"]) == ("latency-inference", 0.5)
    assert first["id"] == again["id"]


def round_at(app: FastAPI, seconds: float) -> None:
    """A round of the first cluster at this cluster time."""
    database: Database = app.state.database
    with database.session_scope() as session:
        cluster = session.exec(select(Cluster)).one()
        cluster.anchor_seconds, cluster.anchor_wall, cluster.speed = seconds, utc_now(), 1e-9
        session.add(cluster)
    assert step_cluster(database, cluster.id) is not None


def test_a_waiting_job_is_explained_with_a_command_that_starts_it(
    run: Run, maat: Client, app: FastAPI
) -> None:
    rigid: Any = {
        "model": "cifar10",
        "adaptivity": "rigid",
        "batch_size": 1024,
        "work_scale": 500.0,
        "preemptible": False,
    }
    for gpu_type, count in (("t4", 24), ("a100", 16), ("rtx", 16)):
        maat.submit_job(
            {"name": f"holds {gpu_type}", "gpu_count": count, "gpu_types": [gpu_type], **rigid}
        )
    round_at(app, 100.0)
    waiting = maat.submit_job(
        {"name": "it's waiting", "gpu_count": 16, **rigid, "preemptible": True}
    )
    round_at(app, 200.0)
    assert maat.job(waiting["id"])["state"] == "pending"

    said = run("explain", waiting["id"])
    assert (
        "- Ask for 8 GPUs instead of 16: at present, the next round would start it on 8 × rtx.\n"
        in said
    )
    assert "  held back by: too few a100 GPUs are left\n" in said
    words = f"maat explain {waiting['id']} --apply lower_gpu_count"
    assert f"    {words}\n" in said
    with pytest.raises(ParameterError, match="Use one of: lower_gpu_count"):
        run("explain", waiting["id"], "--apply", "nope")
    run(*shlex.split(words)[1:])
    round_at(app, 300.0)

    started = [maat.job(waiting["id"])]
    assert [
        (job["allocation"]["gpu_type"], job["allocation"]["gpu_count"])
        for job in started
        if job["allocation"]
    ] == [("rtx", 8)]
    again = run("explain", waiting["id"])
    assert "It has 8 rtx" in again
    assert "Before, it waited, as of round 2: " in again
    assert "Let it adapt" in said
    assert json.loads(run("explain", started[0]["id"], "--json"))["remedies"] == []


def test_gpus_are_reserved_listed_and_given_back(run: Run, maat: Client) -> None:
    made: Any = json.loads(
        run(
            "reserve",
            "a100",
            "4",
            "--tenant",
            "default",
            "--until",
            "2090-01-01T00:00:00Z",
            "--json",
        )
    )
    assert (made["gpu_count"], made["end_at"]) == (4, "2090-01-01T00:00:00.000Z")
    assert made["id"] in run("reservations")
    assert run("unreserve", made["id"]) == f"{made['id']} is removed\n"
    assert made["id"] not in run("reservations", "--over")


def test_a_job_is_found_by_a_name_that_no_other_job_has(run: Run, maat: Client) -> None:
    named = [
        maat.submit_job({"name": name, "model": "bert"})
        for name in ("train", "train-2", "50%_/done?", "train-2b")
    ]
    for job in (named[0], named[2]):
        assert run("cancel", job["name"]) == f"{job['id']} is asked to end\n"
        assert maat.job(job["id"])["cancel_requested"]
    assert not maat.job(named[1]["id"])["cancel_requested"]


def test_a_name_of_several_jobs_is_refused_with_their_ids(run: Run, maat: Client) -> None:
    twins = [maat.submit_job({"name": "twin", "model": "bert"}) for _ in range(2)]
    with pytest.raises(ParameterError) as refused:
        run("cancel", "twin")
    told = f"{twins[1]['id']} (submitted), {twins[0]['id']} (submitted)"
    assert str(refused.value) == (
        f"job: is the name of 2 jobs (got 'twin'). Give the id of one: {told}."
    )
    assert not any(maat.job(twin["id"])["cancel_requested"] for twin in twins)
    for unknown in ("", "twi", "x" * 1000):
        with pytest.raises(ParameterError, match="is neither the id nor the name of a job"):
            run("cancel", unknown)


def test_a_folder_and_a_zip_of_profiles_are_uploaded_with_their_provenance(
    run: Run, tmp_path: Path
) -> None:
    model = tmp_path / "profiles" / "bert"
    model.mkdir(parents=True)
    for name, text in profile_files("bert").items():
        (model / Path(name).name).write_text(text)
    asked = ("--kind", "profiles", "--json", "--source", "mine", "--licence", "MIT")
    by_folder = {
        folder: json.loads(run("upload", str(folder), *asked)) for folder in (model, model.parent)
    }
    assert {made["files"][0]["name"] for made in by_folder.values()} == {"bert/placements-aws.csv"}
    assert {made["licence"] for made in by_folder.values()} == {"MIT"}
    packed = tmp_path / "packed.zip"
    packed.write_bytes(base64.b64decode(zipped(profile_files("bert"))))
    made = json.loads(run("upload", str(packed), *asked))
    assert (made["name"], made["covers"]) == ("packed", {"t4": ["bert"]})
    with pytest.raises(ParameterError, match="uploaded alone"):
        run("upload", str(packed), str(model), *asked)
    (model / "scalability-aws.csv").unlink()
    with pytest.raises(ApiError, match=r"scalability-aws\.csv"):
        run("upload", str(model), *asked, "--name", "half")


def test_measurements_are_uploaded_listed_and_deleted(run: Run, tmp_path: Path) -> None:
    folder, table = tmp_path / "unequal", tmp_path / "pairs.csv"
    folder.mkdir()
    for application in ("bert", "resnet"):
        (folder / f"{application}-v100.csv").write_text("uuid,perf\na,1\nb,2\n")
    table.write_text("victim,partner,gpu_count,slowdown\nbert,ncf,1,1.5\n")
    assert "'unequal' holds measurements of v100: bert, resnet" in run(
        "upload", str(folder), "--kind", "variability"
    )
    made: Any = json.loads(
        run("upload", str(table), "--kind", "interference", "--name", "mine", "--json")
    )
    assert (made["name"], made["covers"]) == ("mine", {"every GPU": ["bert", "ncf"]})
    assert made["id"] in run("measurements", "--kind", "interference")
    assert run("delete-measurement", made["id"]) == f"{made['id']} is deleted\n"
    assert made["id"] not in run("measurements")
    with pytest.raises(ApiError) as refused:
        run("upload", str(table), "--kind", "variability")
    assert "APPLICATION-GPUTYPE.csv" in str(refused.value)
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ParameterError, match="is not readable text"):
        run("upload", str(tmp_path / "binary.csv"), "--kind", "interference")


def test_what_the_service_refuses_is_told_by_field(run: Run) -> None:
    with pytest.raises(ApiError) as refused:
        run("reserve", "h100", "4", "--tenant", "default")
    assert "Use one of: t4 (24 GPUs)" in refused.value.by_field["gpu_type"]


WHOLE = [
    ("gpus", 1_000_000),
    ("min_gpus", 1_000_000),
    ("max_gpus", 1_000_000),
    ("batch_size", 2**31 - 1),
    ("max_batch_size", 2**31 - 1),
]


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        *(
            (field, "x", f"is not a whole number (got 'x'). Give a whole number from 1 to {most}.")
            for field, most in WHOLE
        ),
        *(
            (
                field,
                "0",
                f"is not between 1 and {most} (got '0'). Give a whole number in that range.",
            )
            for field, most in WHOLE
        ),
        ("work_scale", "x", "is not a number (got 'x'). Give a plain decimal number."),
        ("work_scale", "nan", "is not a number (got 'nan'). Give a plain decimal number."),
        (
            "work_scale",
            "inf",
            "is not between 0 and 1000 (got 'inf'). Give a number in that range.",
        ),
        (
            "promised_seconds",
            "-inf",
            "is not between 0 and 1e+06 (got '-inf'). Give a number in that range.",
        ),
    ],
)
def test_what_is_no_number_for_a_job_is_refused_before_it_is_sent(
    maat: Client, run: Run, field: str, value: str, says: str
) -> None:
    with pytest.raises(ParameterError) as refused:
        run("submit", "train", "--model", "bert", f"--{field.replace('_', '-')}={value}")
    assert str(refused.value) == f"{field}: {says}"
    assert maat.jobs()["items"] == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ("jobs", "--limit", "0"),
            "limit: is not between 1 and 500 (got '0'). Give a whole number in that range.",
        ),
        (
            ("reserve", "t4", "0", "--tenant", "x"),
            "gpu_count: is not between 1 and 1000000 (got '0'). Give a whole number in that range.",
        ),
        (
            ("reserve", "t4", "x", "--tenant", "x"),
            "gpu_count: is not a whole number (got 'x'). Give a whole number from 1 to 1000000.",
        ),
        (
            ("demo", "jobs", "--count", "201"),
            "count: is not between 1 and 200 (got '201'). Give a whole number in that range.",
        ),
        (
            ("demo", "jobs", "--seed", "-1"),
            "seed: is not between 0 and 2147483647 (got '-1'). Give a whole number in that range.",
        ),
        (
            ("submit", "a", "--model", "bert", "--gpus", "x"),
            "gpus: is not a whole number (got 'x'). Give a whole number from 1 to 1000000.",
        ),
        (
            ("up", "--port", "65536"),
            "port: is not between 1 and 65535 (got '65536'). Give a whole number in that range.",
        ),
    ],
)
def test_a_whole_number_out_of_range_is_refused_with_a_remedy(
    arguments: tuple[str, ...],
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.argv", ["maat", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert (ended.value.code, capsys.readouterr().err) == (2, f"maat: {says}\n")


def test_latency_bound_inference_without_its_promise_is_told_what_is_missing(run: Run) -> None:
    with pytest.raises(ApiError) as refused:
        run(
            "submit",
            "serve",
            "--model",
            "bert",
            "--kind",
            "latency-inference",
            "--batch-size",
            "16",
        )
    assert "is missing for latency-bound inference" in str(
        refused.value.by_field["promised_seconds"]
    )
