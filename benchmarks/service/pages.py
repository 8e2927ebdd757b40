"""Pages in Chromium against bare ones, and how live they stay at 64 and at 2,048 GPUs.

Measures on its own running Maat. Cold: a first visit with an empty cache, until the page shows its
data. Bare: the same charts and rows, drawn by the same libraries in a page that does nothing else
(`bare_pages`). Dash: a page of Dash and Mantine with the same charts and no callback, and an empty
one, both cold and against the bare page too; only for pages without a grid, whose bare page is one
of Dash. Then: from another page of Maat to this one. CPU: seconds of all processes of
Chromium. Ratios are of one repeat, so that the load of the machine is alike on both sides.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from statistics import median, quantiles

from playwright.sync_api import Browser, sync_playwright

from benchmarks.service.bare_pages import EMPTY_WANTED, Drawn, bare_page, dash_page, drawn
from benchmarks.service.running import NODES, busy_cluster, running
from benchmarks.service.visits import QUIET_MILLISECONDS, Shown, Wanted, visitor
from benchmarks.table import Cell, Figures
from maat.client import Client, calls

TITLE = "Pages in Chromium: against a bare page, from page to page, and while they are live"
COLUMNS = {
    "page": "page",
    "gpus": "GPUs",
    "jobs": "jobs",
    "cold_seconds": "cold (s)",
    "cold_bare": "x bare",
    "cold_bare_cpu": "x bare, CPU",
    "dash_bare": "Dash x bare",
    "dash_bare_cpu": "Dash x bare, CPU",
    "empty_bare": "empty x bare",
    "empty_bare_cpu": "empty x bare, CPU",
    "then_seconds": "then (s)",
    "then_cold": "x cold",
    "then_cold_cpu": "x cold, CPU",
    "requests": "requests",
    "kilobytes": "kB",
    "start_task_ms": "longest task until then (ms)",
    "idle_task_ms": "longest in idle time after it (ms)",
    "live_task_ms": "longest task of a second while live, p95 (ms)",
    "rounds": "rounds meanwhile",
    "elements": "elements",
}
REPEATS = 3
LIVE_SECONDS = 30.0
STOOD_SECONDS = 5.0  # in which a page has done what it does in idle time
JOBS = {64: 32, 2048: 1000}
SPEED = 60.0  # a round each second
READY: dict[str, Wanted] = {
    "/": [("#overview-map .gpu-job", 1), ("#overview-usage .scatterlayer .trace", 1)],
    "/cluster": [("#cluster-map .gpu-job", 1), ("#cluster-nodes .ag-row .swatch", 1)],
    "/jobs": [("#jobs-grid .ag-row .state", 1)],
    "/submit": [("#submit-preview .scatterlayer .trace", 1)],
    "/rounds": [("#round-matrix .shapelayer path", 1), ("#rounds-grid .ag-row", 1)],
    "/reports": [(".report-section .main-svg", 1)],
    "/usage": [("#usage-table table", 1)],
    "/simulate": [("#simulate-list .state-title, #simulate-list table", 1)],
    "/measurements": [("#measurements-list .state-title, #measurements-list table", 1)],
    "/account": [("#account-facts dl", 1)],
    "/admin": [("#admin-users table", 1)],
}
LIVE = ("/", "/cluster", "/jobs")
LARGE = ("/", "/cluster", "/jobs")
FROM, FROM_READY = "/no/such/page", [(".page-title", 1)]
Row = dict[str, Cell]


def measure(only: Sequence[str] = ()) -> Figures:
    """Measure the pages; skipped, with its name, if Chromium is missing.

    `only`: their paths; empty for all.
    """
    chromium = shutil.which("chromium")
    if chromium is None:
        return Figures("pages", TITLE, COLUMNS, [], ["skipped: needs the Debian package chromium"])
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as maat:
        rows = [row for gpus in NODES for row in _rows(maat.client, chromium, gpus, only)]
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    notes = [
        f"medians of {REPEATS} repeats; then: from a page that stood for {STOOD_SECONDS:.0f} s; "
        f"{LIVE_SECONDS:.0f} s live after {STOOD_SECONDS:.0f} s; "
        f"load average of this machine at the end: {load}",
        "without x bare: the page draws neither chart nor grid; live, 0: no task of 50 ms or more",
    ]
    return Figures("pages", TITLE, COLUMNS, rows, notes)


def _rows(client: Client, chromium: str, gpus: int, only: Sequence[str]) -> list[Row]:
    paths = [path for path in (READY if gpus == min(NODES) else LARGE) if not only or path in only]
    if not paths:
        return []
    cluster = busy_cluster(client, gpus, JOBS[gpus], speed=SPEED)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        rows: list[Row] = [
            {"page": path, "gpus": gpus, "jobs": JOBS[gpus]} | _page(client, browser, cluster, path)
            for path in paths
        ]
        browser.close()
    client.send(calls.act_on_cluster(cluster, "pause"))
    return rows


def _page(client: Client, browser: Browser, cluster: str, path: str) -> Row:
    """Measure one page: first what it draws, then in turn cold, bare and from another page."""
    address, ready = f"{path}?cluster={cluster}", READY[path]
    with visitor(browser) as scout:
        scout.arrive(client.url + address, ready)
        scout.page.wait_for_timeout(QUIET_MILLISECONDS)
        shown = drawn(scout.page)
    wanted = [*ready, *shown.wanted]
    cold, bare, then = [], [], []
    dash, empty = [], []
    with (
        _if(shown.wanted, bare_page(shown)) as bare_url,
        _if(_is_charts(shown), dash_page(shown)) as dash_url,
        _if(_is_charts(shown), dash_page(None)) as empty_url,
    ):
        for _ in range(REPEATS):
            with visitor(browser) as visit:
                cold.append(visit.arrive(client.url + address, wanted))
                visit.page.wait_for_timeout(QUIET_MILLISECONDS)
                asked = visit.traffic
                told = {"requests": asked.requests, "kilobytes": asked.sent_bytes / 1000}
            with visitor(browser) as visit:
                visit.arrive(client.url + FROM, FROM_READY)
                visit.stay(STOOD_SECONDS)
                then.append(visit.follow(address, wanted))
            if bare_url is not None:
                with visitor(browser) as visit:
                    bare.append(visit.arrive(bare_url, shown.wanted))
            if dash_url is not None and empty_url is not None:
                with visitor(browser) as visit:
                    dash.append(visit.arrive(dash_url, shown.wanted))
                with visitor(browser) as visit:
                    empty.append(visit.arrive(empty_url, EMPTY_WANTED))
    return {
        "cold_seconds": median(one.seconds for one in cold),
        **_ratios("cold_bare", cold, bare),
        **(_ratios("dash_bare", dash, bare) | _ratios("empty_bare", empty, bare) if dash else {}),
        "then_seconds": median(one.seconds for one in then),
        **_ratios("then_cold", then, cold),
        **told,
        **(_live(client, browser, cluster, path) if path in LIVE else {}),
    }


def _is_charts(shown: Drawn) -> bool:
    return bool(shown.charts) and not shown.grids


def _if(wanted: object, page: AbstractContextManager[str]) -> AbstractContextManager[str | None]:
    return page if wanted else nullcontext()


def _ratios(name: str, ours: Sequence[Shown], theirs: Sequence[Shown]) -> Row:
    """Medians of the ratios of each repeat, on the clock and of the CPU."""
    if not theirs:
        return {}
    pairs = list(zip(ours, theirs, strict=True))
    return {
        name: median(one.seconds / other.seconds for one, other in pairs),
        f"{name}_cpu": median(one.cpu_seconds / other.cpu_seconds for one, other in pairs),
    }


def _live(client: Client, browser: Browser, cluster: str, path: str) -> Row:
    before = _rounds(client, cluster)
    with visitor(browser) as visit:
        visit.arrive(f"{client.url}{path}?cluster={cluster}", READY[path])
        start, idle = visit.stay(STOOD_SECONDS)
        _, seconds = visit.stay(LIVE_SECONDS)
        elements = visit.page.evaluate("document.querySelectorAll('*').length")
    return {
        "start_task_ms": max(start, default=0.0),
        "idle_task_ms": max(idle),
        "live_task_ms": quantiles(seconds, n=20)[-1],
        "rounds": _rounds(client, cluster) - before,
        "elements": elements,
    }


def _rounds(client: Client, cluster_id: str) -> int:
    return client.cluster_state(cluster_id)["round_number"] or 0
