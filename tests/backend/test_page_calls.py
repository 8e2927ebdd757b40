"""Tests of what the pages' callback address refuses: bodies without a callback, rebound names."""

from __future__ import annotations

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

CALL = "/_dash-update-component"


def post(app: FastAPI, body: bytes, *, host: str = "127.0.0.1:8000") -> tuple[int, str, str]:
    client = TestClient(
        app, base_url=f"http://{host}", client=("127.0.0.1", 50000), raise_server_exceptions=False
    )
    answer = client.post(CALL, content=body, headers={"content-type": "application/json"})
    return answer.status_code, answer.headers["content-type"], answer.json()["type"]


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b"{",
        b"[]",
        b"",
        b'{"output": 3, "outputs": null}',
        b'{"output": "a.b", "outputs": {}, "inputs": 1}',
    ],
)
def test_a_body_that_is_no_callback_is_a_problem(app_with_pages: FastAPI, body: bytes) -> None:
    assert post(app_with_pages, body) == (
        400,
        "application/problem+json",
        "/problems/malformed-request",
    )


def test_a_rebound_name_calls_nothing(app_with_pages: FastAPI) -> None:
    body = b'{"output": "a.b", "outputs": {"id": "a", "property": "b"}, "inputs": []}'
    assert post(app_with_pages, body, host="evil.com") == (
        401,
        "application/problem+json",
        "/problems/unauthenticated",
    )
