"""Browser tests of what opens over a page: what axe finds, in light and in dark."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from browser.barriers import barriers, colour_barriers, in_scheme
from browser.conftest import Tab, wait_until
from browser.screenshots.pictures import DIALOGS, Picture
from browser.screenshots.world import waiting_job

pytestmark = pytest.mark.needs_chromium

PICTURES = {picture.name: picture for picture in DIALOGS}


@pytest.fixture(scope="module")
def waiting(server: Any) -> str:
    """A job that waits, with remedies."""
    job_id = waiting_job(server.client, "tight")
    wait_until(lambda: bool(server.client.explanation(job_id)["remedies"]), "remedies")
    return job_id


@pytest.mark.parametrize(
    "name",
    [
        "job-edit",
        *(
            pytest.param(name, marks=pytest.mark.long)
            for name in (
                "job-numbers",
                "job-remedy",
                "simulate-replay",
                "simulate-import",
                "wrong-address",
                "submit-refused",
                "submit-tried",
                "jobs-bulk",
                "jobs-view",
                "cluster-past",
                "usage-price",
                "reports-schedule",
                "admin-user",
                "admin-cluster",
                "admin-quota",
                "admin-webhook",
            )
        ),
    ],
)
def test_what_opens_over_a_page_has_no_grave_barrier(
    name: str, server: Any, inside: Tab, request: pytest.FixtureRequest
) -> None:
    picture: Picture = PICTURES[name]
    ids = {"nightly": server.client.jobs(q="long-1")["items"][0]["id"]}
    if "{waiting}" in picture.path:
        ids["waiting"] = request.getfixturevalue("waiting")
    page = inside.follow(server.url + picture.path.format(**ids))
    if picture.steps is not None:
        picture.steps(page)

    in_scheme(page, "light")
    found = barriers(page)
    in_scheme(page, "dark")
    assert found + colour_barriers(page) == []


@pytest.mark.long
def test_the_tour_has_no_grave_barrier(server: Any, inside: Tab) -> None:
    page = inside.follow(server.url)
    page.keyboard.press("?")
    page.get_by_role("button", name="What am I looking at?").press("Enter")
    expect(page.get_by_role("region", name="What am I looking at?")).to_contain_text("1 of 5")

    found = barriers(page)
    in_scheme(page, "dark")
    assert found + colour_barriers(page) == []
    page.keyboard.press("Escape")


def test_the_tour_leads_from_page_to_page_and_does_not_follow_who_leaves(
    server: Any, inside: Tab
) -> None:
    page = inside.follow(server.url)
    page.keyboard.press("?")
    page.get_by_role("button", name="What am I looking at?").press("Enter")
    tour = page.get_by_role("region", name="What am I looking at?")
    for step in (1, 2, 3):
        expect(tour).to_contain_text(f"{step} of 5")
        tour.get_by_role("button", name="Next").press("Enter")
    expect(page).to_have_url(re.compile("/rounds"))
    expect(tour).to_contain_text("4 of 5")

    page.get_by_role("link", name="Jobs", exact=True).first.click()
    expect(tour).to_have_count(0)
