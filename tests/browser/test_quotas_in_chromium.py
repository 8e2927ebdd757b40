"""Quotas in a real browser: the tab of administrators, one's own team's, and priorities."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from browser.conftest import Server, serving

pytestmark = pytest.mark.needs_chromium


@pytest.fixture(scope="module")
def bounded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A Maat with the demo cluster (16 a100), two tenants, and no worker."""
    with serving(tmp_path_factory.mktemp("quotas"), demo=True) as server:
        server.client.create_tenant("vision")
        yield server


def choose(page: Page, field: str, words: str) -> None:
    page.locator(f"#{field}").click()
    page.get_by_role("option", name=words).click()


def test_an_admin_sets_changes_and_removes_a_quota_and_sees_what_is_wrong_beside_its_field(
    bounded: Server, inside: Any
) -> None:
    page = inside.open(f"{bounded.url}/admin")
    page.get_by_role("link", name="Quotas", exact=True).click()
    expect(page).to_have_url(re.compile(r"/admin\?.*tab=quotas"))
    expect(page.locator("#admin-quotas")).to_contain_text("No quota")

    page.get_by_role("button", name="Set a quota").click()
    page.locator("#admin-quota-set").click()
    expect(page.get_by_text("Choose a tenant.")).to_be_visible()
    choose(page, "admin-quota-tenant", "vision")
    choose(page, "admin-quota-gpu-type", "a100")
    page.locator("#admin-quota-guaranteed").fill("17")
    page.locator("#admin-quota-set").click()
    wrong = page.locator(".mantine-NumberInput-root", has=page.locator("#admin-quota-guaranteed"))
    expect(wrong).to_contain_text("The cluster has 16 a100. Guarantee at most 16.")
    page.locator("#admin-quota-guaranteed").fill("8")
    page.locator("#admin-quota-ceiling").fill("12")
    page.locator("#admin-quota-set").click()
    row = page.locator("#admin-quotas tbody tr")
    expect(row).to_have_count(1)
    assert row.locator("td").all_inner_texts()[4:9] == ["0", "8", "12", "0", "0"]
    expect(row.get_by_role("img", name="0 of 12 a100, 8 guaranteed")).to_be_visible()

    row.get_by_role("button", name="Change the quota of vision on a100").click()
    expect(page.locator("#admin-quota-tenant")).to_be_disabled()
    page.locator("#admin-quota-ceiling").fill("4")
    page.locator("#admin-quota-set").click()
    expect(page.get_by_text("The ceiling is below the 8 guaranteed GPUs.")).to_be_visible()
    page.locator("#admin-quota-ceiling").fill("")
    page.locator("#admin-quota-set").click()
    expect(row.locator("td").nth(6)).to_have_text("none")
    quota = bounded.client.quota(bounded.client.clusters()[0]["id"], "vision", "a100")
    assert (quota["guaranteed"], quota["ceiling"]) == (8, None)

    row.get_by_role("button", name="Change the quota of vision on a100").click()
    page.locator("#admin-quota-remove").click()
    expect(page.locator("#admin-quotas")).to_contain_text("No quota")
    assert inside.witness.errors == []


def test_an_admin_weighs_a_tenant(bounded: Server, inside: Any) -> None:
    page = inside.open(f"{bounded.url}/admin?tab=quotas")
    choose(page, "admin-weight-tenant", "vision (1)")
    page.locator("#admin-weight-weight").fill("0")
    page.locator("#admin-weight-set").click()
    expect(page.locator("#admin-weights")).to_contain_text("Give 0.001 to 1 000.")
    page.locator("#admin-weight-weight").fill("2.5")
    page.locator("#admin-weight-set").click()
    expect(page.get_by_text("has the weight 2.5.")).to_be_visible()
    assert bounded.client.tenant("vision")["weight"] == 2.5
    assert inside.witness.errors == []


def test_ones_own_teams_quota_stands_on_ones_account(bounded: Server, inside: Any) -> None:
    where = bounded.client.clusters()[0]["id"]
    bounded.client.set_quota(where, "default", "rtx", {"guaranteed": 4, "ceiling": 6})
    bounded.client.set_quota(where, "vision", "rtx", {"ceiling": 5})
    page = inside.open(f"{bounded.url}/account")
    expect(page.locator("#account-quota tr")).to_have_count(1)
    expect(page.locator("#account-quota tr")).to_contain_text("0 of 6 rtx, 4 guaranteed")
    assert inside.witness.errors == []


@pytest.mark.long
def test_the_form_offers_classes_of_priority(bounded: Server, inside: Any) -> None:
    page = inside.open(f"{bounded.url}/submit")
    page.locator("#submit-name").fill("soon")
    choose(page, "submit-model", "bert")
    choose(page, "submit-priority", "Urgent")
    page.locator("#submit-button").click()
    expect(page.locator(".page-title")).to_have_text("soon")
    expect(page.locator("#content")).to_contain_text("urgent")
    assert bounded.client.jobs(q="soon")["items"][0]["priority"] == 20
    assert inside.witness.errors == []
