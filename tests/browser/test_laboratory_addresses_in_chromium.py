"""Browser tests of the forms of the laboratory: their address keeps them."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from browser.pages import await_value
from maat.client import calls

pytestmark = pytest.mark.needs_chromium

PENALTY = 'input[id*="policy:sia"][id*="idle_penalty"]'


def expect_form(page: Page) -> None:
    expect(page.locator("#simulate-name")).to_have_value("night")
    expect(page.locator("#simulate-jobs")).to_have_value("12")
    expect(page.locator("#simulate-cluster")).to_have_value("a100=1x4")
    expect(page.locator("#simulate-seeds")).to_have_value("")
    expect(page.locator("#simulate-hours")).to_have_value("4")


def test_what_is_typed_is_in_the_address_and_outlives_a_reload(
    server: Any, inside: Any, open_tab: Any
) -> None:
    page = inside.follow(f"{server.url}/simulate")
    for field, text in (("name", "night"), ("jobs", "12"), ("cluster", "a100=1x4"), ("seeds", "")):
        page.locator(f"#simulate-{field}").fill(text)
        page.locator(f"#simulate-{field}").blur()
    expect(page).to_have_url(
        re.compile(r"/simulate\?cluster=\w+&name=night&jobs=12&gpus=a100%3D1x4&empty=seeds$")
    )

    other = open_tab().open(page.url)

    expect_form(other)
    other.reload()
    expect_form(other)
    expect(other).to_have_url(page.url)
    expect(other.locator(".address-note:visible")).to_have_count(0)


def expect_sweep(page: Page) -> None:
    expect(page.locator("#sweeps-name")).to_have_value("powers")
    expect(page.locator("#sweeps-vary2")).to_have_value("Policy")
    expect(page.locator("#sweeps-values1")).to_have_value("2, 3")
    expect(page.locator("#sweeps-values2")).to_have_value("sia, fifo, srtf")
    expect(page.locator("#sweeps-values2")).to_be_enabled()


def test_a_sweep_that_is_described_is_in_the_address_and_outlives_a_reload(
    server: Any, inside: Any, open_tab: Any
) -> None:
    page = inside.follow(f"{server.url}/sweeps")
    for field, text in (("name", "powers"), ("values1", "2, 3")):
        page.locator(f"#sweeps-{field}").fill(text)
        page.locator(f"#sweeps-{field}").blur()
    page.locator("#sweeps-vary2").click()
    page.get_by_role("option", name="Policy", exact=True).click()
    expect(page).to_have_url(
        re.compile(
            r"/sweeps\?cluster=\w+&name=powers&values1=2%2C\+3&vary2=policy"
            r"&values2=sia%2C\+fifo%2C\+srtf$"
        )
    )
    expect_sweep(page)

    other = open_tab().open(page.url)

    expect_sweep(other)
    other.reload()
    expect_sweep(other)
    expect(other).to_have_url(page.url)
    expect(other.locator(".address-note:visible")).to_have_count(0)


def test_a_simulation_that_was_cancelled_is_changed_and_run_again(server: Any, inside: Any) -> None:
    trace = {"kind": "generated", "family": "philly", "jobs": 12, "hours": 4, "seed": 1}
    body = {"name": "night", "cluster": "a100=1x4", "traces": [trace], "runs": [{"policy": "las"}]}
    made = server.client.send(calls.simulate(body))
    server.client.send(calls.cancel_operation(made["operation_id"]))
    page = inside.follow(f"{server.url}/simulations/{made['id']}")

    page.get_by_role("link", name="Change and run again").click()

    expect(page.locator("#simulate-name")).to_have_value("night")
    expect(page.locator("#simulate-jobs")).to_have_value("12")
    expect(page.locator("#simulate-cluster")).to_have_value("a100=1x4")
    expect(page.locator("#simulate-runs")).to_have_text("1 run")
    expect(page).to_have_url(
        re.compile(r"/simulate\?(cluster=\w+&)?name=night&jobs=12&gpus=a100%3D1x4&policies=las")
    )
    expect(page.locator(".address-note:visible")).to_have_count(0)


def test_conditions_reservations_and_parameters_are_in_the_address(
    server: Any, inside: Any, open_tab: Any
) -> None:
    page = inside.follow(f"{server.url}/simulate")
    penalty = page.locator(PENALTY)
    page.locator("#simulate-parameters-box summary").click()
    penalty.fill("2.5")
    page.locator("#simulate-conditions summary").click()
    for field, text in (
        ("mtbf_hours", "50"),
        ("reserve-type", "a100"),
        ("reserve-holder", "team: <b>"),
        ("reserve-until", "10"),
    ):
        page.locator(f"#simulate-{field}").fill(text)
        page.locator(f"#simulate-{field}").blur()
    await_value(page, "simulate-reserve-holder", "team: <b>")
    page.locator("#simulate-reserve-add").click()
    page.locator("#simulate-reservations-list tr").wait_for()
    expect(page).to_have_url(re.compile(r"mtbf_hours=50"))
    expect(page).to_have_url(re.compile(r"reservation=4%3Aa100%3A0%3A10%3Atenant%3Ateam%3A"))
    expect(page).to_have_url(re.compile(r"policy_parameter=sia%3Aidle_penalty%3D2\.5"))

    other = open_tab().open(page.url)

    for _ in range(2):
        expect(other.locator(PENALTY)).to_have_value("2.5")
        expect(other.locator("#simulate-mtbf_hours")).to_have_value("50")
        expect(other.locator("#simulate-reservations-list tr")).to_contain_text("team: <b>")
        expect(other.locator("#simulate-reservations-list tr")).to_have_count(1)
        expect(other).to_have_url(page.url)
        other.reload()
    other.locator(PENALTY).fill("")
    expect(other).not_to_have_url(re.compile("policy_parameter"))
    other.get_by_role("button", name="Remove the reservation").click()
    expect(other).not_to_have_url(re.compile("reservation="))
    expect(other.locator(".address-note:visible")).to_have_count(0)


def test_what_an_address_names_and_nobody_offers_is_told(server: Any, inside: Any) -> None:
    asked = "policies=fifo&policies=nosuch&fidelity=qq&policy_parameter=fifo:nope=1"
    page = inside.follow(f"{server.url}/simulate?{asked}&policy_parameter=las:x=1")
    note = page.locator("#simulate-unknown")
    expect(note).to_contain_text("There is no policy “nosuch”.")
    expect(note).to_contain_text("There is no fidelity “qq”.")
    expect(page.locator("#simulate-fidelity")).to_have_value("paper")
    expect(page.locator("#simulate-runs")).to_have_text("1 run")
    told = page.locator("#simulate-parameters")
    expect(told).to_contain_text("The address sets “nope=1”, which FIFO does not take.")
    expect(told).to_contain_text("The address sets “x=1” of las, which is not chosen.")

    # What is chosen since stays, also when a refusal has the choices offered again.
    page.evaluate("maat.setProps('simulate-policies', { value: ['srtf', 'gavel'] })")
    page.locator("#simulate-name").fill("")
    page.locator("#simulate-button").click()
    expect(page.locator("#simulate-name")).to_be_focused()
    page.wait_for_timeout(1000)
    expect(page.locator("#simulate-runs")).to_have_text("2 runs")


def test_a_sweep_offers_the_settings_that_its_policy_has(server: Any, inside: Any) -> None:
    page = inside.follow(f"{server.url}/sweeps?policy=fifo")
    expect(page.locator("#sweeps-vary-says")).to_contain_text("FIFO has no fairness power p")
    expect(page.locator("#sweeps-vary1")).to_have_value("Round duration (s)")
    expect(page.locator("#sweeps-values1")).to_have_value("60, 120, 300")
    page.locator("#sweeps-vary1").click()
    expect(page.get_by_role("option", name="Policy", exact=True)).to_be_visible()
    expect(page.get_by_role("option", name="Fairness power p")).to_have_count(0)
