"""Browser tests of what is asked of jobs after their submission."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.needs_chromium


def test_a_job_is_paused_and_resumed_on_its_page(server: Any, inside: Any) -> None:
    job = server.client.submit_job({"name": "to-pause", "model": "imagenet"})
    page = inside.follow(f"{server.url}/jobs/{job['id']}")
    page.locator("#job-pause", has_text="Pause job").click()
    expect(page.locator("#job-pause", has_text="Resume job")).to_be_visible()
    assert server.client.job(job["id"])["pause_requested"] is True
    page.locator("#job-pause", has_text="Resume job").click()
    expect(page.locator("#job-pause", has_text="Pause job")).to_be_visible()
    assert server.client.job(job["id"])["pause_requested"] is False


def test_all_jobs_of_a_filter_are_paused_after_a_preview(server: Any, inside: Any) -> None:
    labels = {"labels": {"many": "yes"}}
    jobs = [
        server.client.submit_job({"name": f"many-{number}", "model": "imagenet", **labels})
        for number in range(3)
    ]
    page = inside.follow(f"{server.url}/jobs?label=many%3Dyes")
    page.locator("#jobs-bulk").click()
    expect(page.locator("#jobs-bulk-preview")).to_contain_text("It changes 3 jobs.")
    page.locator("#jobs-bulk-yes").click()
    expect(page.get_by_text("Pausing: 3 jobs")).to_be_visible()
    assert all(server.client.job(job["id"])["pause_requested"] for job in jobs)
