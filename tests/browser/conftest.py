"""A real server and a real worker on SQLite, and a real Chromium that looks at them."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Error,
    Page,
    Request,
    ViewportSize,
    expect,
    sync_playwright,
)

from backend.bootstrap_data import ensure_defaults
from backend.database import Database
from backend.settings import Settings
from benchmarks.service.real_server import free_port
from browser.processes import ROOT, forked
from maat.client import ApiError, Client, Unreachable

START_SECONDS = 120.0  # of patience: only a test that fails waits as long
PATIENCE_MILLISECONDS = 60_000
expect.set_options(timeout=PATIENCE_MILLISECONDS)
CHROMIUM = shutil.which("chromium")
WIDE: ViewportSize = {"width": 1280, "height": 800}
ColorScheme = Literal["light", "dark"]
# The guided tour opens by itself for those who have not seen it, over what tests press.
TOUR_SEEN = "try { localStorage.setItem('maat-tour', 'seen'); } catch (none) { /* no page yet */ }"
# Most tests end before a page has done in idle time what other pages need, and need none of it.
SAVES_DATA = "Object.defineProperty(navigator.connection, 'saveData', { get: () => true });"
# The two lists of suggestions under the address bar are pages in a process of their own, one for
# each window. The others are what Playwright turns off: its own list no longer counts.
NO_FEATURES = (
    "WebUIOmniboxPopup",
    "WebUIOmniboxAimPopup",
    "AimEnabled",
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "HttpsFirstBalancedModeAutoEnable",
    "HttpsUpgrades",
    "MediaRouter",
    "NetworkTimeServiceQuerying",
    "OptimizationHints",
    "PaintHolding",
    "PreconnectToSearch",
    "ThirdPartyStoragePartitioning",
)


def wait_until(true: Callable[[], bool], what: str, seconds: float = START_SECONDS) -> None:
    """Poll until it is so; fail saying what was waited for."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            pytest.fail(f"waited {seconds:.0f} s for {what}")
        time.sleep(0.1)


@dataclass
class Server:
    """A running Maat: its address, a client for it, and what its processes are started with.

    `process`: the id of the process that answers.
    """

    url: str
    client: Client
    folder: Path
    environment: dict[str, str]
    process: int

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
def serving(
    folder: Path,
    *,
    demo: bool,
    commands: bool = False,
    application: str = "frontend.app:app",
    more: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Server]:
    """`application`: a module of this folder too, as `browser.MODULE:NAME`; `more`: settings."""
    port = free_port()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MAAT_")}
    environment = {
        **kept,
        "PYTHONPATH": str(ROOT),
        "MAAT_DATA_DIR": str(folder),
        "MAAT_PUBLIC_URL": f"http://127.0.0.1:{port}",
        "MAAT_DEMO": str(demo).lower(),
        "MAAT_ALLOW_COMMANDS": str(commands).lower(),
        "MAAT_WEBHOOKS_TO_PRIVATE_ADDRESSES": "true",  # receivers of tests are here
        **more,
    }
    settings = Settings(_env_file=None, data_dir=folder, database_url="", demo=demo)
    database = Database.of(settings)
    ensure_defaults(database, settings)
    database.dispose()
    arguments = [
        "uvicorn",
        application,
        "--app-dir",
        str(ROOT / "tests"),
        "--port",
        str(port),
        "--log-level",
        "warning",
        "--timeout-graceful-shutdown",
        "2",
    ]
    with (
        forked(arguments, environment, folder / "api.log") as process,
        Client(f"http://127.0.0.1:{port}") as client,
    ):
        server = Server(client.url, client, folder, environment, process)
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


@pytest.fixture(scope="package")
def server(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The demo cluster with jobs and rounds: everything real, nothing empty."""
    folder = tmp_path_factory.mktemp("maat")
    with serving(folder, demo=True) as server:
        server.client.add_demo_jobs(12, seed=3)
        for name in (
            "long-1",
            "long-2",
        ):  # so that a slow machine does not find the cluster empty in the last tests
            server.client.submit_job({"name": name, "model": "imagenet", "work_scale": 1000.0})
        with forked(
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
    """The same service, with a worker that plays simulations and sweeps, and that forecasts."""
    queues = "simulations,forecasts"
    with forked(worker_of(queues), server.environment, server.folder / "simulations.log"):
        yield server


@pytest.fixture(scope="module")
def empty_server(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service without cluster, job, round or worker."""
    with serving(tmp_path_factory.mktemp("empty"), demo=False) as server:
        yield server


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("needs the Debian package chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", f"--disable-features={','.join(NO_FEATURES)}"],
        )
        yield browser
        browser.close()


@dataclass
class Witness:
    """What a page did wrong while a test looked at it."""

    errors: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)

    def hear(self, message: ConsoleMessage) -> None:
        # The page of JSON on which a tab rests between tests asks for an icon, maybe late.
        if message.type == "error" and not message.location["url"].endswith("/favicon.ico"):
            self.errors.append(message.text)

    def fail(self, error: Error) -> None:
        self.errors.append(error.stack or str(error))

    def ask(self, request: Request) -> None:
        if urlsplit(request.url).hostname not in ("127.0.0.1", None):
            self.foreign.append(request.url)


