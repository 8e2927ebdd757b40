"""`maat report` and its schedules, and the client's methods, against the service itself."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from deliveries import fail_delivery
from fastapi import FastAPI
from typer.testing import CliRunner

from backend.reports.csv_form import csv_of
from backend.reports.pdf.document import pdf_of
from maat.api.reports import Paper
from maat.cli.app import app as commands
from maat.client import ApiError, AsyncClient, Client
from maat.scheduling.errors import ParameterError

Run = Callable[..., str]
SECRET = "a-secret-of-more-than-16"
URL = "https://hooks.example.com/maat"


@pytest.fixture
def run(maat: Client, monkeypatch: pytest.MonkeyPatch) -> Run:
    """What a command prints. The client stays open: every command ends with closing its own."""
    monkeypatch.setattr(Client, "close", lambda _: None)
    monkeypatch.setattr("maat.client.Client", lambda *_, **__: maat)

    def invoke(*arguments: str) -> str:
        done = CliRunner().invoke(commands, arguments, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.stdout

    return invoke


def test_a_report_of_the_week_is_printed_with_its_questions_and_answers(
    run: Run, maat: Client
) -> None:
    printed = run("report", "--week")
    document = maat.report("demo", period=None)
    assert document["title"] in printed
    for figure in document["figures"]:
        assert figure["question"] in printed
        assert figure["formula"] in printed
    assert json.loads(run("report", "--week", "--json"))["title"] == document["title"]
    assert json.loads(run("report", "--last-month", "--json"))["period"]["name"] == "last-month"


def test_a_report_is_written_to_files_and_kept(run: Run, maat: Client, tmp_path: Path) -> None:
    pdf, table = tmp_path / "week.pdf", tmp_path / "week.csv"
    run("report", "--last-week", "--pdf", str(pdf), "--csv", str(table), "--paper", "letter")
    assert pdf.read_bytes().startswith(b"%PDF")
    rows = list(csv.reader(table.open(newline="", encoding="utf-8")))
    assert rows[0][:2] == ["report", "title"]
    document = json.loads(run("report", "--last-week", "--keep", "--pdf", str(pdf), "--json"))
    (kept,) = maat.reports(cluster="demo")
    assert maat.kept_report(kept["id"])["document"] == document
    assert maat.kept_report_file(kept["id"], "pdf") == pdf.read_bytes()
    assert kept["id"] in run("reports")
    maat.delete_report(kept["id"])
    assert maat.reports() == []


def test_one_command_writes_one_set_of_figures(run: Run, tmp_path: Path) -> None:
    """The period is not over: two requests would have the figures of two moments."""
    pdf, table = tmp_path / "week.pdf", tmp_path / "week.csv"
    printed = run("report", "--week", "--pdf", str(pdf), "--csv", str(table), "--json")
    document = json.loads(printed)
    assert document["period"]["is_partial"]
    assert table.read_bytes() == csv_of(document)
    assert pdf.read_bytes() == pdf_of(document, paper=Paper.A4)


def test_days_may_be_given_and_two_periods_may_not(run: Run) -> None:
    days = ("--from", "2026-11-02T00:00:00Z", "--to", "2026-11-09T00:00:00Z")
    asked = json.loads(run("report", *days, "--json"))
    assert asked["period"]["from"] == "2026-11-02T00:00:00.000Z"
    for wrong in (("--week", "--last-week"), ("--month", *days)):
        with pytest.raises(ParameterError, match="more than one period"):
            run("report", *wrong)


def test_a_schedule_is_made_listed_and_deleted(
    run: Run, maat: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ParameterError, match="is not set"):
        run("schedule-report", "Mondays", "--webhook", URL)
    with pytest.raises(ParameterError, match="is not clear"):
        run("schedule-report", "Mondays")
    monkeypatch.setenv("MAAT_WEBHOOK_SECRET", SECRET)
    made = run("schedule-report", "Mondays", "--webhook", URL, "--form", "csv", "--every", "month")
    (schedule,) = maat.report_schedules()
    assert made.startswith(schedule["id"])
    assert (schedule["every"], schedule["forms"]) == ("month", ["csv"])
    listed = run("report-schedules")
    assert "Mondays" in listed
    assert SECRET not in listed
    maat.deliver_report(schedule["id"])
    (delivery,) = maat.report_deliveries(schedule["id"])
    assert delivery["id"] in run("report-schedules", schedule["id"])
    with pytest.raises(ApiError, match="failed delivery"):
        maat.retry_report_delivery(schedule["id"], delivery["id"])
    changes = {"active": False}
    assert not maat.change_report_schedule(schedule["id"], changes, version=1)["active"]
    run("unschedule-report", schedule["id"])
    assert maat.report_schedules() == []


def test_a_kept_report_is_read_again_in_all_its_forms_and_deleted_after_a_question(
    run: Run, maat: Client, tmp_path: Path
) -> None:
    run("report", "--last-week", "--keep")
    (kept,) = maat.reports(cluster="demo")
    document = maat.kept_report(kept["id"])["document"]
    assert document["title"] in run("kept-report", kept["id"])
    assert json.loads(run("kept-report", kept["id"], "--json")) == document
    pdf, table, data = (tmp_path / f"kept.{form}" for form in ("pdf", "csv", "json"))
    files = ("--pdf", str(pdf), "--csv", str(table), "--json-file", str(data))
    assert run("kept-report", kept["id"], *files) == ""
    assert pdf.read_bytes().startswith(b"%PDF")
    assert next(csv.reader(table.open(newline="", encoding="utf-8")))[:2] == ["report", "title"]
    assert hashlib.sha256(data.read_bytes()).hexdigest() == kept["checksum"]

    refused = CliRunner().invoke(commands, ("delete-report", kept["id"]), input="n\n")
    assert refused.exit_code == 1
    assert document["title"] in refused.output
    assert maat.reports() != []
    assert run("delete-report", kept["id"], "--yes") == f"{kept['id']} is deleted\n"
    assert maat.reports() == []


def test_a_schedule_is_changed_paused_resumed_and_sent(
    run: Run, maat: Client, app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAAT_WEBHOOK_SECRET", SECRET)
    schedule = json.loads(run("schedule-report", "Mondays", "--webhook", URL, "--json"))["id"]
    with pytest.raises(ParameterError, match="are missing"):
        run("change-report-schedule", schedule)
    with pytest.raises(ParameterError, match="is not set"):
        run("change-report-schedule", schedule, "--secret-env", "NO_SUCH_VARIABLE")
    changed = run(
        *("change-report-schedule", schedule, "--name", "At nine", "--hour", "9"),
        *("--webhook", f"{URL}/nine", "--secret-env", "MAAT_WEBHOOK_SECRET"),
    )
    assert changed.startswith(f"At nine ({schedule}) is next due at ")
    assert SECRET not in changed
    told = maat.report_schedule(schedule)
    assert (told["name"], told["hour"], told["url"]) == ("At nine", 9, f"{URL}/nine")
    assert run("pause-report-schedule", schedule) == f"At nine ({schedule}) is paused\n"
    assert not maat.report_schedule(schedule)["active"]
    assert "is next due at" in run("resume-report-schedule", schedule)
    assert maat.report_schedule(schedule)["active"]

    assert "is on its way" in run("send-report", schedule)
    (delivery,) = maat.report_deliveries(schedule)
    fail_delivery(app, delivery["id"])
    assert run("retry-report", schedule, delivery["id"]).startswith(delivery["id"])
    assert [one["state"] for one in maat.report_deliveries(schedule)] == ["queued"]


def test_the_awaited_client_reads_files_too(app: FastAPI) -> None:
    import asyncio

    import httpx

    async def read() -> bytes:
        transport = httpx.ASGITransport(app=app, client=("127.0.0.1", 50000))
        async with AsyncClient("http://127.0.0.1:8000", transport=transport) as maat:
            return await maat.report_file("demo", "pdf", period=None)

    assert asyncio.run(read()).startswith(b"%PDF")
