"""Browser tests of What if on the page of the cluster, answered by a real worker."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from browser.pages import await_value, error_beside
from maat.client import calls

pytestmark = pytest.mark.needs_chromium
# The tables of the answer that are hidden or wider than their places.
MISFITS = """() => [...document.querySelectorAll('#what-if .scroll-x')]
    .filter(place => place.clientWidth === 0 || place.scrollWidth > place.clientWidth)
    .map(place => `${place.scrollWidth} in ${place.clientWidth}: ${place.outerHTML}`)"""

# What is waited for long has the widest cells.
LONGEST = """() => document.querySelectorAll('#what-if-sides td')
    .forEach(cell => { cell.textContent = '12 h 56 min'; })"""


def test_nodes_are_added_and_the_verdict_and_both_sides_are_shown(
    laboratory: Any, tab: Any
) -> None:
    asked: list[str] = []
    tab.page.on("request", lambda request: asked.append(request.post_data or ""))
    page = tab.open(f"{laboratory.url}/cluster")
    page.locator("#cluster-map .gpu-job").first.wait_for()
    assert [body for body in asked if '"what-if' in body] == []  # folded, it costs nothing
    page.get_by_text("Drain nodes, add nodes, let another policy or placer decide").click()
    field = page.get_by_label("Add nodes by GPU type")
    field.fill("two a100")
    await_value(page, "what-if-add", "two a100")
    page.locator("#what-if-ask").click()
    expect(error_beside(page, "what-if-add")).to_contain_text("Write for example")

    field.fill("a100=2x8")
    field.press("Enter")

    shown = page.locator("#what-if")
    few = r"In \d+ draws? so far, of"  # as many as a busy machine plays
    expect(shown).to_contain_text(re.compile(rf"(Of|{few}) \d+ jobs?, (none|\d+) (usually )?ends?"))
    expect(shown).to_contain_text(re.compile(r"From \d+ draws?.*, as of now"))
    expect(page.get_by_role("table", name="All jobs that have not ended")).to_be_visible()
    page.evaluate(LONGEST)
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate(MISFITS) == []
    expect(error_beside(page, "what-if-add")).to_have_count(0)
    expect(page.locator("#what-if-cancel")).to_be_hidden()
    assert parse_qs(urlsplit(page.url).query)["add"] == ["a100=2x8"]
    assert tab.witness.errors == []


def test_an_address_opens_its_question_and_a_refusal_stands_beside_its_field(
    server: Any, inside: Any
) -> None:
    page = inside.follow(f"{server.url}/cluster?drain=nowhere&add=t4%3D1x4&policy=fifo")

    expect(page.get_by_label("Add nodes by GPU type")).to_have_value("t4=1x4")
    expect(page.locator("#what-if-policy")).to_have_value("FIFO")
    page.locator("#what-if-ask").click()

    expect(error_beside(page, "what-if-drain")).to_contain_text("no node of this name")
    asked = parse_qs(urlsplit(page.url).query)
    assert (asked["drain"], asked["policy"]) == (["nowhere"], ["fifo"])
    assert [error for error in inside.witness.errors if "422" not in error] == []


def test_a_placer_and_parameters_are_asked_and_kept_in_the_address(
    laboratory: Any, inside: Any
) -> None:
    page = inside.follow(f"{laboratory.url}/cluster?policy=sia&policy_parameter=p%3D-99")
    power = page.get_by_role("textbox", name="p", exact=True)
    expect(power).to_have_value("-99")
    page.locator("#what-if-ask").click()
    refused = page.locator("#what-if-parameters .mantine-InputWrapper-error")
    expect(refused).to_contain_text("-10")

    power.fill("-2")
    page.locator("#what-if-placer").click()
    page.get_by_role("option", name="Random, sticky").click()
    page.get_by_role("combobox", name="chance").or_(page.get_by_label("chance")).first.click()
    page.get_by_role("option", name="run", exact=True).click()
    page.wait_for_url(re.compile("placer_parameter=chance%3Drun"))
    asked = parse_qs(urlsplit(page.url).query)
    page.locator("#what-if-ask").click()

    assert (asked["policy_parameter"], asked["placer"]) == (["p=-2"], ["random-sticky"])
    expect(page.locator("#what-if")).to_contain_text(re.compile(r"From \d+ draws?.*, as of now"))
    expect(refused).to_have_count(0)
    page.locator("#what-if-placer").press("Escape")
    assert [error for error in inside.witness.errors if "422" not in error] == []


def test_bounds_on_moves_are_asked_and_both_sides_say_them(laboratory: Any, inside: Any) -> None:
    page = inside.follow(f"{laboratory.url}/cluster?stay=soon")
    stay = page.get_by_label("Least stay of a job (s)")
    moves = page.get_by_label("Most moves of a job in an hour")
    expect(stay).to_have_value("soon")
    moves.fill("0")
    await_value(page, "what-if-moves", "0")
    page.locator("#what-if-ask").click()
    expect(error_beside(page, "what-if-stay")).to_contain_text("Give a number.")
    expect(error_beside(page, "what-if-moves")).to_contain_text("Give 1 to 3 600.")

    stay.fill("600")
    moves.fill("none")
    await_value(page, "what-if-moves", "none")
    page.locator("#what-if-ask").click()

    expect(page.locator("#what-if")).to_contain_text(re.compile(r"From \d+ draws?.*, as of now"))
    expect(error_beside(page, "what-if-stay")).to_have_count(0)
    bounds = page.locator("#what-if-sides tr", has_text="Bound on moves").locator("td")
    expect(bounds).to_have_text(["no bound", "least stay 10 min"])
    asked = parse_qs(urlsplit(page.url).query)
    assert (asked["stay"], asked["moves"]) == (["600"], ["none"])
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate(MISFITS) == []
    assert inside.witness.errors == []


def test_a_policy_that_is_chosen_begins_with_what_the_cluster_has_of_it(
    server: Any, inside: Any
) -> None:
    nodes = [{"gpu_type": "t4", "gpu_count": 4}]
    las = {"policy": "las", "policy_parameters": {"service": "seconds"}}
    cluster = server.client.create_cluster({"name": "of las", "nodes": nodes, **las})["id"]
    page = inside.follow(f"{server.url}/cluster?cluster={cluster}")
    page.locator("#what-if-open").click()
    page.get_by_text("Parameters of policies and placers").click()
    expect(page.locator("#what-if-parameters")).to_have_text("Choose a policy or a placer first.")

    page.locator("#what-if-policy").click()
    page.get_by_role("option", name="LAS", exact=True).click()

    page.wait_for_url(re.compile("policy_parameter=service%3Dseconds"))
    page.locator("#what-if-policy").click()
    page.get_by_role("option", name="FIFO", exact=True).click()
    page.wait_for_url(lambda url: "policy=fifo" in url and "policy_parameter" not in url)
    server.client.send(calls.act_on_cluster(cluster, "pause"))
