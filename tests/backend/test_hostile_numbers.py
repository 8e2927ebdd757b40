"""Tests of extreme numbers in every place of every body and query.

The service answers or refuses them, and never fails.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient
from measurement_samples import pairs

HOSTILE = {
    "NaN": "NaN",
    "Infinity": "Infinity",
    "minus infinity": "-Infinity",
    "infinite by its exponent": "1e999",
    "minus infinite by its exponent": "-1e999",
    "400 digits": "9" * 400,
    "5000 digits": "9" * 5000,
    "the largest": "1.7e308",
    "the smallest": "5e-324",
    "2 to the 63rd": str(2**63),
    "negative": "-1",
    "a list": "[1e999]",
}
GENERATED = {"kind": "generated", "family": "philly", "jobs": 3, "hours": 1, "seed": 1}
CONDITIONS = {
    "cluster": "t4=2x4",
    "fidelity": "paper",
    "profiling": "oracle",
    "round_seconds": 60,
    "rigid_share": 0.1,
    "strong_scaling_share": 0.1,
    "jobs_per_gpu": 2,
    "interference": 1.25,
    "variability": None,
    "variability_draw": None,
    "locality_penalty": {"bert": 1.5},
    "tuned": "any-pair",
    "tuned_gpus": 16,
    "least_stay_seconds": 60.0,
    "most_moves_per_hour": 4,
    "failures": {"mtbf_hours": 10, "repair_seconds": 60},
    "reservations": [
        {"gpu_type": "t4", "gpu_count": 1, "tenant": "x", "start_seconds": 0, "end_seconds": 10}
    ],
}
RUN = {
    "policy": "sia",
    "policy_parameters": {"p": -1.0},
    "placer": "pal",
    "placer_parameters": {"binning": "two"},
    "seed": 0,
}
VARY = [{"name": "round_seconds", "values": [60, 120]}, {"name": "cluster_size", "values": [1]}]
BODIES: dict[str, tuple[str, dict[str, Any]]] = {
    "a simulation": (
        "/simulations",
        {"name": "x", **CONDITIONS, "traces": [GENERATED], "runs": [RUN]},
    ),
    "a sweep": (
        "/sweeps",
        {
            "name": "x",
            **CONDITIONS,
            "round_seconds": None,
            "trace": {"kind": "generated", "jobs": 3, "hours": 1},
            "policy_parameters": {"p": 0.5},
            "placer": "pal",
            "placer_parameters": {"binning": "two"},
            "vary": VARY,
            "seeds": [0],
        },
    ),
    "auto-scaling": (
        "/experiments/autoscaling",
        {
            "name": "x",
            "trace": GENERATED,
            "policy_parameters": {"p": 0.5},
            "policy": "sia",
            "upper": 0.7,
            "lower": 0.5,
            "window": 1,
            "give_back_below": 0.0,
            "fixed_nodes": [1, 2],
            "seed": 0,
        },
    ),
    "a hyper-parameter search": (
        "/experiments/tuning",
        {
            "name": "x",
            "trials": 2,
            "at_a_time": 1,
            "static_gpus": 4,
            "static_batch_per_gpu": 128,
            "work_scale": 1,
            "seed": 0,
        },
    ),
    "a measurement": ("/measurements", pairs()),
    "a job": (
        "/jobs",
        {
            "name": "x",
            "model": "bert",
            "min_gpus": 1,
            "max_gpus": 4,
            "batch_size": 24,
            "work_scale": 0.5,
        },
    ),
    "a reservation": (
        "/clusters/demo/reservations",
        {"gpu_type": "t4", "gpu_count": 1, "tenant": "default", "end_at": None},
    ),
    "a cluster": (
        "/clusters",
        {
            "name": "x",
            "shape": "t4=1x4",
            "policy_parameters": {"p": 0.5},
            "round_seconds": 60,
            "speed": 1,
        },
    ),
    "demo jobs": ("/jobs:demo", {"count": 1, "seed": 0}),
}
HERE = "HERE"


def places(value: Any) -> Iterator[Any]:
    """The value with HERE at each of its places in turn."""
    yield HERE
    if isinstance(value, dict):
        for key, item in value.items():
            yield from ({**value, key: changed} for changed in places(item))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from ([*value[:index], changed, *value[index + 1 :]] for changed in places(item))


@pytest.mark.parametrize(("path", "body"), BODIES.values(), ids=BODIES.keys())
def test_no_number_in_a_body_is_a_fault_of_the_service(
    client: TestClient, path: str, body: dict[str, Any]
) -> None:
    named = [
        (number, {**body, "name": kind} if "name" in body else body)
        for kind, number in HOSTILE.items()
    ]
    for number, changed in ((n, changed) for n, own in named for changed in places(own)):
        text = json.dumps(changed).replace(f'"{HERE}"', number)
        answer = client.post(
            f"/api/v1{path}", content=text, headers={"Content-Type": "application/json"}
        )
        assert answer.status_code < 500, f"{text}: {answer.text}"


QUERIES = {
    "/jobs": ("limit",),
    "/simulations": ("limit", "cursor"),
    "/measurements": ("limit", "cursor", "kind"),
    "/clusters/demo/rounds": ("limit", "after", "before"),
    "/clusters/demo/timeline": ("from", "to", "points"),
    "/models/bert/goodput": ("max_gpus", "progress", "batch_size"),
}


@pytest.mark.parametrize("number", HOSTILE.values(), ids=HOSTILE.keys())
def test_no_number_in_a_query_is_a_fault_of_the_service(refusing: TestClient, number: str) -> None:
    for path, names in QUERIES.items():
        for name in names:
            answer = refusing.get(f"/api/v1{path}", params={name: number})
            assert answer.status_code < 500, f"{path}?{name}={number[:20]}: {answer.text}"
