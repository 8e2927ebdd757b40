"""Browser tests of the page of use and cost: its address, figures, file, and prices."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from usage_history import Held, cluster_at, lived_job, person, rounds_every

from backend.database import Database
from backend.settings import Settings
from browser.conftest import Server, serving, wait_until
from browser.pages import wait_in_page

pytestmark = pytest.mark.needs_chromium
DAYS = "from=2026-03-02&to=2026-03-04"


@pytest.fixture(scope="module")
def lived_server(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service whose cluster has a past of two days and twelve hours, and no worker."""
    folder = tmp_path_factory.mktemp("lived")
    with serving(folder, demo=True) as server:
        database = Database.of(
            Settings(_env_file=None, data_dir=folder, database_url="", demo=True)
        )
        with database.session_scope() as session:
            cluster = cluster_at(session, 60.0)
            ann, ben = person(session, "red", "ann"), person(session, "blue", "ben")
            lived_job(session, cluster, ann, Held(0, 10), labels={"team": "vision"})
            lived_job(session, cluster, ben, Held(20, 30), submitted=12.0)
            rounds_every(session, cluster, 2.0, until=59.0, fragmented=1, reserved=2)
        database.dispose()
        yield server


def opened(inside: Any, server: Server, query: str) -> Page:
    page: Page = inside.open(f"{server.url}/usage?{query}")
    page.locator("#usage-table table").wait_for()
    return page


def drawn(page: Page, chart: str) -> list[str]:
    """The names of what a chart draws, once it does."""
    names: list[str] = wait_in_page(
        page,
        "id => { const graph = document.querySelector(`#${id} .js-plotly-plot`);"
        " const data = graph && graph.data; return data && data.length"
        " && data.map(trace => trace.name); }",
        chart,
    )
    return names


@pytest.mark.long
def test_an_address_shows_the_same_report_to_everybody(lived_server: Server, inside: Any) -> None:
    page = opened(inside, lived_server, f"{DAYS}&by=user")

    expect(page.locator("#usage-table")).to_contain_text("ann")
    assert drawn(page, "usage-rows-chart") == ["ann", "ben"]
    assert drawn(page, "usage-effect-chart") == [
        "useful", "used, not useful", "lost to failures", "restarts and profiles", "idle",
    ]  # fmt: skip
    assert drawn(page, "usage-types-chart")[0] == "allocated"
    expect(page.locator("#usage-rows-chart")).to_contain_text("partial")
    expect(page.locator("#usage-days")).to_contain_text("2 Mar 2026")
    assert inside.witness.errors == []


def test_a_legend_stays_above_its_chart_when_the_window_changes(
    lived_server: Server, inside: Any
) -> None:
    page = opened(inside, lived_server, DAYS)
    assert drawn(page, "usage-effect-chart")

    def overlap() -> float:
        return float(
            page.evaluate(
                """() => {
                    const chart = document.getElementById('usage-effect-chart');
                    const edge = (one, side) =>
                        chart.querySelector(one).getBoundingClientRect()[side];
                    return edge('.legend', 'bottom') - edge('.nsewdrag', 'top');
                }"""
            )
        )

    for width, least in ((390, 0), (1280, 900)):
        page.set_viewport_size({"width": width, "height": 800})
        wait_in_page(
            page,
            "([least, most]) => { const { width } = document.querySelector("
            "'#usage-effect-chart .js-plotly-plot')._fullLayout;"
            " return least < width && width < most; }",
            [least, width],
        )
        wait_until(lambda: overlap() <= 0, f"the legend above the chart at {width}", 20.0)


def test_what_is_chosen_is_in_the_address(lived_server: Server, inside: Any) -> None:
    page = opened(inside, lived_server, DAYS)

    page.locator("#usage-by").click()
    page.get_by_role("option", name="by label").click()

    expect(page.locator("#usage-table")).to_contain_text("team=vision")
    assert re.search(r"from=2026-03-02&to=2026-03-04&by=label", page.url)


def test_the_file_has_the_rows_of_the_page(
    lived_server: Server, inside: Any, tmp_path: Path
) -> None:
    page = opened(inside, lived_server, DAYS)

    with page.expect_download() as download:
        page.get_by_role("button", name="Download CSV").click()
    target = tmp_path / download.value.suggested_filename
    download.value.save_as(target)

    assert target.name == "usage-by-tenant-2026-03-02-to-2026-03-04.csv"
    rows = list(csv.DictReader(target.open(encoding="utf-8")))
    assert [row["name"] for row in rows] == ["blue", "red", "total"]
    assert float(rows[-1]["allocated_gpu_hours"]) == 80.0


def test_a_missing_price_is_asked_for_and_once_set_hours_cost_something(
    lived_server: Server, inside: Any
) -> None:
    page = opened(inside, lived_server, DAYS)
    expect(page.locator("#usage-prices")).to_contain_text("No price yet")
    expect(page.locator("#usage-tiles")).to_contain_text("no price yet")

    page.get_by_role("button", name="Set a price").click()
    page.locator("#usage-price-gpu-type").fill("h900")
    page.locator("#usage-price-price-per-gpu-hour").fill("0.5")
    page.locator("#usage-price-currency").fill("EUR")
    page.locator("#usage-price-valid-from").fill("2026-03-02")
    page.get_by_role("button", name="Set price").click()
    expect(page.get_by_role("dialog")).to_contain_text("no GPUs of this type")
    page.locator("#usage-price-gpu-type").fill("t4")
    page.get_by_role("button", name="Set price").click()

    expect(page.locator("#usage-table")).to_contain_text("40.00 EUR")
    expect(page.locator("#usage-table tfoot th")).to_have_text("Total")
    page.get_by_role("button", name="Remove the price of t4").click()
    asked = page.get_by_role("dialog", name="Remove this price?")
    expect(asked).to_contain_text("t4: 0.50 EUR per GPU-hour")
    asked.get_by_role("button", name="Remove").click()
    expect(page.locator("#usage-prices")).to_contain_text("No price yet")


def test_a_period_without_jobs_says_so_and_a_wrong_one_is_named(
    lived_server: Server, inside: Any
) -> None:
    page: Page = inside.open(f"{lived_server.url}/usage?period=yesteryear&by=colour")

    expect(page.locator("#content")).to_contain_text("There is no period “yesteryear”")
    page.goto(f"{lived_server.url}/usage?from=2026-02-02&to=2026-02-03")
    expect(page.locator("#usage-table")).to_contain_text("No GPU was held in this period")


def test_the_page_is_no_wider_than_a_phone(lived_server: Server, inside: Any) -> None:
    inside.page.set_viewport_size({"width": 390, "height": 800})
    page = opened(inside, lived_server, DAYS)

    assert page.evaluate("document.documentElement.scrollWidth") <= 390
