"""What cannot be loaded says so in its place, the rest stays, and "Try again" asks once more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from browser.conftest import Server, serving

pytestmark = pytest.mark.needs_chromium


@pytest.fixture(scope="module")
def failing(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("failing")
    with serving(folder, demo=True, application="browser.failing_service:app") as server:
        yield server


@pytest.mark.parametrize(
    ("path", "pattern", "place", "rest"),
    [
        ("/", "/timeline$", ".card:has(#overview-usage)", ".page-title"),
        ("/sweeps", "/api/v1/sweeps$", "#sweeps-list", "#sweeps-button"),
        pytest.param(
            "/cluster",
            "/state$",
            ".card:has(#cluster-nodes)",
            ".page-title",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "/rounds",
            "/api/.*/rounds$",
            ".card:has(#rounds-grid)",
            ".page-title",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "/usage",
            "/api/.*/usage$",
            ".graph:has(#usage-types-chart)",
            "#usage-by",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "/reports",
            "/api/v1/reports$",
            "#reports-kept",
            "#reports-document h2",
            marks=pytest.mark.long,
        ),
    ],
)
def test_a_part_that_fails_says_so_and_is_asked_for_again(
    path: str, pattern: str, place: str, rest: str, failing: Server, tab: Any
) -> None:
    fault = failing.folder / "failing"
    fault.write_text(pattern)
    page = tab.open(failing.url + path)
    part = page.locator(place).first

    again = part.get_by_role("button", name="Try again").locator("visible=true").first
    expect(again).to_be_visible()
    expect(page.locator(rest).first).to_be_visible()

    fault.unlink()
    again.click()
    expect(part.get_by_role("button", name="Try again").locator("visible=true")).to_have_count(0)
    expect(part).not_to_contain_text("Out for a moment")
    expect(page.locator(rest).first).to_be_visible()
