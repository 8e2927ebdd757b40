"""A trace and a cluster to simulate, and what the laboratory's figures draw."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page, expect

from browser.pages import wait_in_page

PLAY_MILLISECONDS = 240_000
HEADER = "name,time,application,num_replicas,batch_size,work_scale"
TRACE = (
    f"{HEADER}\nfirst,0,cifar10,2,256,0.1\nsecond,30,bert,2,24,0.02\nthird,60,cifar10,4,512,0.1\n"
)
LONG_TRACE = TRACE.replace("0.1\n", "500\n")  # plays for longer than it takes to cancel it
CLUSTER = "t4=2x4,a100=1x8"


def plotted(page: Page, card: str) -> list[dict[str, Any]]:
    """Name, kind and values of what a card's figure draws, once it draws anything."""
    plot = f"document.querySelector('#{card} .js-plotly-plot')"
    wait_in_page(
        page, f"{plot} && {plot}.data && {plot}.data.length", milliseconds=PLAY_MILLISECONDS
    )
    read = (
        "trace => ({name: trace.name, type: trace.type,"
        " x: [...(trace.x || [])], y: [...(trace.y || [])]})"
    )
    traces: list[dict[str, Any]] = page.evaluate(f"{plot}.data.map({read})")
    return traces


def axes(page: Page, card: str) -> tuple[str, str]:
    """What the axes of a card's figure are titled."""
    titled = (
        f"(axis => document.querySelector('#{card} .js-plotly-plot')._fullLayout[axis].title.text)"
    )
    return page.evaluate(f"{titled}('xaxis')"), page.evaluate(f"{titled}('yaxis')")


def choose(page: Page, field: str, option: str) -> None:
    page.click(field)
    page.get_by_role("option", name=option, exact=True).click()


def give_trace(page: Page, form: str, text: str) -> None:
    """Choose a CSV file of jobs in a form, and wait until it has read it."""
    page.get_by_text("CSV file", exact=True).click()
    page.set_input_files(
        f"#{form}-upload input",
        {"name": "jobs.csv", "mimeType": "text/csv", "buffer": text.encode()},
    )
    expect(page.locator(f"#{form}-file")).to_contain_text(
        f"jobs.csv: {len(text.splitlines())} lines"
    )
