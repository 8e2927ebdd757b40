"""What a person does on the pages, in a real browser, against a real service and worker."""

from __future__ import annotations

import re
from typing import Any

import pytest
from pages import await_value
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.needs_chromium

# Path, and what is there only when its data has come through.
FULL = {
    "/": ".cluster-map .heatmaplayer image, .cluster-map .hm image",
    "/cluster": ".plain-table .swatch",
    "/jobs": ".ag-row .state",
    "/submit": "#submit-preview .scatterlayer .trace",
    "/rounds": "#round-matrix .shapelayer path",
    "/simulate": "#simulate-list .state-title, #simulate-list table",
    "/sweeps": "#sweeps-list .state-title, #sweeps-list table",
    "/measurements": "#measurements-list .state-title, #measurements-list table",
}
HOSTILE = "<script>window.hacked = true</script><img src=x onerror='window.hacked = true'>"


def settled(page: Page) -> None:
    """The first data has arrived."""
    expect(page.locator("#cluster-select")).not_to_have_value("")


@pytest.mark.parametrize("path", sorted(FULL))
def test_every_page_shows_its_data_without_an_error_and_asks_no_other_host(path: str, server: Any, tab: Any) -> None:
    page = tab.open(server.url + path)

    page.wait_for_selector(FULL[path], state="attached")

    assert tab.witness.errors == []
    assert tab.witness.foreign == []


@pytest.mark.parametrize("path", ["/", "/cluster", "/jobs", "/rounds"])
def test_without_a_cluster_a_page_says_so_and_what_to_do(path: str, empty_server: Any, tab: Any) -> None:
    page = tab.open(empty_server.url + path)

    expect(page.get_by_text("No cluster yet").first).to_be_visible()

    assert tab.witness.errors == []


def test_a_link_to_a_round_opens_that_round(server: Any, tab: Any) -> None:
    number = server.client.rounds(server.cluster_id)["items"][-1]["number"]

    page = tab.open(f"{server.url}/rounds/{number}")

    expect(page.locator("#round-note")).to_contain_text(f"round {number},")
    expect(page.locator("#round-facts")).to_contain_text("Policy")
    assert tab.witness.errors == []


@pytest.mark.parametrize("number", ["999999", "abc"])
def test_a_link_to_a_round_that_is_not_there_says_so(number: str, server: Any, tab: Any) -> None:
    page = tab.open(f"{server.url}/rounds/{number}")

    expect(page.locator("#round-facts")).to_contain_text(f"There is no round {number}")


def test_a_job_submitted_by_the_form_is_shown_and_listed(server: Any, tab: Any) -> None:
    page = tab.open(server.url + "/submit")
    page.wait_for_selector(FULL["/submit"], state="attached")

    page.fill("#submit-name", "from-the-form")
    page.click("#submit-button")

    expect(page.locator(".page-title")).to_have_text("from-the-form")
    assert re.search(r"/jobs/job_\w+$", page.url)
    assert [job["name"] for job in server.client.jobs(q="from-the-form")["items"]] == ["from-the-form"]
    page.goto(server.url + "/jobs?q=from-the-form")
    expect(page.locator(".ag-row a")).to_have_text(["from-the-form"])
    assert tab.witness.errors == []


def test_a_form_is_sent_by_the_keyboard_alone(server: Any, tab: Any) -> None:
    page = tab.open(server.url + "/jobs")
    settled(page)

    page.keyboard.press("n")
    page.wait_for_selector(FULL["/submit"], state="attached")
    page.locator("#submit-name").focus()
    page.keyboard.type("by-keyboard")
    page.keyboard.press("Enter")

    expect(page.locator(".page-title")).to_have_text("by-keyboard")


def test_a_wrong_field_has_its_error_beside_it_and_the_form_keeps_its_values(server: Any, tab: Any) -> None:
    page = tab.open(server.url + "/submit")
    page.wait_for_selector(FULL["/submit"], state="attached")

    page.fill("#submit-name", "too-greedy")
    page.fill("#submit-min-gpus", "8")
    page.fill("#submit-max-gpus", "2")
    await_value(page, "submit-max-gpus", 2)
    page.click("#submit-button")

    field = page.locator(".mantine-NumberInput-root", has=page.locator("#submit-max-gpus"))
    expect(field.locator(".mantine-InputWrapper-error")).not_to_be_empty()
    expect(page.locator("#submit-name")).to_have_value("too-greedy")
    assert server.client.jobs(q="too-greedy")["items"] == []


