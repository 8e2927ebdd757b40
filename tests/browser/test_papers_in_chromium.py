"""Browser test of the papers: an item is reproduced, its progress ends, its figure is drawn."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from browser.conftest import worker_of
from browser.laboratory import PLAY_MILLISECONDS, plotted
from browser.processes import forked

pytestmark = pytest.mark.needs_chromium

# A press of the button before the page was drawn again without it.
PRESSED_AGAIN = {
    "at": 1,
    "paper": "bsbf",
    "item": "fig-1",
    "name": "Figure 1 of SJF-BSBF",
    "size": "quick",
    "cost": "less than a CPU minute",
}


def test_an_item_is_reproduced_and_drawn_beside_the_published_values(
    server: Any, inside: Any
) -> None:
    page = inside.follow(f"{server.url}/papers?paper=bsbf")
    listed = page.locator("#papers-items tr", has=page.get_by_role("link", name="Figure 1"))
    now = page.locator("#papers-running")
    expect(listed).to_contain_text("not made yet")
    page.get_by_role("button", name="Reproduce Figure 1 of SJF-BSBF, quick").click()
    expect(now).to_contain_text("SJF-BSBF, quick: Figure 1")
    expect(now).to_contain_text("waits for a worker")
    page.evaluate("what => window.maat.setProps('papers-pressed', {data: what})", PRESSED_AGAIN)
    expect(page.get_by_text("It waits or runs already")).to_be_visible()
    expect(now.get_by_role("button", name="Cancel")).to_have_count(1)
    with forked(worker_of("simulations"), server.environment, server.folder / "papers.log"):
        expect(listed).to_contain_text("✓quick", timeout=PLAY_MILLISECONDS)
        expect(now).to_be_empty(timeout=PLAY_MILLISECONDS)
    expect(page.locator("#papers-made")).to_contain_text("HTML")

    listed.get_by_role("link", name="Figure 1").click()
    expect(page.locator("#reproduced-verdict")).to_have_text(
        "All 6 published values are met within 10 %."
    )
    names = {trace["name"] for trace in plotted(page, "reproduced-figure")}
    assert {"waits", "alone", "both"} <= names
    expect(page.locator("#reproduced-table tbody tr").first).to_contain_text("one by one")
    with page.expect_download() as saved:
        page.get_by_role("link", name="Save Figure 1 as CSV").click()
    assert saved.value.suggested_filename == "bsbf-fig-1.csv"
    assert inside.witness.errors == []
