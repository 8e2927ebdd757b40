"""A field that does not exist is answered with the one that was meant."""

from __future__ import annotations

from fastapi.testclient import TestClient


def remedy(answer: object) -> str:
    (error,) = answer.json()["errors"]  # type: ignore[attr-defined]
    return str(error["remedy"])


def test_a_misspelt_field_of_a_body_names_the_near_one(client: TestClient) -> None:
    job = client.post("/api/v1/jobs", json={"name": "a", "model": "bert", "max_gpu": 4})
    assert job.status_code == 422
    assert remedy(job).startswith("Did you mean max_gpus? Else leave it out")
    cluster = client.post(
        "/api/v1/clusters", json={"name": "c", "nodes": [], "polcy": "sia", "shape": "t4=1x4"}
    )
    assert any("Did you mean policy?" in one["remedy"] for one in cluster.json()["errors"])


def test_one_inside_of_another_object_is_found_there(client: TestClient) -> None:
    run = {"argv": ["python"], "enviroment": {}}
    job = client.post("/api/v1/jobs", json={"name": "a", "model": "mine", "run": run})
    told = [one for one in job.json()["errors"] if one["code"] == "extra_forbidden"]
    assert [one["pointer"] for one in told] == ["/run/enviroment"]


def test_what_is_near_nothing_is_only_left_out(client: TestClient) -> None:
    job = client.post("/api/v1/jobs", json={"name": "a", "model": "bert", "zzz": 4})
    assert remedy(job) == "Leave it out: this field does not exist here."


def test_a_tenant_of_a_near_name_is_named_to_who_sees_all(client: TestClient) -> None:
    assert client.post("/api/v1/tenants", json={"name": "vision"}).is_success
    answer = client.patch("/api/v1/tenants/visoin", json={"weight": 2.0})
    assert answer.status_code == 404
    assert "Did you mean 'vision'?" in answer.json()["detail"]