def test_a_name_that_is_markup_is_shown_as_text_everywhere(server: Any, tab: Any) -> None:
    job = server.client.submit_job(name=HOSTILE, model="cifar10")

    page = tab.open(f"{server.url}/jobs/{job['id']}")
    expect(page.locator(".page-title")).to_have_text(HOSTILE)
    page.goto(server.url + "/jobs")
    expect(page.locator(".ag-row a", has_text="<script>").first).to_be_visible()
    page.goto(server.url + "/cluster")
    page.wait_for_selector(FULL["/cluster"])

    assert page.evaluate("window.hacked") is None


def test_a_job_is_cancelled_only_after_it_is_confirmed(server: Any, tab: Any) -> None:
    job = server.client.submit_job(name="to-cancel", model="imagenet")
    page = tab.open(f"{server.url}/jobs/{job['id']}")

    page.click("#job-cancel")
    page.get_by_role("button", name="Keep it").click()
    expect(page.get_by_role("dialog")).to_be_hidden()
    assert not server.client.job(job["id"])["cancel_requested"]
    page.click("#job-cancel")
    page.click("#job-cancel-yes")

    expect(page.locator(".page-head .state, #job-actions .caption", has_text="cancel").first).to_be_visible()
    assert server.client.job(job["id"])["cancel_requested"]


def test_filters_stand_in_the_url_and_a_pasted_url_shows_the_same(server: Any, open_tab: Any) -> None:
    server.client.submit_job(name="needle-1", model="bert")
    first = open_tab().open(server.url + "/jobs")
    expect(first.locator(".ag-row a").first).to_be_visible()

    first.keyboard.press("/")
    first.keyboard.type("needle-1")

    expect(first.locator(".ag-row a")).to_have_text(["needle-1"])
    assert first.url.endswith("/jobs?q=needle-1")
    second = open_tab().open(first.url)
    expect(second.locator(".ag-row a")).to_have_text(["needle-1"])
    expect(second.locator("#jobs-search")).to_have_value("needle-1")


def test_one_click_adds_demo_jobs(server: Any, tab: Any) -> None:
    before = server.client.jobs(count="exact")["total"]
    page = tab.open(server.url + "/jobs")
    expect(page.locator(".ag-row a").first).to_be_visible()

    page.click("#jobs-demo")

    expect(page.get_by_text("20 demo jobs added")).to_be_visible()
    assert server.client.jobs(count="exact")["total"] == before + 20


def test_a_round_has_its_own_address_with_the_chosen_cells_framed(server: Any, tab: Any) -> None:
    latest = server.client.round(server.cluster_id)
    page = tab.open(server.url + "/rounds")

    page.locator("#rounds-grid").get_by_role("link", name=str(latest["number"]), exact=True).click()

    expect(page.locator("#round-note")).to_contain_text(f"round {latest['number']},")
    assert page.url.endswith(f"/rounds/{latest['number']}")
    chosen = [column for column in latest["record"]["chosen"] if column is not None]
    expect(page.locator("#round-matrix .layer-above .shapelayer path")).to_have_count(2 * len(chosen))


def test_dark_follows_the_system_and_the_switch_overrides_and_is_kept(server: Any, open_tab: Any) -> None:
    page = open_tab(color_scheme="dark").open(server.url)
    expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", "dark")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")

    page.get_by_text("Light", exact=True).click()
    expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", "light")
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.reload()

    expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", "light")
    assert dark != light


def test_an_unknown_address_says_so_and_leads_back(server: Any, tab: Any) -> None:
    page = tab.open(server.url + "/no/such/page")

    page.get_by_text("There is no page at this address").wait_for()
    page.get_by_role("link", name="Go to the overview").click()

    expect(page.locator(".page-title")).to_have_text("Overview")


def test_a_job_that_is_not_there_says_so(server: Any, tab: Any) -> None:
    page = tab.open(server.url + "/jobs/job_nope")

    expect(page.locator(".page-title")).to_have_text("No such job")


