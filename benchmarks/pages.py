"""How long the cluster page and the overview take at 64 and at 2,048 GPUs.

Measures in Chromium, on its own running Maat. `ready`: from the request until the map shows jobs,
and the list of nodes its rows or the chart its lines. `tasks`: what blocked the browser's main
thread for more than 50 ms, before and after; after it, the page is live and takes over what rounds
change.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from statistics import median

from benchmarks.table import Figures
from maat.api.clusters import NodeBody
from maat.client import Client, Unreachable, calls
from maat.client.calls import RawBody

TITLE = (
    "The cluster page and the overview in Chromium: "
    "until they show their data, and their longest task while they are live"
)
COLUMNS = {
    "page": "page",
    "gpus": "GPUs",
    "nodes": "nodes",
    "jobs": "jobs",
    "ready_seconds": "ready (s)",
    "start_task_ms": "longest task until then (ms)",
    "live_task_ms": "longest task while live (ms)",
    "rounds": "rounds meanwhile",
    "elements": "elements",
}
LOADS = 3
LIVE_SECONDS = 30.0
START_SECONDS = 120.0
NODES: dict[int, list[NodeBody]] = {
    64: [
        {"gpu_type": "t4", "gpu_count": 4, "count": 6},
        {"gpu_type": "rtx", "gpu_count": 8, "count": 3},
        {"gpu_type": "a100", "gpu_count": 8, "count": 2},
    ],
    2048: [
        {"gpu_type": "t4", "gpu_count": 4, "count": 128},
        {"gpu_type": "rtx", "gpu_count": 8, "count": 64},
        {"gpu_type": "a100", "gpu_count": 8, "count": 128},
    ],
}
READY = {
    "/cluster": ("#cluster-map .gpu-job", "#cluster-nodes .ag-row .swatch"),
    "/": ("#overview-map .gpu-job", "#overview-usage .scatterlayer .trace"),
}
OBSERVED = """window.longTasks = [];
new PerformanceObserver(seen => seen.getEntries().forEach(
    task => window.longTasks.push([task.startTime, task.duration])))
    .observe({type: 'longtask', buffered: true});"""


def measure() -> Figures:
    """Measure the pages; skipped, with its name, if Chromium is missing."""
    chromium = shutil.which("chromium")
    if chromium is None:
        return Figures("pages", TITLE, COLUMNS, [], ["skipped: needs the Debian package chromium"])
    with tempfile.TemporaryDirectory() as folder, _running(Path(folder)) as client:
        rows = [row for gpus in NODES for row in _rows(client, chromium, gpus)]
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    note = (
        f"median of {LOADS} cold loads, then {LIVE_SECONDS:.0f} s live; "
        f"load average of this machine at the end: {load}"
    )
    return Figures("pages", TITLE, COLUMNS, rows, [note])


@contextmanager
def _running(folder: Path) -> Iterator[Client]:
    """Run `maat up` on its own port and folder."""
    log = folder / "up.log"
    with log.open("wb") as output:
        command = [
            sys.executable,
            "-m",
            "maat",
            "up",
            "--no-demo",
            "--port",
            "18000",
            "--data-dir",
            str(folder / "data"),
        ]
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    try:
        with Client(_address(log, process)) as client:
            yield client
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=30)


def _address(log: Path, process: subprocess.Popen[bytes]) -> str:
    end = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < end:
        said = re.search(r"Maat is at (\S+)", log.read_text())
        if said:
            return said[1]
        time.sleep(0.2)
    raise RuntimeError(f"maat up did not start: {log.read_text()}")


def _rows(client: Client, chromium: str, gpus: int) -> list[dict[str, float | int | str | None]]:
    from playwright.sync_api import sync_playwright

    cluster = client.send(
        calls.create_cluster({"name": f"gpus-{gpus}", "nodes": NODES[gpus], "speed": 6.0})
    )
    jobs = gpus // 2
    _submit(client, cluster["id"], jobs)
    _await_jobs(client, cluster["id"])
    of_all = {"gpus": gpus, "nodes": sum(node["count"] for node in NODES[gpus]), "jobs": jobs}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        rows = [
            {"page": path, **of_all, **_page(client, browser, cluster["id"], path)}
            for path in READY
        ]
        browser.close()
    client.send(calls.act_on_cluster(cluster["id"], "pause"))
    return rows


def _page(
    client: Client, browser: object, cluster_id: str, path: str
) -> dict[str, float | int | str | None]:
    loads = [
        _load(browser, client.url, path, cluster_id, live_seconds=0.0) for _ in range(LOADS - 1)
    ]
    before = _rounds(client, cluster_id)
    loads.append(_load(browser, client.url, path, cluster_id, live_seconds=LIVE_SECONDS))
    rounds = _rounds(client, cluster_id) - before
    shown = {
        name: median(load[name] for load in loads) for name in ("ready_seconds", "start_task_ms")
    }
    live = {name: loads[-1][name] for name in ("live_task_ms", "elements")}
    return {"rounds": rounds, **shown, **live}


def _rounds(client: Client, cluster_id: str) -> int:
    return client.cluster_state(cluster_id)["round_number"] or 0


def _submit(client: Client, cluster_id: str, count: int) -> None:
    chance = Random(0)
    models = ("cifar10", "bert", "imagenet", "deepspeech2", "yolov3")
    bodies: list[RawBody] = [
        {
            "name": f"team{chance.randrange(20)}-train-{number:04d}",
            "model": chance.choice(models),
            "cluster_id": cluster_id,
            "max_gpus": chance.choice((1, 2, 4, 8)),
            "work_scale": 100.0,
        }
        for number in range(count)
    ]
    for start in range(0, count, 256):
        client.send(calls.submit_jobs(bodies[start : start + 256]))


def _await_jobs(client: Client, cluster_id: str) -> None:
    """Wait until rounds have allocated half of the GPUs."""
    end = time.monotonic() + 2 * START_SECONDS
    while time.monotonic() < end:
        try:
            gpus = client.cluster_state(cluster_id)["gpus"]
        except Unreachable:
            gpus = []
        if gpus and sum(gpu["held"] for gpu in gpus) * 2 >= len(gpus):
            return
        time.sleep(1.0)
    raise RuntimeError("no round gave half of the GPUs away")


def _load(
    browser: object, url: str, path: str, cluster: str, *, live_seconds: float
) -> dict[str, float]:
    """Open the page of the cluster as a new visitor, and stay."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})  # type: ignore[attr-defined]
    page = context.new_page()
    page.set_default_timeout(START_SECONDS * 1000)
    page.add_init_script(OBSERVED)
    begun = time.monotonic()
    page.goto(f"{url}{path}?cluster={cluster}", wait_until="commit")
    for shown in READY[path]:
        page.wait_for_selector(shown, state="attached")
    ready = time.monotonic() - begun
    at = page.evaluate("performance.now()")
    page.wait_for_timeout(live_seconds * 1000)
    tasks = page.evaluate("window.longTasks")
    found = {
        "ready_seconds": ready,
        "start_task_ms": max((length for start, length in tasks if start < at), default=0.0),
        "live_task_ms": max((length for start, length in tasks if start >= at), default=0.0),
        "elements": page.evaluate("document.querySelectorAll('*').length"),
    }
    context.close()
    return found
