"""What tests of several pages do in a browser."""

from __future__ import annotations

from playwright.sync_api import Page


def await_value(page: Page, field: str, value: object) -> None:
    """Leave a form's field, and wait until the form knows what was typed into it: fields tell it a moment later."""
    page.locator(f"#{field}").blur()
    page.wait_for_function("([field, value]) => window.dash_component_api.getLayout(field).props.value === value", arg=[field, value])


def press_while_redrawn(page: Page, button: str, output: str) -> None:
    """Press the button of a CSS selector in the moment in which the page gets the answer by which it draws `output`, around it, anew."""
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


def without_beats(page: Page) -> None:
    """From now on the page asks for nothing of its own accord: what it draws anew, it draws because of what was done on it."""
    page.route("**/api/v1/health", lambda route: route.abort())
