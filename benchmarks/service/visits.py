"""Visits of pages in Chromium: how long until they show their data, on the clock and of the CPU."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Browser, CDPSession, Page

PATIENCE_SECONDS = 120.0
QUIET_MILLISECONDS = 1500
REST_MILLISECONDS, PRESS_MILLISECONDS = 100, 80
_OBSERVED = """
window.longTasks = [];
new PerformanceObserver(seen => seen.getEntries().forEach(
    task => window.longTasks.push([task.startTime, task.duration])))
    .observe({type: 'longtask', buffered: true});
window.await = wanted => {
    const begun = window.visited ? performance.now() : 0;
    window.visited = true;
    window.took = null;
    const look = () => {
        const there = ([selector, count]) => document.querySelectorAll(selector).length >= count;
        if (wanted.every(there)) { window.took = performance.now() - begun; return; }
        requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
};
try { localStorage.setItem('maat-tour', 'seen'); } catch (none) { /* no page yet */ }
"""

Wanted = Sequence[tuple[str, int]]
"""CSS selectors, and how many elements of each show that the page has its data."""


@dataclass
class Traffic:
    """What a page asked the network for: requests, and bytes as sent, headers and all.

    Pictures that stand in a style sheet are asked for too, by addresses that hold them: no request.
    """

    requests: int = 0
    sent_bytes: float = 0.0


@dataclass(frozen=True)
class Shown:
    """Until a page showed its data: seconds on the clock, and of the CPU in all of Chromium."""

    seconds: float
    cpu_seconds: float


@dataclass
class Visitor:
    """A new visitor with one tab and an empty cache."""

    page: Page
    session: CDPSession
    traffic: Traffic = field(default_factory=Traffic)

    def arrive(self, url: str, wanted: Wanted) -> Shown:
        """Open an address and wait until it shows what is wanted."""
        before = _cpu_seconds(self.session)
        self.page.add_init_script(f"window.await({_as_script(wanted)})")
        self.page.goto(url, wait_until="commit")
        return self._awaited(wanted, before)

    def follow(self, path: str, wanted: Wanted) -> Shown:
        """Go to another page of Maat by its link: the time counts from the release of the button.

        The pointer has rested on the link before, and presses the button for a while. A page
        without a link in the navigation is gone to at once.
        """
        self.page.wait_for_timeout(QUIET_MILLISECONDS)
        before = _cpu_seconds(self.session)
        link = self.page.locator(f".nav-link[href='{path}']")
        if not link.count():
            self.page.evaluate(
                "([path, wanted]) => { maat.go(path); window.await(wanted); }",
                [path, [list(one) for one in wanted]],
            )
            return self._awaited(wanted, before)
        self.page.evaluate(
            "wanted => document.addEventListener('click', () => window.await(wanted),"
            " { capture: true, once: true })",
            [list(one) for one in wanted],
        )
        link.hover()
        self.page.wait_for_timeout(REST_MILLISECONDS)
        self.page.mouse.down()
        self.page.wait_for_timeout(PRESS_MILLISECONDS)
        self.page.mouse.up()
        return self._awaited(wanted, before)

    def stay(self, seconds: float) -> tuple[list[float], list[float]]:
        """Return the lengths of the long tasks until now, and of each second's longest after it.

        Milliseconds; 0 for a second without a task of 50 ms, where browsers begin to count.
        """
        now = self.page.evaluate("performance.now()")
        self.page.wait_for_timeout(seconds * 1000)
        tasks = self.page.evaluate("window.longTasks")
        longest = [0.0] * max(1, int(seconds))
        for start, length in tasks:
            second = int((start - now) // 1000)
            if 0 <= second < len(longest):
                longest[second] = max(longest[second], length)
        return [length for start, length in tasks if start < now], longest

    def _awaited(self, wanted: Wanted, before: dict[int, float]) -> Shown:
        for selector, _ in wanted:
            self.page.wait_for_selector(selector, state="attached")
        while (took := self.page.evaluate("window.took")) is None:
            self.page.wait_for_timeout(10)
        after = _cpu_seconds(self.session)
        return Shown(took / 1000, sum(spent - before.get(one, 0.0) for one, spent in after.items()))


@contextmanager
def visitor(browser: Browser) -> Iterator[Visitor]:
    """Let somebody come for the first time."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.set_default_timeout(PATIENCE_SECONDS * 1000)
    page.add_init_script(_OBSERVED)
    session = browser.new_browser_cdp_session()
    found = Visitor(page, session)
    network = context.new_cdp_session(page)
    network.on(
        "Network.requestWillBeSent",
        lambda told: _add(found.traffic, requests=told["request"]["url"].startswith("http")),
    )
    network.on(
        "Network.loadingFinished",
        lambda told: _add(found.traffic, sent_bytes=told["encodedDataLength"]),
    )
    network.send("Network.enable")
    try:
        yield found
    finally:
        session.detach()
        context.close()


def _add(traffic: Traffic, *, requests: int = 0, sent_bytes: float = 0.0) -> None:
    traffic.requests += requests
    traffic.sent_bytes += sent_bytes


def _cpu_seconds(session: CDPSession) -> dict[int, float]:
    """CPU seconds of each process of Chromium by its id."""
    told: dict[str, Any] = session.send("SystemInfo.getProcessInfo")
    return {one["id"]: one["cpuTime"] for one in told["processInfo"]}


def _as_script(wanted: Wanted) -> str:
    return json.dumps([list(one) for one in wanted])
