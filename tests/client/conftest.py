"""The service in this process, on SQLite, and a client that talks to it."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from backend.app import create_app
from backend.bootstrap_data import ensure_defaults
from backend.database import Database
from backend.settings import Settings
from maat.client import Client
from worker.rehearsal import LiveRehearsal

HERE = "http://127.0.0.1:8000"


class NoQueue:
    """Long work stays queued: no worker runs here."""

    def send(self, task: str, *arguments: str) -> None:
        pass


class InProcess(httpx.BaseTransport):
    """The service as a transport of the synchronous client."""

    def __init__(self, app: FastAPI) -> None:
        self._service = TestClient(
            app, base_url=HERE, client=("127.0.0.1", 50000), raise_server_exceptions=False
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = self._service.request(
            request.method, str(request.url), content=request.read(), headers=dict(request.headers)
        )
        headers = {
            name: value for name, value in answer.headers.items() if name != "content-length"
        }
        return httpx.Response(answer.status_code, headers=headers, content=answer.content)


@pytest.fixture
def app(tmp_path: Path) -> FastAPI:
    settings = Settings(
        data_dir=tmp_path, database_url="", broker_url="", implicit_admin=True, demo=True
    )
    database = Database.of(settings)
    ensure_defaults(database, settings)
    database.dispose()
    return create_app(settings, queue=NoQueue(), rehearsal=LiveRehearsal())


@pytest.fixture
def maat(app: FastAPI) -> Client:
    return Client(HERE, transport=InProcess(app))
