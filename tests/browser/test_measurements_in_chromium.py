"""Browser tests of measurements: uploaded, named by a simulation, deleted."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from browser.laboratory import (
    CLUSTER,
    TRACE,
    choose,
    give_trace,
)
from browser.pages import await_value
from maat.client import calls

pytestmark = pytest.mark.needs_chromium


@pytest.mark.long
def test_measurements_are_uploaded_named_by_the_simulate_form_and_deleted(
    laboratory: Any, inside: Any
) -> None:
    page = inside.follow(f"{laboratory.url}/measurements")
    expect(page.locator("#measurements-list")).to_contain_text("No measurements yet")
    page.fill("#measurements-name", "our pairs")
    page.get_by_text("Interference", exact=True).click()
    page.click("#measurements-button")
    expect(page.locator("#measurements-csv-error")).to_contain_text("Choose the files first.")
    give_table(page, "bert,cifar10,1,0.5\n")
    page.click("#measurements-button")
    expect(page.locator("#measurements-csv-error")).to_contain_text(
        "row 2: slowdown: is not between 1 and 1000"
    )
    give_table(
        page,
        "".join(
            f"{one},{other},1,1.5\n" for one in ("bert", "cifar10") for other in ("bert", "cifar10")
        ),
    )
    expect(page.locator("#measurements-csv-error")).to_have_text("")
    page.click("#measurements-button")
    expect(page.locator("#measurements-list")).to_contain_text("every GPU: 2 models")

    (made,) = laboratory.client.measurements()
    inside.follow(f"{laboratory.url}/simulate")
    page.get_by_text("Profiling, bound jobs").click()
    choose(page, "#simulate-interference", "our pairs")
    give_trace(page, "simulate", TRACE)
    page.fill("#simulate-cluster", CLUSTER)
    page.click("#simulate-button")
    expect(
        page.locator(".mantine-Select-root", has=page.locator("#simulate-interference"))
    ).to_contain_text("Let more jobs share a GPU")
    page.fill("#simulate-jobs_per_gpu", "2")
    await_value(page, "simulate-jobs_per_gpu", 2)
    page.click("#simulate-button")
    expect(page.locator("#simulation-request")).to_contain_text("up to 2, interference our pairs")

    inside.follow(f"{laboratory.url}/measurements")
    page.get_by_role("button", name="Delete the measurements our pairs").click()
    page.click("#measurements-no")
    assert laboratory.client.measurements() == [made]
    page.get_by_role("button", name="Delete the measurements our pairs").click()
    page.click("#measurements-yes")
    expect(page.locator("#measurements-list")).to_contain_text("No measurements yet")
    assert [error for error in inside.witness.errors if "422" not in error] == []


def test_measurements_with_long_names_are_listed_without_scrolling_sideways(
    server: Any, inside: Any
) -> None:
    rows = "".join(
        f"{one},{other},1,1.5\n" for one in ("bert", "cifar10") for other in ("bert", "cifar10")
    )
    file = {"name": "pairs.csv", "text": f"victim,partner,gpu_count,slowdown\n{rows}"}
    made = server.client.upload_measurement(
        {"kind": "interference", "name": "pairs_of_the_year_2025_" * 4, "files": [file]}
    )
    page = inside.follow(f"{server.url}/measurements")

    expect(
        page.get_by_role("button", name=f"Delete the measurements {made['name']}")
    ).to_be_in_viewport(ratio=1)

    assert (
        page.evaluate(
            "(box => box.scrollWidth - box.clientWidth)"
            "(document.querySelector('#measurements-list'))"
        )
        <= 0
    )
    server.client.send(calls.delete_measurement(made["id"]))


def give_table(page: Page, rows: str) -> None:
    content = f"victim,partner,gpu_count,slowdown\n{rows}".encode()
    page.set_input_files(
        "#measurements-upload input",
        {"name": "pairs.csv", "mimeType": "text/csv", "buffer": content},
    )
    expect(page.locator("#measurements-file")).to_contain_text(
        f"pairs.csv ({content.count(10)} lines)"
    )
