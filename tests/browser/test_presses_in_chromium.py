"""Browser tests of presses: a press counts even while the page draws the button again.

Every page redraws its buttons on every beat.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from browser.pages import error_beside, press_while_redrawn, wait_in_page, without_beats
from maat.client import calls
from maat.client.calls import RawBody

pytestmark = pytest.mark.needs_chromium

TRACE = "name,time,application,num_replicas,batch_size\nonly,0,cifar10,2,256\n"


def test_a_simulation_is_cancelled(server: Any, inside: Any) -> None:
    made = server.client.simulate(
        {
            "name": "nobody plays it",
            "traces": [{"kind": "csv", "text": TRACE}],
            "cluster": "t4=1x4",
            "runs": [{"policy": "fifo"}],
        }
    )
    page = inside.follow(f"{server.url}/simulations/{made['id']}")
    press_while_redrawn(page, "#simulation-cancel", "simulation-actions.children")

    expect(
        page.locator(".page-head .state, #simulation-actions .caption", has_text="cancel").first
    ).to_be_visible()
    assert server.client.operation(made["operation_id"])["cancel_requested"]


def test_a_press_counts_although_its_button_moves_away_under_it(server: Any, inside: Any) -> None:
    page = inside.follow(f"{server.url}/submit")
    button = page.locator("#submit-button")
    button.scroll_into_view_if_needed()
    box = button.bounding_box()
    assert box is not None
    at = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)

    page.mouse.move(*at)
    page.mouse.down()
    page.mouse.move(at[0], at[1] - 100)
    page.mouse.up()  # drawn away: no press
    page.wait_for_timeout(500)
    expect(error_beside(page, "submit-name")).to_have_count(0)

    page.mouse.move(*at)
    page.mouse.down()
    button.evaluate("button => { button.style.marginTop = '90px'; }")
    page.mouse.up()
    expect(error_beside(page, "submit-name")).to_be_visible()


# What a browser does that has no time between what is typed and the press.
TYPE_AND_PRESS = """name => {
    const field = document.getElementById('submit-name');
    const shown = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value');
    shown.set.call(field, name);
    field.dispatchEvent(new Event('input', { bubbles: true }));
    const until = Date.now() + 600;
    while (Date.now() < until);
    document.getElementById('submit-button').click();
}"""


def test_a_press_that_a_busy_browser_tells_before_what_was_typed_waits_for_it(
    server: Any, inside: Any
) -> None:
    page = inside.follow(f"{server.url}/submit")
    page.locator("#submit-preview .scatterlayer .trace").first.wait_for(state="attached")
    page.evaluate(TYPE_AND_PRESS, "all-at-once")
    expect(page).to_have_url(re.compile(r"/jobs/job_\w+"))
    assert [job["name"] for job in server.client.jobs()["items"]].count("all-at-once") == 1


def agree_if_asked(page: Page) -> None:
    """Drain the node all the same, if jobs hold it."""
    agrees = page.locator("#cluster-drain-yes")
    agrees.or_(page.get_by_role("button", name="restore ")).first.wait_for()
    if agrees.is_visible():
        agrees.click()


@pytest.mark.long
def test_what_was_pressed_shows_at_once(server: Any, tab: Any) -> None:
    trace: dict[str, object] = {"kind": "csv", "text": TRACE}
    simulation = server.client.simulate(
        {"name": "at once", "traces": [trace], "cluster": "t4=1x4", "runs": [{"policy": "fifo"}]}
    )
    vary: RawBody = {"name": "rigid_share", "values": [0, 1]}
    sweep = server.client.send(
        calls.start_sweep(
            {
                "name": "at once",
                "trace": trace,
                "cluster": "t4=1x4",
                "policy": "fifo",
                "seeds": [0],
                "vary": [vary],
            }
        )
    )
    job = server.client.submit_job({"name": "at-once", "model": "imagenet"})
    without_beats(tab.page)

    for kind, made in (("simulation", simulation), ("sweep", sweep)):
        page = tab.follow(f"{server.url}/{kind}s/{made['id']}")
        page.click(f"#{kind}-cancel")
        expect(
            page.locator(f"#{kind}-head .state, #{kind}-actions .caption", has_text="cancel").first
        ).to_be_visible()
    page = tab.follow(f"{server.url}/jobs/{job['id']}")
    page.click("#job-cancel")
    page.click("#job-cancel-yes")
    expect(
        page.locator("#job-head .state, #job-actions .caption", has_text="cancel").first
    ).to_be_visible()
    page = tab.follow(f"{server.url}/cluster?cluster={server.cluster_id}")
    page.get_by_role("button", name="drain ").first.click()
    agree_if_asked(page)
    page.get_by_role("button", name="restore ").click()
    expect(page.get_by_role("button", name="restore ")).to_have_count(0)
    page.get_by_role("button", name="Pause cluster").click()
    page.get_by_role("button", name="Resume cluster").click()
    expect(page.get_by_role("button", name="Pause cluster")).to_be_visible()


@pytest.mark.long
def test_a_node_is_drained_and_restored_and_the_cluster_paused(server: Any, inside: Any) -> None:
    page = inside.follow(f"{server.url}/cluster")
    drains = page.get_by_role("button", name="drain ")
    drains.first.wait_for()
    before = drains.count()

    press_while_redrawn(page, "[aria-label^='drain ']", "cluster-drawing.data")
    agree_if_asked(page)
    expect(page.get_by_role("button", name="restore ")).to_have_count(1)
    press_while_redrawn(page, "[aria-label^='restore ']", "cluster-drawing.data")
    expect(drains).to_have_count(before)

    press_while_redrawn(page, "#cluster-actions button", "cluster-actions.children")
    page.get_by_role("button", name="Resume cluster").click()
    expect(page.get_by_role("button", name="Pause cluster")).to_be_visible()


@pytest.mark.long
def test_gpus_are_reserved_and_the_reservation_removed(server: Any, inside: Any) -> None:
    page = inside.follow(f"{server.url}/cluster")
    press_while_redrawn(page, "#cluster-reserve-open", "cluster-reserve.children")
    page.fill("#cluster-reserve-type", "t4")
    page.fill("#cluster-reserve-holder", server.client.send(calls.me())["tenant"])
    page.click("#cluster-reserve-add")
    remove = page.get_by_role("button", name="Remove the reservation of")
    expect(remove).to_have_count(1)
    press_while_redrawn(page, "[aria-label^='Remove the reservation']", "cluster-reserved.children")
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()

    expect(remove).to_have_count(0)


def test_a_job_is_cancelled(server: Any, inside: Any) -> None:
    job = server.client.submit_job({"name": "pressed", "model": "imagenet"})
    page = inside.follow(f"{server.url}/jobs/{job['id']}")
    press_while_redrawn(page, "#job-cancel", "job-actions.children")
    page.click("#job-cancel-yes")

    expect(
        page.locator(".page-head .state, #job-actions .caption", has_text="cancel").first
    ).to_be_visible()


@pytest.mark.long
def test_measurements_are_deleted(server: Any, inside: Any) -> None:
    rows = "".join(
        f"{one},{other},1,1.5\n" for one in ("bert", "cifar10") for other in ("bert", "cifar10")
    )
    file = {"name": "pairs.csv", "text": f"victim,partner,gpu_count,slowdown\n{rows}"}
    server.client.upload_measurement({"kind": "interference", "name": "old pairs", "files": [file]})
    page = inside.follow(f"{server.url}/measurements")
    delete = page.get_by_role("button", name="Delete the measurements old pairs")
    press_while_redrawn(
        page, "[aria-label='Delete the measurements old pairs']", "measurements-list.children"
    )
    page.click("#measurements-yes")

    expect(delete).to_have_count(0)


def test_what_did_not_change_stays_and_what_changed_keeps_the_focus(
    server: Any, inside: Any
) -> None:
    page = inside.follow(f"{server.url}/cluster")
    buttons = page.locator("#cluster-nodes button")
    buttons.first.focus()
    label = buttons.first.get_attribute("aria-label")
    page.evaluate("window.pause = document.querySelector('#cluster-actions button')")
    (node, *_) = server.client.send(calls.nodes(server.cluster_id))["items"][::-1]

    server.client.send(calls.act_on_node(server.cluster_id, node["id"], "drain"))
    expect(page.get_by_role("button", name=f"restore {node['name']}")).to_be_visible()

    wait_in_page(
        page, "label => document.activeElement.getAttribute('aria-label') === label", arg=label
    )
    assert page.evaluate("window.pause.isConnected")
    page.mouse.click(700, 20)
    server.client.send(calls.act_on_node(server.cluster_id, node["id"], "restore"))
    expect(page.get_by_role("button", name=f"restore {node['name']}")).to_have_count(0)
    assert page.evaluate("document.activeElement === document.body")


def test_a_button_that_was_pressed_stays_where_it_is_while_the_rest_is_drawn_anew(
    server: Any, inside: Any
) -> None:
    page = inside.follow(f"{server.url}/cluster")
    page.click("#cluster-reserve-open")
    page.evaluate("window.opener = document.querySelector('#cluster-reserve-open')")
    page.keyboard.press("Escape")
    (node, *_) = server.client.send(calls.nodes(server.cluster_id))["items"][::-1]

    server.client.send(calls.act_on_node(server.cluster_id, node["id"], "drain"))
    expect(page.get_by_role("button", name=f"restore {node['name']}")).to_be_visible()

    assert page.evaluate("window.opener.isConnected")
    server.client.send(calls.act_on_node(server.cluster_id, node["id"], "restore"))


def test_a_dialog_gives_the_focus_back_to_its_button_even_if_that_was_drawn_anew(
    server: Any, inside: Any
) -> None:
    rows = "".join(
        f"{one},{other},1,1.5\n" for one in ("bert", "cifar10") for other in ("bert", "cifar10")
    )
    file = {"name": "pairs.csv", "text": f"victim,partner,gpu_count,slowdown\n{rows}"}
    made = [
        server.client.upload_measurement({"kind": "interference", "name": "first", "files": [file]})
    ]
    page = inside.follow(f"{server.url}/measurements")
    opener = page.get_by_role("button", name="Delete the measurements first")
    opener.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()

    made.append(
        server.client.upload_measurement(
            {"kind": "interference", "name": "second", "files": [file]}
        )
    )
    expect(page.locator("#measurements-list")).to_contain_text("second")
    page.keyboard.press("Escape")

    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(opener).to_be_focused()
    for one in made:
        server.client.send(calls.delete_measurement(one["id"]))


def test_a_page_that_was_asked_for_while_the_service_gave_no_answer_opens_once_it_does(
    server: Any, tab: Any
) -> None:
    page = tab.open(f"{server.url}/cluster")
    page.get_by_role("button", name="drain ").first.wait_for()
    page.evaluate(
        """() => {
            const ask = window.fetch;
            window.fetch = function (url, options) {
                const wanted = String(options && options.body).includes('_pages_content');
                if (!wanted) { return ask.apply(this, arguments); }
                window.fetch = ask;
                return Promise.reject(new TypeError('no answer'));
            };
            window.maat.go('/measurements');
        }"""
    )

    expect(page.locator(".page-title")).to_have_text("Measurements")
    assert page.url.endswith("/measurements")


def test_an_answer_that_comes_after_its_page_was_left_does_no_harm(server: Any, tab: Any) -> None:
    page = tab.open(f"{server.url}/cluster")
    page.get_by_role("button", name="drain ").first.wait_for()
    page.evaluate(
        """() => new Promise(left => {
            const ask = window.fetch;
            window.fetch = async function (url, options) {
                const answer = await ask.apply(this, arguments);
                if (String(options && options.body).includes('cluster-drawing.data')) {
                    window.fetch = ask;
                    window.maat.go('/measurements');
                    while (document.querySelector('#cluster-nodes')) {
                        await new Promise(drawn => requestAnimationFrame(drawn));
                    }
                    setTimeout(left, 0);
                }
                return answer;
            };
        })"""
    )

    expect(page.locator("#measurements-list")).not_to_be_empty()
    assert tab.witness.errors == []
