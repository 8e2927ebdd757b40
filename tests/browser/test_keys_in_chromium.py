"""Browser tests of a day without a mouse: submit, find, cancel and compare by keys alone."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from browser.pages import wait_in_page

pytestmark = pytest.mark.needs_chromium

MOST_TABS = 120
CLUSTER = "a100=1x4"
TRACE = "name,time,application,num_replicas,batch_size\n" + "".join(
    f"{name},{60 * at},cifar10,1,128\n" for at, name in enumerate(("first", "second"))
)
# Where the focus is, and whether a reader sees it: an outline, within the window. A field that is
# drawn by what is around it has its outline there.
FOCUS = """() => {
    const at = document.activeElement, near = [at, ...at.querySelectorAll(':scope *')];
    if (at === document.body) { return null; }
    for (let up = at, steps = 0; up && steps < 5; steps += 1, up = up.parentElement) {
        near.push(up);
    }
    if (at.nextElementSibling) { near.push(at.nextElementSibling); }
    const marked = near.some(each => {
        const { outlineStyle, outlineWidth } = getComputedStyle(each);
        return outlineStyle !== 'none' && parseFloat(outlineWidth) > 0;
    });
    const box = each => each.getBoundingClientRect();
    const { top, bottom, left, right } = box(at).width ? box(at) : box(at.parentElement);
    const seen = bottom > 0 && right > left && top < innerHeight && left < innerWidth;
    return { id: at.id, tag: at.tagName, text: at.textContent.slice(0, 40), marked, seen };
}"""


def tab_to(page: Page, there: str) -> None:
    """Press Tab until the focused element matches `there`, a CSS selector. The focus is seen at
    every step."""
    for _ in range(MOST_TABS):
        page.keyboard.press("Tab")
        if page.evaluate("there => document.activeElement.matches(there)", there):
            assert_focus_is_seen(page)
            return
        assert_focus_is_seen(page)
    raise AssertionError(f"{MOST_TABS} presses of Tab do not lead to {there}")


def assert_focus_is_seen(page: Page) -> None:
    focus = page.evaluate(FOCUS)
    if focus is not None:  # the window itself, between the last control and the first
        assert focus["marked"], focus
        assert focus["seen"], focus


@pytest.mark.long
def test_a_job_is_submitted_found_and_cancelled_by_keys(server: Any, tab: Any) -> None:
    page = tab.open(server.url)
    page.locator("#overview-map .gpu-node").first.wait_for()

    page.keyboard.press("n")
    expect(page.locator("#submit-name")).to_be_focused()
    page.keyboard.type("by-keys")
    tab_to(page, "#submit-button")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/jobs/job_\w+"))
    job_id = page.url.rpartition("/")[2].partition("?")[0]
    page.locator("#job-cancel").wait_for()

    page.keyboard.press("/")
    expect(page.locator("#jobs-search")).to_be_focused()
    page.keyboard.type("by-keys")
    expect(page.locator(".ag-row a")).to_have_text(["by-keys"])
    tab_to(page, ".ag-header-cell, .ag-cell")
    for _ in range(3):
        if page.evaluate("document.activeElement.matches('.ag-cell')"):
            break
        page.keyboard.press("ArrowDown")
    assert_focus_is_seen(page)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"/jobs/{job_id}"))

    page.locator("#job-cancel").wait_for()
    tab_to(page, "#job-cancel")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    wait_in_page(page, "document.activeElement.closest('[role=dialog]') !== null")
    tab_to(page, "#job-cancel-yes")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_hidden()
    wait_in_page(page, "document.activeElement !== document.body")
    assert server.client.job(job_id)["cancel_requested"]


def test_a_link_of_the_navigation_leads_into_its_page(server: Any, inside: Any) -> None:
    page = inside.follow(server.url)
    page.locator("#overview-map .gpu-node").first.wait_for()
    page.locator(".nav-link", has_text="Jobs").focus()

    page.keyboard.press("Enter")
    page.locator("#jobs-grid .ag-row a").first.wait_for()

    assert page.evaluate("document.activeElement.id") == "content"
    tab_to(page, "#content :is(a, button)")


@pytest.mark.long
def test_policies_are_compared_by_keys(laboratory: Any, tab: Any) -> None:
    made = laboratory.client.simulate(
        {
            "name": "compared by keys",
            "runs": [{"policy": "sia"}, {"policy": "fifo"}],
            "traces": [{"kind": "csv", "text": TRACE}],
            "cluster": CLUSTER,
        }
    )
    page = tab.open(laboratory.url)
    page.locator("#overview-map .gpu-node").first.wait_for()
    page.keyboard.press("g")
    page.keyboard.press("s")
    expect(page).to_have_url(re.compile("/simulate"))
    page.locator(f"a[href^='/simulations/{made['id']}']").first.wait_for()

    tab_to(page, f"a[href^='/simulations/{made['id']}']")
    page.keyboard.press("Enter")
    expect(page.locator("#simulation-head .state")).to_contain_text("succeeded")
    expect(page.locator("#simulation-fairness")).to_contain_text("Worst rho")
    # What arrives while a list is open closes it.
    expect(page.locator("[data-dash-is-loading=true]")).to_have_count(0)
    tab_to(page, "#simulation-rule")
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("option", name="share-of-type")).to_be_visible()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("rule="))
    expect(page.locator("#simulation-rule")).to_be_focused()


def test_what_leads_to_another_page_leaves_the_focus_in_it(server: Any, inside: Any) -> None:
    page = inside.follow(f"{server.url}/sweeps")
    link = page.get_by_role("link", name="Compare policies")
    link.focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/simulate"))
    wait_in_page(page, "document.activeElement.id === 'content'")

    page.keyboard.press("n")
    expect(page.locator("#submit-name")).to_be_focused()
    page.keyboard.type("focused")
    page.locator("#submit-button").focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/jobs/job_\w+"))
    wait_in_page(page, "document.activeElement.id === 'content'")


def test_a_button_that_waits_for_its_answer_gets_the_focus_back(server: Any, tab: Any) -> None:
    page = tab.open(f"{server.url}/submit")
    button = page.locator("#submit-button")
    button.focus()
    switch = "on => { document.getElementById('submit-button').disabled = !on; }"
    page.evaluate(switch, False)
    wait_in_page(page, "document.activeElement === document.body")
    page.evaluate(switch, True)
    expect(button).to_be_focused()
    page.evaluate(switch, False)
    page.mouse.click(5, 400)
    page.evaluate("document.getElementById('content').append(document.createElement('span'))")
    page.evaluate(switch, True)
    page.wait_for_timeout(100)
    expect(button).not_to_be_focused()


def test_enter_in_a_form_whose_button_is_not_ready_yet_submits_once_it_is(
    server: Any, inside: Any
) -> None:
    page = inside.follow(f"{server.url}/submit")
    page.locator("#submit-name").fill("early")
    page.evaluate("document.getElementById('submit-button').disabled = true")
    page.keyboard.press("Enter")
    page.wait_for_timeout(600)
    page.evaluate("document.getElementById('submit-button').disabled = false")
    expect(page).to_have_url(re.compile(r"/jobs/job_\w+"))
    assert [job["name"] for job in server.client.jobs()["items"]].count("early") == 1


def test_enter_on_a_button_that_is_not_ready_yet_presses_it_once_it_is(
    server: Any, inside: Any
) -> None:
    page = inside.follow(f"{server.url}/submit")
    button = page.locator("#submit-button")
    page.locator("#submit-name").fill("soon")
    button.focus()
    page.evaluate("document.getElementById('submit-button').disabled = true")
    wait_in_page(page, "document.activeElement === document.body")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    page.wait_for_timeout(600)
    page.evaluate("document.getElementById('submit-button').disabled = false")
    expect(page).to_have_url(re.compile(r"/jobs/job_\w+"))
    assert [job["name"] for job in server.client.jobs()["items"]].count("soon") == 1
