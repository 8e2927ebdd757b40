"""The card of models that tenants share: a name is shared, listed, and no longer shared."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dash
import pytest
from fastapi.testclient import TestClient
from walking import CALLBACK_PATH

from backend.bootstrap_data import ensure_defaults
from backend.database import Database
from backend.settings import Settings
from frontend import app as composition


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[TestClient]:
    settings = Settings(data_dir=tmp_path, database_url="", broker_url="", implicit_admin=True)
    database = Database.of(settings)
    ensure_defaults(database, settings)
    database.dispose()
    here = {"base_url": "http://127.0.0.1:8000", "client": ("127.0.0.1", 50000)}
    with TestClient(composition.create_app(settings), **here) as client:  # type: ignore[arg-type]
        client.get("/_dash-dependencies")
        yield client


def call(browser: TestClient, output: str, changed: str, value: Any, **state: Any) -> Any:
    """Call the callback that sets `output`, as a browser does when `changed` has this value."""
    known = dash.get_app().callback_map
    name = next(one for one in known if output in one and f"'{changed}'" in str(known[one]))
    parts = [part.rsplit(".", 1) for part in name.strip(".").split("...")]
    of, property_ = changed, known[name]["inputs"][0]["property"]
    body = {
        "output": name,
        "outputs": [{"id": one, "property": prop} for one, prop in parts],
        "inputs": [{"id": of, "property": property_, "value": value}],
        "state": [{"id": one, "property": "value", "value": text} for one, text in state.items()],
        "changedPropIds": [f"{of}.{property_}"],
    }
    answer = browser.post(CALLBACK_PATH, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()["response"]


def listed(browser: TestClient) -> str:
    shown = call(browser, "admin-shared-models.children", "admin-shared-models-changed", 0)
    return str(shown["admin-shared-models"]["children"])


def test_a_name_is_shared_listed_and_no_longer_shared(browser: TestClient) -> None:
    assert "None is shared." in listed(browser)
    name, button = "admin-shared-model-name", "admin-shared-model-add"
    said = call(browser, f"{name}.value", button, 1, **{name: " meta/llama "})
    assert said[name]["value"] == ""
    assert "meta/llama" in listed(browser)
    refused = call(browser, f"{name}.value", button, 2, **{name: ""})
    assert refused["admin-shared-model-problem"]["children"]
    pressed = {"at": 3, "model": "meta/llama"}
    call(browser, "admin-shared-models-changed", "admin-shared-model-pressed", pressed)
    assert "None is shared." in listed(browser)
