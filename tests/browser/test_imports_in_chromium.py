"""A replay in two clicks, another system's jobs, and its nodes, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from browser.conftest import Server, serving
from browser.pages import await_value
from maat.client import calls

pytestmark = pytest.mark.needs_chromium

SACCT = """\
JobIDRaw|Account|Submit|Start|End|State|AllocTRES
1|vision|2026-01-05T10:00:00|2026-01-05T10:01:00|2026-01-05T11:01:00|COMPLETED|gres/gpu:a100=4
2|<b>nlp</b>|2026-01-05T10:05:00|Unknown|Unknown|CANCELLED by 7|gres/gpu=1
3|nlp|2026-01-05T10:06:00|2026-01-05T10:07:00|2026-01-05T10:17:00|FAILED|gres/gpu:titan=1
"""
NODES = "NodeName=n1 Gres=gpu:a100:4 State=IDLE\nNodeName=n2 Gres=gpu:titan:2 State=DOWN\n"


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A Maat with the demo cluster, one job, and no worker."""
    with serving(tmp_path_factory.mktemp("asked"), demo=True) as server:
        server.client.submit_job({"name": "one", "model": "bert", "cluster_id": "demo"})
        yield server


def newest(server: Server) -> dict[str, Any]:
    return dict(server.client.send(calls.simulations(limit=1))["items"][0])


def test_the_last_day_is_replayed_under_another_policy_in_two_clicks(
    asked: Server, inside: Any
) -> None:
    page: Page = inside.open(f"{asked.url}/cluster")
    page.get_by_role("link", name="Replay under another policy").click()
    expect(page.locator("#simulate-name")).to_have_value("Replay of demo, last 24 h")
    expect(page.locator("#simulate-replay-says")).to_contain_text("is played as it is set on demo")
    page.get_by_role("button", name="Run simulation").click()
    page.wait_for_url("**/simulations/*")
    request = newest(asked)["request"]
    live = asked.client.cluster("demo")
    assert request["traces"][0]["since_seconds_ago"] == 86_400
    assert request["traces"][0]["window"]["submitted"] == 1
    assert request["runs"][0]["policy"] == live["policy"]
    assert len({run["policy"] for run in request["runs"]}) == 3
    assert request["runs"][0]["placer"] == live["placer"]
    assert request["round_seconds"] == live["round_seconds"]


def test_an_import_shows_what_becomes_of_each_row_before_it_is_simulated(
    asked: Server, inside: Any
) -> None:
    page: Page = inside.open(f"{asked.url}/simulate")
    page.get_by_text("Import", exact=True).click()
    page.get_by_role("button", name="Run simulation").click()
    expect(page.locator("#simulate-import-refused")).to_contain_text("Choose a file to import")
    file: Any = {"name": "jobs.txt", "mimeType": "text/plain", "buffer": SACCT.encode()}
    page.locator("#simulate-import-upload input[type=file]").set_input_files(file)
    report = page.locator("#simulate-import-report")
    expect(report).to_contain_text("1 job of 3 rows")
    file |= {"name": "jobs", "buffer": SACCT.encode() + b"\n"}  # no ending, as Philly's log
    page.locator("#simulate-import-upload input[type=file]").set_input_files(file)
    expect(page.locator("#simulate-import-file")).to_have_text("jobs")
    expect(report).to_contain_text("its GPU type titan is not known")
    expect(report).to_contain_text("dropped: it never ran")
    page.locator("#simulate-import-types").fill("titan=a100")
    expect(report).to_contain_text("2 jobs of 3 rows")
    expect(page.locator("#simulate-import-refused")).to_be_empty()
    choose = page.locator("#simulate-import-upload input[type=file]")
    choose.set_input_files({**file, "name": "large", "buffer": b"x" * 8_000_001})
    expect(page.locator("#simulate-import-csv-error")).to_contain_text("Choose a smaller file")
    expect(report).to_be_empty()
    choose.set_input_files(file)  # the same as before
    expect(report).to_contain_text("2 jobs of 3 rows")
    expect(page.locator("#simulate-import-csv-error")).to_be_empty()
    page.get_by_role("button", name="Run simulation").click()
    page.wait_for_url("**/simulations/*")
    assert newest(asked)["request"]["traces"][0]["kind"] == "csv"


