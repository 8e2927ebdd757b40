"""Browser test of the simulate form: its address keeps it, for a reload and for others."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.needs_chromium


def expect_form(page: Page) -> None:
    expect(page.locator("#simulate-name")).to_have_value("night")
    expect(page.locator("#simulate-jobs")).to_have_value("12")
    expect(page.locator("#simulate-cluster")).to_have_value("a100=1x4")
    expect(page.locator("#simulate-seeds")).to_have_value("")
    expect(page.locator("#simulate-hours")).to_have_value("4")


def test_what_is_typed_is_in_the_address_and_outlives_a_reload(
    server: Any, inside: Any, open_tab: Any
) -> None:
    page = inside.follow(f"{server.url}/simulate")
    for field, text in (("name", "night"), ("jobs", "12"), ("cluster", "a100=1x4"), ("seeds", "")):
        page.locator(f"#simulate-{field}").fill(text)
        page.locator(f"#simulate-{field}").blur()
    expect(page).to_have_url(
        re.compile(r"/simulate\?cluster=\w+&name=night&jobs=12&gpus=a100%3D1x4&empty=seeds$")
    )

    other = open_tab().open(page.url)

    expect_form(other)
    other.reload()
    expect_form(other)
    expect(other).to_have_url(page.url)
    expect(other.locator(".address-note:visible")).to_have_count(0)
