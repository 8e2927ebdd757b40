"""`maat webhooks ...` and the client's methods, against the service itself."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from typer.testing import CliRunner

from maat.cli.app import app as commands
from maat.client import ApiError, Client
from maat.scheduling.errors import ParameterError
from maat.vocabulary import WebhookEvent

Run = Callable[..., str]
URL = "https://93.184.216.34/hook"


@pytest.fixture
def run(maat: Client, monkeypatch: pytest.MonkeyPatch) -> Run:
    """What a command prints."""
    monkeypatch.setattr(Client, "close", lambda _: None)
    monkeypatch.setattr("maat.client.Client", lambda *_, **__: maat)

    def invoke(*arguments: str) -> str:
        done = CliRunner().invoke(commands, ("webhooks", *arguments), catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    return invoke


def test_a_webhook_is_made_changed_paused_tested_and_removed(run: Run, maat: Client) -> None:
    assert run("list") == "No webhook.\n"
    made = run("create", "pager", "--to", URL, "--event", "job.failed", "--event", "report.ready")
    webhook_id, secret = made.split()
    assert secret.startswith("whsec_")
    listed = run("list")
    assert URL in listed
    assert secret not in listed
    assert "hears of job.failed, report.ready" in run("pause", webhook_id)
    assert not maat.webhook(webhook_id)["active"]
    with pytest.raises(ApiError, match="paused"):
        run("test", webhook_id)
    run("resume", webhook_id)
    changed = json.loads(run("change", webhook_id, "--event", "all", "--cluster", "demo", "--json"))
    assert (set(changed["events"]), changed["cluster"]) == (set(WebhookEvent), "demo")
    assert json.loads(run("change", webhook_id, "--cluster", "all", "--json"))["cluster"] is None
    with pytest.raises(ParameterError, match="are missing"):
        run("change", webhook_id)
    other = run("rotate-secret", webhook_id).strip()
    assert other.startswith("whsec_")
    assert other != secret
    run("test", webhook_id)
    (message,) = maat.webhook_deliveries(webhook_id)
    assert message["id"] in run("deliveries", webhook_id)
    assert json.loads(run("deliveries", webhook_id, message["id"]))["type"] == "webhook.test"
    assert message["id"] in run("redeliver", webhook_id, message["id"])
    run("remove", webhook_id)
    assert maat.webhooks() == []


def test_an_admin_makes_one_of_the_deployment(run: Run, maat: Client) -> None:
    run("create", "all", "--to", URL, "--event", "cluster.fault", "--deployment")
    assert maat.webhooks()[0]["tenant"] is None
    assert "(all)" in run("list")
    with pytest.raises(ApiError, match="/events/0: There is no such value"):
        run("create", "wrong", "--to", URL, "--event", "job.ended")
