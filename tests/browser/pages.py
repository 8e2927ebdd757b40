"""What tests of several pages do in a browser."""

from __future__ import annotations

import time
from typing import Any

from playwright.sync_api import Locator, Page, Route

PATIENCE_MILLISECONDS = 60_000


def wait_in_page(
    page: Page, expression: str, arg: object = None, *, milliseconds: float = PATIENCE_MILLISECONDS
) -> Any:
    """Return the value of a JavaScript expression, or of a function of `arg`, once it is true.

    Raises TimeoutError. Playwright's own wait_for_function evaluates text within the page, which
    the pages' Content-Security-Policy forbids.
    """
    end = time.monotonic() + milliseconds / 1000
    while not (value := page.evaluate(expression, arg)):
        if time.monotonic() > end:
            raise TimeoutError(f"never true: {expression}")
        page.wait_for_timeout(50)
    return value


def await_value(page: Page, field: str, value: object) -> None:
    """Leave a field of a form and wait until the form has its value, which takes a moment."""
    page.locator(f"#{field}").blur()
    wait_in_page(
        page,
        "([field, value]) => window.dash_component_api.getLayout(field).props.value === value",
        arg=[field, value],
    )


def error_beside(page: Page, field: str) -> Locator:
    """What a form says is wrong with a field."""
    return page.locator(".mantine-InputWrapper-root", has=page.locator(f"#{field}")).locator(
        ".mantine-InputWrapper-error"
    )


def press_while_redrawn(page: Page, button: str, output: str) -> None:
    """Press a button at the moment at which the page draws it again.

    `button`: a CSS selector. `output`: the output around it whose answer the page has just got.
    """
    page.locator(button).first.wait_for()
    page.evaluate(
        """([button, output]) => new Promise(pressed => {
            const ask = window.fetch;
            window.fetch = async function (url, options) {
                const answer = await ask.apply(this, arguments);
                if (String(options && options.body).includes(output)) {
                    window.fetch = ask;
                    setTimeout(() => { document.querySelector(button).click(); pressed(); }, 0);
                }
                return answer;
            };
        })""",
        [button, output],
    )


def without_push(page: Page) -> None:
    """Let the next page ask by itself how the service is, as a browser without shared workers."""

    def shorten(route: Route) -> None:
        answer = route.fetch()
        headers = {**answer.headers, "cache-control": "no-store"}
        body = "delete window.SharedWorker;\n" + answer.text()
        route.fulfill(response=answer, headers=headers, body=body)

    page.route("**/assets/maat.js*", shorten)


def without_beats(page: Page) -> None:
    """Stop the page's own refreshes: afterwards it redraws only what the test's actions change.

    It must be called before the page is opened.
    """
    without_push(page)
    page.route("**/api/v1/health", lambda route: route.abort())
