"""While the service is away, pages say so, keep what there is, and go on when it answers again."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from browser.conftest import Server, serving
from browser.pages import without_push

pytestmark = pytest.mark.needs_chromium

JOB = "first-of-all"


@pytest.fixture(scope="module")
def lone(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service with two jobs, which tests may stop."""
    with serving(tmp_path_factory.mktemp("away"), demo=True) as server:
        for name in (JOB, "second"):
            server.client.submit_job({"name": name, "model": "cifar10"})
        yield server


@contextmanager
def standing_still(server: Server) -> Iterator[None]:
    """The service takes connections and answers nothing."""
    os.kill(server.process, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(server.process, signal.SIGCONT)


@contextmanager
def unreachable(page: Page) -> Iterator[None]:
    """Every request fails at once, as if no service were running."""
    page.context.set_offline(True)
    try:
        yield
    finally:
        page.context.set_offline(False)


def shows_jobs(server: Server, tab: Any) -> Page:
    page: Page = tab.open(server.url + "/jobs")
    expect(page.locator(".ag-row a", has_text="second")).to_be_visible()
    return page


def test_a_page_that_does_not_come_says_so_above_the_one_that_stays_and_comes_later(
    lone: Server, tab: Any
) -> None:
    page = shows_jobs(lone, tab)
    away = page.locator("#away")
    expect(away).to_be_hidden()

    with standing_still(lone):
        page.locator(".nav-link", has_text="Fairness").click()

        expect(away).to_contain_text("The service gives no answer")
        expect(away).to_contain_text("The page /fairness has not come")
        expect(page.locator(".page-title")).to_have_text("Jobs")
        expect(page.locator(".ag-body")).to_have_css("opacity", "0.45")

    expect(page.locator(".page-title")).to_have_text("Fairness")
    expect(away).to_be_hidden()


def test_a_page_is_asked_for_again_when_a_service_that_was_gone_is_back(
    lone: Server, tab: Any
) -> None:
    without_push(tab.page)
    page = shows_jobs(lone, tab)

    with unreachable(page):
        page.locator(".nav-link", has_text="Fairness").click()
        expect(page.locator("#away")).to_contain_text("The page /fairness has not come")
        page.locator("#away").get_by_role("button", name="Try again").click()
        expect(page.locator("#away")).to_be_visible()

    expect(page.locator(".page-title")).to_have_text("Fairness")
    expect(page.locator("#away")).to_be_hidden()


def test_a_search_without_an_answer_looks_failed_and_not_as_if_it_loaded(
    lone: Server, tab: Any
) -> None:
    without_push(tab.page)
    page = shows_jobs(lone, tab)
    told = page.locator("#jobs-grid-told")

    with unreachable(page):
        page.locator("#jobs-search").fill(JOB)
        expect(told.get_by_role("button", name="Try again")).to_be_visible()
        expect(page.locator("#jobs-grid .loading").locator("visible=true")).to_have_count(0)

    expect(told).to_be_empty()
    expect(page.locator(".ag-row a")).to_have_count(1)
    expect(page.locator(".ag-row a")).to_have_text(JOB)


def test_who_is_far_down_a_page_sees_that_the_service_is_away(lone: Server, tab: Any) -> None:
    without_push(tab.page)
    page: Page = tab.open(lone.url + "/submit")
    page.set_viewport_size({"width": 1280, "height": 480})
    page.locator("#submit-name").fill("unheard")

    with unreachable(page):
        page.locator("#submit-button").click()
        expect(page.locator("#away")).to_be_visible()
        assert page.evaluate("scrollY") > 0
        expect(page.locator("#submit-button")).to_be_in_viewport()
        expect(page.locator("#away .state-title")).to_be_in_viewport()
        expect(page.get_by_text("This press did not arrive")).to_be_visible()
        expect(page.locator("#submit-button")).to_be_enabled()

    expect(page.locator("#away")).to_be_hidden()
    page.locator("#submit-button").click()
    expect(page).to_have_url(re.compile(r"/jobs/job_\w+"))
    assert [job["name"] for job in lone.client.jobs()["items"]].count("unheard") == 1


@pytest.mark.long
def test_the_health_of_a_service_that_is_gone_looks_old_and_says_of_when_it_is(
    lone: Server, tab: Any
) -> None:
    page = tab.open(lone.url + "/admin?tab=health")
    health = page.locator("#admin-health")
    expect(health).to_contain_text("Last answer")

    with standing_still(lone):
        expect(page.locator("#stale-note")).to_contain_text("this page shows how it stood")
        expect(page.locator("#away").get_by_role("button", name="Try again")).to_be_visible()
        for part in (".sentence", "tbody"):
            expect(health.locator(part)).to_have_css("opacity", "0.45")

    expect(page.locator("#stale-note")).to_be_empty()
    expect(health.locator(".sentence")).to_have_css("opacity", "1")
