"""Text from users is text on every page: no markup, no script, no link, nothing turned around."""

from __future__ import annotations

import re
from collections.abc import Iterator

import dash
import pytest
from playwright.sync_api import Page

from browser.conftest import Tab
from browser.hostile_world import HOSTILE, World, hostile_world, last_round
from browser.pages import wait_in_page
from frontend.pages.admin import TABS

pytestmark = pytest.mark.needs_chromium

WITHOUT_NAMES = {
    "/help",
    "/submit",
    "/rounds",
    "/rounds/9",
    "/calibration",
    "/account",
    "/sign-in",
    "/404",
    "/admin?tab=health",
    "/papers",
    "/papers/sia/table-2",
}
"""They show no name that a tenant gave, or cut it in a chart."""
SAMPLED = ("/", "/jobs", "/jobs/", "/rounds/", "/simulations/", "/usage", "/admin?tab=quotas")
"""Where most names stand: an ending slash stands for the page of one of them."""
AT_REST = """path => window.maat && window.location.pathname === path
    && maat.shownPath() === path && maat.atRest() && !maat.busy()
    && ![...document.querySelectorAll('.mantine-Skeleton-root')].some(one => one.offsetParent)"""
# What may not be there if all text is text. `turned`: inline text that turns what stands around it.
FOUND = """hostile => {
    const escaped = document.body.innerText.match(/&(lt|gt|amp|quot|#39);/g) || [];
    const made = document.querySelectorAll(
        'img[src="x"], [href^="javascript"], [onerror], #content b > b').length;
    const turned = [];
    const apart = 'script, style, svg, textarea, option';
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const text = walker.currentNode, around = text.parentElement;
        if (!text.data.includes('\\u202e') || around.closest(apart)) {
            continue;
        }
        const style = getComputedStyle(around);
        const alone = style.display !== 'inline' && around.childNodes.length === 1;
        const isolated = /^(isolate|plaintext)/.test(style.unicodeBidi);
        if (!alone && !isolated) {
            turned.push(around.outerHTML.slice(0, 200));
        }
    }
    return {
        hacked: window.hacked || null,
        made, escaped: escaped.length,
        turned,
        shown: document.querySelector('#content').textContent.includes(hostile),
        wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    };
}"""


@pytest.fixture(scope="module")
def hostile(
    chromium: object, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, World]]:
    with hostile_world(tmp_path_factory.mktemp("hostile")) as served:
        yield served


def addresses(world: World) -> list[str]:
    """Return an address of every page that there is. Raises KeyError for a page with a new id."""
    ids = {
        "job_id": world.red["jobs"][0],
        "number": str(last_round(world)),
        "simulation_id": world.red["simulations"][0],
        "sweep_id": world.red["sweeps"][0],
        "experiment_id": world.red["experiments"][0],
        "paper": "sia",
        "item": "table-2",
    }
    paths = [
        re.sub(r"<(\w+)>", lambda found: ids[found[1]], page["path_template"] or page["path"])
        for page in dash.page_registry.values()
    ]
    return [*dict.fromkeys(paths), *(f"/admin?tab={tab}" for tab in TABS)]


def settled(page: Page, path: str) -> None:
    """The page of this address is there with its first data, and nothing is asked for."""
    page.wait_for_selector("#cluster-select", state="attached")
    wait_in_page(page, AT_REST, path.partition("?")[0])


def seen(page: Page, path: str) -> dict[str, object]:
    settled(page, path)
    return dict(page.evaluate(FOUND, HOSTILE))


def is_sampled(path: str) -> bool:
    return path in SAMPLED or f"{path.rpartition('/')[0]}/" in SAMPLED[2:]


@pytest.mark.parametrize("all_pages", [False, pytest.param(True, marks=pytest.mark.long)])
def test_hostile_text_is_text_on_every_page(
    hostile: tuple[str, World], tab: Tab, all_pages: bool
) -> None:
    url, world = hostile
    found = {}
    settled(tab.open(url + "/"), "/")
    paths = [path for path in addresses(world) if all_pages or is_sampled(path)]
    assert len(paths) >= len(SAMPLED)
    for path in paths:
        tab.follow(url + path)
        found[path] = seen(tab.page, path)

    clean = {"hacked": None, "made": 0, "escaped": 0, "turned": [], "wide": 0, "shown": True}
    faults = {
        path: {name: value for name, value in one.items() if value != clean[name]}
        for path, one in found.items()
    }
    assert {path: fault for path, fault in faults.items() if fault} == {
        path: {"shown": False} for path in WITHOUT_NAMES if path in found
    }
    assert tab.witness.foreign == []
