"""Browser tests of charts that lead on, zoom, are saved and mark jobs, and of the first minute."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from browser.conftest import wait_until
from browser.pages import wait_in_page

pytestmark = pytest.mark.needs_chromium

LED = """id => {
    const plot = document.querySelector(`#${id} .js-plotly-plot`);
    return plot && plot.data.some(trace => trace.customdata && trace.customdata.length > 1);
}"""
RANGE = "id => document.querySelector(`#${id} .js-plotly-plot`)._fullLayout.xaxis.range.map(String)"

# Whether two charts show the same range, and not the whole one.
ZOOMED = f"""([one, other, whole]) => {{
    const [first, second] = [one, other].map({RANGE}).map(String);
    return first === second && first !== String(whole);
}}"""


def drag(page: Page, chart: str) -> None:
    """Choose the middle half of a chart."""
    box = page.locator(f"#{chart} .nsewdrag").first.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] / 4, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 3 / 4, middle, steps=4)
    page.mouse.up()


def test_a_chart_zooms_with_the_others_is_saved_and_leads_to_the_past_cluster(
    server: Any, tab: Any
) -> None:
    wait_until(lambda: server.client.cluster(server.cluster_id)["latest_round"] > 3, "rounds")
    page = tab.open(f"{server.url}/?range=all")
    wait_in_page(page, LED, "overview-usage")
    wait_in_page(page, LED, "overview-pending")
    whole = page.evaluate(RANGE, "overview-pending")

    drag(page, "overview-usage")
    expect(page).to_have_url(re.compile("zoom=20"))
    wait_in_page(page, ZOOMED, ["overview-pending", "overview-usage", whole])
    page.locator("#overview-pending ~ .chart-tools [data-tool=all]").click()
    expect(page).not_to_have_url(re.compile("zoom="))

    for tool, begins in (("csv", b"Series,Cluster time,GPUs in use"), ("png", b"\x89PNG")):
        with page.expect_download() as saved:
            page.locator(f"#overview-usage ~ .chart-tools [data-tool={tool}]").click()
        assert saved.value.suggested_filename == f"gpus-in-use.{tool}"
        assert Path(saved.value.path()).read_bytes().startswith(begins)

    page.locator("#overview-usage ~ .chart-tools .chart-toggle").click()
    first = page.locator("#overview-usage ~ .chart-table a").first
    expect(first).to_have_attribute("href", re.compile(r"/cluster\?round=\d+"))
    first.press("Enter")
    expect(page).to_have_url(re.compile(r"/cluster\?(.*&)?round=1(&|$)"))
    expect(page.locator("#past-when")).to_contain_text("Round 1,")
    page.get_by_role("button", name="The round after").click()
    expect(page).to_have_url(re.compile("round=2"))
    page.get_by_role("button", name="The cluster as it stands").click()
    expect(page).not_to_have_url(re.compile("round="))
    expect(page.locator("#past-when")).to_contain_text("Now:")

    page.get_by_label("Search the map").fill("rtx")
    expect(page.locator("#cluster-map-found")).to_have_text(re.compile(r"\d+ of 11 nodes"))
    expect(page).to_have_url(re.compile("q=rtx"))
    assert page.locator("#cluster-map .gpu-node:visible").count() == 3
    page.get_by_label("Search the map").fill("nowhere")
    page.get_by_role("button", name="Show all nodes").click()
    expect(page.locator("#cluster-map .gpu-node:visible")).to_have_count(11)
    expect(page).not_to_have_url(re.compile("q="))
    assert tab.witness.errors == []


def test_a_cell_of_the_matrix_opens_its_job_which_is_marked_elsewhere(
    server: Any, inside: Any
) -> None:
    page = inside.follow(f"{server.url}/rounds?q=long&sort=name")
    wait_in_page(page, LED, "round-matrix")
    rows = "document.querySelector('#round-matrix .js-plotly-plot').data[0].y.length"
    assert page.evaluate(rows) == 2

    path = page.evaluate(
        "document.querySelector('#round-matrix .js-plotly-plot').data[0].customdata[0][0]"
    )
    page.evaluate("path => maat.mark(path)", path)
    assert page.locator("#round-matrix .chart-mark").count() == 1
    page.evaluate("maat.mark(null)")
    assert page.locator(".chart-mark").count() == 0

    box = page.locator("#round-matrix .nsewdrag").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 8, box["y"] + 4)
    page.mouse.move(box["x"] + 10, box["y"] + 6)
    wait_in_page(page, "document.querySelector('#round-matrix .leads-on') !== null")
    page.mouse.down()
    page.mouse.up()
    expect(page).to_have_url(re.compile(r"/jobs/job_\w+"))


def test_the_first_minute_opens_once_and_again_from_the_help(
    server: Any, chromium: Browser
) -> None:
    context = chromium.new_context(reduced_motion="reduce")
    page = context.new_page()
    page.goto(server.url)
    tour = page.get_by_role("region", name="What am I looking at?")
    expect(tour).to_contain_text("1 of 5")
    assert page.evaluate("document.activeElement === document.body")
    page.keyboard.press("Escape")
    expect(tour).to_have_count(0)

    page.reload()
    page.locator("#overview-map .gpu-node").first.wait_for()
    page.wait_for_timeout(1500)
    expect(tour).to_have_count(0)
    page.keyboard.press("?")
    page.get_by_role("button", name="What am I looking at?").press("Enter")
    for step in range(1, 5):
        expect(tour).to_contain_text(f"{step} of 5")
        tour.get_by_role("button", name="Next").press("Enter")
    expect(page).to_have_url(re.compile("/submit"))
    page.locator("#submit-name").wait_for()  # a form takes the focus as it comes, but not now
    expect(tour.get_by_role("button", name="Done")).to_be_focused()
    page.keyboard.press("Escape")
    expect(tour).to_have_count(0)
    expect(page.get_by_role("button", name="Keyboard shortcuts and help")).to_be_focused()
    context.close()


def test_a_name_that_is_cut_beside_the_matrix_is_whole_under_the_pointer_and_in_the_table(
    server: Any, inside: Any
) -> None:
    name = "a name that is far too long to stand beside the cells of the matrix of a round"
    job = server.client.submit_job({"name": name, "model": "cifar10", "work_scale": 50.0})
    wait_until(lambda: bool(server.client.job(job["id"])["allocation"]), "the job to run")
    page = inside.follow(f"{server.url}/rounds?q=far+too+long")
    label = page.locator("#round-matrix .ytick text").first
    expect(label).to_contain_text(re.compile(r"^1?\d*\. a name that is.*…"))
    expect(label.locator("title")).to_have_text(re.compile(rf"^\d+\. {name}$"))
    box = label.bounding_box()
    assert box is not None
    under = page.evaluate(
        "([x, y]) => document.elementFromPoint(x, y).closest('.ytick') !== null",
        [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2],
    )
    assert under

    page.locator("#round-matrix ~ .chart-tools .chart-toggle").click()

    row = page.locator("#round-matrix ~ .chart-table").get_by_role("link", name=name)
    row.focus()
    expect(row).to_have_text(re.compile(rf"{name}$"))
    server.client.cancel_job(job["id"])
