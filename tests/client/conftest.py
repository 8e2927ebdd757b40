"""The service in this process, on SQLite, and a client that talks to it."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import httpx
import pytest

sys.path.insert(
    0, str(Path(__file__).resolve().parent.parent / "backend")
)  # the databases are the service's

from database_fixtures import *  # noqa: F403
from fastapi import FastAPI
from fastapi.testclient import TestClient

from backend.app import create_app, provide
from backend.bootstrap_data import add_defaults
from backend.database import Database
from backend.settings import Settings
from maat.client import Client
from worker.rehearsals.rehearsal import LiveRehearsal

HERE = "http://127.0.0.1:8000"


class NoQueue:
    """Long work stays queued: no worker runs here."""

    def send(self, task: str, *arguments: str) -> None:
        pass

    def waiting(self) -> dict[str, int]:
        return {}


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


def settings_in(folder: Path) -> Settings:
    return Settings(
        data_dir=folder,
        database_url=f"sqlite:///{folder / 'maat.db'}",
        broker_url="",
        implicit_admin=True,
        demo=True,
    )


@pytest.fixture(scope="session")
def application(tmp_path_factory: pytest.TempPathFactory) -> FastAPI:
    """The application that tests share: building its routes takes longer than most tests."""
    return create_app(settings_in(tmp_path_factory.mktemp("application")), queue=NoQueue())


@pytest.fixture
def app(application: FastAPI, migrated_sqlite: Path, tmp_path: Path) -> FastAPI:
    """The service on a database of the test's own."""
    shutil.copyfile(migrated_sqlite, tmp_path / "maat.db")
    settings = settings_in(tmp_path)
    database = Database.of(settings)
    add_defaults(database, settings)
    database.dispose()
    provide(application, settings, queue=NoQueue(), rehearsal=LiveRehearsal())
    return application


@pytest.fixture
def maat(app: FastAPI) -> Client:
    return Client(HERE, transport=InProcess(app))
