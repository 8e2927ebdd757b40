"""How long jobs of a live cluster stay where they are: made, changed, taken away, refused."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient

CLUSTERS = "/api/v1/clusters"
BOUNDS = {"least_stay_seconds": 1800.0, "most_moves_per_hour": 4}


def make(client: TestClient, **fields: Any) -> Any:
    return client.post(CLUSTERS, json={"name": "lab", "shape": "t4=1x2", **fields})


def change(client: TestClient, **fields: Any) -> Any:
    tag = client.get(f"{CLUSTERS}/lab").headers["ETag"]
    return client.patch(f"{CLUSTERS}/lab", json=fields, headers={"If-Match": tag})


def bounds_of(answer: Any) -> dict[str, Any]:
    return {name: answer.json()[name] for name in BOUNDS}


def test_a_cluster_has_no_bounds_unless_it_says_so_and_null_takes_one_away(
    client: TestClient,
) -> None:
    none = dict.fromkeys(BOUNDS)
    assert bounds_of(make(client)) == none
    assert bounds_of(change(client, **BOUNDS)) == BOUNDS
    assert bounds_of(client.get(f"{CLUSTERS}/lab")) == BOUNDS
    assert bounds_of(change(client, round_seconds=30.0)) == BOUNDS
    left = change(client, most_moves_per_hour=None)
    assert bounds_of(left) == BOUNDS | {"most_moves_per_hour": None}
    audited = client.get("/api/v1/audit").json()["items"]
    last = next(one for one in audited if one["action"] == "change cluster")
    assert [last[side]["most_moves_per_hour"] for side in ("before", "after")] == [4, None]


def test_a_new_cluster_takes_both_bounds(client: TestClient) -> None:
    assert bounds_of(make(client, **BOUNDS)) == BOUNDS


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("least_stay_seconds", -1),
        ("least_stay_seconds", 2_592_001),
        ("least_stay_seconds", "30"),
        ("most_moves_per_hour", 0),
        ("most_moves_per_hour", 1.5),
        ("most_moves_per_hour", 3601),
    ],
)
def test_other_values_are_refused_by_their_field(
    client: TestClient, name: str, wrong: object
) -> None:
    refused = make(client, **{name: wrong})
    assert refused.status_code == 422
    assert [error["pointer"] for error in refused.json()["errors"]] == [f"/{name}"]
    make(client)
    assert change(client, **{name: wrong}).status_code == 422
