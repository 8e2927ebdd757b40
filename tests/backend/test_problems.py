"""Tests that every failure is a problem of one shape: paths, methods, bodies, faults of Maat."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from sqlalchemy.exc import TimeoutError
from sqlmodel import select

from backend.app import create_app
from backend.models import Tenant
from backend.problems import FieldError, all_problems
from backend.settings import Settings
from backend.web.dependencies import SessionDep

MEMBERS = {
    "type",
    "title",
    "status",
    "detail",
    "remedy",
    "instance",
    "request_id",
    "retryable",
    "errors",
}


@pytest.fixture
def app(changeable_app: FastAPI) -> FastAPI:
    """Tests here add routes."""
    return changeable_app


def check(answer: object, status: int, slug: str) -> dict[str, object]:
    assert answer.status_code == status, answer.text  # type: ignore[attr-defined]
    assert answer.headers["content-type"] == "application/problem+json"  # type: ignore[attr-defined]
    problem: dict[str, object] = answer.json()  # type: ignore[attr-defined]
    assert set(problem) >= MEMBERS
    assert problem["type"] == f"/problems/{slug}"
    assert problem["status"] == status
    assert problem["request_id"] == answer.headers["X-Request-Id"]  # type: ignore[attr-defined]
    return problem


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize(
    "path",
    ["/api", "/api/", "/api/nope", "/api/v1", "/api/v1/nope", "/api/v2/jobs", "/api/v1/jobs/x/y/z"],
)
def test_an_unknown_path_below_api_is_a_problem(
    refusing: TestClient, method: str, path: str
) -> None:
    check(refusing.request(method, path), 404, "not-found")


def test_pages_mounted_later_do_not_answer_below_api(app: FastAPI, client: TestClient) -> None:
    app.add_api_route("/{path:path}", lambda path: "a page", methods=["GET"])
    check(client.get("/api/nope"), 404, "not-found")
    assert client.get("/jobs").json() == "a page"


def test_a_wrong_method_says_which_are_right(client: TestClient) -> None:
    answer = client.delete("/api/v1/jobs")
    check(answer, 405, "method-not-allowed")
    assert answer.headers["Allow"] == "GET, HEAD, POST"
    check(client.put("/api/v1/clusters/demo/state"), 405, "method-not-allowed")


def test_a_request_keeps_the_id_that_it_brings_and_gets_one_otherwise(client: TestClient) -> None:
    assert (
        client.get("/api/v1/me", headers={"X-Request-Id": "mine-1"}).headers["X-Request-Id"]
        == "mine-1"
    )
    made = [
        client.get("/api/v1/me", headers={"X-Request-Id": bad}).headers["X-Request-Id"]
        for bad in ("", "a b", "x" * 65)
    ]
    assert len(set(made)) == 3
    assert all(len(request_id) == 16 for request_id in made)


@pytest.mark.parametrize(
    "headers",
    [{}, {"content-type": "text/plain"}, {"content-type": "application/x-www-form-urlencoded"}],
)
def test_a_body_that_is_not_called_json_is_refused(
    refusing: TestClient, headers: dict[str, str]
) -> None:
    body = b'{"name": "train", "model": "bert"}'
    problem = check(
        refusing.post("/api/v1/jobs", content=body, headers=headers), 415, "unsupported-media-type"
    )
    assert "application/json" in str(problem["detail"])


@pytest.mark.parametrize(
    "kind", ["application/json", "Application/JSON; charset=utf-8", "application/vnd.maat+json"]
)
def test_a_body_that_is_called_json_is_read(client: TestClient, kind: str) -> None:
    body = b'{"name": "train", "model": "bert"}'
    assert (
        client.post("/api/v1/jobs", content=body, headers={"content-type": kind}).status_code == 201
    )


@pytest.mark.parametrize(
    "address", ["/api/v1/jobs?q=a%00b", "/api/v1/jobs/a%00b", "/api/v1/clusters/%00"]
)
def test_a_nul_character_in_the_address_is_refused(refusing: TestClient, address: str) -> None:
    check(refusing.get(address), 400, "malformed-request")


def test_a_fault_of_maat_shows_no_traceback_and_keeps_no_half_of_the_request(
    app: FastAPI, client: TestClient
) -> None:
    def fail(session: SessionDep) -> None:
        session.add(Tenant(name="half"))
        session.flush()
        raise RuntimeError("the secret cause")

    app.router.routes.insert(0, _route("/api/v1/fail", fail))
    answer = client.get("/api/v1/fail", headers={"X-Request-Id": "seen-in-the-log"})
    problem = check(answer, 500, "internal-error")
    assert problem["request_id"] == "seen-in-the-log"
    assert "secret" not in answer.text
    assert "Traceback" not in answer.text
    with app.state.database.session_scope(writes=False) as session:
        assert "half" not in session.exec(select(Tenant.name)).all()


def _route(path: str, endpoint: object) -> object:
    return APIRoute(path, endpoint, methods=["GET"])  # type: ignore[arg-type]


def test_a_database_that_is_away_is_a_problem_that_may_pass(tmp_path: Path) -> None:
    settings = Settings(
        _env_file=None, data_dir=tmp_path, database_url="postgresql://nobody@127.0.0.1:1/none"
    )
    with TestClient(
        create_app(settings),
        base_url="http://127.0.0.1",
        client=("127.0.0.1", 1),
        raise_server_exceptions=False,
    ) as client:
        answer = client.get("/api/v1/health")
    problem = check(answer, 503, "unavailable")
    assert problem["retryable"] is True
    assert "Retry-After" in answer.headers


def test_a_connection_that_does_not_come_free_is_a_problem_that_may_pass(
    app: FastAPI, client: TestClient
) -> None:
    def fail() -> None:
        raise TimeoutError("QueuePool limit of size 12 overflow 0 reached")

    app.router.routes.insert(0, _route("/api/v1/fail", fail))
    answer = client.get("/api/v1/fail")
    check(answer, 503, "unavailable")
    assert "Retry-After" in answer.headers


@pytest.mark.parametrize("kind", list(all_problems()), ids=lambda kind: kind.slug)
def test_every_kind_of_problem_has_a_page_that_says_what_to_do(
    refusing: TestClient, kind: type
) -> None:
    answer = refusing.get(f"/problems/{kind.slug}")  # type: ignore[attr-defined]
    assert answer.status_code == 200
    assert str(inspect.getdoc(kind)) in answer.text
    assert kind.remedy.endswith(".")  # type: ignore[attr-defined]
    assert kind.remedy in answer.text  # type: ignore[attr-defined]


BAD_BODIES = (b"{", b"{}", b'{"no such": 1}', b"[1]", b'{"name": 7, "items": "x"}')


def bad_requests(method: str, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield requests to an address that it should refuse, whatever it is for."""
    address = re.sub(r"\{[^}]*\}", "none-such", path)
    yield address, {"params": {"no_such": "1", "limit": "many", "cursor": "x"}}
    yield address, {"content": b"x", "headers": {"content-type": "text/plain"}}
    if method != "get":
        for body in BAD_BODIES:
            yield address, {"content": body, "headers": {"content-type": "application/json"}}


