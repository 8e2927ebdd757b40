"""The list of jobs in a real browser: filters, columns, and names that are cut."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from browser.pages import wait_in_page
from frontend.pages.jobs.columns import USUAL

pytestmark = pytest.mark.needs_chromium


@pytest.mark.long
def test_filters_stand_in_the_url_and_a_pasted_url_shows_the_same(
    server: Any, open_tab: Any
) -> None:
    server.client.submit_job({"name": "needle-1", "model": "bert"})
    first = open_tab().open(server.url + "/jobs")
    expect(first.locator(".ag-row a").first).to_be_visible()

    first.keyboard.press("/")
    first.keyboard.type("needle-1")

    expect(first.locator(".ag-row a")).to_have_text(["needle-1"])
    assert first.url.endswith(f"/jobs?cluster={server.cluster_id}&q=needle-1")
    second = open_tab().open(first.url)
    expect(second.locator(".ag-row a")).to_have_text(["needle-1"])
    expect(second.locator("#jobs-search")).to_have_value("needle-1")


def test_one_click_adds_demo_jobs(server: Any, inside: Any) -> None:
    before = server.client.jobs(count="exact")["total"]
    page = inside.follow(server.url + "/jobs")
    expect(page.locator(".ag-row a").first).to_be_visible()

    page.click("#jobs-demo")

    expect(page.get_by_text("20 demo jobs added")).to_be_visible()
    assert server.client.jobs(count="exact")["total"] == before + 20


def test_usual_names_of_jobs_are_whole_at_1280_pixels_below_a_sentence_on_who_waits(
    server: Any, inside: Any
) -> None:
    name = "deepspeech2-long-run-0023-16"
    if not server.client.jobs(q=name)["items"]:
        server.client.submit_job({"name": name, "model": "deepspeech2"})
    page = inside.follow(f"{server.url}/jobs?q={name}")
    begin = page.locator(".ag-row a .cut-begin")

    expect(page.locator("#jobs-verdict")).to_contain_text("of 1 job")
    wait_in_page(
        page,
        "(begin => begin && begin.scrollWidth <= begin.clientWidth + 1)"
        "(document.querySelector('.ag-row a .cut-begin'))",
    )
    assert begin.text_content() == name[:-10]


@pytest.mark.parametrize(
    ("width", "restarts"), [(1280, 0), pytest.param(1920, 1, marks=pytest.mark.long)]
)
def test_every_column_of_the_jobs_has_room_and_a_long_name_keeps_its_end(
    width: int, restarts: int, server: Any, inside: Any
) -> None:
    name = "team16-evaluation-of-the-large-model-0042"
    if not server.client.jobs(q=name)["items"]:
        server.client.submit_job({"name": name, "model": "deepspeech2"})
    inside.page.set_viewport_size({"width": width, "height": 900})
    columns = (*USUAL, "restarts") if restarts else ()
    chosen = "".join(f"&column={column}" for column in columns)
    page = inside.follow(f"{server.url}/jobs?q=team16{chosen}")
    link = page.locator(".ag-row a")
    expect(link).to_have_text(name)
    expect(page.locator(".ag-header-cell", has_text="Restarts")).to_have_count(restarts)

    cut = page.evaluate(
        """() => [...document.querySelectorAll(
                '.ag-header-cell-text, .ag-row .ag-cell:not([col-id="name"])')]
            .filter(cell => cell.scrollWidth > cell.clientWidth).map(cell => cell.textContent)"""
    )
    end = link.locator("span").last

    assert cut == []
    assert end.text_content() == name[-10:]
    assert end.evaluate(
        "end => end.getBoundingClientRect().right"
        " <= end.closest('.ag-cell').getBoundingClientRect().right"
    )
    viewport = page.locator(".ag-center-cols-viewport")
    assert viewport.evaluate("grid => grid.scrollWidth <= grid.clientWidth")


def test_long_names_of_jobs_are_told_apart_on_one_line_of_a_phone(server: Any, inside: Any) -> None:
    names = [
        f"vision-sweep-lr-{rate}-batch-{batch}-seed-0"
        for rate in ("0.1", "0.2")
        for batch in (64, 128)
    ]
    server.client.submit_jobs([{"name": name, "model": "cifar10"} for name in names])
    inside.page.set_viewport_size({"width": 390, "height": 844})
    page = inside.follow(f"{server.url}/jobs?q=vision-sweep&sort=name")
    links = page.locator(".ag-row a.cut-in-middle")
    expect(links).to_have_text(sorted(names))

    seen = page.evaluate(
        """() => [...document.querySelectorAll('.ag-row a.cut-in-middle')].map(link =>
            [...link.children].map(part => {
                const share = Math.min(1, part.clientWidth / part.scrollWidth || 1);
                const letters = part.textContent.length * share;
                return part.textContent.slice(0, Math.floor(letters));
            }).join('…'))"""
    )
    assert len(set(seen)) == len(names)
    tops = "link => [...link.children].map(part => part.getBoundingClientRect().top)"
    assert len(set(links.first.evaluate(tops))) == 1
    assert page.evaluate(
        "[...document.querySelectorAll('.cut-begin + span')]"
        ".every(end => end.getBoundingClientRect().right"
        " <= end.closest('.ag-cell').getBoundingClientRect().right)"
    )
    cell = page.locator(".ag-row [col-id='name']").first
    assert cell.evaluate("cell => cell.scrollHeight <= cell.clientHeight + 1")
    cell.focus()
    if page.evaluate(
        "document.querySelector('.cut-begin').scrollWidth"
        " > document.querySelector('.cut-begin').clientWidth + 1"
    ):
        expect(page.locator("#name-tip")).to_have_text(sorted(names)[0])

    page.set_viewport_size({"width": 1600, "height": 844})
    wait_in_page(
        page,
        "[...document.querySelectorAll('.cut-begin')]"
        ".every(begin => begin.scrollWidth <= begin.clientWidth)",
    )


def test_columns_stand_apart_on_a_wide_screen_and_close_up_again(server: Any, inside: Any) -> None:
    model = ".ag-header-cell[col-id='model']"
    inside.page.set_viewport_size({"width": 1280, "height": 900})
    page = inside.follow(f"{server.url}/jobs")
    page.locator(".ag-row a").first.wait_for()

    def await_width(least: int, most: int) -> None:
        wide = "([cell, least, most]) => { const { width } = document.querySelector(cell)"
        wait_in_page(
            page,
            f"{wide}.getBoundingClientRect(); return width >= least && width <= most; }}",
            [model, least, most],
        )

    await_width(60, 120)
    page.set_viewport_size({"width": 1920, "height": 900})
    await_width(125, 260)
    page.set_viewport_size({"width": 1280, "height": 900})
    await_width(60, 120)


@pytest.mark.parametrize(
    ("name", "begin"),
    [
        ("a" * 20 + "\N{ROCKET}" + "b" * 9, "a" * 20),
        ("\u202eevil-name-of-a-job-0001", "\u202eevil-name-of-a-job-0001"),
        ("\u05d0\u05d1\u05d2-training-of-a-model", "\u05d0\u05d1\u05d2-training-of-a-model"),
    ],
    ids=["a letter of two units", "a mark of direction", "a script from right to left"],
)
def test_a_name_is_cut_between_letters_and_not_where_its_parts_would_turn(
    name: str, begin: str, server: Any, inside: Any
) -> None:
    job = server.client.submit_job({"name": name, "model": "bert"})
    page = inside.follow(f"{server.url}/jobs?q={job['id']}")

    link = page.locator(f".ag-row a[href='/jobs/{job['id']}']")
    expect(link.locator(".cut-begin")).to_be_visible()
    assert link.locator(".cut-begin").text_content() == begin
    assert link.text_content() == name
