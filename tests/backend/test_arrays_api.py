"""Arrays: one job many times, found and acted on together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient

JOBS, ARRAY, BULK = "/api/v1/jobs", "/api/v1/jobs:array", "/api/v1/jobs:bulk"
Submit = Callable[..., dict[str, Any]]


def make(client: TestClient, *, key: str | None = None, job: Any = None, **size: Any) -> Any:
    body = {"job": {"name": "sweep", "model": "bert", **(job or {})}, **size}
    return client.post(ARRAY, json=body, headers={"Idempotency-Key": key} if key else {})


def test_every_job_of_an_array_has_its_index(client: TestClient, submit: Submit) -> None:
    first = submit()["id"]
    answer = make(client, count=3, job={"external_id": "mine", "after": [first]})
    assert (answer.status_code, answer.json()["created"]) == (201, 3)
    jobs = [item["job"] for item in answer.json()["items"]]
    assert [job["name"] for job in jobs] == ["sweep[0]", "sweep[1]", "sweep[2]"]
    assert [job["external_id"] for job in jobs] == ["mine[0]", "mine[1]", "mine[2]"]
    assert [job["array_index"] for job in jobs] == [0, 1, 2]
    assert [job["after"] for job in jobs] == [[first]] * 3
    assert len({job["array_id"] for job in jobs}) == 1


def test_an_array_is_listed_counted_and_cancelled_as_one(
    client: TestClient, submit: Submit
) -> None:
    submit()
    array = make(client, indices=[7, 3]).json()["items"][0]["job"]["array_id"]
    for query in ({"array": array}, {"q": array}):
        page = client.get(JOBS, params={**query, "sort": "name"}).json()
        assert [job["array_index"] for job in page["items"]] == [3, 7]
        assert page["state_counts"] == {"submitted": 2}
    first = client.get(JOBS, params={"array": array, "limit": 1}).json()
    rest = client.get(JOBS, params={"array": array, "cursor": first["next_cursor"]}).json()
    assert {job["array_index"] for job in first["items"] + rest["items"]} == {3, 7}
    done = client.post(BULK, json={"action": "cancel", "filter": {"array": array}}).json()
    assert done["count"] == 2


def test_an_array_is_made_once_per_key(client: TestClient) -> None:
    first, again = (make(client, key="k", count=2).json() for _ in range(2))
    assert again == first
    assert len(client.get(JOBS).json()["items"]) == 2


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "count or indices"),
        ({"count": 2, "indices": [1]}, "count or indices"),
        ({"indices": [1, 1]}, "twice"),
        ({"indices": [1, 1]}, '"pointer":"/indices"'),
        ({"count": 1001}, "1000"),
        ({"count": 2, "job": {"name": "x" * 199}}, "no room for an index"),
        ({"count": 2, "job": {"external_id": "x" * 198}}, "The external id has no room"),
        ({"count": 2, "job": {"external_id": "x" * 198}}, '"pointer":"/job/external_id"'),
        ({"count": 2, "job": {"model": "gpt-9"}}, "/job/model"),
    ],
)
def test_what_makes_no_array_is_refused(
    refusing: TestClient, given: dict[str, Any], says: str
) -> None:
    answer = make(refusing, **given)
    assert answer.status_code == 422
    assert says in answer.text


def test_a_taken_external_id_refuses_the_whole_array(client: TestClient, submit: Submit) -> None:
    submit(external_id="mine[1]")
    answer = make(client, count=3, job={"external_id": "mine"})
    assert answer.status_code == 409
    assert len(client.get(JOBS).json()["items"]) == 1
