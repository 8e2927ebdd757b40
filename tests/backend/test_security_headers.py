"""Tests of the security headers of all answers: no foreign or injected script, no frames.

How a browser follows them is tested in tests/browser.
"""

from __future__ import annotations

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from backend.web.security_headers import inline_script_hashes
from frontend.app import mount_pages

WANTED = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
ANSWERS = {
    "/api/v1/health": 200,
    "/api/v1/jobs": 200,
    "/api/v1/jobs?nonsense=1": 422,
    "/api/v1/nothing": 404,
    "/api/v1/%00": 400,
    "/broken": 500,
    "/openapi.json": 200,
    "/docs": 200,
    "/docs/assets/swagger-ui.css": 200,
    "/": 200,
    "/jobs": 200,
    "/no/such/page": 404,
    "/assets/maat.css": 200,
    "/_dash-layout": 200,
}


@pytest.fixture
def app(changeable_app: FastAPI) -> FastAPI:
    """Tests here add routes."""
    return changeable_app


@pytest.fixture
def visitor(app: FastAPI) -> TestClient:
    async def broken() -> None:
        raise ValueError("on purpose")

    app.add_api_route("/broken", broken)
    mount_pages(app)
    return TestClient(
        app,
        base_url="http://127.0.0.1:8000",
        client=("127.0.0.1", 50000),
        raise_server_exceptions=False,
    )


def test_every_answer_bears_the_headers(visitor: TestClient) -> None:
    for path, status in ANSWERS.items():
        answer = visitor.get(path)

        assert answer.status_code == status, path
        assert {name: answer.headers.get(name) for name in WANTED} == WANTED, path
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"], path


def test_a_stranger_and_a_refused_method_get_them_too(visitor: TestClient) -> None:
    for answer in (
        visitor.get("/api/v1/jobs", headers={"Via": "1.1 proxy"}),
        visitor.put("/api/v1/jobs"),
        visitor.post("/_dash-update-component"),
    ):
        assert answer.is_client_error
        assert "content-security-policy" in answer.headers


def test_what_the_api_answers_to_a_cookie_stays_in_no_cache(visitor: TestClient) -> None:
    for path, cookie, cached in (
        ("/api/v1/jobs", "a=b", "no-store"),
        ("/api/v1/nothing", "a=b", "no-store"),
        ("/api/v1/jobs", "", None),
    ):
        answer = visitor.get(path, headers={"Cookie": cookie} if cookie else {})
        assert answer.headers.get("Cache-Control") == cached, path
    asset = visitor.get("/assets/maat.css", headers={"Cookie": "a=b"})
    assert "no-store" not in asset.headers.get("Cache-Control", "")


def test_a_header_of_another_application_breaks_no_page(visitor: TestClient) -> None:
    """Cookies know no ports, and a value may hold any byte."""
    for name in ("Cookie", "Referer", "User-Agent", "X-Request-Id"):
        assert visitor.get("/jobs", headers={name: b"theme=caf\xe9"}).status_code == 200, name


def test_no_inline_script_may_run_but_those_whose_hash_the_policy_names(
    visitor: TestClient,
) -> None:
    for path in ("/", "/docs"):
        answer = visitor.get(path)
        scripts = dict(
            directive.split(" ", 1)
            for directive in answer.headers["content-security-policy"].split("; ")
        )["script-src"].split()

        assert "'unsafe-inline'" not in scripts
        assert "'unsafe-eval'" not in scripts
        assert set(inline_script_hashes(answer.text)) <= set(scripts)
        assert inline_script_hashes(answer.text)


def test_the_hash_is_that_of_the_standard() -> None:
    """The example of the specification, CSP level 2."""
    assert inline_script_hashes("<script>alert('Hello, world.');</script>") == [
        "'sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng='"
    ]
