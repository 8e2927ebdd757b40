"""Browser test of experiments: from form to figures and files, played by a real worker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from browser.barriers import every_barrier
from browser.laboratory import PLAY_MILLISECONDS, axes, plotted
from browser.pages import await_value, error_beside

pytestmark = pytest.mark.needs_chromium


def fill(page: Page, field: str, text: str) -> None:
    page.fill(f"#{field}", text)
    await_value(page, field, text)


def saved(page: Page, button: str) -> list[str]:
    """Press a button that saves a table; return the lines of the file."""
    with page.expect_download() as download:
        page.click(button)
    return Path(download.value.path()).read_text().splitlines()


def test_both_experiments_go_from_form_to_figures_and_files(laboratory: Any, inside: Any) -> None:
    page = inside.follow(f"{laboratory.url}/experiments?model=cifar10&gpus=t4%3D4x4")
    page.wait_for_selector("#experiments-list .state-title, #experiments-list table")
    fill(page, "autoscaling-fixed_nodes", "1, 9")
    page.click("#autoscaling-button")
    beside = error_beside(page, "autoscaling-fixed_nodes")
    expect(beside).to_contain_text("Give whole numbers from 1 to 4.")
    fill(page, "autoscaling-fixed_nodes", "1, 4")
    expect(beside).to_have_count(0)
    page.click("#autoscaling-button")

    state = page.locator("#experiment-head .state")
    expect(state).to_contain_text("succeeded", timeout=PLAY_MILLISECONDS)
    lines = plotted(page, "experiment-nodes")
    assert [line["name"] for line in lines] == ["by goodput", "by throughput"]
    assert all(line["y"][-1] <= 4 for line in lines)
    assert axes(page, "experiment-cost") == ("Completion time (hours)", "Cost (node-hours)")
    expect(page.locator("#experiment-runs tbody tr")).to_have_count(4)
    expect(page.locator("#experiment-verdict")).to_contain_text("Renting by goodput costs")
    expect(page.locator("#experiment-tuning")).to_be_hidden()
    assert [line.split(",")[0] for line in saved(page, "#experiment-runs-csv")] == [
        *("run", "by goodput", "by throughput", "1 node", "4 nodes")
    ]
    assert every_barrier(page) == []

    page.goto(f"{laboratory.url}/experiments?kind=tuning&trials=4&at_a_time=2")
    page.click("#tuning-button")
    expect(state).to_contain_text("succeeded", timeout=PLAY_MILLISECONDS)
    for line in plotted(page, "experiment-trials"):
        assert line["y"] == [0, 1, 2, 3, 4]
    expect(page.locator("#experiment-best tbody tr")).to_have_count(8)
    assert len(saved(page, "#experiment-best-csv")) == 9
    assert every_barrier(page) == []
    assert inside.witness.errors == []
