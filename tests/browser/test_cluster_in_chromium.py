"""Browser tests of the cluster page: the map with keys, pointer and clicks, and 2,048 GPUs."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from sqlmodel import select

from backend.database import Database
from backend.models import AttemptRow, GpuScore, Job, Node
from browser.conftest import wait_until
from browser.pages import wait_in_page
from frontend.components.names import isolated
from maat.client import calls
from maat.vocabulary import AttemptState

pytestmark = pytest.mark.needs_chromium


@pytest.fixture
def page(server: Any, inside: Any) -> Page:
    """The cluster page with a job on the map."""
    opened: Page = inside.follow(f"{server.url}/cluster")
    opened.locator("#cluster-map .gpu-job").first.wait_for()
    return opened


def test_every_gpu_has_its_square_and_the_list_of_nodes_says_the_same(
    server: Any, page: Page
) -> None:
    wait_in_page(
        page, "document.querySelectorAll('#cluster-nodes .ag-center-cols-container .ag-row').length"
    )

    squares = page.evaluate(
        "[...document.querySelectorAll('#cluster-map .gpu-node')].map(node =>"
        " [...node.querySelectorAll('a')]"
        ".reduce((sum, link) => sum + Number(link.style.getPropertyValue('--count')), 0))"
    )

    nodes = server.client.send(calls.nodes(server.cluster_id))["items"]
    assert sorted(squares) == sorted(node["gpu_count"] for node in nodes)
    expect(page.get_by_role("gridcell", name=nodes[0]["name"], exact=True)).to_be_visible()
    expect(page.locator("#cluster-map")).to_have_attribute(
        "aria-label", re.compile(f"of {sum(squares)} GPUs in use on {len(nodes)} nodes")
    )


def test_the_job_under_the_pointer_stays_lit_and_is_named_whole(page: Page) -> None:
    page.hover("#cluster-map .gpu-job >> nth=0")

    name = page.locator("#cluster-map .gpu-job").first.get_attribute("aria-label").split(",")[0]
    expect(page.locator("#gpu-tip .gpu-tip-name")).to_have_text(name)
    lit = page.evaluate(
        "[...document.querySelectorAll('#cluster-map .lit')].map(link => link.href)"
    )
    assert len(set(lit)) == 1
    node = page.locator("#cluster-map .gpu-node:has(.lit) .gpu-node-name").first.bounding_box()
    tip = page.locator("#gpu-tip").bounding_box()
    assert node is not None
    assert tip is not None
    assert tip["y"] + tip["height"] <= node["y"] or node["y"] + node["height"] <= tip["y"]
    page.hover(".page-title")
    expect(page.locator("#gpu-tip")).to_be_hidden()
    expect(page.locator("#cluster-map .lit")).to_have_count(0)


def test_keys_walk_over_the_map_and_enter_opens_the_job(page: Page) -> None:
    page.locator("#cluster-map a[tabindex='0']").focus()
    links = page.evaluate(
        "[...document.querySelectorAll('#cluster-map a')]"
        ".map(link => link.getAttribute('aria-label'))"
    )

    page.keyboard.press("ArrowRight")
    expect(page.locator("#gpu-tip")).to_be_visible()
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == links[1]
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") not in links[:2]
    assert page.locator("#cluster-map a[tabindex='0']").count() == 1

    page.locator("#cluster-map a[aria-label^='long-1,']").first.focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/jobs/job_\w+$"))


def test_a_focus_stays_on_its_page_and_goes_to_no_like_link_of_the_next(
    server: Any, page: Page, inside: Any
) -> None:
    page.locator("#cluster-map a[aria-label^='long-1,']").first.focus()

    inside.follow(f"{server.url}/")
    page.locator("#overview-map a[aria-label^='long-1,']").first.wait_for()

    wait_in_page(page, "document.activeElement.id === 'content'")
    expect(page.locator("#gpu-tip")).to_be_hidden()


def test_a_click_on_free_gpus_leads_to_their_node_from_the_overview_too(
    server: Any, inside: Any
) -> None:
    idle = server.client.send(
        calls.create_cluster(
            {"name": "idle", "nodes": [{"gpu_type": "t4", "gpu_count": 4, "count": 40}]}
        )
    )
    page = inside.follow(f"{server.url}/?cluster={idle['name']}")
    page.get_by_role("group", name="t4-39: 0 of 4 t4 in use").get_by_role("link").click()

    expect(page).to_have_url(re.compile(r"/cluster\?node=t4-39"))
    expect(page.locator("#cluster-nodes .ag-cell-focus")).to_have_text("t4-39")


def test_two_thousand_gpus_keep_the_page_small(server: Any, tab: Any) -> None:
    """The map has one element per job's stretch of GPUs; the list draws only the rows in sight."""
    nodes = [
        {"gpu_type": "t4", "gpu_count": 4, "count": 128},
        {"gpu_type": "a100", "gpu_count": 8, "count": 192},
    ]
    server.client.send(calls.create_cluster({"name": "large", "nodes": nodes, "speed": 1.0}))
    page = tab.open(f"{server.url}/cluster?cluster=large")
    expect(page.locator("#cluster-map .gpu-node")).to_have_count(320)

    assert page.locator("#cluster-nodes .ag-center-cols-container .ag-row").count() < 60
    assert page.evaluate("document.querySelectorAll('*').length") < 320 * 4 + 1500
    assert (
        page.evaluate(
            "document.querySelector('#cluster-map .gpu-stretch').getBoundingClientRect().height"
        )
        >= 10
    )
    page.evaluate("window.first = document.querySelector('#cluster-map .gpu-node')")
    with page.expect_response(
        lambda answer: "cluster-drawing" in (answer.request.post_data or "")
    ) as beat:
        pass
    sent = beat.value.json()["response"] if beat.value.status == 200 else {}
    assert "cluster-drawing" not in sent
    assert page.evaluate("window.first.isConnected")


