"""Imports over REST: what is read goes into the next request, and nothing is stored."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fastapi.testclient import TestClient

TRACE, CLUSTER = "/api/v1/imports/trace", "/api/v1/imports/cluster"
SACCT = """\
JobIDRaw|Account|Submit|Start|End|State|AllocTRES
1|vision|2026-01-05T10:00:00|2026-01-05T10:01:00|2026-01-05T11:01:00|COMPLETED|gres/gpu:a100=4
2|nlp|2026-01-05T10:05:00|Unknown|Unknown|CANCELLED by 7|gres/gpu=1
3|nlp|2026-01-05T10:06:00|2026-01-05T10:07:00|2026-01-05T10:17:00|FAILED|gres/gpu:titan=1
"""
TWO_ENDS = "submit,gpus,start,end,finished\n0,1,5,65,70\n"
NODES = "NodeName=n1 Gres=gpu:a100:4 State=IDLE\nNodeName=n2 Gres=gpu:titan:2 State=DOWN\n"


def imported(client: TestClient, **given: Any) -> dict[str, Any]:
    body = {"format": "sacct", "text": SACCT, "gpu_types": {"titan": "a100"}}
    answer = client.post(TRACE, json=body | given)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_an_imported_trace_is_previewed_row_by_row_and_simulated(client: TestClient) -> None:
    found = imported(client)
    assert (found["jobs"], found["rows"]) == (2, 3)
    assert [(d["cause"], d["count"], d["rows"]) for d in found["dropped"]] == [
        ("it never ran", 1, [3])
    ]
    assert [(row["row"], row["job"] and row["job"]["gpu_types"]) for row in found["preview"]] == [
        (2, ["a100"]),
        (3, None),
        (4, ["a100"]),
    ]
    body = {"name": "s", "cluster": "a100=1x8", "runs": [{}], "traces": [found["trace"]]}
    assert client.post("/api/v1/simulations", json=body).status_code == 202
    refused = client.post("/api/v1/simulations", json=body | {"cluster": "v100=1x8"})
    assert refused.json()["errors"][0]["code"] == "no_compatible_gpu_type"


def test_the_columns_of_a_csv_are_offered_to_be_mapped(client: TestClient) -> None:
    text = "arrival,gpu count,runtime,who\n0,2,60,a\n"
    found = client.post("/api/v1/imports/columns", json={"text": text}).json()
    assert found["columns"] == ["arrival", "gpu count", "runtime", "who"]
    assert found["rows"] == [["0", "2", "60", "a"]]
    mapping = {"submit": "arrival", "gpus": "gpu count", "duration": "runtime"}
    assert (found["mapping"], found["questions"]) == (mapping, [])
    read = imported(client, format="csv", text=text, mapping=mapping)
    assert [row["job"]["work_scale"] for row in read["preview"]] == [60.0]


def test_a_column_that_may_be_another_is_a_question(client: TestClient) -> None:
    found = client.post("/api/v1/imports/columns", json={"text": TWO_ENDS}).json()
    assert [(each["meaning"], each["choices"]) for each in found["questions"]] == [
        ("end", ["end", "finished"])
    ]
    answered = found["mapping"] | {"end": "finished"}
    read = imported(client, format="csv", text=TWO_ENDS, mapping=answered)
    assert [row["job"]["work_scale"] for row in read["preview"]] == [65.0]


def test_nodes_of_another_system_become_a_cluster(client: TestClient) -> None:
    body = {"text": NODES, "gpu_types": {"titan": "t4"}}
    found = client.post(CLUSTER, json=body).json()
    assert found["groups"] == [
        {"gpu_type": "a100", "gpus_per_node": 4, "nodes": 1},
        {"gpu_type": "t4", "gpus_per_node": 2, "nodes": 1},
    ]
    assert (found["renamed"], found["out_of_service"]) == ({"titan": "t4"}, {"n2": "DOWN"})
    made = client.post("/api/v1/clusters", json={"name": "lab", "nodes": found["nodes"]})
    assert made.status_code == 201, made.text
    nodes = client.get("/api/v1/clusters/lab/nodes").json()["items"]
    assert [(node["name"], node["gpu_type"]) for node in nodes] == [("n1", "a100"), ("n2", "t4")]


def test_nodes_that_sleep_are_taken_and_types_that_are_not_known_are_named(
    client: TestClient,
) -> None:
    text = "NODELIST GRES STATE\nn1 gpu:a100:4 idle~\nn2 gpu:titan:2 idle\nn3 gpu:mi250:8 idle\n"
    found = client.post(CLUSTER, json={"text": text}).json()
    assert (found["asleep"], found["out_of_service"]) == (["n1"], {})
    assert (found["unknown_types"], found["gpu_count"]) == (["titan", "mi250"], 4)
    assert [each["name"] for each in found["left_out"]] == ["n2", "n3"]
    named = client.post(CLUSTER, json={"text": text, "gpu_types": {"titan": "t4"}}).json()
    assert (named["unknown_types"], named["gpu_count"]) == (["mi250"], 6)


@pytest.mark.parametrize(
    ("address", "body", "pointer", "row"),
    [
        (TRACE, {"format": "sacct", "text": "a|b\n1|2\n"}, "/text", 1),
        (
            TRACE,
            {"format": "csv", "text": "a,b\n1,2\n", "mapping": {"gpus": "a"}},
            "/mapping",
            None,
        ),
        (TRACE, {"format": "csv", "text": TWO_ENDS}, "/mapping/end", None),
        (TRACE, {"format": "csv", "text": "submit,gpus,duration\n0,1,1.800\n"}, "/decimal", None),
        (TRACE, {"format": "sacct", "text": SACCT, "zone": "Berlin"}, "/zone", None),
        (TRACE, {"format": "sacct", "text": SACCT, "gpu_types": {"x": "y"}}, "/gpu_types", None),
        (TRACE, {"format": "pbs", "text": "x"}, "/format", None),
        (TRACE, {"format": "philly", "text": '[{"jobid": "\ud800"}]'}, "/text", None),
        (CLUSTER, {"text": NODES.replace("a100", "fast")}, "/text", 1),
        (CLUSTER, {"text": "NodeName=a/b Gres=gpu:t4:2 State=IDLE"}, "/text", 1),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place_and_a_remedy(
    client: TestClient, address: str, body: dict[str, Any], pointer: str, row: int | None
) -> None:
    sent = json.dumps(body)  # a lone surrogate is written as an escape
    headers = {"Content-Type": "application/json"}
    answer = client.post(address, content=sent, headers=headers)
    assert answer.status_code in (400, 422), answer.text
    if answer.status_code == 422:
        error = answer.json()["errors"][0]
        assert error["pointer"] == pointer
        assert error["remedy"]
        assert " --" not in error["remedy"]  # a request has fields, and no options
        assert row is None or error["row"] == row
