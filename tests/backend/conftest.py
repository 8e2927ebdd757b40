"""Fixtures of the service's tests: the application on both databases, clients by role, a queue.

The queue only remembers what it was sent.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from database_fixtures import *  # noqa: F403
from fastapi import FastAPI
from fastapi.testclient import TestClient
from remembering_queue import RememberingQueue
from sqlmodel import select

from backend.accounts import passwords
from backend.accounts.models import Tenant, User
from backend.accounts.permissions import Permission, Role
from backend.accounts.tokens import create_token
from backend.app import create_app, provide
from backend.bootstrap_data import add_defaults
from backend.database import Database
from backend.settings import Settings
from frontend.app import mount_pages

HERE = "http://127.0.0.1:8000"


@dataclass(frozen=True)
class Shared:
    """A service that several tests ask, and a connection beside it that sees what is committed."""

    client: TestClient
    beside: sqlite3.Connection

    def version(self) -> int:
        """A number that changes with every commit of another connection."""
        found: int = self.beside.execute("PRAGMA data_version").fetchone()[0]
        return found


def service_settings(database_url: str, folder: Path) -> Settings:
    return Settings(
        _env_file=None,
        data_dir=folder,
        data=None,
        database_url=database_url,
        demo=True,
        event_poll_seconds=0.02,
        max_upload_bytes=200_000,
    )


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> Settings:
    return service_settings(database_url, tmp_path)


@pytest.fixture
def queue() -> RememberingQueue:
    return RememberingQueue()


@pytest.fixture(scope="session")
def application(tmp_path_factory: pytest.TempPathFactory) -> FastAPI:
    """The application that tests share: building its routes takes longer than most tests."""
    folder = tmp_path_factory.mktemp("application")
    return create_app(
        service_settings(f"sqlite:///{folder / 'maat.db'}", folder), queue=RememberingQueue()
    )


@pytest.fixture
def app(
    application: FastAPI, settings: Settings, database: Database, queue: RememberingQueue
) -> FastAPI:
    """The service with the demo cluster of 64 GPUs: t4=6x4, rtx=3x8, a100=2x8.

    Its state is the test's own; a test that adds routes takes `changeable_app`.
    """
    add_defaults(database, settings)
    provide(application, settings, queue=queue)
    return application


@pytest.fixture(scope="session")
def _application_with_pages(tmp_path_factory: pytest.TempPathFactory) -> FastAPI:
    folder = tmp_path_factory.mktemp("application")
    made = create_app(
        service_settings(f"sqlite:///{folder / 'maat.db'}", folder), queue=RememberingQueue()
    )
    mount_pages(made)
    return made


@pytest.fixture
def app_with_pages(
    _application_with_pages: FastAPI,
    settings: Settings,
    database: Database,
    queue: RememberingQueue,
) -> FastAPI:
    """The service with the pages."""
    add_defaults(database, settings)
    provide(_application_with_pages, settings, queue=queue)
    return _application_with_pages


@pytest.fixture
def changeable_app(settings: Settings, database: Database, queue: RememberingQueue) -> FastAPI:
    """The same service in an application of the test's own."""
    add_defaults(database, settings)
    return create_app(settings, queue=queue)


@pytest.fixture
def client(app: FastAPI) -> Iterator[TestClient]:
    """The local admin."""
    with TestClient(
        app, base_url=HERE, client=("127.0.0.1", 50000), raise_server_exceptions=False
    ) as local:
        yield local


@pytest.fixture(scope="module")
def _unchanging(
    migrated_sqlite: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Shared]:
    """One service on one SQLite database for all tests of a module that store nothing."""
    folder = tmp_path_factory.mktemp("unchanging")
    shutil.copyfile(migrated_sqlite, folder / "maat.db")
    settings = service_settings(f"sqlite:///{folder / 'maat.db'}", folder)
    database = Database(settings.database_url)
    add_defaults(database, settings)
    app = create_app(settings, queue=RememberingQueue())
    with TestClient(
        app, base_url=HERE, client=("127.0.0.1", 50000), raise_server_exceptions=False
    ) as local:
        yield Shared(local, sqlite3.connect(folder / "maat.db"))
    database.dispose()


@pytest.fixture
def refusing(_unchanging: Shared) -> Iterator[TestClient]:
    """The local admin, for tests in which nothing is stored; fails if anything was."""
    before = _unchanging.version()
    yield _unchanging.client
    assert _unchanging.version() == before, "something was stored: use the fixture `client`"


MakeClient = Callable[..., TestClient]


@pytest.fixture
def client_as(app: FastAPI, client: TestClient, database: Database) -> MakeClient:
    """Return a function that makes a remote client with the token of a new user.

    For example `client_as(Role.VIEWER, tenant="other")`.
    """

    def make(
        role: Role,
        *,
        tenant: str = "default",
        scopes: list[Permission] | None = None,
        name: str | None = None,
    ) -> TestClient:
        with database.session_scope() as session:
            home = session.exec(select(Tenant).where(Tenant.name == tenant)).first() or Tenant(
                name=tenant
            )
            session.add(home)
            session.flush()
            user = User(name=name or f"{tenant}-{role.value}", tenant_id=home.id, role=role.value)
            session.add(user)
            session.flush()
            secret = create_token(session, user, name="test", scopes=scopes)
        headers = {"Authorization": f"Bearer {secret}"}
        return TestClient(
            app,
            base_url="http://maat.example",
            client=("10.0.0.9", 50000),
            headers=headers,
            raise_server_exceptions=False,
        )

    return make


@pytest.fixture
def quick_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Argon2 with little memory: for tests that hash many passwords."""
    monkeypatch.setattr(
        passwords,
        "_HASHER",
        passwords.PasswordHasher(time_cost=1, memory_cost=8, parallelism=1),
    )
    passwords._nobodys.cache_clear()


@pytest.fixture
def submit(client: TestClient) -> Callable[..., dict[str, Any]]:
    """Submit a job as the local admin."""

    def post(**fields: Any) -> dict[str, Any]:
        answer = client.post("/api/v1/jobs", json={"name": "train", "model": "bert", **fields})
        assert answer.status_code == 201, answer.text
        created: dict[str, Any] = answer.json()
        return created

    return post