def test_a_csv_shows_its_first_lines_before_its_columns_are_chosen(
    asked: Server, inside: Any
) -> None:
    page: Page = inside.open(f"{asked.url}/simulate")
    page.get_by_text("Import", exact=True).click()
    page.locator("#simulate-import-format").click()
    page.get_by_role("option", name="Any other CSV").click()
    text = "sep=;\nwhen;n;seconds;<b>who</b>\n0;2;60;ann\n30;1;90;ben\n"
    file: Any = {"name": "jobs.csv", "mimeType": "text/csv", "buffer": text.encode()}
    page.locator("#simulate-import-upload input[type=file]").set_input_files(file)
    lines = page.get_by_role("region", name="The first lines of the file")
    expect(lines.locator("tr")).to_have_text(["whennseconds<b>who</b>", "0260ann", "30190ben"])
    report = page.locator("#simulate-import-report")
    expect(report).to_have_text("Choose which column is: Submitted at, GPUs, Ran for.")
    expect(report.locator(".form-error")).to_have_count(0)
    for field, column in (("submit", "when"), ("gpus", "n"), ("duration", "seconds")):
        page.locator(f"#simulate-import-map-{field}").click()
        page.get_by_role("option", name=column, exact=True).click()
    expect(report).to_contain_text("2 jobs of 2 rows")


def test_what_a_file_leaves_open_is_asked_beside_the_field_of_the_answer(
    asked: Server, inside: Any
) -> None:
    page: Page = inside.open(f"{asked.url}/simulate")
    page.get_by_text("Import", exact=True).click()
    page.locator("#simulate-import-format").click()
    page.get_by_role("option", name="Any other CSV").click()
    text = "job;submit;arrival;gpus;duration\n1;2026-03-02;2026-03-02;4;1.800\n"
    file: Any = {"name": "jobs.csv", "mimeType": "text/csv", "buffer": text.encode()}
    page.locator("#simulate-import-upload input[type=file]").set_input_files(file)
    field = page.locator("#simulate-import-map-submit")
    submitted = page.locator(".mantine-Select-root", has=field)
    expect(submitted).to_contain_text("Perhaps submit or arrival")
    field.click()
    page.get_by_role("option", name="submit", exact=True).click()
    report = page.locator("#simulate-import-report")
    expect(report).to_contain_text("answer the question beside its field")
    decimal = page.locator(".mantine-Select-root", has=page.locator("#simulate-import-decimal"))
    expect(decimal).to_contain_text("whether a comma or a point stands before the decimals")
    page.locator("#simulate-import-decimal").click()
    page.get_by_role("option", name="comma: 1.234,5").click()
    expect(report).to_contain_text("1 job of 1 row. 2 GPU-hours in all")
    expect(decimal.locator(".mantine-Select-error")).to_have_count(0)


@pytest.mark.long
def test_pasted_nodes_are_shown_before_they_become_a_cluster(asked: Server, inside: Any) -> None:
    page: Page = inside.open(f"{asked.url}/admin?tab=clusters")
    page.locator("#admin-new-cluster-name").fill("pasted")
    page.locator("#admin-new-cluster-nodes-text").fill(NODES)
    box = page.locator(".mantine-InputWrapper-root", has=page.locator("textarea"))
    expect(box.locator(".mantine-InputWrapper-error")).to_contain_text("is no known GPU type")
    page.locator("#admin-new-cluster-types").fill("titan=t4")
    preview = page.locator("#admin-new-cluster-nodes-preview")
    expect(preview).to_contain_text("2 nodes with 6 GPUs")
    expect(preview).to_contain_text("n2 (DOWN)")
    await_value(page, "admin-new-cluster-nodes-text", NODES)
    page.locator("#admin-new-cluster-make").click()
    expect(page.locator("#admin-clusters tr", has_text="pasted")).to_be_visible()
    nodes = asked.client.nodes("pasted")["items"]
    assert [(node["name"], node["gpu_type"]) for node in nodes] == [("n1", "a100"), ("n2", "t4")]
