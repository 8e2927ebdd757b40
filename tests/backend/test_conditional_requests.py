"""HEAD, If-None-Match and If-Match as RFC 9110 says, on every route that they concern."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlmodel import select

from backend.database import Database
from backend.models import Cluster
from backend.web.conditional import is_known

DEMO = "/api/v1/clusters/demo"


def get_routes(client: TestClient) -> Iterator[str]:
    """Return the addresses of all GET routes, with ids that exist where there are any.

    The others answer 404, to HEAD as to GET.
    """
    job = client.post("/api/v1/jobs", json={"name": "j", "model": "bert"}).json()["id"]
    node = client.get(f"{DEMO}/nodes").json()["items"][0]["name"]
    filled = {
        "job_id": job,
        "cluster_id": "demo",
        "node_id": node,
        "number": "latest",
        "name": "bert",
    }
    for path, operations in client.get("/openapi.json").json()["paths"].items():
        if "get" in operations and path != "/api/v1/events":
            yield re.sub(r"\{(\w+)\}", lambda found: filled.get(found[1], "none"), path)


def test_head_answers_as_get_does_without_the_content(client: TestClient) -> None:
    steady = {"content-type", "content-length", "etag", "link", "cache-control"}
    for path in get_routes(client):
        whole, head = client.get(path), client.head(path)
        assert (head.status_code, head.content) == (whole.status_code, b""), path
        assert {n: v for n, v in head.headers.items() if n in steady - {"content-length"}} == {
            n: v for n, v in whole.headers.items() if n in steady - {"content-length"}
        }
        assert "content-length" in head.headers


def test_head_of_an_address_that_takes_no_get_is_refused_and_others_name_it(
    client: TestClient,
) -> None:
    refused = client.head("/api/v1/jobs:batch")
    assert (refused.status_code, refused.headers["Allow"], refused.content) == (405, "POST", b"")
    assert client.delete("/api/v1/jobs").headers["Allow"] == "GET, HEAD, POST"
    assert client.head("/api/v1/nope").status_code == 404


def test_a_head_of_the_stream_ends(client: TestClient) -> None:
    answer = client.head("/api/v1/events")
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["content-type"].startswith("text/event-stream")


def test_who_has_the_answer_already_gets_304(
    client: TestClient, submit: Callable[..., dict[str, Any]]
) -> None:
    job = submit()
    node = client.get(f"{DEMO}/nodes").json()["items"][0]["id"]
    for path in (f"/api/v1/jobs/{job['id']}", DEMO, f"{DEMO}/nodes/{node}"):
        tag = client.get(path).headers["ETag"]
        for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
            answer = client.get(path, headers={"If-None-Match": known})
            assert (answer.status_code, answer.content, answer.headers["ETag"]) == (304, b"", tag)
            assert "content-type" not in answer.headers
            assert answer.headers["X-Request-Id"]
            assert client.head(path, headers={"If-None-Match": known}).status_code == 304
        assert client.get(path, headers={"If-None-Match": '"other"'}).status_code == 200
        assert client.get(path, headers={"If-None-Match": "nonsense"}).status_code == 200


def test_what_changed_is_sent_again(
    client: TestClient, submit: Callable[..., dict[str, Any]], database: Database
) -> None:
    job = f"/api/v1/jobs/{submit()['id']}"
    before = client.get(job).headers["ETag"]
    client.post(f"{job}/actions/cancel")
    assert client.get(job, headers={"If-None-Match": before}).json()["cancel_requested"] is True
    before = client.get(DEMO).headers["ETag"]
    with database.session_scope() as session:
        session.exec(
            select(Cluster)
        ).one().next_round_number = 8  # a round changes what is shown, not the version
    shown = client.get(DEMO, headers={"If-None-Match": before})
    assert (shown.status_code, shown.json()["latest_round"]) == (200, 7)
    assert (
        client.patch(DEMO, json={"policy": "fifo"}, headers={"If-Match": before}).status_code == 200
    )


@pytest.mark.parametrize(
    ("if_match", "status"),
    [
        ("{tag}", 200),
        (' {tag} , "7"', 200),
        ('"7", "8",{tag}', 200),
        ("*", 200),
        ("W/{tag}", 412),  # a weak tag does not say which version it is
        ('W/{tag}, "7"', 412),
        ('"7"', 412),
        ('"7", "8"', 412),
        ("1", 422),
        ("nonsense", 422),
        ('"1', 422),
        ("", 422),
    ],
)
def test_if_match_takes_lists_and_trusts_no_weak_tag(
    client: TestClient, if_match: str, status: int
) -> None:
    tag = client.get(DEMO).headers["ETag"]
    answer = client.patch(
        DEMO, json={"keep_rounds": 5}, headers={"If-Match": if_match.format(tag=tag)}
    )
    assert answer.status_code == status, answer.text
    if status == 422:
        assert answer.json()["errors"][0]["field"] == "If-Match"


def test_actions_on_a_cluster_and_its_nodes_honour_the_version_that_was_read(
    client: TestClient,
) -> None:
    node = f"{DEMO}/nodes/{client.get(f'{DEMO}/nodes').json()['items'][-1]['id']}"
    for thing, action in ((DEMO, "pause"), (DEMO, "resume"), (node, "drain"), (node, "restore")):
        address, before = f"{thing}/actions/{action}", client.get(thing).headers["ETag"]
        refused = client.post(address, headers={"If-Match": '"77"'})
        assert (refused.status_code, refused.json()["type"]) == (
            412,
            "/problems/precondition-failed",
        ), address
        assert refused.headers["ETag"] == before == client.get(thing).headers["ETag"]
        assert client.post(address, headers={"If-Match": before}).status_code == 200
        assert client.get(thing).headers["ETag"] != before
        repeated = client.post(address, headers={"If-Match": before})
        assert repeated.status_code == 200, (
            "who repeats a request whose answer was lost finds what was asked for"
        )


def test_a_node_is_deleted_only_as_it_was_read(client: TestClient) -> None:
    node = f"{DEMO}/nodes/{client.get(f'{DEMO}/nodes').json()['items'][-1]['id']}"
    before = client.get(node).headers["ETag"]
    client.post(f"{node}/actions/drain")
    refused = client.delete(node, headers={"If-Match": before})
    assert (refused.status_code, refused.json()["type"]) == (412, "/problems/precondition-failed")
    assert (
        client.delete(node, headers={"If-Match": client.get(node).headers["ETag"]}).status_code
        == 204
    )


def test_the_document_says_which_actions_honour_a_version(app: FastAPI) -> None:
    honoured = {
        operation["operationId"]
        for operations in app.openapi()["paths"].values()
        for operation in operations.values()
        if any(given["name"] == "If-Match" for given in operation.get("parameters", []))
    }
    actions = {
        "changePrice",
        "deletePrice",
        "setQuota",
        "removeQuota",
        "changeReportSchedule",
        "changeWebhook",
        "removeTenant",
        "removeUser",
        "cancelJob",
        "changeJob",
        "pauseJob",
        "holdJob",
        "resumeJob",
        "releaseJob",
        "pauseCluster",
        "resumeCluster",
        "drainNode",
        "restoreNode",
        "deleteNode",
    }
    assert honoured == {"changeCluster", "changeNode", "changeTenant", "changeUser"} | actions


def test_the_document_says_that_a_change_needs_a_version(app: FastAPI) -> None:
    for path, operations in app.openapi()["paths"].items():
        for method, operation in operations.items():
            versions = [
                given for given in operation.get("parameters", []) if given["name"] == "If-Match"
            ]
            assert [given["required"] for given in versions] == (
                [True] if method == "patch" else [False] * len(versions)
            ), path


def test_tags_that_begin_alike_are_not_the_same() -> None:
    assert is_known('"3.10"', '"3.10"')
    assert not is_known('"3.1"', '"3.10"')
    assert not is_known('"3"', '"3.10"')
