"""The page of reports in a real browser: the period in the address, files, kept ones, schedules."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from browser.pages import await_value, error_beside, wait_in_page

pytestmark = pytest.mark.needs_chromium

QUESTIONS = (
    "Were we fair?",
    "Were we busy?",
    "Who waited?",
    "What did it cost?",
    "What should we buy?",
)
DRAWN = ".report-section .main-svg"


def choose(page: Any, period: str) -> None:
    page.locator("#reports-period").click()
    page.get_by_role("option", name=period).click()


def fill(page: Any, field: str, value: str) -> None:
    page.locator(f"#{field}").fill(value)
    await_value(page, field, value)


def test_a_manager_sees_the_report_chooses_a_period_and_saves_it(
    server: Any, inside: Any, tmp_path: Path
) -> None:
    page = inside.follow(f"{server.url}/reports")
    expect(page.locator(".report-title")).to_be_visible()
    for question in QUESTIONS:
        expect(page.locator(".report-section h2", has_text=question)).to_be_visible()
    expect(page.locator(DRAWN).first).to_be_visible()
    for section in page.locator(".report-section").all():
        section.get_by_text("The numbers").click()
        expect(section.locator("details td").first).to_be_visible()
    this_week = page.locator(".report-title").inner_text()

    choose(page, "Last month")
    expect(page.locator(".report-title")).not_to_have_text(this_week)
    wait_in_page(page, "location.search.includes('period=last-month')")

    choose(page, "This week")
    expect(page.locator(".report-title")).to_have_text(this_week)
    for form, begins in (("PDF", b"%PDF"), ("CSV", b"report,title"), ("JSON", b"{")):
        with page.expect_download() as saving:
            page.get_by_role("link", name=f"Save the report as {form}").click()
        saved = tmp_path / saving.value.suggested_filename
        saving.value.save_as(saved)
        assert saved.suffix == f".{form.lower()}"
        assert saved.name.startswith("maat-report-demo-")
        assert saved.read_bytes().startswith(begins)
    assert inside.witness.errors == []
    assert inside.witness.foreign == []


def test_the_address_is_the_report(server: Any, inside: Any) -> None:
    now = datetime.fromisoformat(server.client.cluster(server.cluster_id)["now"])
    day = now.date().isoformat()
    page = inside.follow(f"{server.url}/reports?from={day}&to={day}")
    expect(page.locator(".report-title")).to_contain_text(f"{now.day}\u00a0")
    query = parse_qs(urlsplit(page.url).query)
    assert query["from"] == query["to"] == [day]
    page = inside.follow(f"{server.url}/reports?period=someday")
    expect(page.locator(".address-note:visible")).to_contain_text("someday")


def test_a_report_is_kept_and_deleted(server: Any, inside: Any) -> None:
    page = inside.follow(f"{server.url}/reports")
    expect(page.locator("#reports-kept .state-title")).to_have_text("No report is kept")
    page.locator("#reports-keep").click()
    row = page.locator("#reports-kept tbody tr")
    expect(row).to_have_count(1)
    (kept,) = server.client.reports()
    assert kept["title"].replace("\u00a0", " ") in row.inner_text().replace("\u00a0", " ")
    with page.expect_download() as saving:
        row.get_by_role("link", name="as PDF").click()
    assert Path(saving.value.path()).read_bytes() == server.client.kept_report_file(
        kept["id"], "pdf"
    )
    row.get_by_role("button", name="Delete").click()
    asked = page.get_by_role("dialog", name="Delete this?")
    expect(asked).to_contain_text(kept["title"])
    asked.get_by_role("button", name="Keep it").click()
    expect(asked).to_be_hidden()
    assert len(server.client.reports()) == 1
    row.get_by_role("button", name="Delete").click()
    asked.get_by_role("button", name="Delete").click()
    expect(page.locator("#reports-kept .state-title")).to_be_visible()
    assert server.client.reports() == []


def test_a_schedule_is_added_stopped_and_deleted(server: Any, inside: Any) -> None:
    page = inside.follow(f"{server.url}/reports")
    page.locator("#reports-add").click()
    fill(page, "reports-schedule-name", "Mondays")
    fill(page, "reports-schedule-url", "http://2130706433/hook")
    fill(page, "reports-schedule-secret", "a-secret-of-more-than-16")
    page.locator("#reports-schedule-add").click()
    expect(error_beside(page, "reports-schedule-url")).to_contain_text("The host is a number")
    expect(page.locator("#reports-schedule-add")).to_be_enabled()
    fill(page, "reports-schedule-url", "https://hooks.example.com/maat")
    page.locator("#reports-schedule-add").click()
    listed = page.locator("#reports-schedules")
    expect(listed).to_contain_text("Mondays")
    (schedule,) = server.client.report_schedules()
    assert schedule["url"] == "https://hooks.example.com/maat"
    assert "a-secret-of-more-than-16" not in page.content()
    listed.get_by_role("button", name="Stop the schedule Mondays").click()
    expect(listed).to_contain_text("stopped")
    listed.get_by_role("button", name="Delete the schedule Mondays").click()
    asked = page.get_by_role("dialog", name="Delete this?")
    asked.get_by_role("button", name="Delete").click()
    expect(listed.locator(".state-title")).to_have_text("No report by schedule")
    assert server.client.report_schedules() == []


@pytest.mark.long
def test_a_service_without_a_cluster_says_so(empty_server: Any, inside: Any) -> None:
    page = inside.follow(f"{empty_server.url}/reports")
    expect(page.locator("#reports-document .state-title")).to_have_text("No cluster yet")


def test_on_paper_the_report_stands_alone(server: Any, inside: Any) -> None:
    page = inside.follow(f"{server.url}/reports")
    expect(page.locator(DRAWN).first).to_be_visible()
    page.emulate_media(media="print")
    try:
        for left_out in ("#reports-period", "#reports-keep", "#navbar", "#reports-add"):
            expect(page.locator(left_out)).to_be_hidden()
        expect(page.locator(".report-title")).to_be_visible()
        expect(page.locator(".report-section table").first).to_be_visible()
    finally:
        page.emulate_media(media="screen")
