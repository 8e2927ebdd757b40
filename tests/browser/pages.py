"""What tests of several pages do in a browser."""

from __future__ import annotations

from playwright.sync_api import Page


def await_value(page: Page, field: str, value: object) -> None:
    """Leave a form's field, and wait until the form knows what was typed into it: fields tell it a moment later."""
    page.locator(f"#{field}").blur()
    page.wait_for_function("([field, value]) => window.dash_component_api.getLayout(field).props.value === value", arg=[field, value])
