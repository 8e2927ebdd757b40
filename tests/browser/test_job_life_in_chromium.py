"""Browser tests of what is asked of jobs after their submission."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from browser.conftest import wait_until
from browser.pages import await_value, wait_in_page
from frontend.components.names import isolated

pytestmark = pytest.mark.needs_chromium


def test_a_job_is_paused_and_resumed_on_its_page(server: Any, inside: Any) -> None:
    job = server.client.submit_job({"name": "to-pause", "model": "imagenet"})
    page = inside.follow(f"{server.url}/jobs/{job['id']}")
    page.locator("#job-pause", has_text="Pause job").click()
    expect(page.locator("#job-pause", has_text="Resume job")).to_be_visible()
    assert server.client.job(job["id"])["pause_requested"] is True
    page.locator("#job-pause", has_text="Resume job").click()
    expect(page.locator("#job-pause", has_text="Pause job")).to_be_visible()
    assert server.client.job(job["id"])["pause_requested"] is False


def test_all_jobs_of_a_filter_are_paused_after_a_preview(server: Any, inside: Any) -> None:
    labels = {"labels": {"many": "yes"}}
    jobs = [
        server.client.submit_job({"name": f"many-{number}", "model": "imagenet", **labels})
        for number in range(3)
    ]
    page = inside.follow(f"{server.url}/jobs?label=many%3Dyes")
    page.locator("#jobs-bulk").click()
    expect(page.locator("#jobs-bulk-preview")).to_contain_text("It changes 3 jobs.")
    page.locator("#jobs-bulk-yes").click()
    expect(page.get_by_text("Pausing: 3 jobs")).to_be_visible()
    assert all(server.client.job(job["id"])["pause_requested"] for job in jobs)


def test_nothing_is_offered_for_jobs_that_have_ended(server: Any, inside: Any) -> None:
    page = inside.follow(f"{server.url}/jobs?state=failed&state=cancelled")
    page.locator("#jobs-bulk").click()
    expect(page.locator("#jobs-bulk-preview")).to_contain_text("have ended")
    expect(page.locator("#jobs-bulk-yes")).to_be_disabled()


def test_the_cards_of_a_job_that_has_ended_leave_no_hole(server: Any, inside: Any) -> None:
    job = server.client.submit_job({"name": "ended", "model": "cifar10"})
    server.client.cancel_job(job["id"])
    wait_until(lambda: server.client.job(job["id"])["state"] == "cancelled", "the job to end")
    page = inside.follow(f"{server.url}/jobs/{job['id']}")
    expect(page.locator("#job-spec")).to_contain_text("Submitted")
    expect(page.locator("#job-now")).not_to_contain_text("Goodput")

    def ends() -> list[float]:
        found = page.evaluate(
            "() => [...document.querySelectorAll('.level, .filled')].map((stack) => Math.max("
            "...[...stack.children].map((card) => card.getBoundingClientRect().bottom)))"
        )
        assert len(found) == 2
        return [round(end) for end in found]

    wait_until(lambda: len(set(ends())) == 1, f"both stacks to end together: {ends()}")
    wait_in_page(
        page,
        "() => document.querySelector('.card.fills').offsetHeight"
        " - document.getElementById('job-timeline').offsetHeight < 70",
    )


def test_a_job_that_lives_is_edited_on_its_page(server: Any, inside: Any) -> None:
    job = server.client.submit_job({"name": "to-edit", "model": "imagenet"})
    page = inside.follow(f"{server.url}/jobs/{job['id']}")
    page.locator("#job-edit-open").click()
    expect(page.locator("#job-edit-name")).to_have_value("to-edit")
    page.locator("#job-edit-name").fill("edited")
    page.locator("#job-edit-deadline").fill("some day")
    await_value(page, "job-edit-deadline", "some day")
    page.locator("#job-edit-save").click()
    expect(page.get_by_text("Write date and time")).to_be_visible()
    page.locator("#job-edit-deadline").fill("2036-12-01 08:00")
    await_value(page, "job-edit-deadline", "2036-12-01 08:00")
    page.locator("#job-edit-weight").fill("1.5")
    await_value(page, "job-edit-weight", 1.5)
    page.locator("#job-edit-labels").fill("team=vision")
    page.keyboard.press("Enter")
    page.locator("#job-edit-save").click()
    expect(page.get_by_text(f"{isolated('edited')} changed")).to_be_visible()
    found = server.client.job(job["id"])
    assert (found["name"], found["labels"]) == ("edited", {"team": "vision"})
    assert found["weight"] == 1.5
    assert found["deadline"] == "2036-12-01T08:00:00.000Z"


@pytest.mark.long
def test_jobs_of_a_filter_get_another_priority(server: Any, inside: Any) -> None:
    body = {"model": "imagenet", "labels": {"rank": "low"}}
    jobs = [server.client.submit_job({"name": f"rank-{n}", **body}) for n in range(2)]
    page = inside.follow(f"{server.url}/jobs?label=rank%3Dlow")
    page.locator("#jobs-bulk").click()
    page.locator("#jobs-bulk-action").click()
    page.get_by_role("option", name="Give another priority").click()
    page.locator("#jobs-bulk-priority").click()
    page.get_by_role("option", name="High").click()
    expect(page.locator("#jobs-bulk-preview")).to_contain_text("It changes 2 jobs.")
    page.locator("#jobs-bulk-yes").click()
    expect(page.get_by_text("Changed: 2 jobs")).to_be_visible()
    assert {server.client.job(job["id"])["priority"] for job in jobs} == {10}


def test_a_weight_is_given_in_the_form(server: Any, inside: Any) -> None:
    page = inside.follow(f"{server.url}/submit")
    page.locator("#submit-name").fill("weighed")
    expect(page.locator("#submit-model")).not_to_have_value("")
    page.locator("#submit-weight").fill("1001")
    await_value(page, "submit-weight", 1001)
    page.locator("#submit-button").click()
    expect(page.get_by_text(re.compile(r"Give 0\.001 to 1.000\."))).to_be_visible()
    page.locator("#submit-weight").fill("1.5")
    await_value(page, "submit-weight", 1.5)
    page.locator("#submit-button").click()
    expect(page.locator(".page-title")).to_have_text("weighed")
    (job,) = server.client.jobs(q="weighed")["items"]
    assert job["weight"] == 1.5


def test_the_form_says_where_a_weight_is_ignored(server: Any, inside: Any) -> None:
    nodes = [{"name": "t4", "gpu_type": "t4", "gpu_count": 4}]
    body = {"name": "in order", "policy": "fifo", "nodes": nodes}
    there = server.client.create_cluster(body)["id"]
    page = inside.follow(f"{server.url}/submit?cluster={there}")
    help_text = page.locator("#submit-weight-description")
    expect(help_text).to_contain_text("The policy of this cluster, fifo, ignores it.")


def test_an_array_with_a_deadline_is_tried_and_submitted(server: Any, inside: Any) -> None:
    first = server.client.submit_job({"name": "prepare", "model": "imagenet"})
    page = inside.follow(f"{server.url}/submit")
    page.locator("#submit-name").fill("sweep")
    page.locator("#submit-later summary").click()
    page.locator("#submit-array").fill("0-2-4")
    await_value(page, "submit-array", "0-2-4")
    page.locator("#submit-try").click()
    expect(page.get_by_text("Write 0-9 or 0, 3, 7")).to_be_visible()
    page.locator("#submit-array").fill("0-2")
    await_value(page, "submit-array", "0-2")
    page.locator("#submit-after").fill(first["id"])
    page.keyboard.press("Enter")
    page.locator("#submit-deadline").fill("2036-12-01 08:00")
    await_value(page, "submit-deadline", "2036-12-01 08:00")
    page.locator("#submit-try").click()
    expect(page.locator("#submit-tried")).to_contain_text("Tried, not submitted")
    expect(page.locator("#submit-tried")).to_contain_text("Each of the 3 jobs")
    assert server.client.jobs(q="sweep[")["items"] == []
    page.locator("#submit-button").click()
    expect(page).to_have_url(re.compile(r"/jobs\?.*q=arr_"))
    found = server.client.jobs(q="sweep[")["items"]
    assert sorted(job["name"] for job in found) == ["sweep[0]", "sweep[1]", "sweep[2]"]
    assert {job["deadline"] for job in found} == {"2036-12-01T08:00:00.000Z"}
    assert all(job["after"] == [first["id"]] for job in found)
