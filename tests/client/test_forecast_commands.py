"""`maat forecast`, `maat submit --forecast` and `maat calibration`, answered by the worker."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import pytest
from fastapi import FastAPI
from sqlmodel import select
from typer.testing import CliRunner

from backend.app import provide
from backend.clocktime import utc_now
from backend.database import Database
from backend.models import Cluster
from backend.queue import ANSWER_WHAT_IF
from maat.cli.app import app as commands
from maat.client import Client
from maat.library.what_if import what_if as ask_what_if
from maat.models.catalog import load_catalog
from maat.scheduling.errors import MaatError, ParameterError
from worker.forecasts import what_if, work
from worker.live.step import step_cluster

Run = Callable[..., str]


class WorkerAtOnce:
    """A queue whose worker answers a question as soon as it is asked."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app

    def send(self, task: str, *arguments: str) -> None:
        if task == ANSWER_WHAT_IF:
            what_if.answer(self._app.state.database, *arguments)

    def waiting(self) -> Mapping[str, int]:
        return {}


@pytest.fixture
def run(maat: Client, app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> Run:
    provide(app, app.state.settings, queue=WorkerAtOnce(app))
    monkeypatch.setattr(Client, "close", lambda _: None)
    monkeypatch.setattr("maat.client.Client", lambda *_, **__: maat)

    def invoke(*arguments: str) -> str:
        done = CliRunner().invoke(commands, arguments, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    return invoke


def go_to(database: Database, seconds: float) -> str:
    """Make a round at this cluster time, and forecast."""
    with database.session_scope() as session:
        cluster = session.exec(select(Cluster)).one()
        cluster.speed, cluster.anchor_seconds = 1e-9, seconds
        cluster.anchor_wall = utc_now()
        session.add(cluster)
    step_cluster(database, cluster.id)
    work.work_out(database, cluster.id)
    return cluster.id


def test_a_job_tells_when_it_ends(run: Run, maat: Client, app: FastAPI) -> None:
    job = maat.submit_job({"name": "mine", "model": "ncf", "work_scale": 0.5})
    assert "No forecast yet" in run("forecast", "mine")
    go_to(app.state.database, 3600.0)  # it is profiled by then, however long the lines above took

    shown = run("forecast", "mine")

    assert "Ends about " in shown
    assert " at P90" in shown
    assert "Its pace is assumed: no job has ended yet." in shown
    found = json.loads(run("forecast", job["id"], "--json"))
    assert found["state"] == "made"
    assert found["times"]["end"]["p90_seconds"] >= found["times"]["end"]["p50_seconds"] > 0


def test_a_job_is_forecast_before_it_is_submitted(run: Run, maat: Client, app: FastAPI) -> None:
    go_to(app.state.database, 60.0)

    shown = run("submit", "new", "--model", "ncf", "--max-gpus", "8", "--forecast")

    assert "It would start in about" in shown
    assert "and end in about" in shown
    assert "Its pace is assumed: no job has ended yet." in shown
    assert "No other job ends earlier or later." in shown
    (before,) = [line for line in shown.splitlines() if line.startswith("as it is")]
    assert before.split()[3:] == ["0", "-", "-", "-", "-", "0"]
    assert maat.jobs()["items"] == []


def test_changes_of_the_cluster_are_shown_side_by_side(
    run: Run, maat: Client, app: FastAPI
) -> None:
    rigid = {"adaptivity": "rigid", "gpu_count": 16, "batch_size": 512, "gpu_types": ["a100"]}
    for name in ("first", "second"):
        maat.submit_job({"name": name, "model": "cifar10", "work_scale": 0.3, **rigid})
    go_to(app.state.database, 60.0)

    more = json.loads(run("forecast", "--add", "a100=2x8", "--json"))
    assert [one["p50_seconds"] < 0 for one in more["slowed"]] == [True]
    assert more["after"]["mean_end_seconds"] < more["before"]["mean_end_seconds"]

    assert more["before"]["waiting"] == 1
    assert more["before"]["mean_start_seconds"] < more["before"]["mean_end_of_waiting_seconds"]

    assert more["notes"] == []

    shown = run("forecast", "--add", "rtx=1x8")
    assert "No job here can use rtx: 2 jobs do not allow it." in shown
    assert "Means are of the 1 waiting job that starts and ends, and of all 2 jobs" in shown

    shown = run("forecast", "--drain", "a100-0", "--policy", "srtf")
    for words in ("ends later by", "as it is", "as asked", "later than 14 days", "first"):
        assert words in shown
    for words in ("As it is: sia with whole-node. As asked: srtf with packed-sticky.",):
        assert words in shown


def test_bounds_on_moves_are_asked_and_said(run: Run, maat: Client, app: FastAPI) -> None:
    maat.submit_job({"name": "first", "model": "cifar10", "work_scale": 0.3})
    go_to(app.state.database, 60.0)

    shown = run("forecast", "--least-stay-seconds", "10m", "--most-moves-per-hour", "2")
    assert "As it is: no bound. As asked: least stay 10 min, 2 moves an hour at most." in shown
    assert "sia with" not in shown
    asked = json.loads(run("forecast", "--least-stay-seconds", "10m", "--json"))
    assert asked["request"]["changes"] == {"least_stay_seconds": 600.0}
    assert (asked["before"]["least_stay_seconds"], asked["after"]["least_stay_seconds"]) == (
        None,
        600.0,
    )
    run("change-cluster", maat.clusters()[0]["id"], "--least-stay-seconds", "1h")
    freed = json.loads(run("forecast", "--least-stay-seconds", "none", "--json"))
    assert freed["request"]["changes"] == {"least_stay_seconds": None}
    assert freed["after"]["least_stay_seconds"] is None
    assert freed["before"]["least_stay_seconds"] == 3600.0


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("--least-stay-seconds", "soon", "least_stay_seconds: is no duration"),
        ("--least-stay-seconds", "31d", "least_stay_seconds: is no time from 0 to 2592000 s"),
        ("--most-moves-per-hour", "0", "most_moves_per_hour: is no whole number from 1 to 3600"),
        ("--most-moves-per-hour", "many", "most_moves_per_hour: is no whole number"),
    ],
)
def test_a_bound_that_cannot_be_asked_is_refused_by_field_value_and_remedy(
    run: Run, option: str, value: str, says: str
) -> None:
    with pytest.raises(ParameterError) as refused:
        run("forecast", option, value)
    assert says in str(refused.value)
    assert f"(got '{value}')" in str(refused.value)


