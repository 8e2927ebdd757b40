"""Browser tests of what is kept and shared: views of the job list, and the submit form as text."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from browser.pages import await_value, wait_in_page

pytestmark = pytest.mark.needs_chromium


def test_a_view_is_in_the_address_and_kept_by_name(server: Any, tab: Any) -> None:
    name = "one-of-a-view"
    job = server.client.submit_job({"name": name, "model": "cifar10"})
    day = job["submitted_at"][:10]
    page = tab.open(f"{server.url}/jobs?from={day}&to={day}&sort=name")
    page.locator("#jobs-owner").fill(job["owner"])
    page.locator("#jobs-owner").press("Enter")
    page.locator("#jobs-search").fill(name)
    await_value(page, "jobs-search", name)
    expect(page.locator(".ag-row a")).to_have_text([name])
    expect(page).to_have_url(re.compile(rf"owner={job['owner']}"))
    for part in (f"from={day}", f"to={day}", "sort=name", f"q={name}", "cluster="):
        assert part in page.url
    expect(page.locator("#jobs-counts a").first).to_have_attribute("href", re.compile(f"to={day}"))
    expect(page.locator("#jobs-view")).to_be_hidden()

    page.locator("#jobs-view-ask").click()
    page.locator("#jobs-view-name").fill("mine <b>")
    page.locator("#jobs-view-keep").click()
    expect(page.locator("#jobs-view")).to_have_value("mine <b>")
    page.locator("#jobs-clear").click()
    expect(page.locator("#jobs-view")).to_have_value("")
    assert "owner=" not in page.url

    page = tab.open(f"{server.url}/jobs")  # the browser keeps it
    page.locator("#jobs-view").click()
    page.get_by_role("option", name="mine <b>").click()
    expect(page.locator(".ag-row a")).to_have_text([name])
    assert f"q={name}" in page.url
    expect(page.locator("#jobs-owner")).to_have_value(job["owner"])

    page.locator("#jobs-view-ask").click()
    expect(page.locator("#jobs-view-name")).to_have_value("mine <b>")
    page.locator("#jobs-view-delete").click()
    expect(page.locator("#jobs-view")).to_be_hidden()
    assert tab.witness.errors == []


PRESSED_AS_SOON_AS_IT_IS_THERE = """() => {
    const old = document.querySelector('#jobs-view-ask');
    new MutationObserver((changes, observer) => {
        const button = document.querySelector('#jobs-view-ask');
        if (button && button !== old) { observer.disconnect(); button.click(); }
    }).observe(document.body, {childList: true, subtree: true}); }"""


def test_a_view_that_has_just_opened_is_kept_under_its_own_name(server: Any, tab: Any) -> None:
    page = tab.open(f"{server.url}/jobs?sort=name")
    page.locator("#jobs-view-ask").click()
    page.locator("#jobs-view-name").fill("by name")
    page.locator("#jobs-view-keep").click()
    expect(page.locator("#jobs-view")).to_have_value("by name")
    page = tab.open(f"{server.url}/jobs")
    expect(page.locator("#jobs-view")).to_be_visible()
    page.evaluate(PRESSED_AS_SOON_AS_IT_IS_THERE)
    page.locator("#jobs-view").click()
    page.get_by_role("option", name="by name").click()
    expect(page.locator("#jobs-view-name")).to_have_value("by name")
    assert tab.witness.errors == []


HEADS = "#jobs-grid .ag-header-cell:visible .ag-header-cell-text"
# No column is out of sight.
FITS = """() => { const view = document.querySelector('#jobs-grid .ag-center-cols-viewport');
    return view.clientWidth > 0 && view.scrollWidth <= view.clientWidth; }"""


def test_columns_are_chosen_by_keys_and_kept_in_the_address_and_in_views(
    server: Any, tab: Any
) -> None:
    page = tab.open(f"{server.url}/jobs")
    heads = page.locator(HEADS)
    expect(page.locator(".ag-row a").first).to_be_visible()
    usual = ["Job", "State", "Model", "Wants", "Has", "Progress", "Expected", "Submitted", "Tenant"]
    expect(heads).to_have_text(usual)
    wait_in_page(page, FITS)

    button = page.get_by_role("button", name="Columns", exact=True)
    button.focus()
    page.keyboard.press("Enter")
    boxes = page.get_by_role("group", name="Columns of the list")
    expect(boxes.get_by_label("State", exact=True)).to_be_focused()
    page.keyboard.press("Space")
    expect(heads).to_have_text([name for name in usual if name != "State"])
    boxes.get_by_label("Restarts", exact=True).press("Space")
    expect(heads).to_contain_text(["Restarts"])
    page.keyboard.press("Escape")
    expect(boxes).to_be_hidden()
    expect(button).to_be_focused()
    named = parse_qs(urlsplit(page.url).query)["column"]
    chosen = ["model", "want", "have", "progress", "expected", "submitted_at", "tenant", "restarts"]
    assert named == chosen
    link = page.locator("#jobs-counts a").first
    expect(link).to_have_attribute("href", re.compile("column=restarts"))

    page.locator("#jobs-view-ask").click()
    page.locator("#jobs-view-name").fill("restarts")
    page.locator("#jobs-view-keep").click()
    expect(page.locator("#jobs-view")).to_have_value("restarts")
    button.click()
    page.get_by_role("button", name="As usual").click()
    expect(heads).to_have_text(usual)
    expect(page.locator("#jobs-view")).to_have_value("")
    assert "column=" not in page.url

    page = tab.open(f"{server.url}/jobs")
    page.locator("#jobs-view").click()
    page.get_by_role("option", name="restarts").click()
    expect(heads).to_contain_text(["Job", "Model", "Restarts"])
    expect(page.get_by_role("button", name="Columns", exact=True)).to_be_visible()
    assert parse_qs(urlsplit(page.url).query)["column"] == chosen
    assert tab.witness.errors == []


def test_a_column_that_there_is_none_of_is_named_above_the_list(server: Any, inside: Any) -> None:
    page = inside.follow(f"{server.url}/jobs?column=colour&column=name")

    expect(page.get_by_role("alert").first).to_contain_text("There is no column “colour”")
    expect(page.locator(HEADS)).to_have_text(["Job"])


def test_the_form_and_its_text_follow_each_other(server: Any, tab: Any) -> None:
    page = tab.open(f"{server.url}/submit")
    page.wait_for_selector("#submit-preview .scatterlayer .trace", state="attached")
    text, wrong = page.locator("#submit-text"), page.locator("#submit-text-wrong")
    page.locator("#submit-name").fill("typed above")
    await_value(page, "submit-name", "typed above")
    expect(text).to_have_value(re.compile("^name: typed above\nmodel: "))

    text.fill("# nightly\nname: typed below\nmodel: bert\nmax_gpus: 8\nlabels: {team: no}\n")
    text.blur()
    expect(page.locator("#submit-name")).to_have_value("typed below")
    expect(page.locator("#submit-max-gpus")).to_have_value("8")
    expect(page.get_by_text("team=no")).to_be_visible()
    expect(text).to_have_value(re.compile("^# nightly\n"))

    text.fill("name: typed below\nmodel: bert\nmin_gpu: 2\n")
    text.blur()
    expect(wrong).to_have_text("Line 3: min_gpu is no field of a job. Did you mean min_gpus?")
    text.fill("name: typed below\nmodel: bert\nmin_gpus: 9000\n")
    page.locator("#submit-text-try").click()
    expect(page.locator("#submit-text-tried")).to_contain_text("Line 3: min_gpus")
    expect(page.locator("#submit-min-gpus")).to_have_value("9000")

    # A number field of dash-mantine-components that is given two numbers within its debounce
    # (300 ms) keeps the first: nobody types that fast.
    page.wait_for_timeout(600)
    text.fill("name: typed below\nmodel: bert\n")
    text.blur()
    expect(page.locator("#submit-min-gpus")).to_have_value("1")
    page.locator("#submit-text-kind").get_by_text("Command line").click()
    code = page.locator("#submit-text-code")
    expect(code).to_contain_text("maat submit 'typed below'")
    expect(code).to_contain_text(f"--url {server.url}")
    expect(page).to_have_url(re.compile("text=cli"))
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy").click()
    copied = wait_in_page(page, "navigator.clipboard.readText()")
    assert copied == code.text_content()
    assert tab.witness.errors == []
