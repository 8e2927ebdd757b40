"""Browser tests of the laboratory, from form to figure; a real worker runs the simulations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, Route, expect

from browser.barriers import every_barrier, in_scheme
from browser.conftest import WIDE, Tab, Visitors, wait_until, witnessed
from browser.pages import await_value, error_beside, wait_in_page
from maat.client import calls

pytestmark = pytest.mark.needs_chromium

PLAY_MILLISECONDS = 240_000
HEADER = "name,time,application,num_replicas,batch_size,work_scale"
TRACE = (
    f"{HEADER}\nfirst,0,cifar10,2,256,0.1\nsecond,30,bert,2,24,0.02\nthird,60,cifar10,4,512,0.1\n"
)
LONG_TRACE = TRACE.replace("0.1\n", "500\n")  # plays for longer than it takes to cancel it
CLUSTER = "t4=2x4,a100=1x8"


def plotted(page: Page, card: str) -> list[dict[str, Any]]:
    """Name, kind and values of what a card's figure draws, once it draws anything."""
    plot = f"document.querySelector('#{card} .js-plotly-plot')"
    wait_in_page(
        page, f"{plot} && {plot}.data && {plot}.data.length", milliseconds=PLAY_MILLISECONDS
    )
    read = (
        "trace => ({name: trace.name, type: trace.type,"
        " x: [...(trace.x || [])], y: [...(trace.y || [])]})"
    )
    traces: list[dict[str, Any]] = page.evaluate(f"{plot}.data.map({read})")
    return traces


def axes(page: Page, card: str) -> tuple[str, str]:
    """What the axes of a card's figure are titled."""
    titled = (
        f"(axis => document.querySelector('#{card} .js-plotly-plot')._fullLayout[axis].title.text)"
    )
    return page.evaluate(f"{titled}('xaxis')"), page.evaluate(f"{titled}('yaxis')")


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
    assert "milliseconds" in axes(comparison, "simulation-decisions")[0]


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


def test_a_simulation_is_asked_for_by_the_form_with_its_conditions(
    laboratory: Any, inside: Any
) -> None:
    page = inside.follow(f"{laboratory.url}/simulate")
    page.wait_for_selector("#simulate-list .state-title, #simulate-list table")
    page.get_by_text("CSV file", exact=True).click()
    page.set_input_files(
        "#simulate-upload input",
        {"name": "jobs.csv", "mimeType": "text/csv", "buffer": LONG_TRACE.encode()},
    )
    expect(page.locator("#simulate-file")).to_contain_text("jobs.csv: 4 lines")
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


@pytest.mark.long
def test_measurements_are_uploaded_named_by_the_simulate_form_and_deleted(
    laboratory: Any, inside: Any
) -> None:
    page = inside.follow(f"{laboratory.url}/measurements")
    expect(page.locator("#measurements-list")).to_contain_text("No measurements yet")
    page.fill("#measurements-name", "our pairs")
    page.get_by_text("Interference", exact=True).click()
    page.click("#measurements-button")
    expect(page.locator("#measurements-csv-error")).to_contain_text("Choose the files first.")
    give_table(page, "bert,cifar10,1,0.5\n")
    page.click("#measurements-button")
    expect(page.locator("#measurements-csv-error")).to_contain_text(
        "row 2: slowdown: is not between 1 and 1000"
    )
    give_table(
        page,
        "".join(
            f"{one},{other},1,1.5\n" for one in ("bert", "cifar10") for other in ("bert", "cifar10")
        ),
    )
    expect(page.locator("#measurements-csv-error")).to_have_text("")
    page.click("#measurements-button")
    expect(page.locator("#measurements-list")).to_contain_text("every GPU: 2 models")

    (made,) = laboratory.client.measurements()
    inside.follow(f"{laboratory.url}/simulate")
    page.get_by_text("Profiling, bound jobs").click()
    choose(page, "#simulate-interference", "our pairs")
    page.get_by_text("CSV file", exact=True).click()
    page.set_input_files(
        "#simulate-upload input",
        {"name": "jobs.csv", "mimeType": "text/csv", "buffer": TRACE.encode()},
    )
    expect(page.locator("#simulate-file")).to_contain_text("jobs.csv: 4 lines")
    page.fill("#simulate-cluster", CLUSTER)
    page.click("#simulate-button")
    expect(
        page.locator(".mantine-Select-root", has=page.locator("#simulate-interference"))
    ).to_contain_text("Let more jobs share a GPU")
    page.fill("#simulate-jobs_per_gpu", "2")
    await_value(page, "simulate-jobs_per_gpu", 2)
    page.click("#simulate-button")
    expect(page.locator("#simulation-request")).to_contain_text("up to 2, interference our pairs")

    inside.follow(f"{laboratory.url}/measurements")
    page.get_by_role("button", name="Delete the measurements our pairs").click()
    page.click("#measurements-no")
    assert laboratory.client.measurements() == [made]
    page.get_by_role("button", name="Delete the measurements our pairs").click()
    page.click("#measurements-yes")
    expect(page.locator("#measurements-list")).to_contain_text("No measurements yet")
    assert [error for error in inside.witness.errors if "422" not in error] == []


