"""Tests of the form that submits a job: its bodies, what is wrong, and how it is filled."""

from __future__ import annotations

from typing import Any

import pytest

from frontend.pages.submit.model import (
    body_of,
    in_form_words,
    meaningless,
    refused,
    still_wrong,
    types_of,
    unfinished,
    values_like,
)
from frontend.problems import friendly_message
from maat.client.errors import FieldProblem


def test_an_empty_name_is_asked_for_in_plain_words() -> None:
    raw = {
        "field": "name",
        "message": "String should have at least 1 character.",
        "remedy": "Give at least 1 characters.",
    }

    assert (
        friendly_message(
            FieldProblem.parse({**raw, "code": "string_too_short"}),
            empty_name="Give the job a name.",
        )
        == "Give the job a name."
    )


def test_the_form_leaves_out_what_is_empty_or_means_nothing_for_the_kind_of_job() -> None:
    values = {
        "name": "a",
        "model": "bert",
        "adaptivity": "rigid",
        "gpu_count": 4,
        "min_gpus": 2,
        "max_gpus": 8,
        "batch_size": 64,
        "max_batch_size": 128,
    }
    rest = {
        "work_scale": 1,
        "gpu_types": [],
        "labels": ["team=vision"],
        "external_id": "",
        "workload_kind": "training",
        "promised_seconds": 9,
    }

    rigid = body_of({**values, **rest}, preemptible=True, cluster_id="clu_1")
    adaptive = body_of(
        {**values, **rest, "adaptivity": "adaptive"}, preemptible=False, cluster_id=None
    )

    assert rigid == {
        "name": "a",
        "model": "bert",
        "adaptivity": "rigid",
        "gpu_count": 4,
        "batch_size": 64,
        "work_scale": 1,
        "labels": {"team": "vision"},
        "workload_kind": "training",
        "cluster_id": "clu_1",
        "preemptible": True,
    }
    assert adaptive == {
        "name": "a",
        "model": "bert",
        "adaptivity": "adaptive",
        "min_gpus": 2,
        "max_gpus": 8,
        "max_batch_size": 128,
        "work_scale": 1,
        "labels": {"team": "vision"},
        "workload_kind": "training",
        "preemptible": False,
    }


def test_latency_bound_inference_sends_its_promise_and_the_batch_that_it_is_for_whatever_may_vary() -> (  # noqa: E501
    None
):
    values = {
        "name": "a",
        "model": "bert",
        "adaptivity": "adaptive",
        "max_gpus": 8,
        "batch_size": 16,
        "max_batch_size": 64,
    }

    body = body_of(
        {**values, "workload_kind": "latency-inference", "promised_seconds": 0.2},
        preemptible=True,
        cluster_id=None,
    )

    assert (body["batch_size"], body["promised_seconds"], body["max_gpus"]) == (16, 0.2, 8)
    assert "max_batch_size" not in body


CIFAR: dict[str, Any] = {
    "name": "cifar10",
    "initial_batch_size": 128,
    "max_batch_size": 4096,
    "gpu_types": [
        {"gpu_type": name, "gpus_per_replica": unit}
        for name, unit in (("t4", 1), ("a100", 2), ("v100", 1))
    ],
}
HERE = {"t4": 8, "a100": 1}
JOB: dict[str, Any] = {
    "name": "n",
    "model": "cifar10",
    "adaptivity": "rigid",
    "gpu_count": 4,
    "min_gpus": 1,
    "max_gpus": "",
    "batch_size": "",
    "max_batch_size": "",
    "work_scale": 1,
    "weight": 1,
    "least_stay_seconds": "",
    "most_moves_per_hour": "",
    "gpu_types": [],
    "labels": [],
    "external_id": "",
    "workload_kind": "training",
    "promised_seconds": "",
}


def test_everything_that_is_wrong_with_a_job_is_told_at_once_in_the_words_of_the_form() -> None:
    wrong = {**JOB, "name": " ", "model": None, "gpu_count": 100, "batch_size": 7, "work_scale": 0}

    assert unfinished(JOB, CIFAR, HERE) == {}
    assert unfinished(wrong, CIFAR, HERE) == {
        "name": "Give the job a name.",
        "model": "Choose a model.",
        "gpu_count": "The cluster has at most 8 GPUs of one type that this job may use.",
        "batch_size": "Give 128 to 4 096: at those the model was measured.",
        "work_scale": "Give a number above 0, at most 1 000.",
    }
    adaptive = {
        **JOB,
        "adaptivity": "adaptive",
        "gpu_count": "",
        "min_gpus": 4,
        "max_gpus": 2,
        "max_batch_size": 9000,
    }
    assert set(unfinished(adaptive, CIFAR, HERE)) == {"max_gpus", "max_batch_size"}
    bound = {**JOB, "workload_kind": "latency-inference"}
    assert set(unfinished(bound, CIFAR, HERE)) == {"batch_size", "promised_seconds"}


