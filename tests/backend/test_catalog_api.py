"""Models, policies and placers as the API tells them, and the live preview of goodput."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient

from maat.models.catalog import load_catalog
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES

MODELS = "/api/v1/models"


def test_every_policy_and_placer_is_told_with_its_parameters(client: TestClient) -> None:
    policies = client.get("/api/v1/policies").json()["items"]
    placers = client.get("/api/v1/placers").json()["items"]
    assert [policy["name"] for policy in policies] == list(POLICIES.names)
    assert [placer["name"] for placer in placers] == list(PLACERS.names)
    sia = next(policy for policy in policies if policy["name"] == "sia")
    p = next(parameter for parameter in sia["parameters"] if parameter["name"] == "p")
    assert (p["type"], p["default"], p["minimum"] < p["default"] < p["maximum"]) == (
        "number",
        -0.5,
        True,
    )
    assert all(
        parameter["help"] for policy in policies + placers for parameter in policy["parameters"]
    )


def test_fidelities_are_told_with_what_they_follow(client: TestClient) -> None:
    known = client.get("/api/v1/fidelities").json()["items"]
    assert known[0]["name"] == "paper"
    assert {one["name"] for one in known} >= {"paper", "sia-artifact"}
    assert all(one["summary"] for one in known)


def test_every_model_is_told_with_its_fits_and_their_provenance(client: TestClient) -> None:
    models = client.get(MODELS).json()["items"]
    assert {model["name"] for model in models} == set(load_catalog())
    for model in models:
        assert all(
            fit["provenance"] and len(fit["throughput_parameters"]) == 7
            for fit in model["gpu_types"]
        )
        assert model["noise_scale_curve"][0][0] <= model["noise_scale_curve"][-1][0]
    assert client.get(f"{MODELS}/bert").json()["title"] == load_catalog()["bert"].title
    assert client.get(f"{MODELS}/alexnet").status_code == 404


def preview(client: TestClient, **query: Any) -> dict[str, list[dict[str, Any]]]:
    answer = client.get(f"{MODELS}/cifar10/goodput", params=query)
    assert answer.status_code == 200, answer.text
    return {series["gpu_type"]: series["points"] for series in answer.json()["series"]}


def test_goodput_is_throughput_times_efficiency_at_the_plan_that_is_told(
    client: TestClient,
) -> None:
    for points in preview(client, max_gpus=8, progress=0.3).values():
        for point in points:
            assert point["goodput"] == pytest.approx(point["throughput"] * point["efficiency"])
            assert point["throughput"] == pytest.approx(
                point["total_batch_size"] / point["step_seconds"]
            )
            steps = point["accumulation_steps"] + 1
            assert (
                point["total_batch_size"]
                == point["gpu_count"] * point["per_gpu_batch_size"] * steps
            )
            assert 0 < point["efficiency"] <= 1


def test_more_gpus_and_more_progress_are_worth_more(client: TestClient) -> None:
    early, late = (
        preview(client, max_gpus=16)["a100"],
        preview(client, max_gpus=16, progress=0.9)["a100"],
    )
    assert early[-1]["goodput"] > early[0]["goodput"]
    assert late[-1]["goodput"] > early[-1]["goodput"]
    assert [point["gpu_count"] for point in early] == list(range(1, 17))


def test_a_preview_is_limited_to_what_is_asked_for(client: TestClient) -> None:
    assert list(preview(client, gpu_types=["a100", "t4"], max_gpus=2)) == ["a100", "t4"]
    assert list(preview(client, gpu_types="t4,rtx")) == ["t4", "rtx"]
    fixed = preview(client, batch_size=512, max_gpus=4)["t4"]
    assert {point["total_batch_size"] for point in fixed if point["gpu_count"] in (1, 2, 4)} == {
        512
    }


def test_inference_is_worth_its_throughput_and_may_serve_fewer_at_once_than_training_learns_from(
    client: TestClient,
) -> None:
    for points in preview(client, max_gpus=4, workload_kind="batch-inference").values():
        assert [point["goodput"] for point in points] == pytest.approx(
            [point["throughput"] for point in points]
        )
    few = preview(client, max_gpus=1, batch_size=32, workload_kind="latency-inference")["a100"]
    assert [point["total_batch_size"] for point in few] == [32]
    assert client.get(f"{MODELS}/cifar10/goodput", params={"batch_size": 32}).status_code == 422


def test_a_model_that_spans_gpus_has_points_at_whole_replicas_only(client: TestClient) -> None:
    series = client.get(
        f"{MODELS}/gpt/goodput", params={"gpu_types": "a100", "max_gpus": 7}
    ).json()["series"][0]
    assert [point["gpu_count"] for point in series["points"]] == [2, 4, 6]


@pytest.mark.parametrize(
    "query",
    [
        {"gpu_types": "h100"},
        {"max_gpus": 0},
        {"max_gpus": 513},
        {"progress": 1.1},
        {"progress": "nan"},
        {"batch_size": 1},
    ],
    ids=str,
)
def test_a_preview_that_means_nothing_is_refused_by_name(
    refusing: TestClient, query: dict[str, Any]
) -> None:
    answer = refusing.get(f"{MODELS}/cifar10/goodput", params=query)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"].startswith(f"/{next(iter(query))}")
