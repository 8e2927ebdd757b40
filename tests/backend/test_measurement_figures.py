"""What charts draw of measurements: scores and bins, pairs, throughput with its fit."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient
from measurement_samples import GAVEL, MEASUREMENTS, PAIRS, locality, pairs, unequal, uploaded
from profile_samples import profile_files, profiles, throughputs

from frontend.figures.measured import spreads_figure


def drawn(client: TestClient, body: dict[str, Any], **part: str) -> dict[str, Any]:
    made = uploaded(client, body)
    answer = client.get(f"{MEASUREMENTS}/{made['id']}/figures", params=part)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_unequal_gpus_have_scores_over_the_median_and_bins(client: TestClient) -> None:
    text = "uuid,perf\n" + "".join(f"g{n},{2 if n < 20 else 4}\n" for n in range(41))
    of_bert = drawn(client, unequal(text=text))["scores"][0]
    assert (of_bert["application"], of_bert["gpu_type"]) == ("bert", "t4")
    assert of_bert["scores"] == [0.5] * 20 + [1.0] * 21
    assert of_bert["bins"] == of_bert["scores"]


def test_pairs_have_the_victims_slowdown_in_rows_and_nothing_where_none_was_measured(
    client: TestClient,
) -> None:
    found = drawn(client, pairs(text=f"{PAIRS}bert,ncf,1,1.5\nbert,ncf,2,1.9\nncf,bert,1,1.2\n"))
    assert found["pairs"] == {"models": ["bert", "ncf"], "slowdowns": [[None, 1.5], [1.2, None]]}


def test_a_gpu_type_of_gavels_table_is_chosen(client: TestClient) -> None:
    made = uploaded(client, pairs(text=GAVEL))
    address = f"{MEASUREMENTS}/{made['id']}/figures"
    by_type = {
        name: client.get(address, params={"gpu_type": name}).json()["pairs"]["slowdowns"][0][0]
        for name in ("v100", "p100")
    }
    assert by_type == {"v100": 2.0, "p100": 4.0}


def test_steps_across_nodes_have_the_penalty_of_every_model_and_type(client: TestClient) -> None:
    found = drawn(client, locality())["spreads"]
    assert [(one["model"], one["gpu_type"], one["penalty"], one["steps"]) for one in found] == [
        ("bert", "t4", 2.5, 70),
        ("ncf", "a100", 1.1, 30),
    ]
    assert (found[0]["least"], found[0]["most"]) == pytest.approx((2.0, 3.0))
    figure = spreads_figure(found, scheme="light", height=400)
    assert {bars.name: list(bars.y) for bars in figure.data} == {
        "a100": [None, 1.1],
        "t4": [2.5, None],
    }


def test_throughput_is_measured_and_fitted_on_the_fewest_nodes(client: TestClient) -> None:
    rates = drawn(client, profiles(profile_files()))["rates"]
    assert (rates["model"], rates["gpu_type"]) == ("bert", "t4")
    points = {(point["gpus"], point["per_gpu_batch"]): point for point in rates["points"]}
    assert points[2, 32]["rate"] == pytest.approx(2 * 32 / 0.6)
    assert all(
        point["fitted"] == pytest.approx(point["rate"], rel=0.5) for point in points.values()
    )


def test_a_table_of_throughputs_is_drawn_in_samples_per_second_without_a_fit(
    client: TestClient,
) -> None:
    rates = drawn(client, profiles({"t.json": throughputs(rate=10.0)}))["rates"]
    assert rates["points"] == [
        {"gpus": n, "per_gpu_batch": 32.0, "rate": 320.0 * n, "fitted": None} for n in (1, 2)
    ]


@pytest.mark.parametrize(
    ("part", "pointer", "known"),
    [({"gpu_type": "h100"}, "/gpu_type", "t4"), ({"model": "llama"}, "/model", "bert")],
)
def test_what_a_measurement_does_not_cover_is_refused(
    client: TestClient, part: dict[str, str], pointer: str, known: str
) -> None:
    made = uploaded(client, profiles())
    answer = client.get(f"{MEASUREMENTS}/{made['id']}/figures", params=part)
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["pointer"] == pointer
    assert known in error["remedy"]
