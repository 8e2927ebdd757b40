"""Tests of the submit form's address: what it takes, what it refuses, what it never holds."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import parse_qs

import pytest

from frontend.addresses import not_understood
from frontend.pages.submit import address, layout
from frontend.pages.submit.fields import field_id
from frontend.pages.submit.later import LATER, later_id
from frontend.pages.submit.offers import suit
from frontend.pages.submit.run_fields import run_id

SWITCHES = ("preemptible", "profile", "replace")


def asked(text: str) -> dict[str, Any]:
    """Dash gives a list only where a parameter stands several times."""
    query = {
        name: values if len(values) > 1 else values[0] for name, values in parse_qs(text).items()
    }
    return address.asked_of(query)


def held(page: Any, form: str) -> dict[str, Any]:
    """What the fields of a form hold, by name."""
    names, placed, prefix = {
        "played": (address.PLAYED, field_id, "submit"),
        "run": (address.RUN, run_id, "submit-run"),
    }[form]
    fields = {
        name: page[later_id(prefix, name) if name in LATER else placed(name)] for name in names
    }
    return {
        name: field.checked if name in SWITCHES else getattr(field, "value", "")
        for name, field in fields.items()
    }


@pytest.mark.parametrize("form", ["played", "run"])
def test_what_counts_as_untouched_is_what_the_form_opens_with(form: str) -> None:
    untouched = address.untouched(replaces=False)[0 if form == "played" else 1]

    opened = held(layout(), form)

    assert {name: value or untouched[name] for name, value in opened.items()} == {
        name: untouched[name] for name in opened
    }


def test_the_values_of_an_address_stand_in_the_form() -> None:
    page = layout(
        name="night",
        model="bert",
        gpu_types=["a100", "t4"],
        labels="team=vision",
        min_gpus="2",
        work_scale="0.5",
        priority="12",
        preemptible="false",
        after="job_1",
        deadline="2026-12-01 08:00",
    )

    found = held(page, "played")

    assert (found["name"], found["model"]) == ("night", "bert")
    assert (found["min_gpus"], found["work_scale"]) == (2, 0.5)
    assert (found["gpu_types"], found["labels"]) == (["a100", "t4"], ["team=vision"])
    assert (found["priority"], found["preemptible"]) == ("12", False)
    assert {"value": "12", "label": "High (12)"} in page["submit-priority"].data
    assert (found["after"], found["deadline"]) == (["job_1"], "2026-12-01 08:00")
    assert page["submit-later"].open is True


def test_a_command_is_filled_from_the_address_too_and_its_folded_fields_are_unfolded() -> None:
    page = layout(line="python train.py --lr 0.1", cwd="/srv/work", max_retries="5", dram="0.4")

    found = held(page, "run")

    assert (found["line"], found["cwd"]) == ("python train.py --lr 0.1", "/srv/work")
    assert (found["max_retries"], found["dram"]) == (5, 0.4)
    assert page["submit-run-more"].open is True
    assert page["submit-run-later"].open is False


def test_fields_that_were_emptied_are_empty() -> None:
    page = layout(empty=["min_gpus", "labels"])

    assert (held(page, "played")["min_gpus"], held(page, "played")["labels"]) == ("", [])


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("gpu_count=many", "GPUs: “many” is not taken. Give a number."),
        ("gpu_count=1.5", "GPUs: “1.5” is not taken. Give a whole number."),
        ("min_gpus=0", "At least (GPUs): “0” is not taken. Give 1 to"),
        ("work_scale=nan", "is not taken. Give a number."),
        ("gpu_count=1e400", "is not taken. Give a number."),
        ("priority=first", "Priority: “first” is not taken. Write low, normal, high, urgent, or"),
        ("priority=100000", "a whole number from -1000 to 1000"),
        ("labels=vision", "vision is no label: write key=value"),
        ("deadline=soon", "Write date and time, such as 2026-12-01 08:00."),
        ("array=9-0", "Write 0-9 or 0, 3, 7"),
        ("adaptivity=all", "There is no choice of what Maat may vary “all”."),
        ("preemptible=maybe", "Choose one of true, false."),
        ("empty=cluster", "There is no field to empty “cluster”."),
        ("name=" + "x" * 1001, "Give at most 1000 characters."),
    ],
)
def test_what_the_form_cannot_take_is_told_and_left_out(query: str, told: str) -> None:
    (sentence,) = not_understood(address.TAKES, parse_qs(query))

    assert told in sentence
    assert asked(query) == {}


def test_of_several_values_those_that_are_wrong_are_left_out() -> None:
    assert asked("labels=vision&labels=team%3Da&labels=team%3Da") == {"labels": ["team=a"]}


def test_a_priority_may_be_named() -> None:
    assert asked("priority=high") == {"priority": "10"}


def test_no_address_takes_or_gets_an_environment_or_a_secret() -> None:
    assert not {"env", "secrets", "secret_env"} & address.TAKES.keys()


MODELS: Any = [
    {
        "name": "bert",
        "initial_batch_size": 8,
        "max_batch_size": 64,
        "restart_seconds": 1.0,
        "gpu_types": [{"gpu_type": "a100", "gpus_per_replica": 1}],
    }
]


def said(asked: dict[str, Any], *, runs: bool) -> str:
    changes = asyncio.run(
        address.tell(
            models=MODELS,
            runs=runs,
            capacity={"a100": 8, "t4": 4},
            asked=asked,
            chosen="bert",
            told=None,
        )
    )
    return str(changes.get("note", ""))


def test_what_the_cluster_lacks_of_an_address_is_told() -> None:
    assert "No model “gpt” runs on this cluster." in said({"model": "gpt"}, runs=False)
    types = {"gpu_types": ["a100", "t4", "h100"]}
    assert "bert cannot use “t4” on this cluster." in said(types, runs=False)
    assert "bert cannot use “a100”" not in said(types, runs=False)
    assert "The cluster has no “h100”." in said(types, runs=True)
    assert "“t4”" not in said(types, runs=True)
    assert said({"model": "bert", "gpu_types": ["a100"]}, runs=False) == ""
    assert said({"model": "mine"}, runs=True) == ""


def test_gpu_types_of_the_address_stay_until_the_models_have_come() -> None:
    early = asyncio.run(
        suit(name="bert", models=[], capacity=None, kind="training", chosen=["a100"])
    )
    later = asyncio.run(
        suit(name="bert", models=MODELS, capacity=None, kind="training", chosen=["a100"])
    )

    assert "chosen" not in early
    assert "chosen" not in later
