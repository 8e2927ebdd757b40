"""The form of commands: what it sends, what it sees itself, where refusals stand."""

from __future__ import annotations

from typing import Any

import pytest

from frontend.pages.submit.run import body_of, place_of, unfinished
from maat.api.jobs import JobBody
from maat.client.errors import FieldProblem

VALUES: dict[str, Any] = {
    "name": "night",
    "line": "python 'my train.py' --lr 0.1",
    "cwd": "/srv",
    "env": "A=1\n\n B=x=y \n",
    "adaptivity": "adaptive",
    "gpu_count": 4,
    "batch_size": 64,
    "max_batch_size": "",
    "profile": False,
}


def test_the_form_becomes_a_body_that_the_service_takes() -> None:
    body = body_of(VALUES, cluster_id="here")
    assert body == {
        "name": "night",
        "model": "my train",
        "cluster_id": "here",
        "adaptivity": "adaptive",
        "batch_size": 64,
        "run": {
            "argv": ["python", "my train.py", "--lr", "0.1"],
            "cwd": "/srv",
            "env": {"A": "1", "B": "x=y "},
            "profile": False,
        },
    }
    JobBody.model_validate(body)


def test_a_rigid_command_sends_its_gpus_alone() -> None:
    body = body_of({**VALUES, "adaptivity": "rigid"}, cluster_id="here")
    assert body["gpu_count"] == 4
    assert "batch_size" not in body
    assert "profile" not in body["run"]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"line": "echo 'x"}, {"line": "A shell could not read it: no closing quotation."}),
        ({"line": "  "}, {"line": "Give a command, such as python train.py."}),
        ({"name": " "}, {"name": "Give the job a name."}),
        ({"cwd": None}, {"cwd": "Say in which folder it is to run."}),
        ({"env": "A=1\nB"}, {"env": "Line 2 has no value: write B=VALUE."}),
        ({"env": "=1"}, {"env": "Line 1 has no name: write NAME=VALUE."}),
        ({"batch_size": ""}, {"batch_size": "Say for which batch size it was tuned."}),
        ({"adaptivity": "rigid", "gpu_count": ""}, {"gpu_count": "Say how many GPUs it needs."}),
        ({}, {}),
    ],
)
def test_the_form_sees_what_is_missing(changed: dict[str, Any], words: dict[str, str]) -> None:
    found = unfinished({**VALUES, **changed})
    assert found.keys() == words.keys()
    assert all(found[field].startswith(told) for field, told in words.items())


@pytest.mark.parametrize(
    ("pointer", "field"),
    [
        ("/run/argv/0", "line"),
        ("/run/cwd", "cwd"),
        ("/run/env/MAAT_X", "env"),
        ("/run", "line"),
        ("/run/stop_seconds", None),
        ("/batch_size", "batch_size"),
        ("/model", "line"),
        ("/cluster_id", None),
    ],
)
def test_a_refusal_stands_beside_its_field(pointer: str, field: str | None) -> None:
    problem = FieldProblem.parse({"pointer": pointer, "code": "x", "message": "No.", "remedy": ""})
    assert place_of(problem) == field
