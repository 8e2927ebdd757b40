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
from maat.scheduling.errors import ParameterError

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


def test_ones_own_sessions_are_listed_and_ended(run: Run, maat: Client, app: FastAPI) -> None:
    run("users", "set-password", "local", "--password-stdin", typed=f"{PASSWORD}\n")
    assert run("sessions", "list") == "You are signed in nowhere.\n"
    for browser in ("Firefox", "Chromium", "Epiphany"):
        sign_in(app, "local", PASSWORD, browser=browser)
    newest, _, oldest = maat.sessions()
    lines = run("sessions", "list").splitlines()
    assert lines[1].startswith(newest["id"])
    assert lines[1].endswith("Epiphany")
    assert run("sessions", "end", oldest["id"]) == "1 session has ended.\n"
    assert oldest["id"] not in run("sessions", "list")
    for wrong in ((), (newest["id"], "--all")):
        with pytest.raises(ParameterError, match=r"is missing|beside --all"):
            run("sessions", "end", *wrong)
    assert run("sessions", "end", "--all") == "2 sessions have ended.\n"
    assert maat.sessions() == []


def test_ones_own_password_is_changed_at_a_prompt_or_from_standard_input(
    run: Run, maat: Client, app: FastAPI
) -> None:
    fresh, last = "another sentence of words", "the last of all sentences"
    run("users", "set-password", "local", "--password-stdin", typed=f"{PASSWORD}\n")
    sign_in(app, "local", PASSWORD, browser="Firefox")
    said = run("password", typed=f"{PASSWORD}\n{fresh}\n{fresh}\n")
    assert said.endswith("Your password is changed. 1 session has ended.\n")
    assert PASSWORD not in said
    assert fresh not in said
    sign_in(app, "local", fresh, browser="Firefox")
    changed = run("password", "--password-stdin", typed=f"{fresh}\n{last}\n")
    assert changed == "Your password is changed. 1 session has ended.\n"
    with pytest.raises(ApiError) as refused:
        run("password", "--password-stdin", typed=f"{fresh}\n{last}\n")
    assert refused.value.status == 401
    given = CliRunner().invoke(commands, ("password", PASSWORD))
    assert given.exit_code == 2


def sign_in(app: FastAPI, name: str, password: str, *, browser: str) -> None:
    """Sign a person in, as a browser of that machine does."""
    visitor = TestClient(app, base_url="http://127.0.0.1:8000", client=("127.0.0.1", 50000))
    body = {"name": name, "password": password}
    signed = visitor.post("/api/v1/sessions", json=body, headers={"User-Agent": browser})
    assert signed.status_code == 201, signed.text
