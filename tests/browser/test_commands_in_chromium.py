"""A command from the form to its log, on a service that runs commands."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from browser.barriers import every_barrier
from browser.conftest import serving, wait_until, worker_of
from browser.pages import error_beside, wait_in_page
from browser.processes import forked
from maat.client import Client

pytestmark = pytest.mark.needs_chromium


@pytest.fixture(scope="module")
def up(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A service that allows commands, with one cluster of two slots."""
    folder = tmp_path_factory.mktemp("up")
    worker = worker_of("rounds", "-B", "-s", str(folder / "beat"))
    with (
        serving(folder, demo=False, commands=True) as server,
        forked(worker, server.environment, folder / "worker.log"),
    ):
        server.client.create_cluster(
            {"name": "here", "shape": "cpu=1x2", "executor": "local", "round_seconds": 2}
        )
        yield server.client


def test_a_command_is_submitted_by_the_form_and_its_log_is_followed(
    up: Client, tab: Any, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    page = tab.open(f"{up.url}/submit")
    expect(page.locator("#submit-run-line")).to_be_visible()
    assert not page.locator("#submit-model").is_visible()
    page.get_by_text("Nothing", exact=True).locator("visible=true").click()
    page.fill("#submit-run-line", "sh -c 'echo oops")
    page.click("#submit-run-button")
    expect(error_beside(page, "submit-run-line")).to_contain_text("Close every quote.")
    expect(error_beside(page, "submit-run-name")).to_have_text("Give the job a name.")

    script = f'echo "<b>$WORD</b>"; until [ -e {gate} ]; do sleep 0.2; done; echo no more; exit 7'
    page.fill("#submit-run-name", "followed")
    page.fill("#submit-run-line", f"sh -c '{script}'")
    page.fill("#submit-run-cwd", str(tmp_path))
    page.fill("#submit-run-env", "WORD=hello")
    page.fill("#submit-run-gpu-count", "1")
    page.locator("#submit-run-gpu-count").blur()
    page.wait_for_url(re.compile("gpu_count=1"))
    address = parse_qs(urlsplit(page.url).query)
    assert (address["line"], address["cwd"]) == ([f"sh -c '{script}'"], [str(tmp_path)])
    assert "hello" not in page.url
    page.click("#submit-run-button")

    expect(page.locator("#job-log")).to_contain_text("<b>hello</b>")
    expect(page.locator("#job-command")).to_contain_text("WORD=hello")
    expect(page.locator("#job-attempts")).to_contain_text("runs")
    gate.touch()
    expect(page.locator("#job-log")).to_have_text("<b>hello</b>\nno more\n")
    expect(page.locator("#job-attempts")).to_contain_text("7 on rank 0")
    with page.expect_download() as download:
        page.click("#job-log-download")
    assert download.value.path().read_text() == "<b>hello</b>\nno more\n"
    (job,) = up.jobs()["items"]
    up.cancel_job(job["id"])


@pytest.mark.long
def test_a_secret_reaches_the_command_and_is_shown_nowhere_again(
    up: Client, tab: Any, tmp_path: Path
) -> None:
    secret = "hush-" + "1234"
    page = tab.open(f"{up.url}/submit")
    expect(page.locator("#submit-run-line")).to_be_visible()
    page.get_by_text("Nothing", exact=True).locator("visible=true").click()
    page.fill("#submit-run-name", "quiet")
    page.fill("#submit-run-line", "sh -c 'test ${#KEY} = 9 && echo it has it; sleep 600'")
    page.fill("#submit-run-cwd", str(tmp_path))
    page.fill("#submit-run-gpu-count", "1")
    page.get_by_label("Name of a secret").fill("KEY")
    page.click("#submit-run-more summary")
    page.fill("#submit-run-stop-seconds", "1000")
    page.click("#submit-run-more summary")
    page.click("#submit-run-button")
    expect(page.locator("#submit-run-secrets-error")).to_contain_text("Give the value of KEY")
    expect(error_beside(page, "submit-run-stop-seconds")).to_have_text("Give 1 to 900.")
    page.fill("#submit-run-stop-seconds", "9")
    page.get_by_placeholder("its value").fill(secret)
    page.click("#submit-run-button")
    expect(page).to_have_url(re.compile(r"/jobs/job_\w+"))

    expect(page.locator("#job-log")).to_have_text("it has it\n")
    expect(page.locator("#job-command")).to_contain_text("KEY")
    stored = page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])")
    assert secret not in page.content() + page.url + stored + str(page.context.cookies())
    page.get_by_text("Submit another like it").click()
    expect(page.locator("#submit-run-note")).to_contain_text("give the values of KEY")
    expect(page.get_by_label("Name of a secret")).to_have_value("KEY")
    expect(page.get_by_label("Value of KEY")).to_have_value("")
    expect(page.locator("#submit-run-stop-seconds")).to_have_value("9")
    assert secret not in page.content()
    page.get_by_text("Add a secret").click()
    expect(page.get_by_placeholder("its value")).to_have_count(2)
    page.reload()  # without the notice of the submission
    expect(page.locator("#submit-run-note")).to_contain_text("give the values of KEY")
    page.click("#submit-run-more summary")
    assert "\n".join(every_barrier(page)) == ""
    up.cancel_job(next(job["id"] for job in up.jobs()["items"] if job["name"] == "quiet"))