def test_only_types_of_the_cluster_that_hold_a_replica_are_offered() -> None:
    assert types_of(CIFAR, HERE) == ["t4"]
    assert types_of(CIFAR, {}) == ["t4", "a100", "v100"]


def test_what_the_service_said_stays_until_its_field_is_mended() -> None:
    told = {"values": JOB, "errors": {"external_id": "It is taken.", "gpu_count": "No."}}

    assert still_wrong(JOB, told, CIFAR, HERE) == told["errors"]
    assert still_wrong({**JOB, "external_id": "mine"}, told, CIFAR, HERE) == {"gpu_count": "No."}
    assert still_wrong({**JOB, "adaptivity": "strong-scaling"}, told, CIFAR, HERE) == {}


def test_names_of_the_api_read_as_the_form_labels_them() -> None:
    assert (
        in_form_words("Give at most 4, or a larger max_batch_size.")
        == "Give at most 4, or a larger “Largest batch size”."
    )
    problem = FieldProblem(
        "/gpu_types/0", "0", "There is none.", "no_such_gpu_type", "Use min_gpus."
    )
    assert refused([problem]) == {"gpu_types": "There is none. Use “At least”."}


def test_an_empty_fixed_batch_is_sent_as_the_one_that_the_form_shows() -> None:
    assert body_of(JOB, preemptible=True, cluster_id=None, own_batch=128)["batch_size"] == 128
    assert (
        body_of({**JOB, "batch_size": 256}, preemptible=True, cluster_id=None, own_batch=128)[
            "batch_size"
        ]
        == 256
    )
    assert "batch_size" not in body_of(
        {**JOB, "adaptivity": "adaptive"}, preemptible=True, cluster_id=None, own_batch=128
    )


def test_a_form_is_filled_as_a_job_was_declared_but_for_what_a_remedy_changes_and_for_its_unique_id() -> (  # noqa: E501
    None
):
    declared = {
        **JOB,
        "max_gpus": None,
        "gpu_types": None,
        "labels": {"team": "vision"},
        "priority": 3,
        "external_id": "run-7",
        "batch_size": 512,
    }

    filled = values_like(declared, {"gpu_count": 2})

    labels = ["team=vision"]
    assert filled == {**JOB, "gpu_count": 2, "batch_size": 512, "priority": "3", "labels": labels}


@pytest.mark.parametrize("weight", [0, 1000.5, "x"])
def test_a_weight_beyond_its_bounds_is_told_beside_its_field(weight: object) -> None:
    wrong = unfinished({**JOB, "weight": weight}, CIFAR, HERE)
    assert "Give" in wrong["weight"]
    assert "weight" not in unfinished({**JOB, "weight": ""}, CIFAR, HERE)


def test_an_empty_weight_is_left_to_the_service() -> None:
    assert "weight" not in body_of({**JOB, "weight": ""}, preemptible=True, cluster_id=None)
    assert body_of({**JOB, "weight": 1.5}, preemptible=True, cluster_id=None)["weight"] == 1.5


@pytest.mark.parametrize("text", ["10m", "1e3", "abc", "-", "99999999999999999999"])
def test_a_text_in_a_number_field_is_refused_beside_it(text: str) -> None:
    numbers = ("gpu_count", "min_gpus", "max_gpus", "batch_size", "max_batch_size",
               "promised_seconds", "work_scale", "weight", "least_stay_seconds",
               "most_moves_per_hour")  # fmt: skip
    model: Any = {"name": "bert", "initial_batch_size": 12, "max_batch_size": 384,
                  "restart_seconds": 30.0, "gpu_types": []}  # fmt: skip
    values = {"name": "net", "model": "bert", "gpu_types": [], "labels": []}
    values |= dict.fromkeys(numbers, text)
    for adaptivity, kind in (
        ("adaptive", "training"), ("rigid", "training"), ("strong-scaling", "latency-inference"),
    ):  # fmt: skip
        shape = {"adaptivity": adaptivity, "workload_kind": kind}
        wrong = unfinished({**values, **shape}, model, {"t4": 8})
        assert wrong.keys() == set(numbers) - meaningless(adaptivity, kind)
