"""Browser tests of the terms: the way to them, the search in the address, and their anchors."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.needs_chromium


def test_the_help_leads_to_the_terms_of_which_a_search_is_in_the_address(
    server: Any, inside: Any, open_tab: Any
) -> None:
    page = inside.follow(f"{server.url}/measurements")
    page.locator("#measurements-list .state-title, #measurements-list table").wait_for()
    page.keyboard.press("?")
    page.get_by_role("dialog").get_by_role("link", name="Terms and formulas").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("article", name="Goodput", exact=True)).to_be_visible()

    page.get_by_label("Search the terms").fill("pollux eq. 6")

    expect(page.locator(".term")).to_have_count(1)
    expect(page).to_have_url(re.compile(r"/help\?q=pollux\+eq\.\+6$"))
    other = open_tab().open(page.url)
    expect(other.get_by_label("Search the terms")).to_have_value("pollux eq. 6")
    expect(other.locator(".term")).to_have_count(1)
    other.get_by_label("Search the terms").fill("<b>nothing")
    expect(other.locator(".state-title:visible")).to_have_text("No such term: “<b>nothing”")
    other.get_by_role("link", name="Show all terms").click()
    expect(other.get_by_label("Search the terms")).to_have_value("")
    expect(other.get_by_role("article", name="Goodput", exact=True)).to_be_visible()
    assert other.url == f"{server.url}/help"


def test_an_address_names_a_term_and_a_term_its_address(server: Any, tab: Any) -> None:
    page = tab.open(f"{server.url}/help#rho")

    expect(page.locator("#rho")).to_be_focused()
    expect(page.locator("#rho")).to_be_in_viewport()

    page.locator("#jain .term-anchor").press("Enter")
    expect(page.locator("#jain")).to_be_focused()
    assert page.url == f"{server.url}/help#jain"
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.locator("#jain a", has_text="Jain's index over time")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/fairness\?cluster=\w+$"))