WRITES = r"""
import sys
write = sys.stdout.buffer.write
write(b"first\n" + b"x" * 1_000_000 + b"\n")
write(b"y" * 100_000 + b"\r" * 50_000 + b"z\r\n")
write(b"\x1b[31mred\x1b[0m <script>alert(1)</script> \xff\n10%\r60%\r100%\nlast\n")
"""


def test_a_log_of_any_bytes_is_shown_harmlessly(up: Client, tab: Any, tmp_path: Path) -> None:
    run = {"argv": [sys.executable, "-c", WRITES], "cwd": str(tmp_path)}
    job = up.submit_job(
        {"name": "odd", "model": "odd", "adaptivity": "rigid", "gpu_count": 1, "run": run}
    )
    page = tab.open(f"{up.url}/jobs/{job['id']}")
    shown = "z\nred <script>alert(1)</script> \ufffd\n100%\nlast\n"
    expect(page.locator("#job-log")).to_have_text(shown)
    expect(page.locator("#job-log-note")).to_contain_text("the end of a long log")


REPORTS = """
import json, os, pathlib, time, urllib.request
folder = pathlib.Path(os.environ["MAAT_ATTEMPT_DIR"])
passes = [
    {"per_gpu_batch_size": size, "node_count": 1, "replica_count": 1, "steps": 50,
     "step_seconds": {"mean": 0.04 + 0.005 * size, "m2": 0.01}}
    for size in (16, 32, 64)
]
body = {"sequence": 1, "kind": "hello", "incarnation": "one", "world_size": 1, "gpu_type": "cpu",
        "progress": {"effective_samples": 64.0}, "passes": passes}
address = f"{os.environ['MAAT_SERVER']}/api/v1/attempts/{os.environ['MAAT_ATTEMPT']}/reports"
head = {"Authorization": "Bearer " + (folder / "token").read_text(),
        "Content-Type": "application/json"}
urllib.request.urlopen(urllib.request.Request(address, json.dumps(body).encode(), head))
time.sleep(600)
"""


@pytest.mark.long
def test_what_was_learnt_of_a_command_is_drawn_beside_what_was_measured(
    up: Client, tab: Any, tmp_path: Path
) -> None:
    run = {"argv": [sys.executable, "-c", REPORTS], "cwd": str(tmp_path), "profile": False}
    sizes = {"batch_size": 32, "max_batch_size": 64, "max_gpus": 1}
    job = up.submit_job({"name": "learns", "model": "script", **sizes, "run": run})
    wait_until(lambda: up.belief(job["id"])["types"], "a fit")
    page = tab.open(f"{up.url}/jobs/{job['id']}")
    expect(page.locator("#job-belief")).to_contain_text("3 configurations measured in 150 steps")
    expect(page.locator("#job-restart")).to_contain_text("Until they can train")
    drawn = "document.querySelector('#job-step-times .js-plotly-plot')?.data?.map(t => t.name)"
    assert wait_in_page(page, drawn) == ["cpu, measured", "cpu, fitted: 1 GPU"]
    page.set_viewport_size({"width": 390, "height": 800})
    assert wait_in_page(page, "document.documentElement.scrollWidth <= window.innerWidth")
    up.cancel_job(job["id"])
