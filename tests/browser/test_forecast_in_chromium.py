"""Browser tests of forecasts: before a job is submitted, and on its page, by a real worker."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from browser.conftest import wait_until
from maat.client import calls

pytestmark = pytest.mark.needs_chromium


TOLD_LATE = """() => { const told = maat.noteForm;
    maat.noteForm = (values) => setTimeout(() => told(values), 600); }"""


def test_what_was_typed_just_before_a_question_is_part_of_it_however_late_it_is_told(
    laboratory: Any, tab: Any
) -> None:
    page = tab.open(f"{laboratory.url}/submit")
    page.wait_for_selector("#submit-preview .scatterlayer .trace", state="attached")
    page.evaluate(TOLD_LATE)
    page.locator("#submit-max-gpus").fill("8")
    page.locator("#submit-max-gpus").press("Tab")
    page.locator("#submit-forecast-ask").click()
    ends = re.compile(r"Ends about .* at P\d\d")
    expect(page.locator("#submit-forecast")).to_contain_text(ends, timeout=60_000)
    expect(page).to_have_url(re.compile("max_gpus=8"))
    page.wait_for_timeout(1000)
    expect(page.locator("#submit-forecast-changed")).to_be_hidden()


def test_a_job_is_forecast_before_it_is_submitted_and_then_on_its_page(
    laboratory: Any, inside: Any
) -> None:
    page = inside.follow(f"{laboratory.url}/submit")
    page.wait_for_selector("#submit-preview .scatterlayer .trace", state="attached")
    page.locator("#submit-max-gpus").fill("8")
    page.locator("#submit-max-gpus").press("Tab")
    page.locator("#submit-forecast-ask").click()

    shown = page.locator("#submit-forecast")
    expect(shown).to_contain_text(re.compile(r"Ends about .* at P\d\d"), timeout=60_000)
    expect(shown).to_contain_text("Who ends later or earlier")
    expect(page.locator("#submit-forecast-cancel")).to_be_hidden()
    changed = page.get_by_text("The form has changed since this was asked")
    expect(changed).to_be_hidden()
    page.locator("#submit-max-gpus").fill("4")
    expect(changed).to_be_visible()
    page.locator("#submit-max-gpus").fill("8")
    expect(changed).to_be_hidden()

    job_id = laboratory.client.submit_job({"name": "foretold", "model": "imagenet"})["id"]

    def is_made() -> bool:
        return laboratory.client.send(calls.job_forecast(job_id))["state"] == "made"

    wait_until(is_made, "the forecast of a job")
    page = inside.follow(f"{laboratory.url}/jobs/{job_id}")
    ends = re.compile(r"Ends about .* (at P\d\d|\(a first guess\))")
    expect(page.locator("#job-forecast")).to_contain_text(ends)
    expect(page.locator("#job-forecast")).to_contain_text(re.compile(r"From \d+ draws?.*, as of"))
    assert inside.witness.errors == []
    assert inside.witness.foreign == []