NEIGHBOURS_ALIKE = """() => {
    const linksOf = place => [...place.querySelectorAll('.gpu-job')].map(link => {
        const box = link.getBoundingClientRect();
        const {top, bottom, left, right} = box;
        const fill = link.style.getPropertyValue('--fill');
        return {job: link.getAttribute('href'), fill, top, bottom, left, right};
    });
    const all = [...document.querySelectorAll('#cluster-map .gpu-nodes')].map(linksOf);
    const near = (one, other) => one.top === other.top
        ? Math.max(one.left, other.left) - Math.min(one.right, other.right) <= 10
        : Math.max(one.left, other.left) < Math.min(one.right, other.right)
            && Math.max(one.top, other.top) - Math.min(one.bottom, other.bottom) < 24;
    let alike = 0, pairs = 0, parted = 0, several = 0;
    all.forEach(place => place.forEach((one, at) => place.slice(at + 1).forEach(other => {
        if (one.job === other.job) { several += 1; parted += one.fill !== other.fill; }
        else if (near(one, other)) { pairs += 1; alike += one.fill === other.fill; }
    })));
    return {pairs, alike, several, parted};
}"""


@pytest.mark.long
def test_a_job_has_one_shade_on_the_map_and_its_neighbours_have_others(
    server: Any, tab: Any
) -> None:
    nodes = [
        {"gpu_type": "t4", "gpu_count": 4, "count": 30},
        {"gpu_type": "a100", "gpu_count": 8, "count": 30},
    ]
    crowded = server.client.create_cluster({"name": "crowded", "nodes": nodes, "speed": 6.0})["id"]
    small = {"model": "cifar10", "cluster_id": crowded, "work_scale": 100.0}
    jobs = [
        {
            **small,
            "name": f"on-several-nodes-{i}",
            "adaptivity": "rigid",
            "gpu_count": 16,
            "batch_size": 2048,
        }
        for i in range(4)
    ] + [{**small, "name": f"one-of-many-{i}", "max_gpus": 1 + i % 4} for i in range(200)]
    server.client.submit_jobs(jobs)
    wait_until(
        lambda: sum(gpu["held"] for gpu in server.client.cluster_state(crowded)["gpus"]) > 200,
        "a crowded cluster",
    )
    server.client.send(calls.act_on_cluster(crowded, "pause"))

    for width in (1280, 390):
        tab.page.set_viewport_size({"width": width, "height": 800})
        page = tab.open(f"{server.url}/cluster?cluster={crowded}")
        page.locator("#cluster-map .gpu-job").first.wait_for()
        found = page.evaluate(NEIGHBOURS_ALIKE)
        assert found["pairs"] > 200
        assert found["alike"] == 0
        assert found["several"] > 10
        assert found["parted"] == 0


