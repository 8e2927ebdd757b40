"""Rounds in a real browser: their addresses, and the matrix of each."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

import pytest
from playwright.sync_api import expect

from browser.conftest import wait_until
from browser.pages import wait_in_page

pytestmark = pytest.mark.needs_chromium

LABELS = "[...document.querySelectorAll('#round-matrix .ytick text')]"
# What is shown beside the cells, without the whole names under the pointer.
NAMES = f"""{LABELS}.map(label => [...label.childNodes]
    .filter(part => part.nodeName !== 'title').map(part => part.textContent).join(''))"""
NAMES_END = f"Math.max(...{LABELS}.map(label => label.getBoundingClientRect().right))"
CELLS_BEGIN = "document.querySelector('#round-matrix .hm').getBoundingClientRect().left"


@pytest.mark.long
def test_a_link_to_a_round_opens_that_round(server: Any, inside: Any) -> None:
    number = server.client.rounds(server.cluster_id)["items"][-1]["number"]

    page = inside.follow(f"{server.url}/rounds/{number}")

    expect(page.locator("#round-note")).to_contain_text(f"round {number},")
    expect(page.locator("#rounds-grid .ag-row.shown")).to_be_in_viewport()
    expect(page.locator("#round-facts")).to_contain_text("Policy")
    assert inside.witness.errors == []


@pytest.mark.parametrize("number", ["999999", pytest.param("abc", marks=pytest.mark.long)])
def test_a_link_to_a_round_that_is_not_there_says_so(number: str, server: Any, inside: Any) -> None:
    page = inside.follow(f"{server.url}/rounds/{number}")

    expect(page.locator("#round-facts")).to_contain_text(f"There is no round {number}")


def test_a_round_has_its_own_address_with_the_chosen_cells_framed(server: Any, inside: Any) -> None:
    latest = server.client.round(server.cluster_id)
    page = inside.follow(server.url + "/rounds")

    page.locator("#rounds-grid").get_by_role("link", name=str(latest["number"]), exact=True).click()

    expect(page.locator("#round-note")).to_contain_text(f"round {latest['number']},")
    assert f"/rounds/{latest['number']}?cluster={server.cluster_id}" in page.url
    expect(page.locator("#rounds-grid .ag-row.shown")).to_contain_text(str(latest["number"]))
    expect(page.locator("#rounds-prices .shapelayer path")).to_have_count(1)
    chosen = [column for column in latest["record"]["chosen"] if column is not None]
    frames = page.locator("#round-matrix .layer-above .shapelayer path")
    expect(frames).to_have_count(2)
    for frame in frames.all():
        assert (frame.get_attribute("d") or "").count("M") == len(chosen)


def test_the_rounds_page_speaks_of_one_latest_round(server: Any, inside: Any) -> None:
    page = inside.follow(server.url + "/rounds")
    page.wait_for_selector("#round-matrix .shapelayer path", state="attached")
    agreed, ahead = set(), list[tuple[int, int]]()

    def numbers() -> bool:
        """Read both numbers between two redraws.

        A busy browser draws the grid after the note, never before it.
        """
        note, first = page.evaluate(
            "[document.querySelector('#round-note').textContent,"
            " document.querySelector('#rounds-grid [row-index=\"0\"] a').textContent]"
        )
        said = int(re.search(r"round ([\d ]+),", note)[1].replace(" ", ""))  # type: ignore[index]
        listed = int(first)
        if said == listed:
            agreed.add(said)
        elif listed > said:
            ahead.append((said, listed))
        return len(agreed) > 4

    wait_until(numbers, "five rounds of which both speak")
    assert ahead == []


@pytest.mark.long
def test_the_matrix_of_a_round_has_its_height_when_its_address_is_opened(
    server: Any, tab: Any
) -> None:
    number = server.client.rounds(server.cluster_id)["items"][0]["number"]
    page = tab.open(f"{server.url}/rounds/{number}")

    page.wait_for_selector("#round-matrix .shapelayer path", state="attached")

    wait_in_page(page, "document.querySelector('#round-matrix').clientHeight > 200")


def test_names_beside_the_matrix_take_the_room_that_there_is(server: Any, inside: Any) -> None:
    name = "a-name-of-forty-letters-&-<b>bold</b>-01"
    job = server.client.submit_job({"name": name, "model": "imagenet"})

    def is_decided() -> bool:
        record = server.client.round(server.cluster_id)["record"]
        return record is not None and name in record["job_names"]

    wait_until(is_decided, "a round with the job")
    inside.page.set_viewport_size({"width": 1920, "height": 1080})
    page = inside.follow(f"{server.url}/rounds")
    whole = f"{NAMES}.some(label => label.endsWith({json.dumps(name)}))"
    cut = f"{NAMES}.some(label => /a-name-of-.*….*bold<.b>-01$/.test(label))"
    for width, shown in ((1920, whole), (1280, cut), (1920, whole)):
        page.set_viewport_size({"width": width, "height": 1080})
        wait_in_page(page, shown)
        wait_in_page(page, f"{NAMES_END} <= {CELLS_BEGIN} + 1")
    server.client.cancel_job(job["id"])


def test_every_label_of_the_matrix_can_be_read_on_a_phone(server: Any, inside: Any) -> None:
    name = "wide-" + "w" * 40
    job = server.client.submit_job({"name": name, "model": "imagenet"})

    def is_decided() -> bool:
        record = server.client.round(server.cluster_id)["record"]
        return record is not None and name in record["job_names"]

    wait_until(is_decided, "a round with the job")
    inside.page.set_viewport_size({"width": 390, "height": 844})
    page = inside.follow(f"{server.url}/rounds")
    page.wait_for_selector("#round-matrix .shapelayer path", state="attached")

    labels = page.locator("#round-matrix .xaxislayer-above .xtick text")
    wait_in_page(
        page,
        "document.querySelector('#round-matrix-room').style.minWidth"
        " && document.querySelector('#round-matrix svg').clientWidth > 400",
    )
    boxes = sorted(
        labels.evaluate_all(
            "labels => labels.map(label => label.getBoundingClientRect())"
            ".map(box => [box.left, box.right])"
        )
    )

    assert len(boxes) > 5
    assert [one for one, other in pairwise(boxes) if other[0] < one[1] - 1] == []
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    server.client.cancel_job(job["id"])
