"""A real server and a real worker on SQLite, and a real Chromium that looks at them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from benchmarks.real_server import free_port
from maat.client import ApiError, Client, Unreachable

START_SECONDS = 120.0  # of patience: only a test that fails waits as long
PATIENCE_MILLISECONDS = 60_000
expect.set_options(timeout=PATIENCE_MILLISECONDS)
ROOT = Path(__file__).parents[2]
CHROMIUM = shutil.which("chromium")


def wait_until(true: Callable[[], bool], what: str, seconds: float = START_SECONDS) -> None:
    """Poll until it is so; fail saying what was waited for."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            pytest.fail(f"waited {seconds:.0f} s for {what}")
        time.sleep(0.1)


@dataclass
class Server:
    """A running Maat: its address, a client for it, and what its processes are started with."""

    url: str
    client: Client
    folder: Path
    environment: dict[str, str]

    def answers(self) -> bool:
        try:
            return self.client.health()["database"] == "ok"
        except (
            Unreachable,
            ApiError,
        ):  # a busy machine may answer later than the service waits for its database
            return False

    @property
    def cluster_id(self) -> str:
        return self.client.clusters()[0]["id"]


@contextmanager
def running(arguments: list[str], environment: dict[str, str], log: Path) -> Iterator[None]:
    """A process in its own group, ended with all its children."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", *arguments],
            cwd=ROOT,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


@contextmanager
def serving(folder: Path, *, demo: bool) -> Iterator[Server]:
    port = free_port()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MAAT_")}
    environment = {**kept, "MAAT_DATA_DIR": str(folder), "MAAT_DEMO": str(demo).lower()}
    subprocess.run(
        [sys.executable, "-m", "backend.bootstrap_data"], cwd=ROOT, env=environment, check=True
    )
    arguments = [
        "uvicorn",
        "frontend.app:app",
        "--port",
        str(port),
        "--log-level",
        "warning",
        "--timeout-graceful-shutdown",
        "2",
    ]
    with (
        running(arguments, environment, folder / "api.log"),
        Client(f"http://127.0.0.1:{port}") as client,
    ):
        server = Server(client.url, client, folder, environment)
        wait_until(server.answers, f"the service; its log: {folder / 'api.log'}")
        yield server


def worker_of(queue: str, *more: str) -> list[str]:
    """A worker process for one queue."""
    options = [
        "--loglevel=WARNING",
        "--without-mingle",
        "--without-gossip",
        "-Q",
        queue,
        "--pool=solo",
        *more,
    ]
    return ["celery", "-A", "worker.app", "worker", "-n", f"{queue}@%h", *options]


@pytest.fixture(scope="module")
def server(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The demo cluster with jobs and rounds: everything real, nothing empty."""
    folder = tmp_path_factory.mktemp("maat")
    with serving(folder, demo=True) as server:
        server.client.add_demo_jobs(12, seed=3)
        for name in (
            "long-1",
            "long-2",
        ):  # so that a slow machine does not find the cluster empty in the last tests
            server.client.submit_job({"name": name, "model": "imagenet", "work_scale": 50.0})
        with running(
            worker_of("rounds", "-B", "-s", str(folder / "beat")),
            server.environment,
            folder / "worker.log",
        ):
            wait_until(
                lambda: bool(server.client.rounds(server.cluster_id)["items"]),
                f"a round; the worker's log: {folder / 'worker.log'}",
            )
            yield server


@pytest.fixture(scope="module")
def laboratory(server: Server) -> Iterator[Server]:
    """The same service, with a worker that plays simulations and points of sweeps."""
    with running(worker_of("simulations"), server.environment, server.folder / "simulations.log"):
        yield server


@pytest.fixture(scope="module")
def empty_server(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service without cluster, job, round or worker."""
    with serving(tmp_path_factory.mktemp("empty"), demo=False) as server:
        yield server


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("needs the Debian package chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@dataclass
class Witness:
    """What a page did wrong while a test looked at it."""

    errors: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)


@dataclass
class Tab:
    """A page with its witness."""

    page: Page
    witness: Witness

    def open(self, url: str) -> Page:
        self.page.goto(url)
        return self.page


def _tab(context: BrowserContext) -> Tab:
    page, witness = context.new_page(), Witness()
    page.set_default_timeout(PATIENCE_MILLISECONDS)
    page.on(
        "console",
        lambda message: witness.errors.append(message.text) if message.type == "error" else None,
    )
    page.on("pageerror", lambda error: witness.errors.append(error.stack or str(error)))
    page.on(
        "request",
        lambda request: (
            witness.foreign.append(request.url)
            if urlsplit(request.url).hostname not in ("127.0.0.1", None)
            else None
        ),
    )
    return Tab(page, witness)


def _profile(chromium: Browser, **options: Any) -> BrowserContext:
    return chromium.new_context(
        viewport={"width": 1280, "height": 800}, reduced_motion="reduce", **options
    )


@pytest.fixture(scope="module")
def shared_profile(chromium: Browser) -> Iterator[BrowserContext]:
    """One visitor, whose cache the tests share: the page libraries are loaded once."""
    context = _profile(chromium)
    yield context
    context.close()


@pytest.fixture
def tab(shared_profile: BrowserContext) -> Iterator[Tab]:
    opened = _tab(shared_profile)
    yield opened
    opened.page.close()


@pytest.fixture
def open_tab(chromium: Browser) -> Iterator[Callable[..., Tab]]:
    """Tabs of visitors who were never here: `open_tab(color_scheme="dark")`."""
    contexts: list[BrowserContext] = []

    def make(**options: Any) -> Tab:
        contexts.append(_profile(chromium, **options))
        return _tab(contexts[-1])

    yield make
    for context in contexts:
        context.close()
