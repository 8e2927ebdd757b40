"""Browser tests of the forms of simulations and sweeps; a real worker plays them."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from browser.barriers import every_barrier
from browser.laboratory import (
    CLUSTER,
    LONG_TRACE,
    PLAY_MILLISECONDS,
    TRACE,
    axes,
    choose,
    give_trace,
    plotted,
)
from browser.pages import await_value, error_beside, wait_in_page

pytestmark = pytest.mark.needs_chromium


def test_a_simulation_is_asked_for_by_the_form_with_its_conditions(
    laboratory: Any, inside: Any
) -> None:
    page = inside.follow(f"{laboratory.url}/simulate")
    page.wait_for_selector("#simulate-list .state-title, #simulate-list table")
    give_trace(page, "simulate", LONG_TRACE)
    page.fill("#simulate-cluster", CLUSTER)
    page.get_by_text("Profiling, bound jobs").click()
    page.fill("#simulate-rigid_share", "0.8")
    page.fill("#simulate-strong_scaling_share", "0.4")
    page.fill("#simulate-reserve-type", "a100")
    page.fill("#simulate-reserve-holder", "vision")
    page.click("#simulate-reserve-add")
    expect(page.locator("#simulate-reservations-list")).to_contain_text(
        "4 × a100 for tenant vision, always"
    )

    page.click("#simulate-button")

    field = page.locator(
        ".mantine-NumberInput-root", has=page.locator("#simulate-strong_scaling_share")
    )
    expect(field.locator(".mantine-InputWrapper-error")).to_contain_text("Give at most 0.2")
    page.fill("#simulate-strong_scaling_share", "0")
    await_value(page, "simulate-strong_scaling_share", 0)
    page.click("#simulate-button")
    expect(page.locator("#simulation-request")).to_contain_text("0.8 rigid")
    expect(page.locator("#simulation-request")).to_contain_text(
        "4 × a100 for tenant vision, always"
    )
    page.click("#simulation-cancel")
    expect(page.locator("#simulation-head .state")).to_contain_text(
        "cancelled", timeout=PLAY_MILLISECONDS
    )
    assert [error for error in inside.witness.errors if "422" not in error] == []


def test_a_simulation_is_asked_for_with_bounds_on_moves(laboratory: Any, inside: Any) -> None:
    page = inside.follow(f"{laboratory.url}/simulate?most_moves_per_hour=4")
    page.wait_for_selector("#simulate-list .state-title, #simulate-list table")
    give_trace(page, "simulate", TRACE)
    page.fill("#simulate-cluster", CLUSTER)
    expect(page.locator("#simulate-most_moves_per_hour")).to_have_value("4")
    page.fill("#simulate-least_stay_seconds", "2592001")
    await_value(page, "simulate-least_stay_seconds", 2592001)

    page.click("#simulate-button")

    expect(error_beside(page, "simulate-least_stay_seconds")).to_contain_text("2592000")
    page.fill("#simulate-least_stay_seconds", "600")
    await_value(page, "simulate-least_stay_seconds", 600)
    page.click("#simulate-button")
    request = page.locator("#simulation-request")
    expect(request).to_contain_text("Least stay")
    expect(request).to_contain_text("10 min")
    expect(request).to_contain_text("Most moves in an hour")
    assert [error for error in inside.witness.errors if "422" not in error] == []


def test_a_field_for_a_number_keeps_and_refuses_what_is_none(laboratory: Any, inside: Any) -> None:
    page = inside.follow(f"{laboratory.url}/simulate?most_moves_per_hour=4")
    page.wait_for_selector("#simulate-list .state-title, #simulate-list table")
    give_trace(page, "simulate", TRACE)
    page.fill("#simulate-cluster", CLUSTER)
    expect(page.locator("#simulate-most_moves_per_hour")).to_have_value("4")
    for name, typed, words in (
        ("least_stay_seconds", "1e9", "is no number"),
        ("least_stay_seconds", "10m", "is no number"),
        ("least_stay_seconds", "none", "is no number"),
        ("most_moves_per_hour", "2.5", "is no whole number"),
        ("slowdown", "1.23456", "has too many decimals"),
        ("least_stay_seconds", "99999999999999999999", "is too long a number"),
    ):
        field = page.locator(f"#simulate-{name}")
        field.click()
        page.keyboard.press("Control+A")
        page.keyboard.type(typed)
        expect(field).to_have_value(typed)
        expect(error_beside(page, f"simulate-{name}")).to_contain_text(f"“{typed}” {words}")
        await_value(page, f"simulate-{name}", typed)

    moves = page.locator("#simulate-most_moves_per_hour")
    moves.press("End")
    moves.press("Backspace")
    moves.press("Backspace")
    expect(moves).to_have_value("2")
    expect(moves).to_be_focused()
    moves.press("ArrowUp")
    expect(moves).to_have_value("3")
    await_value(page, "simulate-most_moves_per_hour", 3)
    assert inside.witness.errors == []


def test_a_least_stay_is_varied_beside_no_bound(laboratory: Any, inside: Any) -> None:
    page = inside.follow(
        f"{laboratory.url}/sweeps?vary1=least_stay_seconds&values1=none,600&seeds=0"
    )
    page.wait_for_selector("#sweeps-list .state-title, #sweeps-list table")
    give_trace(page, "sweeps", TRACE)
    page.fill("#sweeps-cluster", CLUSTER)

    page.click("#sweeps-button")

    for row, value in (("#sweep-row-0", "none"), ("#sweep-row-1", "600")):
        expect(page.locator(f"{row} td").first).to_have_text(value, timeout=PLAY_MILLISECONDS)
    assert inside.witness.errors == []


def test_a_part_of_the_form_is_drawn_once_it_is_unfolded_with_what_came_before(
    laboratory: Any, inside: Any
) -> None:
    page = inside.follow(f"{laboratory.url}/simulate")
    group = page.locator(".parameter-group", has_text="FIFO (policy)")
    wait_in_page(page, "maat.layoutOf('simulate-parameters')?.props.children.length >= 3")
    assert group.count() == 0
    assert page.locator("#simulate-rigid_share, #simulate-import-format").count() == 0

    page.get_by_text("Parameters of policies and placers").click()
    rounds = group.locator(".mantine-NumberInput-root", has_text="round seconds").locator("input")
    rounds.fill("90")
    page.get_by_text("Parameters of policies and placers").click()
    expect(rounds).to_be_hidden()
    page.get_by_text("Parameters of policies and placers").click()

    expect(rounds).to_have_value("90")
    assert inside.witness.errors == []


def test_a_part_that_was_folded_again_is_unfolded_by_each_error_in_it(
    laboratory: Any, inside: Any
) -> None:
    shares = "rigid_share=0.8&strong_scaling_share=0.8"
    page = inside.follow(f"{laboratory.url}/simulate?{shares}")
    wrong = page.locator("#simulate-strong_scaling_share")
    title = page.get_by_text("Profiling, bound jobs")
    expect(wrong).to_be_visible()
    page.wait_for_selector("#simulate-list .state-title, #simulate-list table")

    for _ in range(2):
        title.click()
        expect(wrong).to_be_hidden()
        page.click("#simulate-button")
        expect(wrong).to_be_visible()
        expect(wrong).to_be_focused()


@pytest.mark.parametrize("kind", ["csv", pytest.param("import", marks=pytest.mark.long)])
def test_a_file_that_is_missing_leads_to_its_chooser(
    kind: str, laboratory: Any, inside: Any
) -> None:
    page = inside.follow(f"{laboratory.url}/simulate?kind={kind}")
    chooser = page.locator(f"#simulate-{kind} .choose")
    expect(chooser).to_be_visible()
    page.wait_for_selector("#simulate-list .state-title, #simulate-list table")

    page.locator("#simulate-button").press("Enter")

    expect(page.locator(f"#simulate-{kind}-refused")).to_contain_text("first")
    expect(chooser).to_be_focused()


@pytest.mark.long
def test_parameters_of_a_policy_are_set_in_the_form_and_refused_beside_their_field(
    laboratory: Any, inside: Any
) -> None:
    page = inside.follow(f"{laboratory.url}/simulate")
    give_trace(page, "simulate", TRACE)
    page.fill("#simulate-cluster", CLUSTER)
    page.get_by_text("Parameters of policies and placers").click()
    power = page.locator(".mantine-NumberInput-root", has_text="Fairness power")
    expect(power.locator("input")).to_have_attribute("placeholder", "-0.5")
    expect(power).to_contain_text("From -10 to 10. Source: Sia section 3.4.")
    choose(page, "#simulate-fidelity", "pal-artifact")
    rounds = page.locator(".parameter-group", has_text="FIFO (policy)").locator(
        ".mantine-NumberInput-root", has_text="round seconds"
    )
    expect(rounds.locator("input")).to_have_attribute("placeholder", "360 (pal-artifact)")
    choose(page, "#simulate-fidelity", "paper")
    expect(rounds.locator("input")).to_have_attribute("placeholder", "60")

    power.locator("input").fill("99")
    power.locator("input").blur()
    page.click("#simulate-button")
    expect(power.locator(".mantine-InputWrapper-error")).to_contain_text(
        "Give a value from -10 to 10"
    )
    power.locator("input").fill("-1")
    power.locator("input").blur()
    page.click("#simulate-button")

    expect(page.locator("#simulation-head")).to_contain_text("Policy comparison")
    newest = laboratory.client.simulation(urlsplit(page.url).path.rsplit("/", 1)[-1])
    assert [run["policy_parameters"] for run in newest["runs"] if run["policy"] == "sia"] == [
        {"p": -1}
    ]
    assert [error for error in inside.witness.errors if "422" not in error] == []


def test_a_simulation_that_there_is_none_of_is_said_so_and_shows_no_panels(
    laboratory: Any, inside: Any
) -> None:
    for path, words in (("simulations", "No such simulation"), ("sweeps", "No such sweep")):
        page = inside.follow(f"{laboratory.url}/{path}/nope")
        expect(page.locator("#content")).to_contain_text(words)
        expect(page.locator(".js-plotly-plot:visible")).to_have_count(0)


def test_a_sweep_goes_from_form_to_figure(laboratory: Any, inside: Any) -> None:
    page = inside.follow(f"{laboratory.url}/sweeps")
    page.wait_for_selector("#sweeps-list .state-title, #sweeps-list table")
    give_trace(page, "sweeps", TRACE)
    page.fill("#sweeps-cluster", CLUSTER)
    choose(page, "#sweeps-vary1", "Share of rigid jobs")
    expect(page.locator("#sweeps-values1")).to_have_value("0, 0.5, 1")
    page.fill("#sweeps-values1", "0, 1")
    choose(page, "#sweeps-vary2", "Policy")
    page.fill("#sweeps-values2", "sia, fifo")
    page.fill("#sweeps-seeds", "0")
    page.locator("#sweeps-seeds").blur()
    expect(page.locator("#sweeps-count")).to_contain_text("4 simulations")
    choose(page, "#sweeps-placer", "PAL")
    page.locator("#sweeps-parameters-box summary").click()
    expect(page.locator("#sweeps-parameters")).to_contain_text("PAL (placer)")
    page.locator("#sweeps-conditions summary").click()
    page.fill("#sweeps-locality_penalty", "0.5")
    page.locator("#sweeps-locality_penalty").blur()
    page.click("#sweeps-button")
    penalty = page.locator(".mantine-TextInput-root", has=page.locator("#sweeps-locality_penalty"))
    expect(penalty).to_contain_text(
        "locality_penalty is no factor of at least 1. Write for example 1.7"
    )
    page.fill("#sweeps-locality_penalty", "cifar10=1.5")
    await_value(page, "sweeps-locality_penalty", "cifar10=1.5")

    page.click("#sweeps-button")

    expect(page.locator("#sweep-head .state")).to_contain_text(
        "succeeded", timeout=PLAY_MILLISECONDS
    )
    assert [(line["name"], line["x"]) for line in plotted(page, "sweep-figure")] == [
        ("policy = sia", [0, 1]),
        ("policy = fifo", [0, 1]),
    ]
    assert axes(page, "sweep-figure") == ("Share of rigid jobs", "Mean JCT (hours)")
    expect(page.locator("#sweep-request")).to_contain_text("1.5 for cifar10")
    expect(page.locator("#sweep-request")).to_contain_text("pal")
    choose(page, "#sweep-metric", "Worst rho")
    wait_in_page(
        page,
        "document.querySelector('#sweep-figure .js-plotly-plot')"
        ".layout.yaxis.title.text.includes('fairness')",
    )
    assert "metric=worst_rho" in page.url
    expect(page.locator("#sweep-table tbody tr")).to_have_count(4)
    assert inside.witness.errors == []
    assert every_barrier(page) == []


@pytest.mark.parametrize("form", ["simulate", pytest.param("sweeps", marks=pytest.mark.long)])
def test_a_press_tells_all_that_is_wrong_and_each_error_goes_as_its_field_is_mended(
    server: Any, inside: Any, form: str
) -> None:
    page = inside.follow(f"{server.url}/{form}")
    for field, held in (("name", ""), ("jobs", ""), ("seeds", "-1")):
        page.fill(f"#{form}-{field}", held)
        await_value(page, f"{form}-{field}", held)
    expect(page.locator(".mantine-InputWrapper-error")).to_have_count(0)
    page.click(f"#{form}-button")

    expect(error_beside(page, f"{form}-seeds")).to_contain_text("Give whole numbers from 0 up")
    expect(error_beside(page, f"{form}-name")).to_contain_text("a name.")
    expect(error_beside(page, f"{form}-jobs")).to_have_text("Give a whole number.")
    page.fill(f"#{form}-jobs", "5")
    expect(error_beside(page, f"{form}-jobs")).to_have_count(0)
    expect(error_beside(page, f"{form}-name")).to_be_visible()
    page.fill(f"#{form}-seeds", "0")
    expect(error_beside(page, f"{form}-seeds")).to_have_count(0)
    page.fill(f"#{form}-seeds", "x")
    expect(error_beside(page, f"{form}-seeds")).to_be_visible()
    page.fill(f"#{form}-name", "mended")
    page.fill(f"#{form}-seeds", "1")
    expect(page.locator(".mantine-InputWrapper-error")).to_have_count(0)
    assert urlsplit(page.url).path == f"/{form}"


def test_what_the_service_refuses_gets_the_focus(server: Any, inside: Any) -> None:
    page = inside.follow(f"{server.url}/simulate")
    page.fill("#simulate-cluster", "nonsense")
    await_value(page, "simulate-cluster", "nonsense")
    page.locator("#simulate-button").focus()
    page.keyboard.press("Enter")

    expect(error_beside(page, "simulate-cluster")).to_be_visible()
    expect(page.locator("#simulate-cluster")).to_be_focused()
