"""Browser tests of measurements: uploaded, named by a simulation, deleted."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from profile_samples import profile_files, zipped

from browser.laboratory import (
    CLUSTER,
    TRACE,
    axes,
    choose,
    give_trace,
    plotted,
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
    choose(page, "#measurements-kind", "Interference")
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


def test_steps_across_nodes_are_uploaded_and_drawn_by_model_and_type(
    laboratory: Any, inside: Any
) -> None:
    page = inside.follow(f"{laboratory.url}/measurements")
    page.fill("#measurements-name", "our network")
    choose(page, "#measurements-kind", "Steps across nodes")
    expect(page.locator("#measurements-accepted")).to_contain_text("maat measure locality")
    columns = "model,gpu_type,gpu_count,per_gpu_batch_size,node_count,within_seconds,across_seconds"
    rows = "bert,t4,4,12,2,0.1,0.2,30\nncf,a100,4,64,2,0.1,0.11,30\n"
    give_file(page, f"{columns},steps\n{rows}".encode())
    page.click("#measurements-button")
    expect(page.locator("#measurements-list")).to_contain_text("a100, t4: 2 models")
    expect(page.locator("#measurements-part")).to_have_value("all GPU types")
    chart = page.locator("#measurements-chart")
    expect(chart.locator(".legendtext")).to_have_text(["a100", "t4"])
    expect(chart.locator(".xtick")).to_have_text(["bert", "ncf"])
    (made,) = laboratory.client.measurements(kind="locality")
    laboratory.client.delete_measurement(made["id"])


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


def test_uploaded_profiles_are_listed_with_their_provenance_and_drawn(
    server: Any, inside: Any
) -> None:
    page = inside.follow(f"{server.url}/measurements")
    choose(page, "#measurements-kind", "Profiles")
    page.set_input_files(
        "#measurements-upload input",
        {
            "name": "profiles.zip",
            "mimeType": "application/zip",
            "buffer": base64.b64decode(zipped(profile_files(slower=2.0))),
        },
    )
    expect(page.locator("#measurements-file")).to_contain_text("Chosen: profiles.zip")
    page.fill("#measurements-name", "our T4")
    page.fill("#measurements-source", "the testers")
    page.fill("#measurements-url", "https://profiles.example.com/t4")
    page.fill("#measurements-licence", "Apache-2.0")
    page.click("#measurements-button")

    listed = page.locator("#measurements-list")
    expect(listed).to_contain_text("t4: 1 model")
    expect(listed).to_contain_text("Licence: Apache-2.0")
    came_from = listed.get_by_role("link", name="the testers")
    expect(came_from).to_have_attribute("href", "https://profiles.example.com/t4")
    drawn = {trace["name"]: trace for trace in plotted(page, "measurements-chart")}
    assert {"4 per GPU, measured", "4 per GPU, fitted"} <= drawn.keys()
    measured = drawn["4 per GPU, measured"]
    assert measured["x"][:2] == [1, 2]
    assert measured["y"][:2] == pytest.approx([4 / 0.6, 8 / 0.8])
    assert axes(page, "measurements-chart") == ("GPUs (t4)", "bert: samples/s")
    assert inside.witness.errors == []
    for each in server.client.measurements():
        server.client.send(calls.delete_measurement(each["id"]))


def give_table(page: Page, rows: str) -> None:
    give_file(page, f"victim,partner,gpu_count,slowdown\n{rows}".encode())


def give_file(page: Page, content: bytes) -> None:
    page.set_input_files(
        "#measurements-upload input",
        {"name": "table.csv", "mimeType": "text/csv", "buffer": content},
    )
    expect(page.locator("#measurements-file")).to_contain_text(
        f"table.csv ({content.count(10)} lines)"
    )