def test_help_opens_by_key_and_focus_is_never_lost(server: Any, tab: Any) -> None:
    page = tab.open(server.url)
    settled(page)

    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    page.keyboard.press("?")

    expect(page.get_by_role("dialog")).to_contain_text("Keyboard shortcuts")


def test_the_badge_tells_when_the_service_no_longer_answers(server: Any, tab: Any) -> None:
    page = tab.open(server.url)
    expect(page.locator("#freshness")).to_have_class(re.compile("live"))

    page.route("**/api/v1/health", lambda route: route.abort())

    expect(page.locator("#freshness")).to_have_class(re.compile("stale"))


def test_the_job_under_the_pointer_stays_lit_on_the_map(server: Any, tab: Any) -> None:
    page = tab.open(server.url + "/cluster")
    page.wait_for_selector(".cluster-map .heatmaplayer image", state="attached")
    plot = "document.querySelector('.cluster-map .js-plotly-plot')"
    page.wait_for_function(f"{plot}.data[0].customdata.flat().some(job => job)")
    row, column, job = page.evaluate(
        f"(() => {{ const jobs = {plot}.data[0].customdata; for (let y = 0; y < jobs.length; y++) for (let x = 0; x < jobs[y].length; x++)"
        " if (jobs[y][x]) return [y, x, jobs[y][x]]; })()"
    )
    rows, columns = page.evaluate(f"[{plot}.data[0].z.length, {plot}.data[0].z[0].length]")
    box = page.locator(".cluster-map .nsewdrag").first.bounding_box()

    page.mouse.move(box["x"] + box["width"] * (column + 0.5) / columns, box["y"] + box["height"] * (row + 0.5) / rows)

    veiled = page.wait_for_function(
        f"(() => {{ const shapes = {plot}.layout.shapes || []; const jobs = {plot}.data[0].customdata;"
        " return shapes.length && shapes.map(shape => jobs[shape.y0 + 0.5][shape.x0 + 0.5] || 'free'); })()"
    ).json_value()
    assert job not in veiled


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"a" * 20_000_001, "more than the 20 MB"),
        (b"\x89PNG\xff\x00", "no text in UTF-8"),
    ],
)
def test_a_workload_file_that_is_refused_says_why_beside_it(content: bytes, words: str, server: Any, tab: Any) -> None:
    page = tab.open(server.url + "/simulate")
    settled(page)
    page.get_by_text("CSV file", exact=True).click()

    page.set_input_files("#simulate-upload input", {"name": "jobs.csv", "mimeType": "text/csv", "buffer": content})

    expect(page.locator("#simulate-csv-error")).to_contain_text(words)


def test_a_file_that_is_too_large_is_named_wherever_it_stands_among_several(server: Any, tab: Any) -> None:
    page = tab.open(server.url + "/simulate")
    settled(page)
    page.get_by_text("CSV file", exact=True).click()
    small = b"name,time,application,num_replicas,batch_size\na,0,cifar10,1,128\n"
    files = [
        {"name": name, "mimeType": "text/csv", "buffer": content} for name, content in (("a.csv", small), ("b.csv", b"a" * 20_000_001))
    ]

    page.set_input_files("#simulate-upload input", files)
    expect(page.locator("#simulate-csv-error")).to_contain_text("b.csv has 20.0 MB")

    page.set_input_files("#simulate-upload input", files[:1])
    expect(page.locator("#simulate-file")).to_contain_text("a.csv: 2 lines")
    expect(page.locator("#simulate-csv-error")).to_have_text("")


def test_a_wrong_cell_of_a_workload_is_named_with_its_row_and_value(server: Any, tab: Any) -> None:
    page = tab.open(server.url + "/simulate")
    settled(page)
    page.get_by_text("CSV file", exact=True).click()
    lines = b"name,time,application,num_replicas,batch_size\na,0,cifar10,1,128\nb,0,frobnicate,1,128\n"
    page.set_input_files("#simulate-upload input", {"name": "jobs.csv", "mimeType": "text/csv", "buffer": lines})
    expect(page.locator("#simulate-file")).to_contain_text("3 lines")

    page.click("#simulate-button")

    expect(page.locator("#simulate-csv-error")).to_contain_text("row 3")
    expect(page.locator("#simulate-csv-error")).to_contain_text("frobnicate")
