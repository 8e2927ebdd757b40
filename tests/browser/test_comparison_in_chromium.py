"""Browser tests of a comparison of policies; a real worker plays it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from browser.barriers import every_barrier, in_scheme
from browser.conftest import WIDE, Tab, Visitors, wait_until, witnessed
from browser.laboratory import (
    CLUSTER,
    PLAY_MILLISECONDS,
    TRACE,
    axes,
    plotted,
)
from browser.pages import await_value

pytestmark = pytest.mark.needs_chromium


@pytest.fixture(scope="module")
def simulation(laboratory: Any) -> str:
    """Two policies on three jobs while nodes fail often."""
    asked = {
        "traces": [{"kind": "csv", "text": TRACE}],
        "cluster": CLUSTER,
        "failures": {"mtbf_hours": 0.2, "repair_seconds": 60.0},
    }
    made = laboratory.client.simulate(
        {"name": "two policies", "runs": [{"policy": "sia"}, {"policy": "fifo"}], **asked}
    )
    return str(made["id"])


@pytest.fixture(scope="module")
def visit(simulation: str, laboratory: Any, visitors: Visitors) -> Iterator[Tab]:
    """A page of the comparison for all tests that look at it."""
    page = visitors.page([]).context.new_page()
    with witnessed(page) as tab:
        tab.open(f"{laboratory.url}/simulations/{simulation}")
        yield tab
    page.close()


@pytest.fixture(scope="module")
def first_address(visit: Tab) -> str:
    """The address of the comparison before anybody chooses anything."""
    expect(visit.page.locator("#simulation-head .state")).to_contain_text(
        "succeeded", timeout=PLAY_MILLISECONDS
    )
    plotted(visit.page, "compare-allocations")
    return visit.page.url


@pytest.fixture
def comparison(visit: Tab, first_address: str) -> Page:
    """The comparison as it is first shown."""
    page = visit.page
    page.set_viewport_size(WIDE)
    in_scheme(page, "light")
    if page.url != first_address:  # by what the last test chose
        visit.open(first_address)
    visit.witness.errors.clear()
    return page


@pytest.mark.long
def test_distributions_of_completion_time_and_fairness_have_a_line_for_each_policy(
    comparison: Page, visit: Tab
) -> None:
    for card, title in (
        ("simulation-jct", "JCT (hours)"),
        ("simulation-rho", "Finish-time fairness rho (mean-of-ratios)"),
    ):
        lines = plotted(comparison, card)
        assert [line["name"] for line in lines] == ["sia + whole-node", "fifo + packed-sticky"]
        assert all(line["y"][-1] == 1.0 and len(line["x"]) == 4 for line in lines)
        assert axes(comparison, card) == (title, "Share of jobs")
    assert visit.witness.errors == []


@pytest.mark.long
def test_gpu_hours_stand_by_model_and_type_and_decisions_by_policy(comparison: Page) -> None:
    bars = plotted(comparison, "simulation-model-hours")
    assert {bar["type"] for bar in bars} == {"bar"}
    assert {bar["name"] for bar in bars} <= {"t4", "a100"}
    assert {run for bar in bars for run in bar["y"]} == {"sia + whole-node", "fifo + packed-sticky"}
    times = plotted(comparison, "simulation-decisions")
    assert {place for time in times for place in time["y"]} == {
        "sia + whole-node",
        "fifo + packed-sticky",
    }
    assert axes(comparison, "simulation-decisions")[0] == "Decision time per round (ms)"


def test_failures_stand_in_the_comparison_and_every_figure_says_what_it_means(
    comparison: Page,
) -> None:
    expect(comparison.locator("#simulation-table th", has_text="Failed nodes")).to_have_count(1)
    expect(comparison.locator("#simulation-request")).to_contain_text(
        "each node about every 0.2 h, for 1 min"
    )
    for name, says in (
        ("rho", "isolated|JCT / JCT_g"),
        ("contention", "jobs active"),
        ("each column", r"Queueing delay: [\s\S]*Utilisation [\s\S]*GPU-hours lost: "),
        ("decision time", "quartiles"),
    ):
        comparison.get_by_role("button", name=f"What {name} means").click()
        expect(comparison.locator(".define-text:visible")).to_contain_text(re.compile(says))
        comparison.keyboard.press("Escape")


@pytest.mark.long
def test_runs_and_jobs_of_an_address_that_there_are_none_of_are_named(
    comparison: Page, simulation: str
) -> None:
    expect(comparison).to_have_title("two policies · Simulation · Maat")
    address = comparison.url.partition("?")[0]
    comparison.goto(f"{address}?first=no-run&second=no-other&job=first&job=no-job")
    note = comparison.locator(".address-note:visible")
    expect(note).to_contain_text("There is no run “no-run” in this simulation.")
    expect(note).to_contain_text("There is no run “no-other” in this simulation.")
    expect(note).to_contain_text("There is no job “no-job” in this simulation.")
    expect(note).not_to_contain_text("“first”")
    note.get_by_role("link").click()
    expect(note).to_have_count(0)


@pytest.mark.long
def test_nobody_is_kept_from_a_comparison(comparison: Page) -> None:
    plotted(comparison, "compare-allocations")

    assert every_barrier(comparison) == []


@pytest.mark.long
def test_allocations_are_shown_for_the_jobs_that_the_reader_chooses(comparison: Page) -> None:
    assert {line["name"] for line in plotted(comparison, "compare-allocations")} - {
        "active jobs"
    } <= {"t4", "a100"}

    for pill in comparison.locator(".mantine-MultiSelect-pill .mantine-Pill-remove").all()[::-1]:
        pill.click()
    comparison.locator("#compare-jobs").fill("third")
    comparison.get_by_role("option", name="third (cifar10)").click()

    titles = comparison.locator("#compare-allocations .annotation-text")
    expect(titles.filter(has_text="sia + whole-node: third · JCT")).to_have_count(1)
    expect(titles.filter(has_text="first")).to_have_count(0)
    assert "job=third" in comparison.url


@pytest.mark.long
def test_a_choice_made_before_the_offer_arrives_stays(comparison: Page) -> None:
    calls_to_hold = "**/_dash-update-component*"
    held: list[Route] = []

    def hold(route: Route) -> None:
        offers = "compare-jobs.data" in (route.request.post_data or "")
        held.append(route) if offers else route.continue_()

    comparison.route(calls_to_hold, hold)
    comparison.goto(f"{comparison.url.partition('?')[0]}?job=first&job=third")
    pills = comparison.locator(".mantine-MultiSelect-pill")
    expect(pills).to_have_text(["first", "third"])
    wait_until(lambda: bool(comparison.title() and held), "the question what is offered")
    pills.first.locator(".mantine-Pill-remove").click()
    expect(pills).to_have_text(["third"])

    for route in held:
        with comparison.expect_response(route.request.url):
            route.continue_()
    comparison.unroute(calls_to_hold)
    comparison.locator("#compare-jobs").click()
    expect(comparison.get_by_role("option", name="second (bert)")).to_be_visible()
    expect(pills).to_have_count(1)
    expect(pills).to_contain_text("third")


def test_a_chart_is_named_by_what_its_axes_show(comparison: Page) -> None:
    names = comparison.locator(".dash-graph [role=img][aria-label^='Chart']")
    expect(names.first).to_be_visible()
    labels = names.evaluate_all("all => all.map(each => each.getAttribute('aria-label'))")
    assert "Chart: Share of jobs by JCT (hours)." in " ".join(labels)
    for label in labels:
        assert "Click to enter" not in label
        assert not label.startswith("Chart: y by")


def test_the_rule_of_fairness_is_chosen_beside_its_figure_and_kept_in_the_address(
    comparison: Page, visit: Tab
) -> None:
    before = [line["x"] for line in plotted(comparison, "simulation-rho")]
    # What arrives while a list is open closes it.
    expect(comparison.locator("[data-dash-is-loading=true]")).to_have_count(0)
    comparison.locator("#simulation-rule").click()
    comparison.get_by_role("option", name="share-of-type").click()

    expect(comparison.locator("#simulation-fairness")).to_contain_text("Worst rho (share-of-type)")
    expect(comparison.locator("#contest-means")).to_contain_text("Worst rho (share-of-type)")
    expect(comparison.locator("#simulation-rule-words")).to_contain_text("By share-of-type:")
    assert axes(comparison, "simulation-rho")[0] == "Finish-time fairness rho (share-of-type)"
    assert [line["x"] for line in plotted(comparison, "simulation-rho")] != before
    assert "rule=share-of-type" in comparison.url

    comparison.reload()
    expect(comparison.locator("#simulation-fairness")).to_contain_text("Worst rho (share-of-type)")
    await_value(comparison, "simulation-rule", "share-of-type")
    assert visit.witness.errors == []
