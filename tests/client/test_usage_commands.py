"""`maat usage` and the commands of prices, against the service itself."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable

import pytest
from fastapi import FastAPI
from typer.testing import CliRunner
from usage_history import Held, cluster_at, lived_job, person, rounds_every

from backend.database import Database
from maat.cli.app import app as commands
from maat.client import Client
from maat.scheduling.errors import ParameterError

Run = Callable[..., str]


@pytest.fixture
def run(maat: Client, app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> Run:
    """What a command prints, of a cluster on which two tenants' jobs ran on a Monday."""
    monkeypatch.setattr(Client, "close", lambda _: None)
    monkeypatch.setattr("maat.client.Client", lambda *_, **__: maat)
    database: Database = app.state.database
    with database.session_scope() as session:
        cluster = cluster_at(session, 30.0)
        ann, ben = person(session, "red", "ann"), person(session, "-blue", "ben")
        lived_job(session, cluster, ann, Held(0, 10), labels={"team": "vision"})
        lived_job(session, cluster, ben, Held(12, 14), submitted=11.0)
        rounds_every(session, cluster, 2.0, until=28.0)

    def invoke(*arguments: str) -> str:
        done = CliRunner().invoke(commands, arguments, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    return invoke


def test_a_week_by_tenant_is_a_table_with_a_total(run: Run) -> None:
    said = run("usage", "--week", "--by", "tenant")

    rows = {words[0]: words for words in map(str.split, said.splitlines()) if words}
    assert rows["red"][1:4] == ["40.0", "40.0", "20.0"]
    assert rows["-blue"][1] == "8.0"
    assert rows["total"][1] == "48.0"
    assert rows["t4"][1:4] == ["240.0", "48.0", "192.0"]
    assert "2 jobs first started, after a wait of: mean 1,800 s" in said
    assert "48.0 GPU-hours have no price" in said


def test_csv_and_json_say_the_same_and_csv_runs_in_no_spreadsheet(run: Run) -> None:
    answer = json.loads(run("usage", "--week", "--json"))
    rows = list(csv.DictReader(io.StringIO(run("usage", "--week", "--csv"))))

    assert [row["name"] for row in rows] == ["red", "'-blue", "total"]
    assert float(rows[-1]["allocated_gpu_hours"]) == answer["total"]["allocated_gpu_hours"]
    assert [float(row["useful_gpu_hours"]) for row in rows[:2]] == [
        row["figures"]["useful_gpu_hours"] for row in answer["rows"]
    ]


def test_a_price_is_set_counts_is_corrected_and_is_removed(run: Run) -> None:
    said = run("price", "t4", "0.35", "EUR", "--from", "2026-03-02")
    assert "t4 costs 0.35 EUR per GPU-hour from 2026-03-02 on" in said

    assert "16.80 EUR" in run("usage", "--week")
    price_id = said.split(":")[0]
    assert price_id in run("prices")
    with pytest.raises(ParameterError, match="are missing"):
        run("change-price", price_id)
    corrected = run("change-price", price_id, "--amount", "0.70", "--from", "2026-03-01")
    assert corrected == f"{price_id}: t4 costs 0.70 EUR per GPU-hour from 2026-03-01 on\n"
    assert "33.60 EUR" in run("usage", "--week")
    assert run("unprice", price_id) == f"{price_id} is removed\n"
    assert "No price yet" in run("prices")


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("usage", "--week", "--month"), "--period"),
        (("usage", "--json", "--csv"), "--csv"),
        (("submit", "a", "--model", "bert", "--label", "vision"), "--label"),
        (("submit", "a", "--model", "bert", "--label", "a=1", "--label", "a=2"), "--label"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_the_service_is_asked(
    arguments: tuple[str, ...], field: str
) -> None:
    with pytest.raises(ParameterError) as refused:
        CliRunner().invoke(commands, arguments, catch_exceptions=False)

    assert refused.value.field == field


def test_labels_are_submitted_and_find_their_job(run: Run) -> None:
    run("submit", "mine", "--model", "bert", "--label", "team=speech", "--label", "stage=test")

    assert "mine" in run("jobs", "--label", "team=speech", "--label", "stage=test")
    assert "mine" not in run("jobs", "--label", "team=vision")
