"""The form of commands: what it sends, what it sees itself, where refusals stand."""

from __future__ import annotations

from typing import Any

import pytest

from frontend.pages.submit.run_model import (
    FIELDS,
    NUMBERS,
    Secret,
    body_of,
    left_out,
    place_of,
    secrets_of,
    shown_values,
    unfinished,
    values_like,
)
from maat.api.commands import CommandBody
from maat.api.jobs import JobBody
from maat.client.errors import FieldProblem

VALUES: dict[str, Any] = {
    **dict.fromkeys(NUMBERS, ""),
    "name": "night",
    "line": "python 'my train.py' --lr 0.1",
    "cwd": "/srv",
    "env": "A=1\n\n B=x=y \n",
    "adaptivity": "adaptive",
    "gpu_count": 4,
    "batch_size": 64,
    "max_batch_size": "",
    "profile": False,
    "preemptible": True,
    "secrets": [],
    "gpu_types": [],
    "labels": [],
    "model": "",
    "external_id": "",
    "stop_seconds": 120,
    "max_retries": 3,
    "priority": 0,
    "weight": 1,
    "least_stay_seconds": "",
    "most_moves_per_hour": "",
}


def test_the_form_becomes_a_body_that_the_service_takes() -> None:
    body = body_of(VALUES, cluster_id="here")
    assert body == {
        "name": "night",
        "model": "my train",
        "cluster_id": "here",
        "adaptivity": "adaptive",
        "batch_size": 64,
        "preemptible": True,
        "priority": 0,
        "weight": 1,
        "run": {
            "argv": ["python", "my train.py", "--lr", "0.1"],
            "cwd": "/srv",
            "env": {"A": "1", "B": "x=y "},
            "profile": False,
            "stop_seconds": 120,
            "max_retries": 3,
        },
    }
    JobBody.model_validate(body)


def test_every_field_of_the_schema_can_be_given() -> None:
    filled = {
        **VALUES,
        "max_batch_size": 512,
        "min_gpus": 2,
        "max_gpus": 4,
        "secrets": [Secret("KEY", "hush")],
        "gpu_types": ["cpu"],
        "labels": ["team=vision"],
        "least_stay_seconds": 1800,
        "most_moves_per_hour": 4,
        "model": "resnet",
        "external_id": "mine",
        "total_samples": 1e6,
        "locality_penalty": 1.7,
        "dram": 0.5,
        "functional_unit": 0.25,
    }
    assert set(filled) == {*FIELDS, "profile", "preemptible"}
    body = body_of(filled, cluster_id="here")
    run = JobBody.model_validate(body).run
    assert run is not None
    assert run.model_fields_set == set(CommandBody.model_fields)
    assert run.secret_env == {"KEY": "hush"}
    of_commands = set(JobBody.model_fields) - {
        "work_scale",
        "workload_kind",
        "promised_seconds",
        "after",
        "deadline",
    }
    assert body.keys() == of_commands - {"gpu_count"}


def test_another_like_it_has_all_but_its_secrets_and_its_own_id() -> None:
    job: Any = {
        "name": "night", "model": "resnet", "adaptivity": "strong-scaling", "gpu_count": None,
        "min_gpus": 2, "max_gpus": None, "batch_size": 64, "max_batch_size": None,
        "preemptible": False, "gpu_types": ["cpu"], "priority": 5, "weight": 1.5,
        "least_stay_seconds": 1800.0, "most_moves_per_hour": None,
        "external_id": "mine", "labels": {"team": "vision"},
    }  # fmt: skip
    command: Any = {
        "argv": ["python", "my train.py", "$HOME"], "cwd": "/srv",
        "env": {"A": "x=y ", "LINES": "1\n2"}, "secret_names": ["KEY"], "stop_seconds": 30.0,
        "max_retries": 0, "total_samples": 1e6, "profile": False,
        "utilisation": {"dram": 0.5, "functional_unit": 0.25}, "locality_penalty": 1.7,
    }  # fmt: skip
    filled = values_like(job, command)
    assert "secrets" not in filled
    assert filled["external_id"] == ""
    assert left_out(command) == ["LINES"]
    again = body_of({**filled, "secrets": []}, cluster_id="here")
    kept = (
        "name", "model", "adaptivity", "min_gpus", "batch_size", "gpu_types", "priority", "weight",
        "labels", "least_stay_seconds",
    )  # fmt: skip
    assert {name: again[name] for name in kept} == {name: job[name] for name in kept}
    assert again["preemptible"] is False
    shown = {**command, "env": {"A": "x=y "}}
    del shown["secret_names"]
    assert again["run"] == shown


def test_what_a_page_keeps_of_a_form_has_no_secret() -> None:
    rows = secrets_of(["KEY", None, " B "], ["hush", "", "quiet"])
    assert rows == [Secret("KEY", "hush"), Secret("B", "quiet")]
    assert shown_values({**VALUES, "secrets": rows})["secrets"] == ["KEY", "B"]


def test_a_rigid_command_sends_its_gpus_alone() -> None:
    sizes = {"batch_size": "", "max_batch_size": 512, "min_gpus": 2}
    body = body_of({**VALUES, **sizes, "adaptivity": "rigid"}, cluster_id="here")
    assert body["gpu_count"] == 4
    assert not sizes.keys() & body.keys()
    assert "profile" not in body["run"]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"line": "echo 'x"}, {"line": "A shell could not read it: no closing quotation."}),
        ({"line": "  "}, {"line": "Give a command, such as python train.py."}),
        ({"name": " "}, {"name": "Give the job a name."}),
        ({"cwd": None}, {"cwd": "Say in which folder it is to run."}),
        ({"cwd": "work"}, {"cwd": "Begin it with /"}),
        ({"env": "A=1\nA=2"}, {"env": "Line 2 gives A again"}),
        ({"env": "2A=1"}, {"env": "Line 1: A name has letters"}),
        ({"secrets": [Secret("KEY", "")]}, {"secrets": "Give the value of KEY"}),
        ({"secrets": [Secret("", "hush")]}, {"secrets": "A value has no name"}),
        ({"secrets": [Secret("A", "x")]}, {"secrets": "A stands in the environment already"}),
        ({"secrets": [Secret("K", "x")] * 2}, {"secrets": "K stands here already"}),
        ({"stop_seconds": 1000}, {"stop_seconds": "Give 1 to 900."}),
        ({"max_retries": 1.5}, {"max_retries": "Give a whole number."}),
        ({"total_samples": 0}, {"total_samples": "Give more than 0."}),
        ({"locality_penalty": 0.9}, {"locality_penalty": "Give 1 to 100."}),
        ({"dram": 0.5}, {"functional_unit": "Give both shares, or neither."}),
        ({"max_batch_size": 32}, {"max_batch_size": "Give at least 64"}),
        ({"min_gpus": 4, "max_gpus": 2}, {"max_gpus": "Give at least 4"}),
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
        ("/run/stop_seconds", "stop_seconds"),
        ("/run/secret_env/KEY", "secrets"),
        ("/run/utilisation/dram", "dram"),
        ("/run/profile", None),
        ("/run/env", "env"),
        ("/batch_size", "batch_size"),
        ("/model", "model"),
        ("/cluster_id", None),
    ],
)
def test_a_refusal_stands_beside_its_field(pointer: str, field: str | None) -> None:
    problem = FieldProblem.parse({"pointer": pointer, "code": "x", "message": "No.", "remedy": ""})
    assert place_of(problem) == field
