"""`maat report` and its schedules, and the client's methods, against the service itself."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from fastapi import FastAPI
from typer.testing import CliRunner

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


def test_the_awaited_client_reads_files_too(app: FastAPI) -> None:
    import asyncio

    import httpx

    async def read() -> bytes:
        transport = httpx.ASGITransport(app=app, client=("127.0.0.1", 50000))
        async with AsyncClient("http://127.0.0.1:8000", transport=transport) as maat:
            return await maat.report_file("demo", "pdf", period=None)

    assert asyncio.run(read()).startswith(b"%PDF")
