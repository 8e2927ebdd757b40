"""`python -m browser.screenshots`, with tests/ on PYTHONPATH: take pictures of every page.

Each page in each state, light and dark, on a phone, a laptop and a wide screen. It also says what a
picture cannot: errors of the browser, and pages that are wider than the window.
"""

from __future__ import annotations

import argparse
import json
import re
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

from playwright.sync_api import Browser, Error, Page, Route, sync_playwright

from browser.barriers import in_scheme
from browser.conftest import CHROMIUM, NO_FEATURES, TOUR_SEEN
from browser.screenshots.gallery import file_name, write_gallery
from browser.screenshots.pictures import Picture, all_pictures
from browser.screenshots.world import World, made_world
from browser.test_loading_in_chromium import STRANGER

SIZES = {390: 844, 1280: 800, 1920: 1080, 2560: 1440}
SCHEMES = ("light", "dark")
DRAWN_MILLISECONDS = 400  # charts take a new width a moment after the window
PATIENCE_SECONDS = 30.0
STEP_MILLISECONDS = 60_000
LOADED = "_pages_content"  # the call that draws a page, before any call of the page itself
QUIET = """() => ![...document.querySelectorAll('.loading, .mantine-Skeleton-root')]
    .some(one => one.checkVisibility())"""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    if CHROMIUM is None:
        print("Needs the Debian package chromium.", file=sys.stderr)
        return 1
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what it started ends too
    options.out.mkdir(parents=True, exist_ok=True)
    every = all_pictures()
    wanted = [one for one in every if re.search(options.only, one.name)]
    failed, begun = 0, time.monotonic()
    with (
        tempfile.TemporaryDirectory() as folder,
        made_world(Path(folder)) as world,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", f"--disable-features={','.join(NO_FEATURES)}"],
        )
        for picture in wanted:
            try:
                said = _take(browser, world, picture, options)
            except (Error, TimeoutError) as error:
                failed += 1
                said = [f"not taken: {str(error).splitlines()[0]}"]
            print(f"{time.monotonic() - begun:.0f} s {picture.name}", *said, sep="\n  ", flush=True)
        browser.close()
    page = write_gallery(options.out, [one.name for one in every], SCHEMES, list(SIZES))
    print(f"{len(wanted) - failed} pages; look at {page}")
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make screenshots", description=__doc__)
    parser.add_argument("--only", default="", metavar="PATTERN", help="names that match")
    parser.add_argument("--out", type=Path, default=Path("var/screenshots"))
    parser.add_argument("--schemes", nargs="+", choices=SCHEMES, default=list(SCHEMES))
    parser.add_argument("--widths", nargs="+", type=int, choices=SIZES, default=list(SIZES))
    return parser


def _take(
    browser: Browser, world: World, picture: Picture, options: argparse.Namespace
) -> list[str]:
    """Take one page in all sizes and colours; returns what was wrong besides."""
    said: list[str] = []
    faults = world.failing() if picture.state == "failing" else nullcontext()
    with faults, _visited(browser, world, picture, said) as page:
        for scheme in options.schemes:
            for width in options.widths:
                page.set_viewport_size({"width": width, "height": SIZES[width]})
                in_scheme(page, scheme)
                is_whole = picture.steps is None or page.get_by_role("dialog").count() == 0
                if is_whole:  # else the frame would stand where the page was scrolled to
                    page.evaluate("scrollTo(0, 0)")
                page.wait_for_timeout(DRAWN_MILLISECONDS)
                wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
                if wide > 0:
                    said.append(f"{wide} px wider than {width}")
                page.screenshot(
                    path=options.out / file_name(picture.name, scheme, width),
                    full_page=is_whole,
                    timeout=STEP_MILLISECONDS,
                )
    return said


@contextmanager
def _visited(browser: Browser, world: World, picture: Picture, said: list[str]) -> Iterator[Page]:
    """The page of a new visitor, after the presses of the picture."""
    headers = STRANGER if picture.state == "stranger" else {}
    context = browser.new_context(
        viewport={"width": 1280, "height": 800}, reduced_motion="reduce", extra_http_headers=headers
    )
    context.set_default_timeout(STEP_MILLISECONDS)
    if picture.state != "first":
        context.add_init_script(TOUR_SEEN)
    page = context.new_page()
    page.on("pageerror", lambda error: said.append(f"error: {error}"))
    if picture.state == "loading":
        page.route("**/_dash-update-component*", _hold)
    server = world.empty if picture.state == "empty" else world.full
    try:
        page.goto(server.url + picture.path.format(**world.ids))
        page.locator(".page-head, #sign-in-button").first.wait_for()
        if picture.state != "loading":
            _await_quiet(page)
        if picture.steps is not None:
            picture.steps(page)
        yield page
    finally:
        page.unroute_all(behavior="ignoreErrors")
        context.close()


def _hold(route: Route) -> None:
    """Let only the call through that draws the page itself."""
    asked = json.loads(route.request.post_data or "{}").get("output", "")
    if LOADED in asked:
        route.continue_()


def _await_quiet(page: Page) -> None:
    """Wait until nothing is loading; a page that loads for long is taken as it is."""
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end and not page.evaluate(QUIET):
        page.wait_for_timeout(100)


if __name__ == "__main__":
    sys.exit(main())
