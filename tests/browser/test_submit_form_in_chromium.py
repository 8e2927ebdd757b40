"""Browser tests of the submit form: fields, choices, errors, and remedies that start a job."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from browser.conftest import wait_until
from browser.pages import await_value, error_beside, wait_in_page
from maat.client import calls

pytestmark = pytest.mark.needs_chromium

READY = "#submit-preview .scatterlayer .trace"


def opened(server: Any, inside: Any, query: str = "") -> Page:
    page = inside.follow(f"{server.url}/submit{query}")
    page.wait_for_selector(READY, state="attached")
    return page


def test_only_fields_that_apply_are_there_and_the_first_has_the_focus(
    server: Any, inside: Any
) -> None:
    page = opened(server, inside)
    expect(page.locator("#submit-name")).to_be_focused()
    fields = (
        "gpu-count",
        "min-gpus",
        "max-gpus",
        "batch-size",
        "max-batch-size",
        "promised-seconds",
    )

    def there() -> set[str]:
        return {field for field in fields if page.locator(f"#submit-{field}").is_visible()}

    assert there() == {"min-gpus", "max-gpus", "max-batch-size"}
    page.locator("#submit-adaptivity").get_by_text("Nothing", exact=True).click()
    expect(page.locator("#submit-gpu-count")).to_be_visible()
    assert there() == {"gpu-count", "batch-size"}
    expect(page.locator("#submit-batch-size")).to_have_attribute(
        "placeholder", re.compile(r"^\d[\d ]*, the model's own$")
    )
    page.locator("#submit-workload-kind").click()
    page.get_by_role("option", name="Latency-bound inference").click()
    expect(page.locator("#submit-promised-seconds")).to_be_visible()
    assert there() == {"gpu-count", "batch-size", "promised-seconds"}
    assert page.locator("input:disabled").count() == 0


def test_the_first_answer_brings_models_what_suits_the_first_of_them_and_its_goodput(
    server: Any, tab: Any
) -> None:
    later: list[Route] = []

    def hold(route: Route) -> None:
        asked = json.loads(route.request.post_data or "{}")["output"]
        is_later = asked.startswith(("..submit-gpu-types.data...", "..submit-preview.figure..."))
        later.append(route) if is_later else route.continue_()

    tab.page.route("**/_dash-update-component*", hold)
    page = opened(server, tab)
    wait_in_page(page, "maat.layoutOf('submit-gpu-types').props.data.length === 3")
    expect(page.locator("#submit-expect")).to_contain_text("best with")
    expect(page.locator("#submit-model-facts")).to_contain_text("Runs here on")

    for route in later:
        route.continue_()
    page.unroute_all()
    page.locator("#submit-adaptivity").get_by_text("Nothing", exact=True).click()
    page.fill("#submit-gpu-count", "2")
    expect(page.locator("#submit-expect")).not_to_contain_text("best with 4 GPUs")


def test_all_errors_stand_there_at_once_in_words_and_go_one_by_one_as_they_are_mended(
    server: Any, inside: Any
) -> None:
    page = opened(server, inside)
    page.locator("#submit-adaptivity").get_by_text("Nothing", exact=True).click()
    expect(page.locator("#submit-gpu-count")).to_be_visible()
    page.fill("#submit-work-scale", "0")
    page.fill("#submit-batch-size", "7")
    await_value(page, "submit-batch-size", 7)
    await_value(page, "submit-work-scale", 0)
    assert error_beside(page, "submit-name").count() == 0
    page.click("#submit-button")

    expect(error_beside(page, "submit-name")).to_have_text("Give the job a name.")
    expect(error_beside(page, "submit-gpu-count")).to_have_text("Say how many GPUs it needs.")
    expect(error_beside(page, "submit-batch-size")).to_contain_text(
        "at those the model was measured"
    )
    expect(error_beside(page, "submit-work-scale")).to_have_text(
        "Give a number above 0, at most 1 000."
    )
    page.fill("#submit-gpu-count", "100")
    expect(error_beside(page, "submit-gpu-count")).to_contain_text(
        "The cluster has at most 24 GPUs of one type"
    )
    page.fill("#submit-gpu-count", "2")
    expect(error_beside(page, "submit-gpu-count")).to_have_count(0)
    expect(error_beside(page, "submit-name")).to_be_visible()
    page.fill("#submit-name", "mended")
    page.fill("#submit-work-scale", "1")
    page.fill("#submit-batch-size", "")
    expect(page.locator(".mantine-InputWrapper-error")).to_have_count(0)
    await_value(page, "submit-batch-size", "")
    page.click("#submit-button")

    expect(page.locator(".page-title")).to_have_text("mended")
    (job,) = server.client.jobs(q="mended")["items"]
    models = {model["name"]: model for model in server.client.send(calls.models())["items"]}
    assert job["batch_size"] == models[job["model"]]["initial_batch_size"]


def test_what_the_service_alone_knows_is_told_beside_its_field_too(
    server: Any, inside: Any
) -> None:
    page = opened(server, inside)
    page.fill("#submit-name", "x" * 300)
    await_value(page, "submit-name", "x" * 300)
    page.click("#submit-button")
    expect(error_beside(page, "submit-name")).to_contain_text("at most")
    page.fill("#submit-name", "short")
    expect(error_beside(page, "submit-name")).to_have_count(0)


def test_a_trial_waits_for_what_was_typed_just_before(server: Any, inside: Any) -> None:
    page = opened(server, inside)
    page.fill("#submit-name", "tried at once")
    page.click("#submit-try")

    expect(page.locator("#submit-tried")).to_contain_text("Tried, not submitted")


def test_what_the_cluster_lacks_is_not_offered(server: Any, inside: Any) -> None:
    page = opened(server, inside)
    page.locator("#submit-gpu-types").click()
    expect(page.get_by_role("option")).to_have_text(
        ["t4 (24 GPUs)", "rtx (24 GPUs)", "a100 (16 GPUs)"]
    )
    page.get_by_role("option", name="a100").click()
    page.keyboard.press("Escape")

    wait_in_page(page, "window.dash_component_api.getLayout('submit-max-gpus').props.max === 16")
    assert "v100" not in (page.locator("#submit-model-facts").text_content() or "")


def test_a_remedy_is_taken_by_two_presses_and_the_job_starts(server: Any, inside: Any) -> None:
    nodes = [
        {"name": name, "gpu_type": name, "gpu_count": count}
        for name, count in (("a100", 8), ("t4", 4))
    ]
    small = server.client.create_cluster(
        {"name": "small", "round_seconds": 30, "speed": 30, "nodes": nodes}
    )["id"]
    rigid = {
        "model": "cifar10",
        "adaptivity": "rigid",
        "gpu_count": 8,
        "batch_size": 512,
        "work_scale": 500.0,
        "cluster_id": small,
    }
    first = server.client.submit_job({"name": "holds all", "preemptible": False, **rigid})
    wait_until(
        lambda: server.client.job(first["id"])["allocation"] is not None,
        "the first job to hold the a100s",
    )
    waiting = server.client.submit_job({"name": "needs eight", **rigid})
    page = inside.follow(f"{server.url}/jobs/{waiting['id']}")

    remedy = page.locator(".remedies li", has_text="Ask for 4 GPUs instead of 8")
    expect(remedy).to_contain_text("4 × t4")
    expect(page.locator(".explanation")).not_to_contain_text("WAITING")
    page.get_by_text("The numbers").click()
    expect(page.locator(".explanation details")).to_contain_text("held back by")
    remedy.get_by_role("button", name="Change it so").click()
    row = page.locator("#job-remedy-text tbody tr", has_text="GPUs")
    expect(row).to_have_text("GPUs84")
    page.click("#job-remedy-yes")

    expect(page.locator("#job-now")).to_contain_text("4 × t4")
    expect(page.locator(".explanation")).to_contain_text("Before, it waited")
    assert server.client.job(waiting["id"])["gpu_count"] == 4