def test_the_grids_of_the_page_have_nothing_to_complain_of(server: Any, tab: Any) -> None:
    said: list[str] = []
    tab.page.on(
        "console",
        lambda message: said.append(message.text) if message.type in ("warning", "error") else None,
    )
    page = tab.open(f"{server.url}/cluster")
    page.locator("#cluster-nodes .ag-row .swatch").first.wait_for()

    assert [text for text in said if "AG Grid" in text] == []


def test_a_node_is_no_wider_than_the_map_of_a_small_cluster(server: Any, inside: Any) -> None:
    nodes = [{"name": "only", "gpu_type": "a100", "gpu_count": 16}]
    cluster = server.client.create_cluster({"name": "one node", "nodes": nodes})
    page = inside.follow(f"{server.url}/?cluster={cluster['id']}")
    page.locator("#overview-map .gpu-stretch").first.wait_for()

    wait_in_page(
        page,
        "() => { const map = document.getElementById('overview-map');"
        " return map.clientWidth > 0 && map.scrollWidth <= map.clientWidth; }",
    )
    server.client.send(calls.act_on_cluster(cluster["id"], "pause"))


def test_what_if_shows_that_it_waits_for_a_worker_and_can_be_cancelled(page: Page) -> None:
    page.locator("#what-if-open").click()
    page.locator("#what-if-drain").click()
    page.get_by_role("option", name="t4-1", exact=True).click()
    page.keyboard.press("Escape")
    page.wait_for_url(re.compile(r"[?&]drain=t4-1(&|$)"))
    page.locator("#what-if-ask").click()
    told = page.locator("#what-if")
    expect(told).to_contain_text("Waiting for a worker.")

    page.locator("#what-if-cancel").click()

    expect(told).to_have_text("The forecast was cancelled.")
    expect(page.locator("#what-if-cancel")).to_be_hidden()


def test_faults_have_a_column_while_a_node_has_one(server: Any, page: Page) -> None:
    names = page.locator("#cluster-nodes .ag-header-cell")
    expect(names.filter(has_text="Held by")).to_be_visible()
    expect(names.filter(has_text="Fault")).to_have_count(0)
    set_fault(server, "its driver hangs")
    expect(names.filter(has_text="Fault")).to_be_visible()
    expect(page.locator("#cluster-nodes")).to_contain_text("its driver hangs")
    set_fault(server, None)
    expect(names.filter(has_text="Fault")).to_have_count(0)


def set_fault(server: Any, fault: str | None) -> None:
    with closing(sqlite3.connect(server.folder / "maat.db")) as database, database:
        database.execute("UPDATE nodes SET fault = ? WHERE name = 'a100-1'", (fault,))


