"""Clusters in a real browser: made, changed; a drain after a warning, a policy after a preview."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from sqlmodel import col, select

from backend.database import Database
from backend.models import Job, RoundPreview
from backend.settings import Settings
from browser.conftest import Server, serving
from worker.rehearsals.previews import run_preview

pytestmark = pytest.mark.needs_chromium


@pytest.fixture(scope="module")
def managed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A Maat with the demo cluster and no worker."""
    with serving(tmp_path_factory.mktemp("managed"), demo=True) as server:
        yield server


@pytest.fixture
def rows(managed: Server) -> Iterator[Database]:
    database = Database.of(Settings(_env_file=None, data_dir=managed.folder, database_url=""))
    yield database
    database.dispose()


def opened(server: Server, inside: Any) -> Page:
    page: Page = inside.open(f"{server.url}/admin?tab=clusters")
    expect(page.locator("#admin-nodes tbody tr")).to_have_count(11)
    return page


def test_the_slowdown_on_a_shared_gpu_is_changed_in_the_dialog(
    managed: Server, inside: Any
) -> None:
    page = opened(managed, inside)
    change = page.locator("#admin-clusters tr", has_text="demo").get_by_role("button")
    change.first.click()
    slowdown = page.get_by_label("Slowdown on a shared GPU").last
    expect(slowdown).to_have_value("")
    page.locator("#admin-cluster-jobs-per-gpu").fill("2")
    slowdown.fill("no such measurements")
    page.locator("#admin-cluster-save").click()
    box = page.locator(".mantine-TextInput-root", has=page.locator("#admin-cluster-interference"))
    expect(box.locator(".mantine-TextInput-error")).to_be_visible()
    slowdown.fill("1.5")
    page.locator("#admin-cluster-save").click()
    expect(page.locator("#admin-cluster-save")).to_be_hidden()
    demo = managed.client.cluster("demo")
    assert (demo["jobs_per_gpu"], demo["interference"]) == (2, 1.5)
    change.first.click()
    expect(slowdown).to_have_value("1.5")
    slowdown.fill("")
    page.locator("#admin-cluster-save").click()
    expect(box).to_contain_text("Give synthetic, a slowdown such as 1.25, or measurements.")
    page.keyboard.press("Escape")
    managed.client.change_cluster(demo["id"], {"jobs_per_gpu": 1}, version=demo["version"])
    assert [error for error in inside.witness.errors if "422" not in error] == []


def test_a_cluster_is_made_after_what_was_wrong_stood_beside_its_field(
    managed: Server, inside: Any
) -> None:
    page = opened(managed, inside)
    page.locator("#admin-new-cluster-make").click()
    expect(page.get_by_text("Give it a name.")).to_be_visible()
    page.locator("#admin-new-cluster-name").fill("lab")
    page.locator("#admin-new-cluster-shape").fill("lots of GPUs")
    page.locator("#admin-new-cluster-make").click()
    box = page.locator(".mantine-TextInput-root", has=page.locator("#admin-new-cluster-shape"))
    expect(box.locator(".mantine-TextInput-error")).to_be_visible()
    page.locator("#admin-new-cluster-shape").fill("t4=2x4")
    page.locator("#admin-new-cluster-make").click()
    row = page.locator("#admin-clusters tr", has_text="lab")
    expect(row).to_contain_text("makes rounds")
    assert row.locator("td").all_inner_texts()[4:7] == ["2", "8", "0"]

    row.get_by_role("button", name="Change lab").click()
    page.locator("#admin-cluster-round-seconds").fill("45")
    page.keyboard.press("Enter")
    expect(row).to_contain_text("45")


def test_a_drain_says_first_who_is_moved_and_who_holds_it_up(
    managed: Server, inside: Any, rows: Database
) -> None:
    held = (("mover", [0, 1], True), ("stayer", [2], False), ("last", [63], True))
    for name, gpus, preemptible in held:
        body = {"name": name, "model": "bert", "preemptible": preemptible, "cluster_id": "demo"}
        job_id = managed.client.submit_job(
            body | {"cluster_id": managed.client.cluster("demo")["id"]}
        )["id"]
        with rows.session_scope() as session:
            row = session.get_one(Job, job_id)
            row.state, row.gpu_type, row.gpus = "running", "t4", gpus
    page = opened(managed, inside)
    node = page.locator("#admin-nodes tr", has_text="t4-0")
    expect(node).to_contain_text("mover, stayer")
    page.get_by_role("button", name="Drain: t4-0").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("1 job may not be preempted")
    expect(dialog.locator("tr", has_text="mover")).to_contain_text("restart")
    expect(dialog.locator("tr", has_text="stayer")).to_contain_text("stays")
    page.locator("#admin-node-no").click()
    expect(dialog).to_be_hidden()
    assert managed.client.node("demo", "t4-0")["drained_gpus"] == []
    page.get_by_role("button", name="Drain: t4-0").click()
    page.locator("#admin-node-yes").click()
    expect(node).to_contain_text("drained")
    page.get_by_role("button", name="Undrain: t4-0").click()
    expect(node).to_contain_text("in service")

    page.get_by_role("button", name="GPUs: a100-1").click()
    page.locator("#admin-node-count").fill("4")
    expect(dialog.locator("tr", has_text="last")).to_contain_text("restart")
    page.locator("#admin-node-yes").click()
    expect(dialog).to_contain_text("GPU 4 is in service. Drain it first.")
    page.keyboard.press("Escape")

    page = inside.follow(f"{managed.url}/cluster")
    page.get_by_role("button", name="drain t4-0").click()
    expect(page.get_by_role("dialog")).to_contain_text("1 job may not be preempted")
    page.locator("#cluster-drain-yes").click()
    expect(page.get_by_role("button", name="restore t4-0")).to_be_visible()


@pytest.mark.long
def test_a_policy_is_applied_as_it_was_tried_unless_the_cluster_was_changed_since(
    managed: Server, inside: Any, rows: Database
) -> None:
    page = opened(managed, inside)
    page.locator("#admin-policy-policy").click()
    page.get_by_role("option", name="FIFO", exact=True).click()
    for changed_since in (True, False):
        page.locator("#admin-policy-preview").click()
        expect(page.locator("#admin-policy-cancel")).to_be_visible()
        with rows.session_scope(writes=False) as session:
            newest = select(RoundPreview.id).order_by(col(RoundPreview.id).desc())
            preview_id = session.exec(newest).first()
        run_preview(rows, str(preview_id))
        sides = page.locator("#admin-policy-sides")
        expect(sides).to_contain_text("Restarts of running jobs")
        assert sides.locator("tr", has_text="Policy").locator("td").all_inner_texts() == [
            "sia",
            "fifo",
        ]
        cluster = managed.client.cluster("demo")
        if changed_since:
            keep = {"keep_rounds": cluster["keep_rounds"] + 1}
            managed.client.change_cluster("demo", keep, version=cluster["version"])
        page.locator("#admin-policy-apply").click()
        if changed_since:
            expect(page.get_by_text("Somebody has changed the cluster")).to_be_visible()
            assert managed.client.cluster("demo")["policy"] == "sia"
    expect(page.locator("#admin-clusters tr", has_text="demo")).to_contain_text("fifo")
