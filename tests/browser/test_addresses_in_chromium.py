"""Browser tests of page addresses: they hold the cluster, the filters and the sort order.

So a link shows the same page to every visitor. The tests use two clusters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from browser.conftest import wait_until
from maat.client import calls

pytestmark = pytest.mark.needs_chromium

SECOND = "the second"


@pytest.fixture(scope="module")
def two(server: Any) -> Iterator[Any]:
    """The demo cluster, and a second one with jobs and rounds of its own."""
    nodes = [{"name": "only", "gpu_type": "a100", "gpu_count": 8}]
    cluster = server.client.create_cluster(
        {"name": SECOND, "round_seconds": 30, "speed": 30, "nodes": nodes}
    )
    for name in ("bert of the second", "cifar of the second"):
        server.client.submit_job(
            {
                "name": name,
                "model": name.split()[0].replace("cifar", "cifar10"),
                "cluster_id": cluster["id"],
                "work_scale": 50.0,
            }
        )
    wait_until(
        lambda: len(server.client.rounds(cluster["id"])["items"]) > 2,
        "rounds of the second cluster",
    )
    server.second = cluster["id"]
    yield server
    server.client.send(calls.act_on_cluster(cluster["id"], "pause"))


def choose(page: Page, cluster: str) -> None:
    page.locator("#cluster-select").click()
    page.get_by_role("option", name=cluster).click()
    expect(page.locator("#cluster-select")).to_have_value(cluster)


def names(page: Page) -> Any:
    return page.locator(".ag-row a")


# The frame reads the address, which is the same around all pages.
@pytest.mark.parametrize(
    "paths",
    [
        ("/rounds",),
        pytest.param(("/", "/cluster", "/jobs", "/submit", "/simulate"), marks=pytest.mark.long),
    ],
    ids=" ".join,
)
def test_an_address_without_a_cluster_is_completed_and_shows_another_visitor_the_same(
    two: Any, open_tab: Any, paths: tuple[str, ...]
) -> None:
    mine, other = open_tab().open(two.url + "/submit"), open_tab().page
    expect(mine.locator("#cluster-select")).to_have_value("demo")
    choose(mine, SECOND)
    mine.wait_for_url(re.compile(rf"cluster={two.second}$"))  # the choice is kept by now
    for path in paths:
        mine.goto(two.url + path)
        mine.wait_for_url(re.compile(rf"{path}\?cluster={two.second}$"), wait_until="commit")

        other.goto(mine.url)
        expect(other.locator("#cluster-select")).to_have_value(SECOND)

    other.goto(two.url + "/submit")
    expect(other.locator("#cluster-select")).to_have_value(
        "demo"
    )  # a link that was followed is no choice


def test_a_round_is_that_of_the_cluster_in_its_address(two: Any, open_tab: Any) -> None:
    shared = f"{two.url}/rounds/2?cluster={two.second}"
    page = open_tab().open(shared)

    expect(page.locator("#round-note")).to_contain_text("round 2,")
    expect(page.locator("#round-facts")).to_contain_text("of 8 (")
    assert page.url == shared
    links = page.locator("#rounds-grid .ag-row a")
    assert re.search(
        rf"/rounds/\d+\?cluster={two.second}$", links.first.get_attribute("href") or ""
    )


def test_links_lead_to_the_cluster_that_is_shown_also_in_a_new_tab(two: Any, open_tab: Any) -> None:
    page = open_tab().open(f"{two.url}/?cluster={two.second}")
    page.locator(".tile-link").first.wait_for()
    page.locator(f".nav-link[href='/jobs?cluster={two.second}']").wait_for()
    page.locator(f".button-link[href='/submit?cluster={two.second}']").wait_for()

    hrefs = page.locator("a:is(.tile-link, .nav-link, .button-link)").evaluate_all(
        "links => links.map(link => link.getAttribute('href'))"
    )

    of_no_cluster = r"/(docs|help|measurements|experiments|papers|admin|jobs/job_)"
    without = [href for href in hrefs if "cluster=" not in href]
    assert [href for href in without if not re.match(of_no_cluster, href)] == []


@pytest.mark.long
def test_a_page_of_one_job_shows_the_cluster_of_that_job_which_is_no_choice_of_the_visitor(
    two: Any, open_tab: Any
) -> None:
    (job,) = two.client.jobs(q="bert of the second")["items"]
    page = open_tab().open(f"{two.url}/jobs/{job['id']}")

    expect(page.locator("#cluster-select")).to_have_value(SECOND)
    page.locator(f".nav-link[href='/rounds?cluster={two.second}']").wait_for()

    choose(page, "demo")
    page.wait_for_url(re.compile(rf"/jobs\?cluster={two.cluster_id}$"))
    page.go_back()
    expect(page.locator(".page-title")).to_have_text("bert of the second")
    expect(page.locator("#cluster-select")).to_have_value(SECOND)
    page.goto(two.url + "/rounds")
    expect(page.locator("#cluster-select")).to_have_value("demo")


def test_a_default_that_is_heard_late_is_no_choice_of_the_visitor(two: Any, open_tab: Any) -> None:
    (job,) = two.client.jobs(q="bert of the second")["items"]
    page = open_tab().open(f"{two.url}/jobs/{job['id']}")
    page.locator(f".nav-link[href='/rounds?cluster={two.second}']").wait_for()

    page.evaluate(
        """([offered, first, mine, path]) => {
            const ours = window.dash_clientside.maat, api = window.dash_component_api;
            const layoutOf = api.getLayout;
            // As while the page is young: nothing is chosen yet.
            api.getLayout = (id) => (
                id === 'cluster-select' ? {props: {value: null, data: offered}} : layoutOf(id)
            );
            history.replaceState(history.state, '', '/jobs/another');
            ours.clusterOf(offered, null); // it chooses the first, which is heard only below
            history.replaceState(history.state, '', path);
            ours.clusterOfPage(mine);
            api.getLayout = layoutOf;
            ours.clusterInUrl(first);
            ours.clusterInUrl(mine);
        }""",
        [
            [{"value": two.cluster_id, "label": "demo"}, {"value": two.second, "label": SECOND}],
            two.cluster_id,
            two.second,
            f"/jobs/{job['id']}",
        ],
    )

    page.wait_for_timeout(500)
    assert page.url.endswith(f"/jobs/{job['id']}")
    expect(page.locator("#cluster-select")).to_have_value(SECOND)


@pytest.mark.long
def test_a_simulation_of_what_a_cluster_did_shows_that_cluster(two: Any, open_tab: Any) -> None:
    replayed = {"kind": "cluster", "cluster_id": two.second}
    made = two.client.simulate(
        {
            "name": "again",
            "traces": [replayed],
            "cluster": "a100=1x8",
            "runs": [{"policy": "fifo"}],
        }
    )

    page = open_tab().open(f"{two.url}/simulations/{made['id']}")

    expect(page.locator(".page-title")).to_have_text("again")
    expect(page.locator("#cluster-select")).to_have_value(SECOND)


def test_a_count_narrows_the_list_and_keeps_its_search_its_filters_and_its_order(
    two: Any, open_tab: Any
) -> None:
    page = open_tab().open(f"{two.url}/jobs?cluster={two.second}&q=of+the+second&sort=name")
    expect(names(page)).to_have_text(["bert of the second", "cifar of the second"])

    page.locator("#jobs-counts a").first.click()

    expect(names(page).first).to_be_visible()
    expect(page.locator("#jobs-search")).to_have_value("of the second")
    assert re.search(rf"cluster={two.second}&q=of\+the\+second&state=\w+&sort=name$", page.url)


def test_the_order_of_the_list_stands_in_its_address(two: Any, open_tab: Any) -> None:
    page = open_tab().open(f"{two.url}/jobs?cluster={two.second}")
    expect(names(page)).to_have_count(2)
    page.locator(".ag-header-cell", has_text="Job").click()
    page.wait_for_url(re.compile("sort=name$"))
    page.locator(".ag-header-cell", has_text="Job").click()
    page.wait_for_url(re.compile("sort=-name$"))
    expect(names(page)).to_have_text(["cifar of the second", "bert of the second"])

    other = open_tab().open(page.url)

    expect(names(other)).to_have_text(["cifar of the second", "bert of the second"])
    expect(other.locator(".ag-header-cell[aria-sort='descending']")).to_contain_text("Job")


@pytest.mark.long
def test_back_and_forward_lead_through_clusters_and_filters(two: Any, open_tab: Any) -> None:
    page = open_tab().open(two.url + "/jobs?q=long")
    expect(names(page)).to_have_count(2)
    choose(page, SECOND)
    expect(page.get_by_text("0 match")).to_be_visible()
    page.fill("#jobs-search", "bert")
    expect(names(page)).to_have_text(["bert of the second"])
    names(page).first.click()
    expect(page.locator(".page-title")).to_have_text("bert of the second")

    page.go_back()
    expect(names(page)).to_have_text(["bert of the second"])
    expect(page.locator("#jobs-search")).to_have_value("bert")
    page.go_back()
    expect(page.locator("#cluster-select")).to_have_value("demo")
    expect(page.locator("#jobs-search")).to_have_value("long")
    expect(names(page)).to_have_count(2)
    page.go_forward()
    expect(page.locator("#cluster-select")).to_have_value(SECOND)
    expect(names(page)).to_have_text(["bert of the second"])


@pytest.mark.long
def test_a_link_to_the_page_itself_shows_it_without_the_filters(two: Any, open_tab: Any) -> None:
    page = open_tab().open(f"{two.url}/jobs?cluster={two.second}")
    for _ in range(2):
        expect(names(page)).to_have_count(2)
        page.fill("#jobs-search", "bert")
        expect(names(page)).to_have_text(["bert of the second"])
        page.locator(".nav-link", has_text="Jobs").click()
        expect(page.locator("#jobs-search")).to_have_value("")


def test_a_cluster_that_is_not_there_is_named_and_no_other_shown(two: Any, open_tab: Any) -> None:
    page = open_tab().open(two.url + "/rounds?cluster=clu_gone")

    expect(page.locator("#round-facts")).to_contain_text("clu_gone")
    assert page.url.endswith("?cluster=clu_gone")
    jobs = open_tab().open(two.url + "/jobs?cluster=clu_gone")
    expect(jobs.locator(".grid-told")).to_contain_text("clu_gone")
    expect(jobs.locator("#jobs-counts")).to_have_text("")
    expect(jobs.locator("#jobs-total")).to_have_text("")
    for path in ("/rounds", "/calibration"):
        named = open_tab().open(f"{two.url}{path}?cluster=the+second")
        named.wait_for_url(re.compile(f"cluster={two.second}$"))


def test_choosing_another_cluster_keeps_what_was_typed_into_a_form(two: Any, open_tab: Any) -> None:
    page = open_tab().open(two.url + "/submit")
    page.wait_for_selector("#submit-preview .scatterlayer .trace", state="attached")
    page.fill("#submit-name", "typed")

    choose(page, SECOND)

    page.wait_for_url(re.compile(f"cluster={two.second}&name=typed$"))
    expect(page.locator("#submit-name")).to_have_value("typed")


def test_what_is_typed_into_the_submit_form_stands_in_its_address_and_fills_it_for_another(
    server: Any, open_tab: Any
) -> None:
    page = open_tab().open(f"{server.url}/submit?cluster={server.cluster_id}")
    page.wait_for_selector("#submit-preview .scatterlayer .trace", state="attached")
    entries = page.evaluate("history.length")
    assert page.url.endswith(f"/submit?cluster={server.cluster_id}")
    page.fill("#submit-name", "night & day")
    page.locator("#submit-model").click()
    page.get_by_role("option", name="BERT").click()
    page.fill("#submit-min-gpus", "")
    page.fill("#submit-max-gpus", "4")
    page.locator("#submit-gpu-types").click()
    page.get_by_role("option", name="a100").click()
    page.get_by_role("option", name="t4").click()
    page.keyboard.press("Escape")
    page.fill("#submit-labels", "team=vision")
    page.locator("#submit-labels").press("Enter")
    page.get_by_text("After others, deadline, array").locator("visible=true").click()
    page.fill("#submit-array", "0-3")
    page.locator("#submit-preemptible").locator("xpath=..").click()
    wanted = {
        "cluster": [server.cluster_id],
        "name": ["night & day"],
        "model": ["bert"],
        "empty": ["min_gpus"],
        "max_gpus": ["4"],
        "gpu_types": ["a100", "t4"],
        "labels": ["team=vision"],
        "array": ["0-3"],
        "preemptible": ["false"],
    }
    page.wait_for_url(lambda url: parse_qs(urlsplit(url).query) == wanted)
    assert page.evaluate("history.length") == entries

    other = open_tab().open(page.url)

    expect(other.locator("#submit-name")).to_have_value("night & day")
    expect(other.locator("#submit-model")).to_have_value(re.compile("BERT"))
    expect(other.locator("#submit-min-gpus")).to_have_value("")
    expect(other.locator("#submit-max-gpus")).to_have_value("4")
    chosen = other.locator(".mantine-MultiSelect-root", has=other.locator("#submit-gpu-types"))
    expect(chosen.locator(".mantine-Pill-label")).to_have_text([re.compile("a100"), "t4 (24 GPUs)"])
    expect(other.locator("#submit-array")).to_be_visible()
    expect(other.locator("#submit-array")).to_have_value("0-3")
    expect(other.locator("#submit-preemptible")).not_to_be_checked()
    expect(other.locator("#submit-text")).to_have_value(re.compile("preemptible: false"))
    expect(other.locator(".address-note:visible")).to_have_count(0)
    other.wait_for_timeout(600)
    assert parse_qs(urlsplit(other.url).query) == wanted


def test_what_the_submit_form_cannot_take_of_its_address_is_told_and_the_rest_is_filled(
    server: Any, inside: Any
) -> None:
    page = inside.follow(
        f"{server.url}/submit?name=kept&gpu_count=many&gpu_types=z9&model=bert&colour=red"
    )

    notes = page.locator(".address-note:visible")
    expect(notes).to_have_count(2)
    expect(notes.first).to_contain_text("GPUs: “many” is not taken. Give a number.")
    expect(notes.first).to_contain_text("This page has no parameter “colour”")
    expect(page.locator("#submit-absent")).to_contain_text("bert cannot use “z9” on this cluster.")
    expect(page.locator("#submit-name")).to_have_value("kept")
    expect(page.locator("#submit-model")).to_have_value(re.compile("BERT"))


def test_a_clone_keeps_what_was_changed_of_it_in_its_address(server: Any, open_tab: Any) -> None:
    job = server.client.submit_job(
        {"name": "first of two", "model": "bert", "priority": 10, "max_gpus": 4}
    )
    way = f"{server.url}/submit?cluster={server.cluster_id}&like={job['id']}"
    page = open_tab().open(way)
    expect(page.locator("#submit-max-gpus")).to_have_value("4")
    page.wait_for_timeout(600)
    assert page.url == way
    page.fill("#submit-max-gpus", "")
    page.locator("#submit-priority").click()
    page.get_by_role("option", name="Normal").click()
    wanted = {
        "cluster": [server.cluster_id],
        "like": [job["id"]],
        "priority": ["0"],
        "empty": ["max_gpus"],
    }
    page.wait_for_url(lambda url: parse_qs(urlsplit(url).query) == wanted)

    other = open_tab().open(page.url)

    expect(other.locator("#submit-like-note")).to_contain_text("As first of two")
    expect(other.locator("#submit-name")).to_have_value("first of two")
    expect(other.locator("#submit-max-gpus")).to_have_value("")
    expect(other.locator("#submit-priority")).to_have_value("Normal")
    other.wait_for_timeout(600)
    assert other.url == page.url
    server.client.cancel_job(job["id"])


@pytest.mark.long
def test_the_page_of_a_large_matrix_stands_in_the_address(two: Any, open_tab: Any) -> None:
    jobs = [
        {"name": f"many-{i}", "model": "cifar10", "cluster_id": two.second, "work_scale": 50.0}
        for i in range(130)
    ]
    two.client.submit_jobs(jobs)
    wait_until(lambda: two.client.round(two.second)["active_jobs"] > 130, "a round with many jobs")
    page = open_tab().open(f"{two.url}/rounds?cluster={two.second}")
    page.locator("#round-page").get_by_role("button", name="2", exact=True).click()
    page.wait_for_url(re.compile("page=2$"))

    other = open_tab().open(page.url)

    expect(other.locator("#round-page [data-active]")).to_have_text("2")


@pytest.mark.parametrize(
    ("address", "value", "way"),
    [
        pytest.param("/jobs?state=nope", "nope", "/jobs", marks=pytest.mark.long),
        ("/jobs?sort=nope", "nope", "/jobs"),
        pytest.param("/jobs?colour=red", "red", "/jobs", marks=pytest.mark.long),
        pytest.param("/?range=nope", "nope", "/", marks=pytest.mark.long),
        pytest.param("/rounds?page=nope", "nope", "/rounds", marks=pytest.mark.long),
        pytest.param("/measurements?kind=nope", "nope", "/measurements", marks=pytest.mark.long),
        pytest.param("/submit?like=nope", "nope", "/submit", marks=pytest.mark.long),
        ("/submit?remedy=nope", "nope", "/submit"),
    ],
)
def test_what_a_page_does_not_understand_of_its_address_is_named_with_the_way_out(
    address: str, value: str, way: str, two: Any, inside: Any
) -> None:
    page = inside.follow(two.url + address)

    note = page.locator(".address-note:visible")  # each of two forms notes it, one is shown
    expect(note).to_contain_text(f"“{value}”")
    note.get_by_role("link").click()
    expect(page.locator("#cluster-select")).not_to_have_value("")
    expect(note).to_have_count(0)
    assert re.match(rf"{re.escape(two.url + way)}(\?cluster=\w+)?$", page.url)


@pytest.mark.long
def test_a_round_that_is_not_there_is_named_with_the_way_to_the_last_one(
    two: Any, tab: Any
) -> None:
    page = tab.open(f"{two.url}/rounds?cluster={two.second}&round=999999")
    expect(page.locator("#round-facts")).to_contain_text("There is no round 999999")

    page.locator("#round-facts").get_by_role("link", name="latest round").click()

    expect(page.locator("#round-note")).to_contain_text("follows the latest")
    page.goto(f"{two.url}/rounds?cluster={two.second}&round=2")
    expect(page.locator("#round-note")).to_contain_text("round 2,")


def test_the_title_of_a_page_names_what_it_shows(two: Any, inside: Any) -> None:
    (job,) = two.client.jobs(q="bert of the second")["items"]
    page = inside.follow(f"{two.url}/jobs/{job['id']}")
    expect(page).to_have_title("bert of the second · Job · Maat")
    inside.follow(f"{two.url}/rounds/2?cluster={two.second}")
    expect(page).to_have_title("Round 2 · Maat")
    page.locator(".nav").get_by_text("Jobs").click()
    expect(page).to_have_title("Jobs · Maat")


def test_a_node_that_is_not_there_is_named(two: Any, inside: Any) -> None:
    page = inside.follow(f"{two.url}/cluster?cluster={two.second}&node=nope")

    expect(page.locator("#cluster-asked")).to_contain_text("There is no node “nope”")


@pytest.mark.parametrize(
    "path",
    [
        "/?range=24h",
        *(
            pytest.param(path, marks=pytest.mark.long)
            for path in (
                "/admin?tab=clusters",
                "/cluster",
                "/jobs?state=running",
                "/submit",
                "/rounds",
                "/usage",
                "/reports",
            )
        ),
    ],
)
def test_an_address_of_an_unknown_cluster_says_so_once_and_leads_to_those_there_are(
    path: str, server: Any, tab: Any
) -> None:
    with_cluster = f"{path}{'&' if '?' in path else '?'}cluster=clu_nope"
    page = tab.open(server.url + with_cluster)
    note = page.locator("#no-such-cluster")

    expect(note).to_be_visible()
    expect(note).to_contain_text("There is no cluster “clu_nope”")
    assert page.get_by_role("alert").count() == 1
    assert page.get_by_role("button", name="Try again").count() == 0
    note.get_by_role("link", name="demo").click()

    expect(page.locator(".page-title")).to_be_visible()
    expect(note).to_be_hidden()
    assert f"cluster={server.cluster_id}" in page.url
    assert all(given in page.url for given in path.partition("?")[2].split("&"))