def test_what_jobs_said_of_gpus_is_shown_with_who_said_it_and_is_forgotten(
    server: Any, inside: Any
) -> None:
    database = Database(f"sqlite:///{server.folder / 'maat.db'}")
    with database.session_scope() as session:
        job = session.exec(
            select(Job).where(Job.name == "long-1", Job.cluster_id == server.cluster_id)
        ).one()
        on_its_cluster = select(Node).where(Node.cluster_id == job.cluster_id)
        node = session.exec(on_its_cluster.where(Node.name == "t4-0")).one()
        attempt = AttemptRow(
            job_id=job.id,
            cluster_id=job.cluster_id,
            number=1,
            round_number=1,
            state=AttemptState.ENDED.value,
            reports=True,
            gpu_type="t4",
            gpus_by_node={"t4-0": [0, 1, 2]},
            gpu_count=3,
            ordered_seconds=0.0,
        )
        session.add(attempt)
        session.flush()
        session.add_all(
            GpuScore(
                node_id=node.id,
                gpu_index=index,
                attempt_id=attempt.id,
                tenant_id=job.tenant_id,
                application=job.model,
                count=3,
                ratio=ratio,
                updated_seconds=1e9,
            )
            for index, ratio in enumerate((1.0, 1.4, 1.0))
        )
    database.dispose()
    page = inside.follow(f"{server.url}/cluster?cluster={server.cluster_id}")
    scores = page.locator("#cluster-gpu-scores")
    row = scores.locator("tbody tr").first
    expect(row.locator("td").nth(0)).to_have_text("t4-0, GPU 1")
    expect(row.locator("td").nth(2)).to_have_text("1.40")
    expect(row.locator("td").nth(5)).to_contain_text("default")
    page.get_by_role("button", name="Forget", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Forget").click()
    expect(page.get_by_text("Scores of GPUs forgotten")).to_be_visible()
    expect(scores.locator("tbody tr")).to_have_count(0)
    assert server.client.gpu_scores(server.cluster_id) == []


def test_what_sharing_was_measured_to_cost_comes_while_the_page_is_open(
    server: Any, inside: Any
) -> None:
    shared = server.client.create_cluster(
        {
            "name": "shared",
            "nodes": [{"gpu_type": "t4", "gpu_count": 2}],
            "policy": "sjf-bsbf",
            "jobs_per_gpu": 2,
            "interference": 1.25,
            "round_seconds": 60.0,
            "speed": 60.0,
        }
    )["id"]
    page = inside.follow(f"{server.url}/cluster?cluster={shared}")
    card = page.locator("#cluster-slowdowns")
    expect(card).to_contain_text("What sharing a GPU costs")
    expect(card).to_contain_text("No pair of jobs was measured yet")

    rigid = {"cluster_id": shared, "adaptivity": "rigid", "gpu_count": 2, "work_scale": 1000.0}
    for model, batch_size in (("cifar10", 512), ("bert", 24)):
        body = {**rigid, "name": f"shares-{model}", "model": model, "batch_size": batch_size}
        server.client.submit_job(body)

    rows = card.locator("tbody tr")
    expect(rows).to_have_count(2)
    both = (f"{isolated('bert')}, 12 a GPU", f"{isolated('cifar10')}, 256 a GPU")
    for model, partner in (both, both[::-1]):
        row = rows.filter(has=page.locator("td:first-child", has_text=model))
        expect(row.locator("td").nth(1)).to_have_text(partner)
        expect(row.locator("td").nth(2)).to_contain_text("t4")
        expect(row.locator("td").nth(3)).to_have_text("2")
        expect(row.locator("td").nth(4)).to_have_text("1.25")
        expect(row.locator("td").nth(5)).to_have_text("± 0.00")
        expect(row).to_contain_text("decisions go by it")
    server.client.send(calls.act_on_cluster(shared, "pause"))
    page.set_viewport_size({"width": 390, "height": 800})
    wait_in_page(page, "document.documentElement.scrollWidth <= 390")
    table = page.get_by_label("Measured slowdowns")
    assert table.evaluate("one => one.scrollWidth >= one.clientWidth && one.clientWidth < 390")
