"""Tests of refreshes: of many equal ones after a change, the service works out one."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dash
import pytest
import sqlalchemy as sa
from fastapi import FastAPI
from fastapi.testclient import TestClient
from walking import CALLBACK_PATH

from backend.accounts.models import Tenant, User
from backend.accounts.permissions import Role
from backend.accounts.tokens import create_token
from backend.bootstrap_data import ensure_defaults
from backend.database import Database
from backend.pages import refreshes
from backend.settings import Settings
from frontend import app as composition

PAGES = 50


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> FastAPI:
    folder: Path = tmp_path_factory.mktemp("maat")
    settings = Settings(
        data_dir=folder, database_url="", broker_url="", implicit_admin=True, demo=True
    )
    database = Database.of(settings)
    ensure_defaults(database, settings)
    database.dispose()
    return composition.create_app(settings)


@pytest.fixture(scope="module")
def browser(service: FastAPI) -> Iterator[TestClient]:
    with TestClient(
        service, base_url="http://127.0.0.1:8000", client=("127.0.0.1", 50000)
    ) as client:
        client.get("/_dash-dependencies")
        yield client


@pytest.fixture
def statements(service: FastAPI) -> Iterator[list[str]]:
    """The statements that the service sends to its database."""
    sent: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        sent.append(statement)

    engine = service.state.database.engine
    sa.event.listen(engine, "before_cursor_execute", note)
    yield sent
    sa.event.remove(engine, "before_cursor_execute", note)


def refresh(at: str, **more: Any) -> dict[str, Any]:
    """The call of the frame that asks which clusters there are, after a change."""
    name = next(one for one in dash.get_app().callback_map if "cluster-select.data" in one)
    outputs = [dict(zip(("id", "property"), one.split("."), strict=True)) for one in _parts(name)]
    return {
        "output": name,
        "outputs": outputs,
        "inputs": [{"id": "live", "property": "data", "value": {"at": at}}],
        "state": [{"id": "clusters", "property": "data", "value": None}],
        "changedPropIds": ["live.data"],
        **more,
    }


def worked_out(statements: list[str]) -> int:
    """Return how often the clusters were read."""
    return sum("FROM clusters" in statement for statement in statements)


def _parts(name: str) -> list[str]:
    return name.strip(".").split("...")


def test_fifty_pages_cost_the_database_at_most_twice_one_page(
    browser: TestClient, statements: list[str]
) -> None:
    one = browser.post(CALLBACK_PATH, json=refresh("r1.j1.o1/1"))
    assert one.status_code == 200
    assert "demo" in one.text
    of_one = len(statements)
    statements.clear()

    with ThreadPoolExecutor(10) as threads:
        call = refresh("r2.j1.o1/1")
        answers = list(threads.map(lambda _: browser.post(CALLBACK_PATH, json=call), range(PAGES)))

    assert {answer.text for answer in answers} == {one.text}
    assert len(statements) <= 2 * of_one


@pytest.mark.parametrize(
    "call",
    [
        lambda: refresh("1795450381635"),  # asked by the clock
        lambda: refresh("r3.j1.o1/1", changedPropIds=["live.data", "clusters.data"]),
        lambda: refresh("r3.j1.o1/1", changedPropIds=["clusters.data"]),
    ],
)
def test_what_was_asked_for_another_cause_is_worked_out_each_time(
    call: Any, browser: TestClient, statements: list[str]
) -> None:
    browser.post(CALLBACK_PATH, json=call())
    of_one = worked_out(statements)
    browser.post(CALLBACK_PATH, json=call())
    assert worked_out(statements) == 2 * of_one


def test_another_change_and_another_filter_are_answered_afresh(
    browser: TestClient, statements: list[str]
) -> None:
    first = refresh("r4.j1.o1/1")
    browser.post(CALLBACK_PATH, json=first)
    of_one = worked_out(statements)
    browser.post(CALLBACK_PATH, json=refresh("r5.j1.o1/1"))
    other = refresh("r4.j1.o1/1", state=[{"id": "clusters", "property": "data", "value": []}])
    browser.post(CALLBACK_PATH, json=other)
    assert worked_out(statements) == 3 * of_one


def test_visitors_never_share_an_answer(
    browser: TestClient, service: FastAPI, statements: list[str]
) -> None:
    database: Database = service.state.database
    with database.session_scope() as session:
        tenant = Tenant(name="strangers")
        session.add(tenant)
        session.flush()
        user = User(name="eve", tenant_id=tenant.id, role=Role.VIEWER.value)
        session.add(user)
        session.flush()
        secret = create_token(session, user, name="page", scopes=[])
    call = refresh("r6.j1.o1/1")
    mine = browser.post(CALLBACK_PATH, json=call)
    statements.clear()
    theirs = browser.post(CALLBACK_PATH, json=call, headers={"Authorization": f"Bearer {secret}"})
    nobody = browser.post(CALLBACK_PATH, json=call, headers={"Authorization": "Bearer maat_no"})
    assert mine.text != theirs.text
    assert "demo" not in theirs.text
    assert "demo" not in nobody.text


def test_an_answer_is_forgotten_after_some_seconds(
    browser: TestClient, statements: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    browser.post(CALLBACK_PATH, json=refresh("r7.j1.o1/1"))
    of_one = worked_out(statements)
    monkeypatch.setattr(refreshes, "KEPT_SECONDS", 0.0)
    browser.post(CALLBACK_PATH, json=refresh("r7.j1.o1/1"))
    assert worked_out(statements) == 2 * of_one