def test_what_cannot_be_asked_ends_with_its_remedy(run: Run) -> None:
    with pytest.raises(ParameterError, match="Name a job; or ask what if"):
        run("forecast")
    with pytest.raises(ParameterError, match="beside a change"):
        run("forecast", "mine", "--policy", "fifo")
    with pytest.raises(Exception, match="no node of this name"):
        run("forecast", "--drain", "nowhere")


def test_a_question_that_fails_says_why(
    run: Run, app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ValueError("broken")

    monkeypatch.setattr(what_if, "side_by_side", broken)
    with pytest.raises(MaatError, match="because of a fault of Maat"):
        run("forecast", "--policy", "fifo")


def test_the_calibration_is_a_table(run: Run, maat: Client, app: FastAPI) -> None:
    maat.submit_job({"name": "mine", "model": "ncf", "work_scale": 0.1})
    for seconds in range(60, 1800, 120):
        go_to(app.state.database, float(seconds))
    shown = run("calibration", "--kind", "submission")
    assert "come due" in shown
    (row,) = [line for line in shown.splitlines() if line.startswith("end") and "P90" in line]
    assert row.split()[2] == "1"
    (near,) = [
        line
        for line in shown.splitlines()
        if line.startswith("end") and "P90" not in line and "P50" not in line
    ]
    assert near.split()[1] == "1"
    assert "within 10 min" in shown


def test_a_played_job_is_believed_to_restart_as_its_rounds_reckon(
    run: Run, maat: Client, app: FastAPI
) -> None:
    job = maat.submit_job({"name": "mine", "model": "ncf", "work_scale": 0.5})
    go_to(app.state.database, 3600.0)
    seconds = load_catalog()["ncf"].restart_seconds

    found, shown = maat.belief(job["id"]), run("belief", "mine")

    assert (found["played"], found["restart_seconds"], found["restart"]) == (True, seconds, [])
    assert f"A restart takes about {seconds:g} s, by the catalog." in shown
    assert "plays its jobs by the catalog and measures no steps of its own" in shown
    assert f"restart of {seconds:g} s" in run("explain", "mine")
    assert "No step time was measured yet" not in shown


def test_the_library_asks_by_the_same_names_into_tables(
    run: Run, maat: Client, app: FastAPI
) -> None:
    rigid = {"adaptivity": "rigid", "gpu_count": 16, "batch_size": 512, "gpu_types": ["a100"]}
    for name in ("first", "second"):
        maat.submit_job({"name": name, "model": "cifar10", "work_scale": 0.3, **rigid})
    go_to(app.state.database, 60.0)

    more = ask_what_if(client=maat, add="a100=2x8", progress=False)

    now, then = more.sides["mean_end_seconds"]
    assert more.sides["side"] == ["as it is", "as asked"]
    assert then < now
    assert len(more.slowed) == 1
    assert more.slowed["name"][0] in ("first", "second")
    assert more.slowed["p50_seconds"][0] < 0
    assert more.slowed["name"][0] in more._repr_html_()
    one_more = ask_what_if(client=maat, job={"name": "third", "model": "ncf"}, progress=False)
    assert one_more.answer["job"] is not None
    with pytest.raises(ParameterError, match="change: is missing"):
        ask_what_if(client=maat)