def test_measurements_with_long_names_are_listed_without_scrolling_sideways(
    server: Any, inside: Any
) -> None:
    rows = "".join(
        f"{one},{other},1,1.5\n" for one in ("bert", "cifar10") for other in ("bert", "cifar10")
    )
    file = {"name": "pairs.csv", "text": f"victim,partner,gpu_count,slowdown\n{rows}"}
    made = server.client.upload_measurement(
        {"kind": "interference", "name": "pairs_of_the_year_2025_" * 4, "files": [file]}
    )
    page = inside.follow(f"{server.url}/measurements")

    expect(
        page.get_by_role("button", name=f"Delete the measurements {made['name']}")
    ).to_be_in_viewport(ratio=1)

    assert (
        page.evaluate(
            "(box => box.scrollWidth - box.clientWidth)"
            "(document.querySelector('#measurements-list'))"
        )
        <= 0
    )
    server.client.send(calls.delete_measurement(made["id"]))


def give_table(page: Page, rows: str) -> None:
    content = f"victim,partner,gpu_count,slowdown\n{rows}".encode()
    page.set_input_files(
        "#measurements-upload input",
        {"name": "pairs.csv", "mimeType": "text/csv", "buffer": content},
    )
    expect(page.locator("#measurements-file")).to_contain_text(
        f"pairs.csv ({content.count(10)} lines)"
    )


@pytest.mark.long
def test_parameters_of_a_policy_are_set_in_the_form_and_refused_beside_their_field(
    laboratory: Any, inside: Any
) -> None:
    page = inside.follow(f"{laboratory.url}/simulate")
    page.get_by_text("CSV file", exact=True).click()
    page.set_input_files(
        "#simulate-upload input",
        {"name": "jobs.csv", "mimeType": "text/csv", "buffer": TRACE.encode()},
    )
    expect(page.locator("#simulate-file")).to_contain_text("jobs.csv: 4 lines")
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
    page.get_by_text("CSV file", exact=True).click()
    page.set_input_files(
        "#sweeps-upload input",
        {"name": "jobs.csv", "mimeType": "text/csv", "buffer": TRACE.encode()},
    )
    expect(page.locator("#sweeps-file")).to_contain_text("jobs.csv: 4 lines")
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


def choose(page: Page, field: str, option: str) -> None:
    page.click(field)
    page.get_by_role("option", name=option, exact=True).click()


def test_an_operator_reserves_gpus_and_gives_them_back(server: Any, inside: Any) -> None:
    page = inside.follow(f"{server.url}/cluster")
    page.click("#cluster-reserve-open")
    page.fill("#cluster-reserve-type", "h100")
    page.fill("#cluster-reserve-holder", "default")
    page.click("#cluster-reserve-add")
    expect(error_beside(page, "cluster-reserve-type")).to_contain_text(
        "The cluster has no GPUs of this type. Use one of: t4 (24 GPUs)"
    )

    page.fill("#cluster-reserve-type", "a100")
    page.click("#cluster-reserve-add")

    expect(page.locator("#cluster-reserved")).to_contain_text("4 × a100")
    expect(page.locator("#cluster-reserved")).to_contain_text("until it is removed")
    page.get_by_role("button", name="Remove the reservation of 4 × a100").click()
    expect(page.locator("#cluster-reserved")).to_contain_text("Nothing is reserved")
    assert server.client.reservations(server.cluster_id, over=True) == []
    assert [error for error in inside.witness.errors if "422" not in error] == []


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


@pytest.mark.parametrize("prefix", [pytest.param("simulate", marks=pytest.mark.long), "cluster"])
def test_a_reservation_tells_all_that_it_lacks_at_once_each_beside_its_field(
    server: Any, inside: Any, prefix: str
) -> None:
    page = inside.follow(f"{server.url}/{prefix}")
    page.click(
        f"#{'cluster-reserve-open' if prefix == 'cluster' else 'simulate-conditions summary'}"
    )
    page.fill(f"#{prefix}-reserve-gpus", "")
    await_value(page, f"{prefix}-reserve-gpus", "")
    page.click(f"#{prefix}-reserve-add")

    expect(error_beside(page, f"{prefix}-reserve-type")).to_contain_text("GPU type")
    expect(error_beside(page, f"{prefix}-reserve-gpus")).to_contain_text("from 1 up")
    expect(error_beside(page, f"{prefix}-reserve-holder")).to_contain_text("tenant")
    page.fill(f"#{prefix}-reserve-gpus", "2")
    expect(error_beside(page, f"{prefix}-reserve-gpus")).to_have_count(0)
    expect(error_beside(page, f"{prefix}-reserve-type")).to_be_visible()
