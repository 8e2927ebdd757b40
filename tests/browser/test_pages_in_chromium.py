"""What a person does on the pages, in a real browser, against a real service and worker."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from browser.pages import await_value, wait_in_page, without_push

pytestmark = pytest.mark.needs_chromium

# What is there only when the data of the submit form has come through.
FORM_DATA = "#submit-preview .scatterlayer .trace"


def settled(page: Page) -> None:
    """The first data has arrived."""
    expect(page.locator("#cluster-select")).not_to_have_value("")


@pytest.mark.parametrize(
    "path",
    [
        "/",
        pytest.param("/jobs", marks=pytest.mark.long),
        pytest.param("/cluster", marks=pytest.mark.long),
        pytest.param("/rounds", marks=pytest.mark.long),
    ],
)
def test_without_a_cluster_a_page_says_so_and_what_to_do(
    path: str, empty_server: Any, inside: Any
) -> None:
    page = inside.follow(empty_server.url + path)

    expect(page.get_by_text("No cluster yet").first).to_be_visible()

    assert inside.witness.errors == []


def test_an_empty_chart_has_the_height_of_its_words(empty_server: Any, inside: Any) -> None:
    page = inside.follow(empty_server.url + "/rounds")
    words = page.locator("#round-matrix .annotation-text")
    expect(words).to_contain_text("No cluster yet")

    card, text = (
        page.locator(".card", has=page.locator("#round-matrix")).bounding_box(),
        words.bounding_box(),
    )

    assert card["y"] < text["y"]
    assert text["y"] + text["height"] < card["y"] + card["height"]


def test_a_job_submitted_by_the_form_is_shown_and_listed(server: Any, inside: Any) -> None:
    page = inside.follow(server.url + "/submit")
    page.wait_for_selector(FORM_DATA, state="attached")

    page.fill("#submit-name", "from-the-form")
    page.click("#submit-button")

    expect(page.locator(".page-title")).to_have_text("from-the-form")
    assert re.search(r"/jobs/job_\w+$", page.url)
    assert [job["name"] for job in server.client.jobs(q="from-the-form")["items"]] == [
        "from-the-form"
    ]
    inside.follow(server.url + "/jobs?q=from-the-form")
    expect(page.locator(".ag-row a")).to_have_text(["from-the-form"])
    assert inside.witness.errors == []


def test_a_form_is_sent_by_the_keyboard_alone(server: Any, inside: Any) -> None:
    page = inside.follow(server.url + "/jobs")
    settled(page)

    page.keyboard.press("n")
    page.wait_for_selector(FORM_DATA, state="attached")
    page.locator("#submit-name").focus()
    page.keyboard.type("by-keyboard")
    page.keyboard.press("Enter")

    expect(page.locator(".page-title")).to_have_text("by-keyboard")


def test_a_wrong_field_has_its_error_beside_it_and_the_form_keeps_its_values(
    server: Any, inside: Any
) -> None:
    page = inside.follow(server.url + "/submit")
    page.wait_for_selector(FORM_DATA, state="attached")

    page.fill("#submit-name", "too-greedy")
    page.fill("#submit-min-gpus", "8")
    page.fill("#submit-max-gpus", "2")
    await_value(page, "submit-max-gpus", 2)
    page.click("#submit-button")

    field = page.locator(".mantine-NumberInput-root", has=page.locator("#submit-max-gpus"))
    expect(field.locator(".mantine-InputWrapper-error")).not_to_be_empty()
    expect(page.locator("#submit-name")).to_have_value("too-greedy")
    assert server.client.jobs(q="too-greedy")["items"] == []


def test_a_job_is_cancelled_only_after_it_is_confirmed(server: Any, inside: Any) -> None:
    job = server.client.submit_job({"name": "to-cancel", "model": "imagenet"})
    page = inside.follow(f"{server.url}/jobs/{job['id']}")

    page.click("#job-cancel")
    page.get_by_role("button", name="Keep it").click()
    expect(page.get_by_role("dialog")).to_be_hidden()
    assert not server.client.job(job["id"])["cancel_requested"]
    page.click("#job-cancel")
    page.click("#job-cancel-yes")

    expect(
        page.locator(".page-head .state, #job-actions .caption", has_text="cancel").first
    ).to_be_visible()
    assert server.client.job(job["id"])["cancel_requested"]


def test_dark_follows_the_system_and_the_switch_overrides_and_is_kept(
    server: Any, open_tab: Any
) -> None:
    page = open_tab(color_scheme="dark").open(server.url)
    expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", "dark")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")

    page.locator("#scheme-choice label").first.click()
    expect(page.get_by_role("radio", name="Light")).to_be_checked()
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


@pytest.mark.parametrize(
    ("path", "words", "way", "there"),
    [
        ("/jobs/999999", "No such job", "All jobs", "Jobs"),
        pytest.param(
            "/simulations/sim_nope",
            "No such simulation",
            "All simulations",
            "Simulate",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "/sweeps/sweep_nope", "No such sweep", "All sweeps", "Sweeps", marks=pytest.mark.long
        ),
    ],
)
def test_what_is_not_there_has_one_state_that_says_so_and_leads_to_the_list(
    path: str, words: str, way: str, there: str, server: Any, inside: Any
) -> None:
    page = inside.follow(server.url + path)
    page.get_by_text(words, exact=True).wait_for()

    expect(page.locator("main .card:visible")).to_have_count(1)
    expect(page.locator("main .mantine-Skeleton-root:visible")).to_have_count(0)
    page.get_by_role("link", name=way, exact=True).click()

    expect(page.locator(".page-title")).to_contain_text(there)
    assert [error for error in inside.witness.errors if "404" not in error] == []


def test_help_opens_by_key_and_focus_is_never_lost(server: Any, tab: Any) -> None:
    page = tab.open(server.url)
    settled(page)

    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    page.keyboard.press("?")

    expect(page.get_by_role("dialog")).to_contain_text("Keyboard shortcuts")


def test_the_badge_tells_when_the_service_no_longer_answers(server: Any, tab: Any) -> None:
    without_push(tab.page)
    page = tab.open(server.url)
    expect(page.locator("#freshness")).to_have_class(re.compile("live"))

    page.route("**/api/v1/health", lambda route: route.abort())

    expect(page.locator("#freshness")).to_have_class(re.compile("stale"))


@pytest.mark.parametrize(
    ("content", "name", "words"),
    [
        pytest.param(b"a" * 20_000_001, "jobs.csv", "more than the 8 MB", marks=pytest.mark.long),
        (b"\x89PNG\xff\x00", "jobs.csv", "is a binary file"),
        pytest.param(
            b"\x89PNG\xff\x00",
            "jobs.png",
            "jobs.png: only .csv is read here.",
            marks=pytest.mark.long,
        ),
        pytest.param(b"", "jobs.csv", "jobs.csv is empty.", marks=pytest.mark.long),
    ],
    ids=["large", "no text", "a picture", "empty"],
)
def test_a_workload_file_that_is_refused_says_why_beside_it(
    content: bytes, name: str, words: str, server: Any, inside: Any, tmp_path: Path
) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    page = inside.follow(server.url + "/simulate")
    settled(page)
    page.get_by_text("CSV file", exact=True).click()

    page.set_input_files("#simulate-upload input", file)

    expect(page.locator("#simulate-csv-error")).to_contain_text(words)


@pytest.mark.long
def test_a_file_that_is_too_large_is_named_wherever_it_stands_among_several(
    server: Any, inside: Any, tmp_path: Path
) -> None:
    page = inside.follow(server.url + "/simulate")
    settled(page)
    page.get_by_text("CSV file", exact=True).click()
    files = [tmp_path / name for name in ("a.csv", "b.csv")]
    files[0].write_bytes(b"name,time,application,num_replicas,batch_size\na,0,cifar10,1,128\n")
    files[1].write_bytes(b"a" * 20_000_001)

    page.set_input_files("#simulate-upload input", files)
    expect(page.locator("#simulate-csv-error")).to_contain_text("b.csv has 20.0 MB")

    halves = [tmp_path / name for name in ("c.csv", "d.csv")]
    for half in halves:
        half.write_bytes(b"a" * 5_000_000)
    page.set_input_files("#simulate-upload input", halves)
    expect(page.locator("#simulate-csv-error")).to_contain_text(
        "The files have 10.0 MB together, more than the 8 MB"
    )

    page.set_input_files("#simulate-upload input", files[:1])
    expect(page.locator("#simulate-file")).to_contain_text("a.csv: 2 lines")
    expect(page.locator("#simulate-csv-error")).to_have_text("")


def test_a_workload_without_a_good_row_is_refused_by_a_wrong_cell_with_row_and_value(
    server: Any, inside: Any
) -> None:
    page = inside.follow(server.url + "/simulate")
    settled(page)
    page.get_by_text("CSV file", exact=True).click()
    lines = b"name,time,application,num_replicas,batch_size\nb,0,frobnicate,1,128\n"
    page.set_input_files(
        "#simulate-upload input", {"name": "jobs.csv", "mimeType": "text/csv", "buffer": lines}
    )
    expect(page.locator("#simulate-file")).to_contain_text("2 lines")

    page.click("#simulate-button")

    expect(page.locator("#simulate-csv-refused")).to_contain_text("row 2")
    expect(page.locator("#simulate-csv-refused")).to_contain_text("frobnicate")


def test_figures_that_are_not_of_now_are_pale_and_say_of_when_they_are(
    server: Any, tab: Any
) -> None:
    without_push(tab.page)
    page = tab.open(server.url)
    value = page.locator(".tile-value").first
    expect(value).to_have_css("opacity", "1")
    expect(page.locator("#stale-note")).to_be_empty()
    age = {"state": "stale", "last_round_age_seconds": 125.0}

    page.route(
        "**/api/v1/health", lambda route: route.fulfill(json={"status": "degraded", "worker": age})
    )

    expect(page.locator("#stale-note")).to_contain_text("how it stood 2 min ago, at ")
    expect(value).to_have_css("opacity", "0.45")
    expect(
        page.locator("#overview-usage").locator("xpath=ancestor::*[contains(@class, 'graph')][1]")
    ).to_have_css("filter", "grayscale(1)")
    page.locator(".nav-link", has_text="Measurements").click()
    expect(page.locator("#stale-note")).to_be_empty()
    page.unroute("**/api/v1/health")


def test_a_round_is_on_the_page_without_being_asked_for(server: Any, tab: Any) -> None:
    page = tab.open(server.url)
    expect(page.locator("#freshness")).to_have_class(re.compile("live"))
    wait_in_page(page, "maat.push.health() !== null && maat.push.version() !== null")
    page.route("**/api/v1/health", lambda route: route.abort())
    shown = page.locator(".tile", has_text="Round").locator(".tile-value")

    for _ in range(2):
        expect(shown).not_to_have_text(shown.inner_text())

    expect(page.locator("#freshness")).to_have_class(re.compile("live"))


def test_a_full_disk_is_told_on_every_page(server: Any, tab: Any) -> None:
    without_push(tab.page)
    page = tab.open(server.url)
    well = {"state": "ok", "last_round_age_seconds": 1.0}
    told = {"status": "degraded", "disk": "full", "worker": well}
    page.route("**/api/v1/health", lambda route: route.fulfill(json=told))
    expect(page.get_by_text("the disk of Maat is full")).to_be_visible()
    page.unroute("**/api/v1/health")


@pytest.mark.long
def test_a_page_that_follows_from_a_press_begins_at_its_top(server: Any, tab: Any) -> None:
    page = tab.open(server.url + "/submit")
    page.wait_for_selector(FORM_DATA, state="attached")
    page.fill("#submit-name", "from-below")
    page.evaluate(
        "document.querySelector('#content').style.minHeight = '3000px'; window.scrollTo(0, 400)"
    )
    assert page.evaluate("window.scrollY") == 400

    page.locator("#submit-name").press("Enter")

    expect(page.locator(".page-title")).to_have_text("from-below")
    assert page.evaluate("window.scrollY") == 0


def test_a_service_that_stands_still_does_not_look_alive(server: Any, tab: Any) -> None:
    without_push(tab.page)
    page = tab.open(server.url + "/")
    expect(page.locator("#freshness-text")).to_contain_text("live")

    page.route("**/api/v1/health", lambda _unanswered: None)

    expect(page.locator("#freshness-text")).to_contain_text("retrying")
