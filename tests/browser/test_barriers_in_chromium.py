"""Browser tests of accessibility: axe in both colour schemes, 390 px width, dialogs and keys."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from browser.barriers import barriers, colour_barriers, in_scheme, overflow
from browser.conftest import Tab, watched
from maat.client import calls

pytestmark = pytest.mark.needs_chromium

# Path, and what is there only when its data has come through.
PAGES = {
    "/": "#content:has(#overview-map .gpu-job) #overview-usage .scatterlayer .trace",
    "/cluster": "#cluster-nodes .ag-row .swatch",
    "/jobs": "#jobs-grid .ag-row .state",
    "/submit": "#submit-preview .scatterlayer .trace",
    "/rounds": "#round-matrix .shapelayer path",
    "/simulate": "#simulate-list .state-title, #simulate-list table",
    "/fairness": "#fairness-worst .state-title, #fairness-worst table",
    "/calibration": "#calibration-bins :is(table, .state-title)",
    "/sweeps": "#sweeps-list .state-title, #sweeps-list table",
    "/experiments": "#experiments-list .state-title, #experiments-list table",
    "/measurements": "#measurements-list .state-title, #measurements-list table",
    "/papers": "#papers-items table",
    "/usage": "#usage-table .state-title, #usage-table table",
    "/reports": ".report-section .main-svg",
    "/account": "#account-facts dl",
    "/help": "#help-terms .term",
    "/admin": "#admin-users table",
    "/admin?tab=clusters": "#admin-nodes table",
    "/admin?tab=quotas": "#admin-quota-types table",
    "/admin?tab=webhooks": "#admin-webhooks .state-title, #admin-webhooks table",
    "/admin?tab=health": "#admin-health table",
    "/admin?tab=audit": "#admin-audit table",
    "/sign-in": "#sign-in-button",
    "/jobs/long-1": "#job-timeline .main-svg",
    "/no/such/page": ".state-title",
}
# Between them they have every kind of part: map, grid, form, matrix, report, table.
SAMPLED = {"/", "/jobs", "/submit", "/rounds", "/reports", "/admin", "/jobs/long-1"}
# The address of each is loaded; the others are come to as by a link.
LOADED = {"/", "/jobs", "/sign-in", "/no/such/page"}
NARROW: ViewportSize = {"width": 390, "height": 844}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every page by axe in the light; else `make test` looks at a sample."""
    if "tab_of_page" in metafunc.fixturenames:
        sampled = PAGES if "grave_barrier" in metafunc.function.__name__ else SAMPLED
        pages = [
            pytest.param(path, marks=() if path in sampled else pytest.mark.long) for path in PAGES
        ]
        metafunc.parametrize("tab_of_page", pages, indirect=True, scope="module")


@pytest.fixture(scope="module")
def tab_of_page(request: pytest.FixtureRequest, server: Any, visitors: Any) -> Iterator[Tab]:
    """One page after the other, each opened once for all tests below."""
    path = request.param
    if path == "/jobs/long-1":
        path = f"/jobs/{server.client.jobs(q='long-1')['items'][0]['id']}"
    with watched(visitors.page([])) as tab:
        loads = request.param in LOADED
        page = (tab.open if loads else tab.follow)(server.url + path)
        page.wait_for_selector(PAGES[request.param], state="attached")
        yield tab


@pytest.fixture(scope="module")
def opened(tab_of_page: Tab) -> Page:
    """The page with all that can be unfolded."""
    page = tab_of_page.page
    if urlsplit(page.url).path in ("/simulate", "/sweeps"):
        page.get_by_text("CSV file", exact=True).click()
        page.evaluate(
            "document.querySelectorAll('details').forEach(folded => { folded.open = true; })"
        )
    return page


def test_every_page_shows_its_data_without_an_error_and_asks_no_other_host(
    tab_of_page: Tab,
) -> None:
    not_there = tab_of_page.page.url.endswith("/no/such/page")  # its status is an error in itself

    assert len(tab_of_page.witness.errors) == int(not_there), tab_of_page.witness.errors
    assert tab_of_page.witness.foreign == []


def test_no_page_has_a_grave_barrier(opened: Page) -> None:
    in_scheme(opened, "light")

    assert barriers(opened) == []


def test_no_page_has_colours_that_cannot_be_read_in_the_dark(opened: Page) -> None:
    in_scheme(opened, "dark")

    assert colour_barriers(opened) == []


def test_no_page_is_wider_than_a_phone(opened: Page) -> None:
    opened.set_viewport_size(NARROW)

    assert overflow(opened) == []


def grave_ones_in_the_dialog(page: Page) -> list[str]:
    expect(page.get_by_role("dialog")).to_be_visible()
    expect(page.get_by_role("dialog").get_by_role("button", name="Close")).to_be_visible()
    in_scheme(page, "light")
    found = barriers(page)
    in_scheme(page, "dark")
    return found + colour_barriers(page, within="[role=dialog]")


