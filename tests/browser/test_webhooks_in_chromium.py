"""Webhooks in a real browser: made, tested, and told of a job by the worker."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "worker"))

from report_receiver import receiving

from backend.webhooks.signing import signature

pytestmark = pytest.mark.needs_chromium


def test_a_webhook_is_made_tested_and_told_of_a_job(server: Any, inside: Any) -> None:
    with receiving() as receiver:
        page = inside.follow(f"{server.url}/admin?tab=webhooks")
        page.get_by_role("button", name="Make a webhook").click()
        page.locator("#admin-webhook-save").click()
        expect(page.get_by_text("Give the webhook a name.")).to_be_visible()
        page.locator("#admin-webhook-name").fill("pager")
        page.locator("#admin-webhook-url").fill(receiver.url())
        page.locator("#admin-webhook-events").click()
        page.get_by_role("option", name="a job was submitted").click()
        page.keyboard.press("Escape")
        page.locator("#admin-webhook-save").click()
        secret = page.locator("#admin-webhook-made code").inner_text()
        page.get_by_role("button", name="Test: pager").click()
        row = page.locator("#admin-webhook-messages tbody tr")
        expect(row).to_contain_text("succeeded")
        job = server.client.submit_job({"name": "told-of", "model": "imagenet"})
        expect(row.filter(has_text="job.submitted")).to_contain_text("succeeded")
        page.get_by_role("button", name="Delete: pager").click()
        expect(page.locator("#admin-webhooks")).to_contain_text("No webhook")
        server.client.cancel_job(job["id"])
    tested, told = receiver.events()
    assert (tested["type"], told["job"]["id"]) == ("webhook.test", job["id"])
    for headers, body, _ in receiver.received:
        stamp = int(headers["Maat-Timestamp"])
        assert headers["Maat-Signature"] == f"v1={signature(secret, body, timestamp=stamp)}"
