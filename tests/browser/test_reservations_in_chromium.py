"""Browser tests of reservations, on the cluster and in a simulation."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from browser.pages import await_value, error_beside

pytestmark = pytest.mark.needs_chromium


def test_an_operator_reserves_gpus_and_gives_them_back(server: Any, inside: Any) -> None:
    page = inside.follow(f"{server.url}/cluster")
    page.click("#cluster-reserve-open")
    expect(page.locator("#cluster-reserve-gpus")).to_be_focused()
    page.fill("#cluster-reserve-type", "h100")
    page.fill("#cluster-reserve-holder", "default")
    page.keyboard.press("Enter")
    expect(error_beside(page, "cluster-reserve-type")).to_contain_text(
        "The cluster has no GPUs of this type. Use one of: t4 (24 GPUs)"
    )

    preview = page.locator("#cluster-reserve-preview")
    expect(preview).to_contain_text("of 24 × t4")  # all types, while it is none of them
    page.fill("#cluster-reserve-type", "a100")
    expect(preview).to_contain_text("of 16 × a100 are free now")
    expect(preview).not_to_contain_text("t4")
    page.click("#cluster-reserve-add")

    expect(page.locator("#cluster-reserved")).to_contain_text("4 × a100")
    expect(page.locator("#cluster-reserved")).to_contain_text("until it is removed")
    page.get_by_role("button", name="Remove the reservation of 4 × a100").click()
    asked = page.get_by_role("dialog", name="Remove this reservation?")
    expect(asked).to_contain_text("4 × a100 of tenant")
    asked.get_by_role("button", name="Keep it").click()
    expect(asked).to_be_hidden()
    assert len(server.client.reservations(server.cluster_id)) == 1
    page.get_by_role("button", name="Remove the reservation of 4 × a100").click()
    asked.get_by_role("button", name="Remove").click()
    expect(page.locator("#cluster-reserved")).to_contain_text("Nothing is reserved")
    assert server.client.reservations(server.cluster_id, over=True) == []
    assert [error for error in inside.witness.errors if "422" not in error] == []


@pytest.mark.parametrize("prefix", [pytest.param("simulate", marks=pytest.mark.long), "cluster"])
def test_a_reservation_tells_all_that_it_lacks_at_once_each_beside_its_field(
    server: Any, inside: Any, prefix: str
) -> None:
    page = inside.follow(f"{server.url}/{prefix}")
    page.click(
        f"#{'cluster-reserve-open' if prefix == 'cluster' else 'simulate-conditions summary'}"
    )
    page.fill(f"#{prefix}-reserve-gpus", "")
    await_value(page, f"{prefix}-reserve-gpus", "")
    page.click(f"#{prefix}-reserve-add")

    expect(error_beside(page, f"{prefix}-reserve-type")).to_contain_text("GPU type")
    expect(error_beside(page, f"{prefix}-reserve-gpus")).to_contain_text("from 1 up")
    expect(error_beside(page, f"{prefix}-reserve-holder")).to_contain_text("tenant")
    page.fill(f"#{prefix}-reserve-gpus", "2")
    expect(error_beside(page, f"{prefix}-reserve-gpus")).to_have_count(0)
    expect(error_beside(page, f"{prefix}-reserve-type")).to_be_visible()
