"""Tests of the logs: they hold no body, token or query, of refused or of failed requests."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from backend.asking import asked
from backend.bootstrap_data import ensure_defaults
from backend.database import Database
from backend.logs import FORMAT, JsonLines, WithoutMessages
from backend.settings import Settings
from backend.web.strict_json import StrictRoute
from benchmarks.service.real_server import PATIENCE_SECONDS, serving
from frontend.app import create_app

SECRET = "planted-5ecret"


def failing_app() -> Any:
    """Maat with a route that fails and says at what, as a fault of ours may."""
    app = create_app()

    async def fail(body: dict[str, Any], token: str = "") -> None:
        try:
            raise KeyError(body["secret"])
        except KeyError as error:
            raise ValueError(f"{body} {token}") from error

    app.router.routes.insert(0, StrictRoute("/api/v1/fail", fail, methods=["POST"]))
    return app


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The service in its own process, as its address and its log.

    It runs as `maat up` starts it, but logs every request.
    """
    settings = Settings(_env_file=None, data_dir=tmp_path, demo=True)
    database = Database.of(settings)
    ensure_defaults(database, settings)
    database.dispose()
    log = tmp_path / "api.log"
    with serving(
        "test_logs:failing_app",
        settings.database_url,
        tmp_path,
        options=(),
        log=log,
        modules=Path(__file__).parent,
    ) as found:
        yield found.url, log


def test_nothing_that_was_sent_is_in_the_log(server: tuple[str, Path]) -> None:
    url, log = server
    headers = {
        "Authorization": f"Bearer maat_{SECRET}",
        "X-Secret": SECRET,
        "Cookie": f"a={SECRET}",
    }
    local = {"Secret": SECRET, "Cookie": f"a={SECRET}", "Idempotency-Key": SECRET}
    deep = '{"name": ' + "[" * 900 + f'"{SECRET}"' + "]" * 900 + "}"
    with httpx.Client(base_url=url, timeout=PATIENCE_SECONDS) as client:
        assert client.get("/api/v1/jobs", params={"q": SECRET}, headers=headers).status_code == 401
        assert (
            client.get(
                "/api/v1/jobs", params={"q": SECRET, "sort": SECRET}, headers=local
            ).status_code
            == 422
        )
        assert (
            client.post(
                "/api/v1/jobs", json={"name": [SECRET], "model": SECRET}, headers=local
            ).status_code
            == 422
        )
        assert (
            client.post(
                "/api/v1/jobs", content=deep, headers=local | {"content-type": "application/json"}
            ).status_code
            == 400
        )
        assert (
            client.post(
                "/api/v1/jobs",
                content=f'"{SECRET}',
                headers=local | {"content-type": "application/json"},
            ).status_code
            == 400
        )
        failed = client.post(
            "/api/v1/fail", params={"token": SECRET}, json={"secret": SECRET}, headers=headers
        )
        assert (failed.status_code, SECRET in failed.text) == (500, False)
        call = {
            "output": "navigate.href",
            "outputs": {},
            "inputs": [{"id": SECRET, "property": SECRET, "value": SECRET}],
            "changedPropIds": [],
        }
        client.post("/_dash-update-component", json=call, headers=local)
    written = log.read_text()
    assert SECRET not in written
    assert written.count(failed.headers["X-Request-Id"]) == 1
    assert "builtins.ValueError" in written
    assert "raise KeyError(body[" in written  # the line that failed, and the one before it
    assert 'GET /api/v1/jobs HTTP/1.1" 401' in written


def test_a_group_of_errors_is_told_without_what_they_say() -> None:
    try:
        raise ExceptionGroup(SECRET, [ValueError(SECRET), KeyError(SECRET)])
    except ExceptionGroup as group:
        record = logging.LogRecord(
            "maat",
            logging.ERROR,
            __file__,
            1,
            "failed",
            (),
            (type(group), group, group.__traceback__),
        )
    text = WithoutMessages(FORMAT).format(record)
    assert SECRET not in text
    assert "builtins.KeyError" in text


def test_a_line_of_json_has_the_id_of_its_request_and_no_message_of_an_error() -> None:
    line = logging.LogRecord("backend.x", logging.ERROR, "x.py", 1, "it %s", ("failed",), None)
    try:
        raise ValueError(SECRET)
    except ValueError as error:
        line.exc_info = (ValueError, error, error.__traceback__)
    with asked("request-7"):
        found = json.loads(JsonLines().format(line))
    assert (found["level"], found["logger"], found["message"], found["request_id"]) == (
        "ERROR",
        "backend.x",
        "it failed",
        "request-7",
    )
    assert "ValueError" in found["error"]
    assert SECRET not in json.dumps(found)
    outside = json.loads(JsonLines().format(line))
    assert "request_id" not in outside


def test_an_error_that_comes_again_shows_its_calls_once() -> None:
    written = [WithoutMessages(FORMAT).format(_failure(KeyError)) for _ in range(2)]
    assert written[0].count("Traceback") == written[1].count("Traceback") == 1  # of two processes
    formatter = WithoutMessages(FORMAT)
    first, second, other = (
        formatter.format(_failure(kind)) for kind in (KeyError, KeyError, ValueError)
    )
    assert "Traceback" in first
    assert second.splitlines()[1:] == ["builtins.KeyError, with the same calls as 0 s ago"]
    assert other.endswith("builtins.ValueError")
    assert "Traceback" in other


def _failure(kind: type[Exception]) -> logging.LogRecord:
    try:
        raise kind(SECRET)
    except kind as error:
        caught = (kind, error, error.__traceback__)
    return logging.LogRecord("maat", logging.ERROR, __file__, 1, "failed", (), caught)