@pytest.fixture(scope="module")
def measured(server: Any) -> Iterator[None]:
    """Measurements to delete."""
    pairs = "".join(
        f"{one},{other},1,1.5\n" for one in ("bert", "cifar10") for other in ("bert", "cifar10")
    )
    file = {"name": "pairs.csv", "text": f"victim,partner,gpu_count,slowdown\n{pairs}"}
    made = server.client.upload_measurement(
        {"kind": "interference", "name": "in the dialog", "files": [file]}
    )
    yield
    server.client.send(calls.delete_measurement(made["id"]))


@pytest.mark.usefixtures("measured")
def test_no_dialog_has_a_grave_barrier(server: Any, inside: Tab) -> None:
    page = inside.follow(f"{server.url}/cluster")
    page.click("#cluster-reserve-open")
    assert grave_ones_in_the_dialog(page) == []
    page.keyboard.press("Escape")
    page.click("#help-open")
    assert grave_ones_in_the_dialog(page) == []
    page.keyboard.press("Escape")

    inside.follow(f"{server.url}/jobs/{server.client.jobs(q='long-1')['items'][0]['id']}")
    page.click("#job-cancel")
    assert grave_ones_in_the_dialog(page) == []
    page.keyboard.press("Escape")

    inside.follow(f"{server.url}/admin?tab=clusters")
    page.get_by_role("button", name="Drain: ").first.click()
    assert grave_ones_in_the_dialog(page) == []
    page.keyboard.press("Escape")

    inside.follow(f"{server.url}/measurements")
    page.get_by_role("button", name="Delete the measurements in the dialog").click()
    assert grave_ones_in_the_dialog(page) == []


def test_on_a_narrow_screen_the_navigation_opens_by_its_button_and_goes_with_the_page(
    server: Any, open_tab: Any
) -> None:
    page = open_tab().page
    page.set_viewport_size(NARROW)
    page.goto(f"{server.url}/measurements")
    links = page.get_by_role("navigation", name="Pages").get_by_role("link")
    expect(page.locator("#cluster-select")).not_to_have_value("")
    expect(links).to_have_count(0)

    page.get_by_role("button", name="Show or hide the navigation").click()
    links.filter(has_text="Sweeps").click()

    expect(page.locator(".page-title")).to_have_text("Sweeps")
    expect(links).to_have_count(0)
    assert page.locator("header").bounding_box()["height"] <= 48
    assert overflow(page) == []


@pytest.mark.long
def test_slash_finds_from_any_page_and_n_begins_a_job(server: Any, inside: Any) -> None:
    page = inside.follow(f"{server.url}/measurements")
    expect(page.locator("#cluster-select")).not_to_have_value("")

    page.keyboard.press("/")
    expect(page.locator("#jobs-search")).to_be_focused()
    page.keyboard.type("long-2")
    expect(page.locator("#jobs-grid .ag-row a")).to_have_text(["long-2"])

    page.locator("#jobs-search").blur()
    page.keyboard.press("n")
    expect(page.locator("#submit-name")).to_be_focused()


def test_enter_opens_the_row_under_the_focus(server: Any, inside: Any) -> None:
    page = inside.follow(f"{server.url}/jobs?q=long-1")
    expect(page.locator("#jobs-grid .ag-row a")).to_have_text(["long-1"])
    page.locator("#jobs-grid .ag-row [col-id='model']").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".page-title")).to_have_text("long-1")

    inside.follow(f"{server.url}/rounds")
    cell = page.locator("#rounds-grid .ag-row [col-id='gpus']").first
    cell.wait_for()
    cell.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#round-note")).to_contain_text("round ")
    page.wait_for_url("**/rounds/*")


def test_a_chart_tells_its_figures_in_words_and_as_a_table(server: Any, inside: Any) -> None:
    page = inside.follow(f"{server.url}/submit")
    chart = page.locator("#submit-preview .js-plotly-plot")
    expect(chart).to_have_accessible_name(
        re.compile(
            r"^Chart: Goodput \(effective samples/s\) by GPUs\. .*a100: [\d.]+ to [\d.]+, last"
        )
    )
    plotted = page.evaluate(
        "document.querySelector('#submit-preview .js-plotly-plot').data.map(line => line.x.length)"
    )

    page.get_by_role("button", name="Show the chart as a table").focus()
    page.keyboard.press("Enter")

    table = page.get_by_role("region", name="The chart as a table").get_by_role("table")
    expect(table.get_by_role("columnheader")).to_have_text(
        ["Series", "GPUs", "Goodput (effective samples/s)"]
    )
    expect(table.get_by_role("row")).to_have_count(sum(plotted) + 1)
    assert barriers(page) == []


def test_a_page_that_is_not_there_has_a_heading_and_the_documentation_a_main_part(
    server: Any, tab: Any
) -> None:
    page = tab.open(f"{server.url}/no/such/page")
    expect(page.get_by_role("heading", level=1)).to_have_text("Not found")

    page.goto(f"{server.url}/docs")
    expect(page.get_by_role("main").locator(".opblock-tag").first).to_be_visible()
