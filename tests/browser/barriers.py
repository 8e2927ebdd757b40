"""What keeps somebody from using a page: axe's findings, and whatever is wider than the window."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from playwright.sync_api import Page

from browser.pages import wait_in_page

AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
SETTLED_MILLISECONDS = 10_000
GRAVE = ("critical", "serious")
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
LANDMARKS = ["landmark-one-main", "landmark-main-is-top-level", "landmark-no-duplicate-main"]


def barriers(page: Page) -> list[str]:
    """Return the findings of WCAG 2.2 AA: the rule, then the elements that break it.

    Only critical and serious findings count. A page without exactly one main part is a finding too.
    """
    rules = {rule: {"enabled": True} for rule in LANDMARKS}
    return _finding_lines(
        _findings(page, {"runOnly": {"type": "tag", "values": TAGS}, "rules": rules})
    )


def colour_barriers(page: Page, within: str = "html") -> list[str]:
    """What another colour scheme may bring in besides; `within`: a CSS selector."""
    return _finding_lines(
        _findings(page, {"runOnly": ["color-contrast", "link-in-text-block"]}, within)
    )


def _findings(page: Page, options: dict[str, object], within: str = "html") -> list[dict[str, Any]]:
    if not page.evaluate("'axe' in window"):
        page.evaluate(f"if (!window.axe) {{ {AXE} }}")
    found: list[dict[str, Any]] = page.evaluate(
        "([within, options]) => axe.run(within, options).then(result => result.violations)",
        [within, {**options, "resultTypes": ["violations"]}],
    )
    return found


def _finding_lines(findings: list[dict[str, Any]]) -> list[str]:
    grave = [one for one in findings if one["impact"] in GRAVE or one["id"] in LANDMARKS]
    return [
        f"{one['id']}: {node['html'][:160]} {node['failureSummary']}"
        for one in grave
        for node in one["nodes"]
    ]


def in_scheme(page: Page, scheme: str) -> None:
    """Light or dark, as the operating system would ask for it."""
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    wait_in_page(
        page, "scheme => document.documentElement.dataset.mantineColorScheme === scheme", arg=scheme
    )


def overflow(page: Page) -> list[str]:
    """Return the elements wider than the window, after the charts have taken their new width.

    The list is empty if the page fits.
    """
    try:
        wait_in_page(
            page,
            "document.documentElement.scrollWidth <= window.innerWidth",
            milliseconds=SETTLED_MILLISECONDS,
        )
    except TimeoutError:
        wide: list[str] = page.evaluate(
            "[...document.querySelectorAll('body *')]"
            ".filter(element => element.getBoundingClientRect().right > window.innerWidth + 1)"
            ".map(element => `${element.tagName}#${element.id}.${element.className}`)"
        )
        return wide or ["the page"]
    return []


def every_barrier(page: Page) -> list[str]:
    """In light, in dark, and on a phone."""
    in_scheme(page, "light")
    found = barriers(page)
    in_scheme(page, "dark")
    found += colour_barriers(page)
    page.set_viewport_size({"width": 390, "height": 844})
    return found + overflow(page)
