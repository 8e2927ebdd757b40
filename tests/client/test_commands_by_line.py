"""Commands from the command line: submitted, followed, listed, against the service itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from typer.testing import CliRunner

from backend.attempts.folders import attempt_folder, cluster_folder
from backend.database import Database
from backend.models import AttemptRow, Cluster, Job
from maat.__main__ import main
from maat.api.commands import CommandBody
from maat.cli import logs
from maat.cli.app import app as commands
from maat.client import ApiError, Client, Unreachable
from maat.scheduling.errors import ParameterError
from maat.vocabulary import AttemptState, JobState

Run = Callable[..., str]


@pytest.fixture
def here(app: FastAPI, maat: Client) -> Client:
    """A service with a cluster that runs commands."""
    settings = app.state.settings
    app.state.settings = settings.model_copy(update={"allow_commands": True})
    maat.create_cluster({"name": "here", "shape": "cpu=1x4", "executor": "local"})
    return maat


@pytest.fixture
def run(here: Client, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setattr(Client, "close", lambda _: None)
    monkeypatch.setattr("maat.client.Client", lambda *_, **__: here)

    def invoke(*arguments: str) -> str:
        done = CliRunner().invoke(commands, arguments, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.stdout

    return invoke


def test_a_cluster_of_slurm_is_created_by_line(run: Run, here: Client, tmp_path: Path) -> None:
    given = (f"shared_dir={tmp_path}", "partition=17", "cpus_per_gpu=4")
    parameters = [word for each in given for word in ("--executor-parameter", each)]
    said = run("create-cluster", "site", "--executor", "slurm", *parameters, "--policy", "fifo")
    made = here.cluster("site")
    assert said == f"{made['id']}  site is created: fifo with packed-sticky\n"
    assert made["executor_parameters"] == {
        "shared_dir": str(tmp_path),
        "partition": "17",
        "cpus_per_gpu": 4,
    }
    assert made["policy"] == "fifo"


@pytest.mark.parametrize(
    ("given", "says"),
    [("partition", "partition=gpu"), ("=1", "partition=gpu"), ("cpus_per_gpu=x", "cpus_per_gpu")],
)
def test_executor_parameters_that_make_no_sense_are_refused(
    run: Run, tmp_path: Path, given: str, says: str
) -> None:
    words = ("create-cluster", "site", "--executor", "slurm")
    shared = ("--executor-parameter", f"shared_dir={tmp_path}")
    with pytest.raises((ParameterError, ApiError)) as refused:
        run(*words, *shared, "--executor-parameter", given)
    assert says in str(refused.value)


class World:
    """The attempts of a submitted command, which a test makes write and end."""

    def __init__(self, app: FastAPI, job: Any) -> None:
        self.database: Database = app.state.database
        self.settings, self.job_id, self.attempts = app.state.settings, job["id"], list[str]()
        with self.database.session_scope(writes=False) as session:
            self.cluster_id = session.get_one(Job, self.job_id).cluster_id

    def begin(self) -> None:
        with self.database.session_scope() as session:
            row = AttemptRow(
                job_id=self.job_id,
                cluster_id=self.cluster_id,
                number=len(self.attempts) + 1,
                round_number=len(self.attempts) + 1,
                state=AttemptState.RUNNING.value,
                reports=False,
                gpu_type="cpu",
                gpus_by_node={"cpu-0": [0]},
                gpu_count=1,
                ordered_seconds=0.0,
            )
            session.add(row)
        self.attempts.append(row.id)

    @property
    def log(self) -> Path:
        cluster = cluster_folder(self.settings, Cluster(id=self.cluster_id))
        return attempt_folder(cluster, self.attempts[-1]) / "rank-0.log"

    def write(self, text: str) -> None:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("a", encoding="utf-8") as file:
            file.write(text)

    def end(self) -> None:
        with self.database.session_scope() as session:
            row = session.get_one(AttemptRow, self.attempts[-1])
            row.state, row.exits = AttemptState.ENDED.value, {"0": 7}
            session.add(row)

    def end_job(self) -> None:
        with self.database.session_scope() as session:
            job = session.get_one(Job, self.job_id)
            job.state, job.finished_seconds = JobState.FAILED.value, 1.0
            session.add(job)


@pytest.fixture
def world(app: FastAPI, here: Client) -> World:
    run = {"argv": ["train"], "cwd": "/"}
    job = {"name": "mine", "model": "script", "cluster_id": "here", "batch_size": 64, "run": run}
    return World(app, here.submit_job(job))


def test_a_command_is_submitted_as_it_is_typed(
    run: Run, here: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WANDB_KEY", "hush")
    options = ("--gpus", "2", "--env", "A=1=2", "--secret-env", "WANDB_KEY", "--retries", "0")
    said = run("submit", *options, "--stop-seconds", "30", "--", "python", "train.py", "--lr", "1")
    (job,) = here.jobs()["items"]
    assert said == f"{job['id']} is submitted\n"
    assert (job["name"], job["model"], job["adaptivity"]) == ("train", "train", "rigid")
    assert here.job_command(job["id"]) == {
        "argv": ["python", "train.py", "--lr", "1"],
        "cwd": str(tmp_path),
        "env": {"A": "1=2"},
        "secret_names": ["WANDB_KEY"],
        "stop_seconds": 30.0,
        "max_retries": 0,
        "total_samples": None,
        "profile": True,
        "utilisation": None,
        "locality_penalty": None,
    }


def test_a_cluster_has_the_rounds_that_it_is_given(run: Run, here: Client) -> None:
    run(
        "create-cluster",
        "quick",
        "--shape",
        "cpu=1x1",
        "--executor",
        "local",
        "--round-seconds",
        "9",
    )
    assert here.cluster("quick")["round_seconds"] == 9.0
    words = ("--shape", "cpu=1x1", "--executor", "local", "--executor-parameter", "partition=gpu")
    with pytest.raises(ParameterError, match="of the executor slurm, and this is local"):
        run("create-cluster", "other", *words)


def test_a_bare_command_runs_on_one_gpu(run: Run, here: Client) -> None:
    run("submit", "--", "python", "train.py")
    (job,) = here.jobs()["items"]
    assert (job["adaptivity"], job["gpu_count"]) == ("rigid", 1)


def test_jobs_are_listed_by_cluster(run: Run, here: Client) -> None:
    run("submit", "--", "python", "train.py")
    (job,) = here.jobs()["items"]
    here.create_cluster({"name": "there", "shape": "cpu=1x4", "executor": "local"})
    assert job["id"] in run("jobs", "--cluster", "here")
    assert job["id"] not in run("jobs", "--cluster", "there")
    with pytest.raises(ApiError, match="nowhere"):
        run("jobs", "--cluster", "nowhere")


def test_jobs_are_listed_by_tenant_owner_and_days(run: Run, here: Client) -> None:
    run("submit", "--", "python", "train.py")
    (job,) = here.jobs()["items"]
    for options in (
        ("--tenant", "default", "--owner", job["owner"]),
        ("--submitted-after", job["submitted_at"], "--submitted-before", "2999-01-01T00:00:00Z"),
    ):
        assert job["id"] in run("jobs", *options)
    for options in (("--owner", "nobody"), ("--submitted-before", job["submitted_at"])):
        assert job["id"] not in run("jobs", *options)
    with pytest.raises(ApiError, match="submitted_after"):
        run("jobs", "--submitted-after", "yesterday")


def test_a_command_that_adapts_may_go_without_its_profile(run: Run, here: Client) -> None:
    run("submit", "--batch-size", "64", "--no-profile", "--", "python", "train.py")
    (job,) = here.jobs()["items"]
    assert here.job_command(job["id"])["profile"] is False
    said = run("belief", job["id"])
    assert "No step time was measured yet." in said
    assert "A restart takes about 30 s" in said
    assert "on cpu nothing (assumed: not measured within a node and across nodes)" in said


def test_every_field_of_a_command_has_an_option(
    run: Run, here: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY", "hush")
    words = "--env A=1 --secret-env KEY --cwd /srv --stop-seconds 9 --retries 1 --no-profile"
    more = "--total-samples 1e6 --dram 0.5 --functional-unit 0.25 --batch-size 64"
    more += " --locality-penalty 1.5"
    run("submit", *words.split(), *more.split(), "--", "python", "train.py")
    (job,) = here.jobs()["items"]
    assert here.job_command(job["id"]) == {
        "argv": ["python", "train.py"],
        "cwd": "/srv",
        "env": {"A": "1"},
        "secret_names": ["KEY"],
        "stop_seconds": 9.0,
        "max_retries": 1,
        "total_samples": 1e6,
        "profile": False,
        "utilisation": {"dram": 0.5, "functional_unit": 0.25},
        "locality_penalty": 1.5,
    }
    assert here.job_command(job["id"]).keys() - {"secret_names"} == (
        CommandBody.model_fields.keys() - {"secret_env"}
    )
    assert " - " in run("jobs").splitlines()[1].replace("  ", " ")


def test_a_command_may_adapt_and_have_a_name_of_its_own(run: Run, here: Client) -> None:
    sizes = ("--batch-size", "64", "--max-batch-size", "512", "--model", "resnet", "--cwd", "/srv")
    run("submit", "night", *sizes, "--cluster", "here", "--", "/usr/bin/train")
    (job,) = here.jobs()["items"]
    assert (job["name"], job["model"], job["adaptivity"]) == ("night", "resnet", "adaptive")
    assert (job["batch_size"], job["max_batch_size"]) == (64, 512)
    assert here.job_command(job["id"])["cwd"] == "/srv"


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (("night", "--model", "cifar10", "--env", "A=1"), "--env"),
        (("night",), "--model"),
        (("--model", "cifar10"), "name"),
        (("--gpus", "1", "--"), "--"),
        (("--gpus", "1", "--env", "A", "--", "x"), "--env"),
        (("--gpus", "1", "--env", "=1", "--", "x"), "--env"),
        (("--gpus", "1", "--env", "2A=1", "--", "x"), "--env"),
        (("--gpus", "1", "--env", "A=1", "--env", "A=2", "--", "x"), "--env"),
        (("--gpus", "1", "--env", "A=\udcff", "--", "x"), "--env"),
        (("--gpus", "1", "--secret-env", "KEY=hush", "--", "x"), "--secret-env"),
        (("--gpus", "1", "--dram", "0.5", "--", "x"), "--dram"),
        (("--gpus", "1", "--", "x", "\udcff"), "--"),
        (("night", "--model", "cifar10", "--total-samples", "5"), "--total-samples"),
        (("--gpus", "1", "--secret-env", "NO_SUCH_VARIABLE", "--", "x"), "--secret-env"),
    ],
)
def test_what_is_missing_is_named(run: Run, words: tuple[str, ...], field: str) -> None:
    with pytest.raises(ParameterError) as refused:
        run("submit", *words)
    assert refused.value.field == field


def test_it_is_asked_what_gpus_and_a_batch_size_together_mean(run: Run, here: Client) -> None:
    with pytest.raises(ApiError) as refused:
        run("submit", "--gpus", "1", "--batch-size", "64", "--", "python", "train.py")
    assert [problem.pointer for problem in refused.value.errors] == ["/adaptivity"]


def test_a_log_is_printed(run: Run, world: World) -> None:
    assert run("logs", world.job_id) == ""
    world.begin()
    world.write("ä" * 50_000 + "\nlast\n")
    assert run("logs", world.job_id) == "ä" * 50_000 + "\nlast\n"
    world.end()
    world.begin()
    world.write("second\n")
    assert run("logs", world.job_id) == "second\n"
    assert run("logs", world.job_id, "--attempt", "1").endswith("last\n")


def test_a_raw_log_is_all_its_bytes(run: Run, world: World) -> None:
    assert run("logs", world.job_id, "--raw") == ""
    world.begin()
    world.write("first")
    world.end()
    world.begin()
    written = b"caf\xe9 \x1b[31mred\xff\0" * 10_000
    world.write("")
    world.log.write_bytes(written)
    done = CliRunner().invoke(commands, ["logs", world.job_id, "--raw"], catch_exceptions=False)
    assert done.stdout_bytes == written
    assert run("logs", world.job_id, "--raw", "--attempt", "1") == "first"
    with pytest.raises(ApiError, match="count from 0"):
        run("logs", world.job_id, "--raw", "--rank", "7")
    with pytest.raises(ParameterError, match="whole log"):
        run("logs", world.job_id, "--raw", "-f")


def test_the_end_of_a_log_is_printed(run: Run, world: World) -> None:
    world.begin()
    world.write("")
    assert run("logs", world.job_id, "--tail", "5") == ""
    lines = [f"{'ä' * 500} {number}\n" for number in range(300)]
    world.write("".join(lines))
    assert run("logs", world.job_id, "--tail", "2") == "".join(lines[-2:])
    assert run("logs", world.job_id, "--tail", "250") == "".join(lines[-250:])
    assert run("logs", world.job_id, "--tail", "1000") == "".join(lines)
    assert run("logs", world.job_id, "--tail", "0") == ""
    world.write("half\rof a line")
    assert run("logs", world.job_id, "--tail", "1") == "half\rof a line"
    assert run("logs", world.job_id, "--tail", "2") == lines[-1] + "half\rof a line"


def test_what_comes_after_the_end_is_followed(here: Client, world: World) -> None:
    world.begin()
    world.write("one\ntwo\n")

    def happens() -> Iterator[None]:
        yield world.write("three\n")
        yield world.end()
        yield world.begin()
        yield world.write("four\nfive\n")
        yield world.end()
        yield world.end_job()

    story = happens()
    reader = logs.LogReader(
        here, world.job_id, 0, say=print, wait=lambda _: next(story, None), tail=1
    )
    assert "".join(reader.texts(None, follow=True)) == "two\nthree\nfour\nfive\n"


def test_the_last_of_very_many_attempts_is_read(
    run: Run, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "MAX_LISTED", 2)
    for _ in range(5):
        world.begin()
        world.end()
    world.write("last\n")
    assert run("logs", world.job_id) == "last\n"
    assert len(run("attempts", world.job_id).splitlines()) == 6


def test_a_service_that_goes_away_at_once_is_waited_for(
    here: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    send, lost, said = here.send, [True], list[str]()
    world.begin()
    world.write("one\n")
    world.end()
    world.end_job()

    def away(call: Any) -> Any:
        if lost:
            lost.pop()
            raise Unreachable("away")
        return send(call)

    monkeypatch.setattr(here, "send", away)
    reader = logs.LogReader(here, world.job_id, 0, say=said.append, wait=lambda _: None)
    assert "".join(reader.texts(None, follow=True)) == "one\n"
    assert said == ["The service does not answer; trying again."]


def test_a_long_name_leaves_room_for_the_other_columns(run: Run, here: Client) -> None:
    here.submit_job({"name": "n" * 200, "model": "cifar10", "cluster_id": "demo"})
    (line,) = run("jobs").splitlines()[1:]
    assert f" {'n' * 39}\N{HORIZONTAL ELLIPSIS} " in line
    assert json.loads(run("jobs", "--json"))["items"][0]["name"] == "n" * 200


def test_following_goes_on_over_attempts_and_lost_connections_until_the_job_ends(
    here: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    send, lost, said = here.send, list[bool](), list[str]()

    def away(call: Any) -> Any:
        if lost:
            lost.pop()
            raise Unreachable("away")
        return send(call)

    monkeypatch.setattr(here, "send", away)

    def happens() -> Iterator[None]:
        yield world.begin()
        yield world.write("one\n")
        yield lost.extend([True, True])
        yield
        yield
        yield world.write("more\n")
        yield world.end()
        yield world.begin()
        yield world.write("two")
        yield world.end()
        yield world.end_job()

    story = happens()
    reader = logs.LogReader(
        here, world.job_id, 0, say=said.append, wait=lambda _: next(story, None)
    )
    assert "".join(reader.texts(None, follow=True)) == "one\nmore\ntwo"
    assert said == ["The service does not answer; trying again."]
    assert list(story) == []


def test_logs_of_what_is_unknown_end_with_2(
    here: Client,
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("maat.client.Client", lambda *_, **__: here)
    monkeypatch.setattr(Client, "close", lambda _: None)
    unknown = f"job_{'0' * 26}"
    for words in (["none", "-f"], [unknown, "-f"], [world.job_id, "--attempt", "9", "-f"]):
        monkeypatch.setattr("sys.argv", ["maat", "logs", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 2
    said = capsys.readouterr().err
    assert f"There is no job '{unknown}'." in said
    assert "job: is neither the id nor the name of a job that you may see (got 'none')" in said


def test_a_job_that_is_played_has_no_log(here: Client) -> None:
    played = here.submit_job({"name": "x", "model": "cifar10", "cluster_id": "demo"})
    with pytest.raises(ApiError, match="runs no command"):
        list(logs.LogReader(here, played["id"], 0, say=print).texts(None, follow=True))


def test_attempts_are_listed(run: Run, world: World) -> None:
    world.begin()
    world.end()
    assert run("attempts", world.job_id).splitlines()[1].split()[:6] == [
        "1", "train", "ended", "-", "cpu", "1",
    ]  # fmt: skip
    (one,) = json.loads(run("attempts", world.job_id, "--json"))["items"]
    assert one["exit_codes"] == {"0": 7}
