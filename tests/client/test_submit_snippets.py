"""What the form offers to copy, pasted into a shell: each makes the same job."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser.conftest import serving

from frontend.pages.submit.snippets import in_python, on_command_line, with_curl
from maat.api.commands import CommandBody
from maat.api.jobs import JobBody
from maat.client import Client
from maat.client.submit_words import OF_JOB, OF_RUN, submit_words

BODY: dict[str, Any] = {
    "name": 'it\'s a "test" $HOME `id` \\ -1',
    "model": "cifar10",
    "adaptivity": "strong-scaling",
    "min_gpus": 2,
    "max_gpus": 8,
    "batch_size": 256,
    "work_scale": 0.5,
    "gpu_types": ["a100", "rtx"],
    "preemptible": False,
    "priority": -10,
    "weight": 1.5,
    "labels": {"team": "vision", "run": "a/b"},
    "deadline": "2099-01-01T00:00:00.000Z",
}
RUN: dict[str, Any] = {
    "argv": ["python", "train.py", "--note", "a 'b' \"c\"\n$d \\ `e`"],
    "cwd": "/srv/it's work",
    "env": {"TEXT": "two\nlines = $1", "EMPTY": ""},
    "secret_env": {"WANDB_API_KEY": None},
    "profile": False,
    "total_samples": 1e6,
    "utilisation": {"dram": 0.5, "functional_unit": 0.25},
    "locality_penalty": 1.7,
}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A real service without workers: nothing is scheduled, nothing runs."""
    with serving(tmp_path_factory.mktemp("service"), demo=True, commands=True) as server:
        yield server.client


def pasted(text: str, folder: Path, *, script: bool = False) -> str:
    """Run a text as somebody would who has pasted it."""
    command = [sys.executable, "-c", text] if script else ["sh", "-c", text]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "WANDB_API_KEY": "k3y"}
    environment.pop("MAAT_TOKEN", None)
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_each_makes_the_same_job(service: Client, tmp_path: Path) -> None:
    origin, body = service.url, {**BODY, "cluster_id": "demo"}
    pasted(with_curl(body, origin=origin), tmp_path)
    pasted(in_python(body, origin=origin), tmp_path, script=True)
    pasted(on_command_line(body, origin=origin), tmp_path)
    pasted(with_curl(body, origin=origin, indices=[3, 5]), tmp_path)

    jobs = service.jobs(sort="submitted_at")["items"]
    assert [job["array_index"] for job in jobs] == [None, None, None, 3, 5]
    for job in jobs[:3]:
        same = {name: job[name] for name in BODY if name in job}
        assert same == BODY
    assert jobs[3]["name"] == f"{BODY['name']}[3]"


def test_each_makes_the_same_command_and_takes_its_secret_from_the_shell(
    service: Client, tmp_path: Path
) -> None:
    service.create_cluster(
        {"name": "local", "executor": "local", "nodes": [{"gpu_type": "cpu", "gpu_count": 2}]}
    )
    body = {**BODY, "gpu_types": ["cpu"], "max_gpus": 2, "cluster_id": "local", "run": RUN}
    body.pop("work_scale")
    origin = service.url
    pasted(with_curl(body, origin=origin), tmp_path)
    pasted(in_python(body, origin=origin), tmp_path, script=True)
    pasted(on_command_line(body, origin=origin), tmp_path)

    jobs = service.jobs(cluster="local")["items"]
    assert len(jobs) == 3
    for job in jobs:
        command = service.job_command(job["id"])
        assert command["secret_names"] == ["WANDB_API_KEY"]
        shown = {name: command[name] for name in RUN if name != "secret_env"}
        assert shown == {name: value for name, value in RUN.items() if name != "secret_env"}


def test_the_command_line_has_an_option_for_every_field() -> None:
    told = {"name", "model", "preemptible", "run", *OF_JOB}
    assert told == set(JobBody.model_fields)
    of_run = {"argv", "secret_env", "profile", "utilisation", *OF_RUN}
    assert of_run == set(CommandBody.model_fields)
    assert "--priority=-10" in submit_words(BODY)
