"""Loading, emptiness and failure are told apart: none looks like another. In a real browser."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, Request, Route, expect

from browser.pages import wait_in_page, without_beats
from frontend.scripts import CHARTS_PATH, LIBRARIES_PATH

pytestmark = pytest.mark.needs_chromium

ELSEWHERE = ("/cluster", "/jobs", "/rounds")
EMPTY_WORDS = ("No cluster yet", "Nothing to show yet", "No round has run yet", "No job yet")
STRANGER = {
    "X-Forwarded-For": "192.0.2.1"
}  # who comes through a proxy is not local, and has no token

OF_BUTTONS = ("..usage-price-", "..usage-file.")  # what calls of the buttons of use set
# Notes whether the overview was there when its figures were asked for.
NOTES_CALLS = """() => {
    const send = window.fetch;
    window.wasDrawn = [];
    window.fetch = function (target, options) {
        if (options && String(options.body).includes('overview-drawing')) {
            window.wasDrawn.push(document.getElementById('overview-tiles') !== null);
        }
        return send.apply(this, arguments);
    };
}"""


def holding(page: Page, output: str) -> list[Route]:
    """From now on the answers that draw `output` do not come."""
    held: list[Route] = []

    def ask(route: Route) -> None:
        asked = json.loads(route.request.post_data or "{}").get("output", "")
        held.append(route) if output in asked else route.continue_()

    page.route("**/_dash-update-component*", ask)
    return held


def call_of(request: Request) -> str:
    """The outputs that a call asks for; empty for other requests."""
    is_call = "/_dash-update-component" in request.url
    return str(json.loads(request.post_data or "{}")["output"]) if is_call else ""


def first_call_of(request: Request) -> str:
    """The same of a call that no change has caused, such as a round that came meanwhile."""
    output = call_of(request)
    return "" if output and json.loads(request.post_data or "{}")["changedPropIds"] else output


def words_of_emptiness(page: Page) -> list[str]:
    return [
        words for words in EMPTY_WORDS if page.get_by_text(words).locator("visible=true").count()
    ]


@pytest.mark.parametrize(
    "path", ["/", *(pytest.param(path, marks=pytest.mark.long) for path in ELSEWHERE)]
)
def test_a_visitor_who_is_not_let_in_is_led_to_sign_in_and_not_told_that_there_is_no_cluster(
    path: str, server: Any, open_tab: Any
) -> None:
    page = open_tab(extra_http_headers=STRANGER).open(server.url + path)

    expect(page).to_have_url(f"{server.url}/sign-in?{urlencode({'next': path})}")
    page.locator("#sign-in-button").wait_for()
    assert words_of_emptiness(page) == []


@pytest.mark.parametrize(
    ("path", "output", "place"),
    [
        pytest.param("/cluster", "cluster-drawing", "#cluster-nodes", marks=pytest.mark.long),
        pytest.param("/cluster", "cluster-drawing", "#cluster-map", marks=pytest.mark.long),
        pytest.param("/rounds", "rounds-grid.rowData", "#rounds-grid", marks=pytest.mark.long),
        ("/jobs", "jobs-grid.getRowsResponse", "#jobs-grid"),
    ],
)
def test_what_has_not_come_yet_looks_like_loading(
    path: str, output: str, place: str, server: Any, tab: Any
) -> None:
    held = holding(tab.page, output)
    page = tab.open(server.url + path)

    expect(page.locator(f"{place} .loading, {place}.loading").first).to_be_visible()
    assert words_of_emptiness(page) == []

    for route in held:
        route.continue_()
    tab.page.unroute_all()
    expect(page.locator(f"{place} a").first).to_be_visible()
    expect(
        page.locator(f"{place} .loading, {place}.loading").locator("visible=true")
    ).to_have_count(0)


@pytest.mark.parametrize(
    ("tab_name", "output"),
    [
        ("clusters", "admin-clusters"),
        pytest.param("health", "admin-health", marks=pytest.mark.long),
        *(
            pytest.param(name, f"admin-{output}", marks=pytest.mark.long)
            for name, output in (
                ("accounts", "users"),
                ("accounts", "tenants"),
                ("accounts", "tokens"),
                ("webhooks", "webhooks"),
                ("clusters", "nodes"),
                ("quotas", "quotas"),
                ("quotas", "quota-types"),
            )
        ),
    ],
)
def test_a_card_of_administration_looks_like_loading_until_its_list_comes(
    tab_name: str, output: str, server: Any, tab: Any
) -> None:
    held = holding(tab.page, f"{output}.children")
    page = tab.open(f"{server.url}/admin?tab={tab_name}")
    waiting = page.locator(f"#{output} .mantine-Skeleton-root")
    expect(waiting).to_be_visible()

    for route in held:
        route.continue_()
    tab.page.unroute_all()
    expect(waiting).to_have_count(0)


@pytest.mark.parametrize(
    ("path", "place"),
    [
        pytest.param("/cluster", "#cluster-nodes", marks=pytest.mark.long),
        ("/rounds", "#rounds-grid"),
    ],
)
def test_a_page_that_is_opened_while_the_service_tells_no_health_asks_for_its_figures_all_the_same(
    path: str, place: str, server: Any, tab: Any
) -> None:
    without_beats(tab.page)
    page = tab.open(server.url + path)

    expect(page.locator(f"{place} a").first).to_be_visible()
    expect(page.locator("#freshness-text")).to_contain_text("retrying")


def test_a_change_that_is_told_before_the_page_is_ready_does_no_harm(server: Any, tab: Any) -> None:
    """The first word of the service arrives as soon as the stream is open."""
    late: list[Route] = []

    def hold(route: Route) -> None:
        late.append(route)

    tab.page.route("**/_dash-dependencies", hold)
    with tab.page.expect_request("**/_dash-dependencies"):
        tab.page.goto(server.url, wait_until="commit")
    wait_in_page(tab.page, "window.maat?.push?.version() && maat.layoutOf('heartbeat')")
    tab.page.wait_for_timeout(500)
    late[0].continue_()

    tab.page.locator("#overview-map .gpu-node").first.wait_for()
    assert tab.witness.errors == []


def test_the_script_of_grids_comes_with_the_first_grid_and_is_asked_for_until_it_comes(
    server: Any, tab: Any
) -> None:
    asked: list[Route] = []

    def fail_once(route: Route) -> None:
        asked.append(route)
        route.abort() if len(asked) == 1 else route.continue_()

    tab.page.route(f"**{CHARTS_PATH}", lambda _: None)  # it never comes: no idle time for grids
    tab.page.route("**/dash_ag_grid/dash_ag_grid.*", fail_once)
    page = tab.open(server.url)
    page.locator("#overview-map .gpu-node").first.wait_for()
    assert asked == []

    page.keyboard.press("g")
    page.keyboard.press("j")

    expect(page.locator(".ag-row a").first).to_be_visible()
    assert len(asked) == 2


def test_a_key_that_comes_before_the_libraries_waits_for_them(server: Any, tab: Any) -> None:
    late: list[Route] = []

    def hold(route: Route) -> None:
        late.append(route)

    tab.page.route(f"**{LIBRARIES_PATH}*", hold)
    with tab.page.expect_request(f"**{LIBRARIES_PATH}*"):
        tab.page.goto(server.url, wait_until="commit")
    wait_in_page(tab.page, "Boolean(window.maat?.setProps)")
    tab.page.keyboard.press("?")
    late[0].continue_()

    expect(tab.page.get_by_role("dialog", name="Keyboard shortcuts and help")).to_be_visible()
    assert tab.witness.errors == []


@pytest.mark.parametrize(
    "path", [pytest.param("/account", marks=pytest.mark.long), "/no/such/page"]
)
def test_scripts_that_other_pages_need_come_in_idle_time_also_if_a_page_makes_no_call(
    path: str, server: Any, idle_tab: Any
) -> None:
    without_beats(idle_tab.page)
    page = idle_tab.open(server.url + path)

    wait_in_page(page, "window.Plotly !== undefined")
    wait_in_page(page, "window.dash_ag_grid.getApi !== undefined")


WATCHES_SAMPLES = """() => { window.drawn = new Set();
    const kinds = ['input[type=checkbox]', '.mantine-MultiSelect-input', '.ag-row', '.main-svg'];
    const look = () => kinds.filter((kind) => document.querySelector(`#sample ${kind}`))
        .forEach((kind) => window.drawn.add(kind));
    new MutationObserver(look).observe(document, {childList: true, subtree: true}); }"""


def test_one_of_each_kind_is_drawn_out_of_sight_in_idle_time_and_is_gone(
    server: Any, idle_tab: Any
) -> None:
    idle_tab.page.add_init_script(f"({WATCHES_SAMPLES})()")
    page = idle_tab.open(f"{server.url}/account")
    wait_in_page(page, "() => window.drawn.size === 4")
    expect(page.locator("#sample")).to_be_empty()
    expect(page.locator("#sample")).to_be_hidden()
    assert idle_tab.witness.errors == []


def test_what_another_page_shows_is_asked_for_once_and_before_that_page_is_drawn(
    server: Any, tab: Any
) -> None:
    asked: list[str] = []
    page = tab.open(f"{server.url}/account")
    page.locator("#account-facts dl").wait_for()
    page.on("request", lambda request: asked.append(first_call_of(request)))
    page.evaluate(NOTES_CALLS)

    page.keyboard.press("g")
    page.keyboard.press("o")

    page.locator("#overview-map .gpu-node").first.wait_for()
    page.locator("#overview-usage .scatterlayer .trace").first.wait_for()
    assert sum("overview-drawing" in output for output in asked) == 1
    assert page.evaluate("window.wasDrawn")[0] is False
    assert tab.witness.errors == []


def test_a_page_is_asked_for_once_while_the_pointer_rests_on_its_link(
    server: Any, tab: Any
) -> None:
    without_beats(tab.page)
    page = tab.open(server.url)
    page.locator("#overview-map .gpu-node").first.wait_for()
    link = page.locator(".nav-link", has_text="Jobs")
    asked = list[str]()
    page.on("request", lambda request: asked.append(call_of(request)))

    def count(output: str) -> int:
        return sum(output in one for one in asked)

    with page.expect_request(lambda request: "_pages_content" in call_of(request)):
        link.hover()
    assert count("jobs-grid.getRowsResponse") == 0
    with page.expect_request(lambda request: "jobs-grid.getRowsResponse" in call_of(request)):
        page.mouse.down()
    assert page.locator("#jobs-grid").count() == 0
    page.mouse.up()
    page.locator("#jobs-grid .ag-row a").first.wait_for()

    assert count("_pages_content") == 1
    assert count("jobs-grid.getRowsResponse") == 1


def test_a_page_asks_nothing_of_its_buttons_before_somebody_presses_one(
    server: Any, tab: Any
) -> None:
    asked: list[str] = []
    page = tab.open(f"{server.url}/account")
    page.locator("#account-facts dl").wait_for()
    page.on("request", lambda request: asked.append(call_of(request)))

    page.keyboard.press("g")
    page.keyboard.press("u")
    page.locator("#usage-table table").wait_for()
    assert [output for output in asked if output.startswith(OF_BUTTONS)] == []

    with page.expect_download() as file:
        page.locator("#usage-csv").click()
    assert file.value.suggested_filename.endswith(".csv")
    assert sum("usage-file" in output for output in asked) == 1
    assert tab.witness.errors == []


def test_what_a_page_shows_at_first_is_asked_for_once_and_before_the_libraries_come(
    server: Any, tab: Any
) -> None:
    libraries, asked = list[Route](), list[str]()

    def hold(route: Route) -> None:
        libraries.append(route)

    tab.page.route(f"**{LIBRARIES_PATH}*", hold)
    tab.page.on("request", lambda request: asked.append(first_call_of(request)))
    with tab.page.expect_request(lambda request: "overview-drawing" in call_of(request)):
        tab.page.goto(server.url, wait_until="commit")
    assert len(libraries) == 1

    libraries[0].continue_()
    tab.page.locator("#overview-map .gpu-node").first.wait_for()
    tab.page.locator("#overview-usage .scatterlayer .trace").first.wait_for()
    first = [output for output in asked if output]
    assert [output for output in first if "cluster-select" in output or "visitor" in output] == []
    assert sum("overview-drawing" in output for output in first) == 1
    assert tab.witness.errors == []


@pytest.mark.parametrize("name", ["simulate", pytest.param("sweeps", marks=pytest.mark.long)])
def test_a_list_that_follows_beats_alone_comes_with_the_first_visit_before_any_beat(
    name: str, server: Any, tab: Any
) -> None:
    without_beats(tab.page)
    page = tab.open(f"{server.url}/{name}?cluster={server.cluster_id}")

    page.locator(f"#{name}-list").locator(".state-title, table").first.wait_for()


@pytest.mark.parametrize(
    "wish", [pytest.param("", marks=pytest.mark.long), "&sort=name&state=running&column=model"]
)
def test_the_first_rows_of_the_jobs_are_asked_for_once_and_before_the_grid_is_drawn(
    wish: str, server: Any, tab: Any
) -> None:
    without_beats(tab.page)
    asked: list[Request] = []
    tab.page.on(
        "request", lambda request: "RowsResponse" in call_of(request) and asked.append(request)
    )
    page = tab.open(f"{server.url}/jobs?cluster={server.cluster_id}{wish}")

    page.locator("#jobs-grid .ag-row a").first.wait_for()
    page.wait_for_timeout(500)
    (only,) = asked
    assert first_call_of(only)


def test_no_chart_is_drawn_before_its_figure_has_come(server: Any, tab: Any) -> None:
    held = holding(tab.page, "overview-usage")
    page = tab.open(server.url)
    wait_in_page(page, "window.Plotly !== undefined")
    expect(page.locator(".graph.loading")).to_have_count(2)
    assert page.locator(".js-plotly-plot").count() == 0

    for route in held:
        route.continue_()
    tab.page.unroute_all()
    page.locator("#overview-usage .scatterlayer .trace").first.wait_for()
    expect(page.locator(".graph.loading")).to_have_count(0)


def test_components_are_told_of_a_changed_layout_at_once_and_of_all_else_together(
    server: Any, tab: Any
) -> None:
    page = tab.open(server.url)
    page.locator("#overview-map .gpu-node").first.wait_for()

    of_books, of_layout, later = page.evaluate("""async () => {
        const [store] = window.dash_stores;
        let told = 0;
        store.subscribe(() => { told += 1; });
        for (let n = 0; n < 200; n += 1) {
            store.dispatch({ type: 'RESET_COMPONENT_STATE', payload: { itempath: ['none', n] } });
        }
        const ofBooks = told;
        maat.setProps('nav-over', { data: { changed: true } });
        const ofLayout = told - ofBooks;
        store.dispatch({ type: 'RESET_COMPONENT_STATE', payload: { itempath: ['none'] } });
        const before = told;
        await new Promise((done) => { setTimeout(done, 100); });
        return [ofBooks, ofLayout, told - before];
    }""")

    assert of_books == 0
    assert of_layout >= 1
    assert later >= 1