@dataclass
class Tab:
    """A page with its witness."""

    page: Page
    witness: Witness

    def open(self, url: str) -> Page:
        self.page.goto(url)
        return self.page

    def follow(self, url: str) -> Page:
        """Go to a page as a link leads to it, without loading Maat again if the tab shows it."""
        here, there = urlsplit(self.page.url), urlsplit(url)
        if here.netloc != there.netloc:
            self.page.goto("about:blank")  # the page may have asked on of a service that has ended
            self.witness.errors.clear()
            return self.open(url)
        if not self.page.evaluate("'maat' in window"):
            return self.open(url)
        self.page.evaluate(
            "path => { maat.setProps('heartbeat', {disabled: false}); maat.go(path); }",
            there._replace(scheme="", netloc="").geturl() or "/",
        )
        return self.page


@contextmanager
def watched(page: Page, color_scheme: ColorScheme = "light") -> Iterator[Tab]:
    """A test's tab: its page has the size and colours of a new one, and a witness."""
    witness = Witness()
    page.set_viewport_size(WIDE)
    page.emulate_media(color_scheme=color_scheme)
    page.on("console", witness.hear)
    page.on("pageerror", witness.fail)
    page.on("request", witness.ask)
    yield Tab(page, witness)
    page.remove_listener("console", witness.hear)
    page.remove_listener("pageerror", witness.fail)
    page.remove_listener("request", witness.ask)
    page.unroute_all(behavior="ignoreErrors")


@contextmanager
def witnessed(page: Page, color_scheme: ColorScheme = "light") -> Iterator[Tab]:
    """A test's tab: the page as if it were new, left so that it does nothing until the next test.

    It stays in its process: a new one would read and compile all scripts again.
    """
    with watched(page, color_scheme) as tab:
        yield tab
    site = urlsplit(page.url)
    if site.hostname == "127.0.0.1":
        page.goto(f"http://{site.netloc}/api/v1/health")
        page.evaluate("localStorage.clear(); sessionStorage.clear()")
    page.context.clear_cookies()


@dataclass
class Visitors:
    """Visitors with a browser profile each, who come again for later tests and remember nothing."""

    chromium: Browser
    profiles: list[tuple[dict[str, Any], Page]] = field(default_factory=list)

    def page(self, taken: list[Page], *, saves_data: bool = True, **options: Any) -> Page:
        """Return the page of a visitor who is not among `taken`."""
        asked = {"saves_data": saves_data, **options}
        for given, page in self.profiles:
            if given == asked and page not in taken:
                return page
        context = self.chromium.new_context(viewport=WIDE, reduced_motion="reduce", **options)
        context.set_default_timeout(PATIENCE_MILLISECONDS)
        context.add_init_script(TOUR_SEEN)
        if saves_data:
            context.add_init_script(SAVES_DATA)
        page = context.new_page()
        self.profiles.append((asked, page))
        return page


@pytest.fixture(scope="package")
def visitors(chromium: Browser) -> Visitors:
    return Visitors(chromium)


@pytest.fixture
def open_tab(visitors: Visitors) -> Iterator[Callable[..., Tab]]:
    """Tabs of visitors who were never here: `open_tab(color_scheme="dark")`."""
    taken: list[Page] = []
    with ExitStack() as tabs:

        def make(color_scheme: ColorScheme = "light", **options: Any) -> Tab:
            taken.append(visitors.page(taken, **options))
            return tabs.enter_context(witnessed(taken[-1], color_scheme))

        yield make


@pytest.fixture
def tab(open_tab: Callable[..., Tab]) -> Tab:
    return open_tab()


@pytest.fixture
def idle_tab(open_tab: Callable[..., Tab]) -> Tab:
    """A tab whose pages do in idle time what other pages will need."""
    return open_tab(saves_data=False)


NOWHERE = "/no/such/page"  # the least of all pages
REST = """() => {
    const [first] = dash_component_api.getLayout('cluster-select').props.data;
    maat.setProps('cluster-select', {value: first ? first.value : 'none'});
    maat.setProps('heartbeat', {disabled: true});
    localStorage.clear();
    sessionStorage.clear();
}"""


@pytest.fixture(scope="package")
def _loaded_page(visitors: Visitors) -> Page:
    """A page of a visitor of its own, in which Maat stays loaded."""
    return visitors.page([], saves_data=False, locale="en-GB")


@pytest.fixture
def inside(_loaded_page: Page) -> Iterator[Tab]:
    """A tab in which Maat is loaded already: `inside.follow(url)`.

    Loading Maat takes a second of CPU time. Tests that open an address as a new visitor, and tests
    of the frame around the pages, take a `tab`.
    """
    with watched(_loaded_page) as tab:
        yield tab
    try:
        _loaded_page.mouse.move(0, 0)
        tab.follow(urlsplit(_loaded_page.url)._replace(path=NOWHERE, query="").geturl())
        expect(_loaded_page.locator(".page-title")).to_have_text("Not found")
        _loaded_page.evaluate(REST)
    except (Error, AssertionError):  # left in no known state by a failed test
        _loaded_page.goto("about:blank")
