"""`maat users`, `maat tenants` and `maat tokens` against the service itself."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from maat.cli.app import app as commands
from maat.client import ApiError, Client

Run = Callable[..., str]
PASSWORD = "a sentence to remember"


@pytest.fixture
def run(maat: Client, monkeypatch: pytest.MonkeyPatch) -> Run:
    """What a command prints. The client stays open: every command ends with closing its own."""
    monkeypatch.setattr(Client, "close", lambda _: None)
    monkeypatch.setattr("maat.client.Client", lambda *_, **__: maat)

    def invoke(*arguments: str, typed: str | None = None) -> str:
        done = CliRunner().invoke(commands, arguments, input=typed, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    return invoke


def test_tenants_are_made_renamed_closed_and_removed(run: Run, maat: Client) -> None:
    assert run("tenants", "create", "vision") == "vision is open\n"
    assert run("tenants", "rename", "vision", "sight") == "vision is sight now\n"
    assert run("tenants", "close", "sight") == "sight is closed\n"
    assert [line.split()[1:3] for line in run("tenants", "list").splitlines()[1:]] == [
        ["default", "open"],
        ["sight", "closed"],
    ]
    assert run("tenants", "open", "sight") == "sight is open\n"
    assert run("tenants", "remove", "sight") == "sight is removed\n"
    assert [one["name"] for one in maat.tenants()] == ["default"]


def test_users_are_made_changed_and_removed_and_passwords_are_no_arguments(
    run: Run, maat: Client, app: FastAPI
) -> None:
    made = ("users", "create", "ann", "--role", "submitter")
    assert run(*made, "--password-stdin", typed=f"{PASSWORD}\n") == (
        "ann is a submitter of default\n"
    )
    asked = run("users", "create", "bob", typed=f"{PASSWORD}\n{PASSWORD}\n")
    assert "bob is a viewer of default" in asked
    assert PASSWORD not in asked
    run("users", "create", "ci", "--service")
    assert run("users", "change", "ann", "--role", "tenant_manager") == (
        "ann is a tenant_manager\n"
    )
    assert run("users", "change", "bob", "--deactivate") == "bob is a viewer, and not active\n"
    found = json.loads(run("users", "list", "--search", "AN", "--json"))
    assert [(one["name"], one["signs_in_by"]) for one in found] == [("ann", ["password"])]
    assert " not active  password " in run("users", "list")
    run("users", "set-password", "ann", "--password-stdin", typed="another sentence for it\n")
    browser = TestClient(app, base_url="http://127.0.0.1:8000", client=("10.0.0.9", 1))
    body = {"name": "ann", "password": "another sentence for it"}
    assert browser.post("/api/v1/sessions", json=body).status_code == 201
    assert run("users", "sign-out", "ann") == "1 sessions of ann have ended\n"
    assert run("users", "remove", "ann") == "ann is removed\n"
    assert {one["name"] for one in maat.users()} == {"local", "bob", "ci"}


def test_tokens_are_made_listed_and_revoked(run: Run, maat: Client, app: FastAPI) -> None:
    run("users", "create", "ci", "--service", "--role", "submitter")
    limits = ("--scope", "jobs:read", "--days", "1")
    secret = run("tokens", "create", "nightly", "--user", "ci", *limits).strip()
    far = TestClient(app, base_url="http://maat.example", client=("10.0.0.9", 1))
    headers = {"Authorization": f"Bearer {secret}"}
    me = far.get("/api/v1/me", headers=headers).json()
    assert (me["user"], me["permissions"]) == ("ci", ["jobs:read"])
    (listed,) = maat.tokens(user="ci")
    assert listed["id"] in run("tokens", "list", "--user", "ci")
    assert secret not in run("tokens", "list")
    assert run("tokens", "revoke", listed["id"]) == f"{listed['id']} is revoked\n"
    assert far.get("/api/v1/me", headers=headers).status_code == 401


def test_what_cannot_be_done_ends_with_the_services_words(run: Run, maat: Client) -> None:
    with pytest.raises(ApiError, match="another active person must be a cluster admin"):
        run("users", "change", "local", "--role", "viewer")
    with pytest.raises(ApiError, match="12 to 200 characters"):
        run("users", "create", "eve", "--password-stdin", typed="short\n")
    with pytest.raises(Exception, match="nothing would change"):
        run("users", "change", "local")
