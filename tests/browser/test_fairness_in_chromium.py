"""Browser tests of fairness: rho that a real worker works out, on its page and on a job's."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from browser.conftest import wait_until

pytestmark = pytest.mark.needs_chromium


@pytest.fixture(scope="module")
def ended(laboratory: Any) -> str:
    """A job that has ended and has a rho, worked out by the worker beside the simulations."""
    body = {"name": "soon-over", "model": "ncf", "work_scale": 0.05, "adaptivity": "adaptive"}
    job_id = str(laboratory.client.submit_job(body)["id"])

    def has_rho() -> bool:
        if laboratory.client.job(job_id)["state"] != "succeeded":
            return False
        return laboratory.client.job_fairness(job_id)["rho"] is not None

    wait_until(has_rho, f"rho of a job; the log: {laboratory.folder / 'simulations.log'}")
    return job_id


def test_the_page_tells_rho_by_tenant_and_leads_to_the_worst_jobs(
    laboratory: Any, ended: str, inside: Any
) -> None:
    page = inside.follow(f"{laboratory.url}/fairness?period=this-month")
    expect(page.locator("#fairness-worst")).to_contain_text("Of its life:")
    expect(page.locator("#fairness-tiles")).to_contain_text("Median rho")
    expect(page.locator("#fairness-legend")).to_contain_text("default")
    expect(page.locator("#fairness-shares .main-svg").first).to_be_visible()
    expect(page.locator("#fairness-jain .main-svg").first).to_be_visible()

    page.get_by_role("button", name="What finish-time fairness means").click()
    expect(page.locator("#fairness-definition")).to_contain_text("Sia section 5.5")
    page.keyboard.press("Escape")

    # Other tests' jobs ended here too: the worst need not be this one.
    page.locator("#fairness-worst").get_by_role("link").first.click()
    expect(page).to_have_url(re.compile(r"/jobs/job_\w+"))
    expect(page.locator("#job-fairness")).to_contain_text("on an equal share")
    assert inside.witness.errors == []
    assert inside.witness.foreign == []


def test_the_period_is_kept_in_the_address_and_may_be_empty(
    laboratory: Any, ended: str, inside: Any
) -> None:
    page = inside.follow(f"{laboratory.url}/fairness")
    page.get_by_role("combobox", name="Period").or_(
        page.get_by_label("Period", exact=True)
    ).first.click()
    page.get_by_role("option", name="Last month").click()
    expect(page).to_have_url(re.compile("period=last-month"))
    expect(page.locator("#fairness-worst")).to_contain_text("No job of yours has a rho")
    expect(page.locator("#fairness-rho")).to_contain_text("No finish-time fairness yet")
    expect(page.locator("#fairness-shares")).to_contain_text("No shares yet")
    page.get_by_label("Period", exact=True).first.click()
    page.get_by_role("option", name="From … to …").click()
    expect(page.locator("#fairness-days")).to_be_visible()
    expect(page.locator("#fairness-note")).to_contain_text("Choose the first and the last day")
    assert inside.witness.errors == []


@pytest.mark.long
def test_an_operator_has_rho_worked_out_again(laboratory: Any, ended: str, tab: Any) -> None:
    before = laboratory.client.job_fairness(ended)["worked_out_at"]
    page = tab.open(f"{laboratory.url}/fairness?period=this-month")
    page.get_by_role("button", name="Work out again: rho of the jobs of this period").click()
    expect(page.get_by_text("Working rho out again")).to_be_visible()
    wait_until(
        lambda: laboratory.client.job_fairness(ended)["worked_out_at"] not in (None, before),
        f"rho once more; the log: {laboratory.folder / 'simulations.log'}",
    )
    assert laboratory.client.job_fairness(ended)["rho"] is not None
