"""A browser that is not on the machine, and a person who may sign in."""

from __future__ import annotations

import pytest
from browsers import HTTPS, PASSWORD, Browser
from fastapi import FastAPI
from fastapi.testclient import TestClient

from backend.settings import Settings


@pytest.fixture(autouse=True)
def _quick(quick_hashes: None) -> None:
    """Hashing takes no time here."""


@pytest.fixture
def browser(app: FastAPI, settings: Settings) -> Browser:
    """A browser that is not on the machine, so that nobody is the local administrator."""

    def make(*, url: str = HTTPS, address: str = "10.0.0.9") -> TestClient:
        return TestClient(app, base_url=url, client=(address, 50000), raise_server_exceptions=False)

    return make


@pytest.fixture
def ann(client: TestClient) -> str:
    body = {"name": "ann", "password": PASSWORD, "role": "submitter"}
    assert client.post("/api/v1/users", json=body).status_code == 201
    return "ann"