def test_whatever_any_route_refuses_says_what_to_do_next(client: TestClient) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    refused = 0
    for path, operations in paths.items():
        for method in set(operations) - {"parameters"} if "/events" not in path else ():
            for address, more in bad_requests(method, path):
                answer = client.request(method, address, **more)
                if answer.status_code >= 400:
                    refused += 1
                    problem = answer.json()
                    steps = [problem["remedy"], *(one["remedy"] for one in problem["errors"])]
                    assert all(step.strip().endswith((".", ")")) for step in steps), problem
    assert refused > len(paths)


def test_the_documentation_needs_no_other_host(client: TestClient) -> None:
    page = client.get("/docs").text
    assert "http://" not in page
    assert "https://" not in page
    for asset in ("swagger-ui-bundle.js", "swagger-ui.css", "favicon.png"):
        assert f"/docs/assets/{asset}" in page
        assert len(client.get(f"/docs/assets/{asset}").content) > 500


def test_the_api_document_tells_problems_as_what_may_come(client: TestClient) -> None:
    document = client.get("/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    for path in document["paths"].values():
        for operation in path.values():
            assert "application/problem+json" in operation["responses"]["default"]["content"]
            assert "422" not in operation["responses"]
    assert "HTTPValidationError" not in document["components"]["schemas"]


class Uncopied(list[int]):
    def __deepcopy__(self, _: object) -> Uncopied:
        raise AssertionError("a hostile value must not be copied")


def test_a_value_is_told_without_being_copied_as_a_whole() -> None:
    error = FieldError(
        "/jobs",
        "too_long",
        "It is too long.",
        "Give at most 3 entries.",
        [Uncopied([1]) for _ in range(20)],
    )
    shown = error.as_json()
    assert str(shown["value"]).startswith("[")
    assert str(shown["value"]).endswith(", ...]")
